"""Evaluate a finished run on the data of its training or on another graph.

curvlab evaluate RUN                   recompute the reported metrics
curvlab evaluate RUN --data FOLDER     metrics on another graph, with an inductive model

RUN is a run's folder or its best.ckpt; FOLDER has the files that dataset=graph_folder reads. Node
classification scores the parts that this graph defines, else all labelled nodes; link
prediction the edges that its split holds out; reconstruction all edges. Reference
points that the result lacks are computed and added to its file.
"""

import argparse
from typing import TYPE_CHECKING

import curvlab
from curvlab.cli.verbs import Verb, add_run_arguments, graph_in, show
from curvlab.results.result import FILE

if TYPE_CHECKING:
    from curvlab.run.load import Run


def _evaluate(args: argparse.Namespace) -> None:
    import pandas as pd

    run = curvlab.load(args.run, trust=args.trust)
    graph = graph_in(args.data, run)
    scores = run.evaluate(args.accelerator, graph)
    rows = [(part, *metric) for part, metrics in scores.items() for metric in metrics.items()]
    table = pd.DataFrame(rows, columns=["part", "metric", "value"])
    show(table, f"{run.config.model.label} on {args.data or run.config.dataset.label}")
    if graph is None:
        _add_references(run)
        score = scores["test"][run.task.score]
        reported = run.checkpoint["score"]
        comparison = "the same to the last digit" if score == reported else f"now {score!r}"
        print(f"reported: test {run.task.score} {reported!r}, {comparison}")


def _add_references(run: "Run") -> None:
    """Compute the reference points that a run's result lacks, add them to its file, print them."""
    from curvlab.results.references import format_references
    from curvlab.run.references import references_of

    result = run.result
    if result is None:
        return
    if not result.references:
        result.references = references_of(run.task, run.data, result, run.config)
        if run.folder is not None and result.references and (run.folder / FILE).exists():
            result.save(run.folder)
    if result.references:
        print(f"reference: {format_references(result.references)}")


main = Verb("evaluate", __doc__, _evaluate)
add_run_arguments(main)
main.add_argument("--data", metavar="FOLDER", help="another graph")
main.add_argument("--accelerator", help="auto, cpu or cuda (default: the run's)")
