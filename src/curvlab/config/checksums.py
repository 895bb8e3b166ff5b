"""Names for what files hold, so that a changed file is another run and another cache entry."""

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path


def checksum_of(place: str | None, *names: str) -> str | None:
    """A name for what files hold, 16 hexadecimal digits; None where there are none.

    Args:
        place: a folder, or without `names` a file.
        *names: of files in the folder, plain or `.gz`.
    """
    if place is None:
        return None
    endings = [f"{name}{suffix}" for name in names for suffix in ("", ".gz")]
    every = [Path(place) / name for name in endings] if names else [Path(place)]
    return checksum([path for path in every if path.is_file()])


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
