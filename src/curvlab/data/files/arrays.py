"""Arrays on disk: written front to back, read a block at a time, with their checksums."""

import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np

from curvlab.checksums import DamagedError, file_checksum, read_checked, with_checksum
from curvlab.errors import UsageError
from curvlab.results.files import atomic_write

MANIFEST = "arrays.json"

Append = Callable[[np.ndarray], None]


class ArrayFolder:
    """Arrays `NAME.bin` in a folder, and a manifest of their types, shapes and CRC-32.

    `declare` writes the manifest once the arrays are on the disk; arrays that it does not list do
    not count.

    Args:
        folder: made when the first array is written.

    Attributes:
        arrays: `dtype`, `shape` and `crc32` of each array.
        facts: what else the manifest says.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.arrays: dict[str, dict[str, Any]] = {}
        self.facts: dict[str, Any] = {}

    @classmethod
    def open(cls, folder: Path) -> Self | None:
        """The arrays in a folder; None if there are none or not all of them.

        Raises:
            UsageError: The manifest is damaged, or a file is missing or has another size.
        """
        found = cls(folder)
        if not (folder / MANIFEST).exists():
            return None
        try:
            content = read_checked(folder / MANIFEST)
        except DamagedError as error:
            raise found.damaged(MANIFEST) from error
        found.arrays, found.facts = content["arrays"], content["facts"]
        for name in found.arrays:
            path = found.path(name)
            if not path.exists() or path.stat().st_size != found.bytes_of(name):
                raise found.damaged(path.name)
        return found

    def path(self, name: str) -> Path:
        """The file of an array."""
        return self.folder / f"{name}.bin"

    def bytes_of(self, name: str) -> int:
        """Size of an array."""
        entry = self.arrays[name]
        return int(np.prod(entry["shape"])) * np.dtype(entry["dtype"]).itemsize

    @contextmanager
    def writing(self, name: str, dtype: type, *row: int) -> Iterator[Append]:
        """Write an array front to back, by a function that appends a block of rows.

        Args:
            name: of the array.
            dtype: of its numbers.
            *row: the shape of a row; none for an array of one dimension.

        Raises:
            UsageError: The disk does not hold it.
        """
        rows, checksum = 0, 0
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with self.path(name).open("wb") as file:

                def append(block: np.ndarray) -> None:
                    nonlocal rows, checksum
                    content = np.ascontiguousarray(block, dtype).reshape(-1).view(np.uint8)
                    file.write(content.data)
                    checksum = zlib.crc32(content.data, checksum)
                    rows += len(block)

                yield append
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise UsageError(
                f"{self.path(name)} cannot be written ({error.strerror}): free space there, or set "
                "paths.data_dir to another disk."
            ) from error
        entry = {"dtype": np.dtype(dtype).str, "shape": [rows, *row], "crc32": checksum}
        self.arrays[name] = entry

    def write(self, name: str, array: np.ndarray) -> None:
        """Write a whole array."""
        with self.writing(name, array.dtype.type, *array.shape[1:]) as append:
            append(array)

    def declare(self, **facts: Any) -> None:
        """Write the manifest; the files of arrays that it does not list are deleted."""
        self.facts = facts
        content = {"arrays": self.arrays, "facts": facts}
        atomic_write(self.folder / MANIFEST, json.dumps(with_checksum(content)))
        for path in self.folder.glob("*.bin"):
            if path.stem not in self.arrays:
                path.unlink()

    def read(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Some rows of an array, all by default."""
        entry = self.arrays[name]
        length, *row = entry["shape"]
        dtype, width = np.dtype(entry["dtype"]), int(np.prod(row, dtype=int))
        count = (length if stop is None else stop) - start
        offset = int(start) * width * dtype.itemsize
        flat = np.fromfile(self.path(name), dtype, int(count) * width, offset=offset)
        return flat.reshape(-1, *row)

    def mapped(self, name: str) -> np.ndarray:
        """An array that is read when it is used; changes of it stay in memory."""
        entry = self.arrays[name]
        return np.memmap(self.path(name), entry["dtype"], "c", shape=tuple(entry["shape"]))

    def verify(self, names: Iterable[str] | None = None) -> None:
        """Compare files with their checksums.

        Args:
            names: of the arrays; all of them by default.

        Raises:
            UsageError: One has been changed.
        """
        for name in self.arrays if names is None else names:
            if self.arrays[name]["crc32"] != file_checksum(self.path(name)):
                raise self.damaged(self.path(name).name)

    def damaged(self, file: str) -> UsageError:
        """The error of a file whose content has changed."""
        return UsageError(
            f"{self.folder / file} is not what was written there: delete the folder {self.folder} "
            "and run again to write it anew."
        )
