"""Predict with a finished run: classes, links, or the missing ends of triples.

curvlab predict RUN                              classes of all nodes, or the links of each
curvlab predict RUN --node ID --k 10             of one node (--node may be repeated)
curvlab predict RUN --unlabelled                 classes of the nodes without a label
curvlab predict RUN --head X --relation R        tails that complete a triple
curvlab predict RUN --relation R --tail Y        heads that do
curvlab predict RUN --head X --relation R --tail Y   score and rank of a triple
curvlab predict RUN --pairs pairs.csv            columns head, relation, tail; empty ends are filled
curvlab predict RUN --data FOLDER                on another graph, where the model is inductive

RUN is a run's folder or its best.ckpt. Names are those of the data set's files.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import curvlab
from curvlab.cli.verbs import Verb, graph_in, show, take_run, write
from curvlab.errors import UsageError

if TYPE_CHECKING:
    from curvlab.tasks.predictions import Query


def _predict(args: argparse.Namespace) -> None:
    run = curvlab.load(args.run, trust=args.trust)
    query = {name: getattr(args, name) for name in ("k", "known", "unlabelled")}
    graph = graph_in(args.data, run)
    found = run.predict(graph, nodes=args.node, queries=_queries(args), **query)
    if args.output:
        write(found, args.output)
        print(f"{len(found):,} rows in {args.output}")
    else:
        show(found, f"{run.config.model.label} on {run.config.dataset.label}")


def _queries(args: argparse.Namespace) -> "list[Query]":
    import pandas as pd

    if args.pairs is None:
        some = (args.head, args.relation, args.tail)
        if any(some) and not args.relation:
            raise UsageError("--head and --tail need --relation, the name of one")
        return [some] if any(some) else []
    try:
        table = pd.read_csv(args.pairs, dtype=str, keep_default_na=False)
    except (ValueError, UnicodeDecodeError) as error:
        raise UsageError(f"--pairs {args.pairs} is not a CSV table: {error}") from error
    for end in ("head", "tail"):
        if end not in table:
            table[end] = ""
    if "relation" not in table or (table["relation"] == "").any():
        raise UsageError(
            f"--pairs {args.pairs} needs the columns head, relation, tail in its first line, and a "
            "relation in every row"
        )
    ends = table[["head", "relation", "tail"]].itertuples(index=False)
    return [(head or None, relation, tail or None) for head, relation, tail in ends]


main = Verb("predict", __doc__, _predict)
take_run(main)
main.add_argument("--node", action="append", help="id of a node (default: all)")
main.add_argument("--k", type=int, default=10, help="answers of a node or a pair (10)")
main.add_argument("--unlabelled", action="store_true", help="only nodes without a label")
main.add_argument("--head", help="name of an entity")
main.add_argument("--relation", help="name of a relation")
main.add_argument("--tail", help="name of an entity")
main.add_argument("--pairs", type=Path, help="CSV of pairs and triples")
main.add_argument(
    "--known",
    action=argparse.BooleanOptionalAction,
    help="list links and triples that the data have, marked (default: triples, not links)",
)
main.add_argument("--data", metavar="FOLDER", help="another graph, as dataset=graph_folder")
main.add_argument("--output", type=Path, metavar="FILE", help=".csv or .parquet, all rows")
