"""Tables of runs: `NAME.jsonl.gz` replaces a folder `NAME` of run folders, with a row for each run.

A row has the fields of `result.json`, and in `files` the text of files such as `metrics.csv`.
"""

import gzip
import json
import zlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from curvlab.errors import UsageError
from curvlab.files import atomic_path, find_below
from curvlab.options import is_inside

SUFFIX = ".jsonl.gz"
RUN = "run"
FILES = "files"
MAX_TABLES = 64  # versions of tables in memory
Row = Mapping[str, Any]


def read_rows(table: Path) -> Mapping[str, Row]:
    """The rows of a table by run; empty without the file."""
    try:
        state = table.stat()
        return _rows(table, (state.st_ino, state.st_size, state.st_mtime_ns))
    except FileNotFoundError:
        return {}
    except (OSError, EOFError, zlib.error, ValueError, LookupError, TypeError) as error:
        raise UsageError(f"{table} is not a table of runs, restore it: {error}") from error


def write_rows(table: Path, rows: Iterable[Row]) -> None:
    """Write a table atomically; equal rows give equal bytes."""
    lines = (json.dumps(row) + "\n" for row in sorted(rows, key=lambda row: str(row[RUN])))
    with atomic_path(table) as partial:
        partial.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))


def read_row(folder: Path) -> Row | None:
    """The row of a run's folder; None without one."""
    table = _table_above(folder)
    if table is None:
        return None
    return read_rows(table).get(folder.relative_to(folder_of(table)).as_posix())


def runs_in_tables(folder: Path) -> list[Path]:
    """Folders of runs with a row, below a folder or equal to it."""
    tables = [*find_below(folder, f"*{SUFFIX}"), _table_above(folder / RUN)]
    runs = (folder_of(table) / run for table in tables if table for run in read_rows(table))
    return [run for run in runs if run.is_relative_to(folder)]


def text_of(file: Path) -> str | None:
    """The text of a file of a run; None without the file."""
    if file.is_file():
        return file.read_bytes().decode()
    row = read_row(file.parent)
    return None if row is None else row[FILES].get(file.name)


def folder_of(table: Path) -> Path:
    """The folder that a table represents."""
    return table.with_name(table.name.removesuffix(SUFFIX))


@lru_cache(MAX_TABLES)
def _rows(table: Path, version: tuple[int, ...]) -> dict[str, Row]:  # noqa: ARG001 - of the file
    content = table.read_bytes()
    if not content:
        raise EOFError("it is empty")
    rows = map(json.loads, gzip.decompress(content).splitlines())
    rows_by_run = {row[RUN]: row for row in rows}
    outside = [run for run in rows_by_run if not is_inside(run)]
    if outside:
        raise ValueError(f"{outside[0]} is not inside its folder")
    return rows_by_run


def _table_above(folder: Path) -> Path | None:
    files = (above.with_name(above.name + SUFFIX) for above in folder.parents if above.name)
    return next((file for file in files if file.is_file()), None)
