"""List models, datasets, manifolds, tables, or the runs below a folder, newest first.

curvlab list models               one line per model: its name for the command line, and what it is
curvlab list runs                 runs below outputs: time, score, command
curvlab list runs outputs/tables  runs below another folder

The options of a model are in curvlab train help=model/NAME.
"""

import argparse
from datetime import datetime
from pathlib import Path

from curvlab.cli.help import page
from curvlab.cli.verbs import Verb
from curvlab.errors import UsageError
from curvlab.results.result import read_result, result_files

GROUPS = {"models": "model", "datasets": "dataset", "manifolds": "manifold", "tables": "table"}


def _list(args: argparse.Namespace) -> None:
    if args.kind in GROUPS:
        print(page(GROUPS[args.kind]))
        return
    folder = args.folder or Path("outputs")
    files = [file for file in result_files(folder) if file.is_file()]
    if not files:
        raise UsageError(f"no runs below {folder}: train one, or name another folder")
    for file in sorted(files, key=lambda file: -file.stat().st_mtime):
        result = read_result(file.parent)
        if result is None:
            continue
        time = datetime.fromtimestamp(file.stat().st_mtime).strftime("%Y-%m-%d %H:%M")
        score = result.status if result.score is None else f"{result.score:.4g}"
        overrides = [f"{key}={getattr(result, key)}" for key in ("model", "dataset", "seed")]
        stored = file.parent / ".hydra" / "overrides.yaml"
        if stored.is_file():  # Hydra's record of the command
            lines = stored.read_text("utf-8").splitlines()
            overrides = [line.removeprefix("- ") for line in lines]
        print(f"{time}  {score:>11}  {' '.join(['curvlab train', *overrides])}")


main = Verb("list", __doc__, _list)
main.add_argument("kind", choices=[*GROUPS, "runs"], metavar="KIND", help="what to list")
main.add_argument("folder", nargs="?", type=Path, help="folder of runs (default: outputs)")
