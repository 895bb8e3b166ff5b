"""Files that are either whole or not there."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def arriving(target: Path) -> Iterator[Path]:
    """Give a temporary path beside the target that becomes the target if the block succeeds.

    Args:
        target: the file; its folder is made if it is not there.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        partial.chmod(0o644)  # mkstemp's 0600 would hide the file from a group's shared folder
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def atomic_write(path: Path, text: str) -> None:
    """Write `text` to `path`, so that no reader sees half of it."""
    with arriving(path) as partial:
        partial.write_text(text, encoding="utf-8")
