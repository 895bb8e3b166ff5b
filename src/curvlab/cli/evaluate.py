"""Evaluate a finished run again, on its own data or on another graph.

curvlab evaluate RUN                   recompute the reported metrics
curvlab evaluate RUN --data FOLDER     metrics on another graph, where the model is inductive

RUN is a run's folder or its best.ckpt; FOLDER is as dataset=graph_folder reads it. Nodes of another
graph are scored in the parts that it comes with, else all that have a label; of its edges, those
that the task's split holds out; all of them for reconstruction.
"""

import argparse

import curvlab
from curvlab.cli.verbs import Verb, add_run_arguments, graph_in, show


def _evaluate(args: argparse.Namespace) -> None:
    import pandas as pd

    run = curvlab.load(args.run, trust=args.trust)
    graph = graph_in(args.data, run)
    found = run.evaluate(args.accelerator, graph)
    rows = [(part, *metric) for part, metrics in found.items() for metric in metrics.items()]
    table = pd.DataFrame(rows, columns=["part", "metric", "value"])
    show(table, f"{run.config.model.label} on {args.data or run.config.dataset.label}")
    if graph is None:
        again = found["test"][run.task.score]
        same = "the same to the last digit" if again == run.kept["score"] else f"now {again!r}"
        print(f"reported: test {run.task.score} {run.kept['score']!r}, {same}")


main = Verb("evaluate", __doc__, _evaluate)
add_run_arguments(main)
main.add_argument("--data", metavar="FOLDER", help="another graph")
main.add_argument("--accelerator", help="auto, cpu or cuda (default: the run's)")
