"""Names for what files hold, so that a changed file is another run and another cache entry."""

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

MADE = "processed"
"""Folder in which PyTorch Geometric keeps what it has made of raw files."""


def checksum_of(place: str | None, *names: str) -> str | None:
    """A name for what files hold, 16 hexadecimal digits; None where there are none.

    Args:
        place: a folder, or without `names` a file, or a folder with all that is below it.
        *names: of files in the folder, plain or `.gz`.
    """
    if place is None:
        return None
    if not names and Path(place).is_dir():
        return checksum(raw_files(Path(place)))
    endings = [f"{name}{suffix}" for name in names for suffix in ("", ".gz")]
    every = [Path(place) / name for name in endings] if names else [Path(place)]
    return checksum([path for path in every if path.is_file()])


def raw_files(folder: Path) -> list[Path]:
    """The files below a folder in order, without those that a library made of them there."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and MADE not in path.relative_to(folder).parts
    )


def checksum(paths: Sequence[Path]) -> str | None:
    """The same for files at hand."""
    sums = [f"{path.name} {_digest(path, *_stamp(path))}" for path in paths]
    return hashlib.sha256("\n".join(sums).encode()).hexdigest()[:16] if sums else None


def _stamp(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


@cache
def _digest(path: Path, size: int, changed: int) -> str:  # noqa: ARG001
    """SHA-256 of a file, read once as long as it stays as it is."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
