"""List models, datasets, manifolds, tables, or the runs below a folder, newest first.

curvlab list models               one line per model: its name for the command line, and what it is
curvlab list runs                 runs below outputs: time, score, command or folder
curvlab list runs outputs/tables  runs below another folder

The options of a model are in curvlab train help=model/NAME.
"""

import argparse
import shlex
from datetime import datetime
from pathlib import Path

import yaml

from curvlab.cli.help import SWEEPS, page
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
        print(f"{time}  {score:>11}  {_command(file.parent) or file.parent}")


def _command(folder: Path) -> str | None:
    """The command of a run by Hydra's record; None for the runs of a study, which have none."""
    stored = folder / ".hydra" / "overrides.yaml"
    if not stored.is_file():
        return None
    overrides: list[str] = yaml.safe_load(stored.read_text("utf-8"))
    keys = {override.lstrip("+").partition("=")[0] for override in overrides}
    multirun = ["-m"] if keys.intersection(SWEEPS) else []
    return shlex.join(["curvlab", "train", *multirun, *overrides])


main = Verb("list", __doc__, _list)
main.add_argument("kind", choices=[*GROUPS, "runs"], metavar="KIND", help="what to list")
main.add_argument("folder", nargs="?", type=Path, help="folder of runs (default: outputs)")
