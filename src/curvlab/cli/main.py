"""`curvlab VERB ...`: each verb is a module of this package, imported when it is called."""

import difflib
import os
import sys
from collections.abc import Sequence

import curvlab
from curvlab.errors import import_message
from curvlab.program import import_command

VERBS = {
    "train": "train, evaluate and plot: a run, a sweep, a table of a paper",
    "search": "hyperparameters by validation scores: curvlab search fpst dataset=texas",
    "adopt": "make the winner of a search the default",
    "tables": "tables next to the published numbers, what is finished, what the rest costs",
    "plot": "pictures and numbers of graphs and of finished runs",
    "init-graph": "your own graph: what is in its files, and the command that trains on it",
    "predict": "classes, links or missing ends of triples, from a finished run",
    "export": "a finished run's embeddings with the ids of the nodes",
    "evaluate": "recompute the reported metrics, or compute those on another graph",
    "compare": "finished runs side by side, with a paired test over their seeds",
    "list": "models, datasets, manifolds, tables, and runs with their scores",
    "data": "fetch raw files ahead of time",
    "wandb_sync": "upload the runs that W&B has logged offline",
}


SEARCH = """usage: curvlab search NAME [KEY=VALUE ...]

Search a model's hyperparameters by validation scores. The test nodes are never scored.

curvlab search fpst dataset=cora                     100 combinations, three seeds each
curvlab search gcn dataset=cora search.trials=20 search.seeds=2
curvlab search gcn dataset=cora search.minutes=60    ends after an hour; the same command continues
curvlab search fpst dataset=cora --dry-run           number of runs and estimated hours
curvlab adopt search/node_classification/fpst/cora   the winner becomes the default

Searches:
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a verb with its arguments; return the exit code."""
    verb, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if verb in ("--help", "-h", "help"):
        print(screen())
        return 0
    if verb == "--version":
        print(f"curvlab {curvlab.__version__}")
        return 0
    if verb in ("-sc", "--shell-completion"):  # Hydra completes the overrides of `train`
        line = os.environ.get("COMP_LINE", "")
        os.environ["COMP_LINE"] = line.replace("curvlab train", "curvlab", 1)
        verb = "train"
        rest = ["-sc", *rest]
    if verb == "search":  # short for train -m search=NAME
        name, *overrides = rest or [""]
        verb = "train"
        rest = ["-m", f"search={name}", *overrides]
        if name in ("--help", "-h"):
            print(SEARCH)
            rest = ["help=search"]
        elif not name or "=" in name or name.startswith("-"):
            example = "name a search first, as in curvlab search fpst dataset=texas"
            print(f"curvlab search: {example}; --help lists the searches", file=sys.stderr)
            return 2
    if verb not in VERBS:
        near = difflib.get_close_matches(verb, VERBS, n=1) or ["--help"]
        print(f"curvlab: there is no {verb}; did you mean curvlab {near[0]}?", file=sys.stderr)
        return 2
    try:
        module = import_command(f"curvlab.cli.{verb.replace('-', '_')}")
    except Exception as error:  # a broken library can raise anything
        print(f"curvlab {verb}: {import_message(error)}", file=sys.stderr)
        return 1
    return int(module.main(rest))


def screen() -> str:
    """The text of `curvlab --help`."""
    verbs = "\n".join(f"  curvlab {verb:<11} {summary}" for verb, summary in VERBS.items())
    return (
        f"curvlab {curvlab.__version__}: transformers and graph networks in curved spaces.\n\n"
        f"{verbs}\n\nEach verb has a --help; start with curvlab train --help."
    )
