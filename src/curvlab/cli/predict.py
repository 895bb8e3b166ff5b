"""Predict with a finished run: classes, links, or missing ends of triples.

curvlab predict RUN                              classes of all nodes, or the links of each
curvlab predict RUN --node ID --k 10             for one node (--node may be repeated)
curvlab predict RUN --unlabelled                 classes of the nodes without a label
curvlab predict RUN --head X --relation R        tails that complete a triple
curvlab predict RUN --relation R --tail Y        heads that complete a triple
curvlab predict RUN --head X --relation R --tail Y   score and rank of a triple
curvlab predict RUN --head X --tail Y            relations that complete a triple
curvlab predict RUN --pairs pairs.csv            columns head, relation, tail; empty ends are filled
curvlab predict RUN --data FOLDER                on another graph, with an inductive model

RUN is a run's folder or its best.ckpt. Names are those in the data set's files.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import curvlab
from curvlab.cli.verbs import (
    Verb,
    add_run_arguments,
    add_spreadsheet_argument,
    graph_in,
    show,
    write,
)
from curvlab.errors import UsageError
from curvlab.program import print_if_slow

if TYPE_CHECKING:
    from curvlab.tasks.predictions import Query


def _predict(args: argparse.Namespace) -> None:
    from curvlab.tasks.predictions import refuse_unused  # torch

    run = curvlab.load(args.run, trust=args.trust)
    query = {name: getattr(args, name) for name in ("k", "known", "unlabelled")}
    if any((args.pairs, args.head, args.relation, args.tail)):
        refuse_unused(["queries"], run.task.predicts_by, run.config.task.name)
    with print_if_slow(f"predicting with {run.config.model.label} on {run.config.dataset.label}"):
        graph = graph_in(args.data, run)
        table = run.predict(graph, nodes=args.node, queries=_queries(args), **query)
    if args.output:
        write(table, args.output, args.spreadsheet)
        print(f"{len(table):,} rows in {args.output}")
    else:
        show(table, f"{run.config.model.label} on {run.config.dataset.label}")


def _queries(args: argparse.Namespace) -> "list[Query]":
    import pandas as pd

    if args.pairs is None:
        query = (args.head, args.relation, args.tail)
        if any(query) and not args.relation and not (args.head and args.tail):
            raise UsageError("give two of --head, --relation and --tail, or all of them")
        return [query] if any(query) else []
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
add_run_arguments(main)
main.add_argument("--node", action="append", help="id of a node (default: all)")
main.add_argument("--k", type=int, default=10, help="number of answers per node or pair (10)")
main.add_argument("--unlabelled", action="store_true", help="only nodes without a label")
main.add_argument("--head", help="name of an entity")
main.add_argument("--relation", help="name of a relation")
main.add_argument("--tail", help="name of an entity")
main.add_argument("--pairs", type=Path, help="CSV file of pairs and triples")
main.add_argument(
    "--known",
    action=argparse.BooleanOptionalAction,
    help="also list links and triples of the data, marked (default: triples only)",
)
main.add_argument("--data", metavar="FOLDER", help="folder of another graph")
main.add_argument("--output", type=Path, metavar="FILE", help="file for all rows, .csv or .parquet")
add_spreadsheet_argument(main)
