"""A table in CSV that grows by a row at a time and resumes where a checkpoint left it."""

import csv
import io
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from curvlab.checksums import DamagedError
from curvlab.files import atomic_write, check_fences, name_in_errors

Row = Mapping[str, float]


class GrowingTable:
    """Numbers by column; a row is appended, so that its cost does not depend on those before.

    The file is rewritten where a row has a new column, which earlier rows leave empty, and where a
    run resumes: rows after its checkpoint are dropped.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._columns: list[str] = []
        self._rows = 0
        self._checksum = 0

    def state_dict(self) -> dict[str, int]:
        """The size of the table, and the CRC-32 of its text."""
        return {"columns": len(self._columns), "rows": self._rows, "checksum": self._checksum}

    def load_state_dict(self, state: Mapping[str, int]) -> list[dict[str, float]]:
        """Take back rows and columns after a state; return the rows.

        Raises:
            DamagedError: the file does not have the text of the state.
        """
        lines = self._read(state["rows"], state["columns"])
        text = _text(lines)
        if zlib.crc32(text.encode()) != state["checksum"]:
            raise DamagedError(f"{self.path} differs from what its checkpoint says of it")
        self._columns = lines[0] if lines else []
        self._rows = state["rows"]
        self._checksum = state["checksum"]
        if self._columns:
            atomic_write(self.path, text)
        return [self._numbers(line) for line in lines[1:]]

    def append(self, row: Row) -> None:
        """Add a row at the end."""
        new = [name for name in row if name not in self._columns]
        if new:
            self._add_columns(new)
        text = _text([[_cell(row, name) for name in self._columns]])
        check_fences(self.path)
        with (
            name_in_errors(self.path),
            self.path.open("a", encoding="utf-8", newline="") as file,
        ):
            file.write(text)
            file.flush()
            os.fsync(file.fileno())  # before the checkpoint that counts it
        self._rows += 1
        self._checksum = zlib.crc32(text.encode(), self._checksum)

    def _add_columns(self, names: Sequence[str]) -> None:
        lines = self._read(self._rows, len(self._columns)) if self._columns else [[]]
        empty = [""] * len(names)
        text = _text([[*lines[0], *names], *([*line, *empty] for line in lines[1:])])
        atomic_write(self.path, text)
        self._columns += names
        self._checksum = zlib.crc32(text.encode())

    def _read(self, rows: int, columns: int) -> list[list[str]]:
        """The header and the first rows, of the first columns."""
        if not columns:
            return []
        try:
            with self.path.open(encoding="utf-8", newline="") as file:
                return [line[:columns] for line in islice(csv.reader(file), rows + 1)]
        except (FileNotFoundError, UnicodeDecodeError, csv.Error) as error:
            raise DamagedError(f"{self.path} cannot be read: {error}") from error

    def _numbers(self, line: Sequence[str]) -> dict[str, float]:
        cells = zip(self._columns, line, strict=True)
        return {name: float(cell) for name, cell in cells if cell}


def _cell(row: Row, name: str) -> str:
    return repr(row[name]) if name in row else ""


def _text(lines: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()
