"""Which stored results are what their commands run today, and which are older, and why."""

import csv
import io
import re
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from curvlab.config.compose import compose
from curvlab.config.folder import find
from curvlab.errors import UsageError
from curvlab.results.identity import built, canonical, stored
from curvlab.results.result import load, result_files
from curvlab.tables.collect import lookup
from curvlab.tables.protocols import flatten

LIST = "older.csv"
"""The cells whose results are older, beside the folder of all tables' results."""

COLUMNS = ("cell", "runs", "why")
DEFAULT = "default"
"""What is not said; null is a value, which may be another than the default."""


def older_cells(
    configs: Path, results: Path, among: Container[str] | None = None
) -> list[tuple[str, int, str]]:
    """Cells whose results have another identity than their command has today.

    A command is composed for each cell, which takes minutes for all. Tables read the list instead
    (`listed_as_older`).

    Args:
        configs: the folder of configurations.
        results: the folder of all tables' results.
        among: look at these cells alone, named as the results; None for all.

    Returns:
        For each the folder of its seeds below `results`, how many runs it has, and why: what they
        built, and what the command would.
    """
    cells: dict[str, list[Path]] = {}
    for path in result_files(results):
        cell = path.parents[1].relative_to(results).as_posix()
        if among is None or cell in among:
            cells.setdefault(cell, []).append(path)
    whys = {cell: _why(configs, Path(cell), load(paths[0])) for cell, paths in cells.items()}
    return [(cell, len(cells[cell]), why) for cell, why in sorted(whys.items()) if why]


def as_csv(cells: list[tuple[str, int, str]]) -> str:
    """The cells as a file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([COLUMNS, *cells])
    return text.getvalue()


def listed_as_older(results: Path) -> dict[str, str]:
    """Why each cell is older that the list beside the results has, by the cell; empty without one.

    Args:
        results: the folder of all tables' results.

    Raises:
        UsageError: the file is not one that `as_csv` makes.
    """
    path = results.resolve().parent / LIST
    if not path.exists():
        return {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return {row["cell"]: row["why"] for row in csv.DictReader(file)}
    except (OSError, KeyError, ValueError) as error:
        message = f"{path} must be a file that `tables older` has written: {error}"
        raise UsageError(message) from None


def reasons(why: str, built: Mapping[str, Any]) -> dict[str, str]:
    """Which of the listed reasons hold for a run, in words, by key.

    None does for a run that was made since: it has today's values.

    Args:
        why: of its cell, as `older_cells` says it.
        built: what the run built, see `curvlab.results.identity.built`.
    """
    own, found = flatten(built), {}
    for part in why.split("; "):
        differing = re.fullmatch(r"(\S+) (.*) -> (.*)", part)
        if differing is None:  # why its command can no longer be composed
            return {"": why}
        key, then, now = differing.groups()
        if _shown(own.get(key, DEFAULT)) == then:
            found[key] = f"{key}={then} where the table's has {now}"
    return found


def _why(configs: Path, cell: Path, result: dict[str, Any]) -> str:
    """What a result built otherwise than its command does; empty where that is the same."""
    try:
        now = built(stored(compose(list(_words(configs, cell, result)), configs)))
    except UsageError as error:
        return str(error)
    before = built(result["config"], result.get("revisions") or {})
    if canonical(before) == canonical(now):
        return ""
    then, today = flatten(before), flatten(now)
    differing = [
        key
        for key in sorted(then.keys() | today.keys())
        if canonical(then.get(key, DEFAULT)) != canonical(today.get(key, DEFAULT))
    ]
    return "; ".join(
        f"{key} {_shown(then.get(key, DEFAULT))} -> {_shown(today.get(key, DEFAULT))}"
        for key in differing
    )


def _words(configs: Path, cell: Path, result: dict[str, Any]) -> Iterator[str]:
    """The words of the command that made a result of a table."""
    table = "/".join(cell.parts[:2])
    swept = OmegaConf.load(find(configs, f"table/{table}.yaml"))
    assert isinstance(swept, DictConfig)
    yield f"table={table}"
    for key in swept.hydra.sweeper.params:
        named = {"model", "dataset", "seed", "task"}
        yield f"{key}={result[key] if key in named else lookup(result['config'], key)}"
    yield from result.get("changed") or ()


def _shown(value: Any) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) < 60 else f"{text[:57]}..."
