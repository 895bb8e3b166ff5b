"""Which stored results are what their commands run today, and which are older, and why."""

import csv
import io
from collections.abc import Iterator
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

COLUMNS = ("cell", "runs", "why")
DEFAULT = "default"
"""What is not said; null is a value, which may be another than the default."""


def older_cells(configs: Path, results: Path, every: int = 1) -> list[tuple[str, int, str]]:
    """Cells whose results have another identity than their command has today.

    Args:
        configs: the folder of configurations.
        results: the folder of all tables' results.
        every: look at each, or at every other, every third ... cell.

    Returns:
        For each the folder of its seeds below `results`, how many runs it has, and why: what they
        built, and what the command would.
    """
    cells: dict[Path, list[Path]] = {}
    for path in result_files(results):
        cells.setdefault(path.parents[1], []).append(path)
    found = []
    for folder, paths in sorted(cells.items())[::every]:
        why = _why(configs, folder.relative_to(results), load(paths[0]))
        if why:
            found.append((folder.relative_to(results).as_posix(), len(paths), why))
    return found


def as_csv(cells: list[tuple[str, int, str]]) -> str:
    """The cells as a file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([COLUMNS, *cells])
    return text.getvalue()


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
