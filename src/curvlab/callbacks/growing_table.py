"""A table in CSV that grows by one row at a time and resumes at a checkpoint."""

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
    """A table of numbers in a file.

    A row is appended, so its cost does not depend on the number of rows. The file is rewritten if a
    row has a new column, whose cells in previous rows stay empty, and when a run resumes, which
    drops the rows after its checkpoint.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._columns: list[str] = []
        self._rows = 0
        self._checksum = 0

    def state_dict(self) -> dict[str, int]:
        """Size of the table, and CRC-32 of its text."""
        return {"columns": len(self._columns), "rows": self._rows, "checksum": self._checksum}

    def load_state_dict(self, state: Mapping[str, int]) -> list[dict[str, float]]:
        """Restore a state: drop later rows and columns, and return the rows.

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
        new_columns = [name for name in row if name not in self._columns]
        if new_columns:
            self._add_columns(new_columns)
        cells = [repr(row[name]) if name in row else "" for name in self._columns]
        text = _text([cells])
        check_fences(self.path)
        with (
            name_in_errors(self.path),
            self.path.open("a", encoding="utf-8", newline="") as file,
        ):
            file.write(text)
            file.flush()
            # The row must be on the disk before a checkpoint counts it.
            os.fsync(file.fileno())
        self._rows += 1
        self._checksum = zlib.crc32(text.encode(), self._checksum)

    def _add_columns(self, names: Sequence[str]) -> None:
        header, *lines = self._read(self._rows, len(self._columns)) or [[]]
        empty = [""] * len(names)
        rows = [[*line, *empty] for line in lines]
        text = _text([[*header, *names], *rows])
        atomic_write(self.path, text)
        self._columns += names
        self._checksum = zlib.crc32(text.encode())

    def _read(self, rows: int, columns: int) -> list[list[str]]:
        """Read the header and the first rows, cut to the first columns; nothing of no columns."""
        if not columns:
            return []
        try:
            with self.path.open(encoding="utf-8", newline="") as file:
                lines = islice(csv.reader(file), rows + 1)
                return [line[:columns] for line in lines]
        except (FileNotFoundError, UnicodeDecodeError, csv.Error) as error:
            raise DamagedError(f"{self.path} cannot be read: {error}") from error

    def _numbers(self, line: Sequence[str]) -> dict[str, float]:
        cells = zip(self._columns, line, strict=True)
        return {name: float(cell) for name, cell in cells if cell}


def _text(lines: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()
