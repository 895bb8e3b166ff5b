"""Checksums of the files that curvlab writes and reads."""

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

CHECKSUM = "checksum"  # key of a JSON file with the CRC-32 of all other keys
FACTS = "facts.json"  # a file in a checkpoint's archive, in addition to those of `torch.save`
DERIVED = "processed"  # folder of the files that PyTorch Geometric derives from raw files


class DamagedError(ValueError):
    """A file is damaged; the message says how."""


def add_checksum(content: Mapping[str, Any]) -> dict[str, Any]:
    """Add a checksum to the content of a JSON file."""
    text = json.dumps(content, sort_keys=True)
    return {**content, CHECKSUM: f"{zlib.crc32(text.encode()):08x}"}


def read_json(path: Path, required: bool = True) -> Any:
    """Read a JSON file, verify its checksum, and return the content without it."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DamagedError("it is no JSON") from error
    if not isinstance(document, dict) or CHECKSUM not in document:
        if required:
            raise DamagedError("it has no checksum")
        return document
    content = {key: value for key, value in document.items() if key != CHECKSUM}
    if add_checksum(content) != document:
        raise DamagedError("its checksum does not match")
    return content


def file_checksum(path: Path) -> int:
    """CRC-32 of all bytes of a file."""
    value = 0
    with path.open("rb") as file:
        while block := file.read(2**22):
            value = zlib.crc32(block, value)
    return value


def add_facts(path: Path, facts: Mapping[str, Any]) -> None:
    """Add facts to an archive of `torch.save`; they can be read without loading the archive."""
    with zipfile.ZipFile(path, "a") as archive:
        root = archive.namelist()[0].partition("/")[0]
        archive.writestr(f"{root}/{FACTS}", json.dumps(facts))


def check_archive(path: Path) -> dict[str, Any]:
    """Verify an archive's checksums, which `torch.load` does not; return its facts."""
    try:
        with zipfile.ZipFile(path) as archive:
            broken = archive.testzip()
            names = [name for name in archive.namelist() if name.endswith(f"/{FACTS}")]
            facts = [json.loads(archive.read(name)) for name in names]
    except OSError as error:
        raise DamagedError(error.strerror or str(error)) from error
    except Exception as error:  # a damaged archive can raise nearly anything
        raise DamagedError("it is not a complete archive") from error
    if broken is not None:
        raise DamagedError(f"the checksum of {broken.partition('/')[2]} in it does not match")
    return dict(*facts)


def content_checksum(location: str, *names: str) -> str | None:
    """Hash a file, a folder, or the files `names` in a folder; None if there are none."""
    files = files_at(location, *names)
    return checksum([*files.values()], [*files])


def files_at(location: str, *names: str) -> dict[str, Path]:
    """Files of a path by name: those of a folder, or only the files `names` in the folder.

    The name of a single file is its suffix. A path to one of `names` stands for its folder.
    """
    path = Path(location).expanduser()
    if path.name in names and path.is_file():
        path = path.parent
    if path.is_file():
        return {path.suffix: path}
    files = [path / name for name in names]
    if not names:
        files = raw_files(path)
    return {file.relative_to(path).as_posix(): file for file in files if file.is_file()}


def raw_files(folder: Path) -> list[Path]:
    """Sorted files below a folder, without those that libraries derive from them."""
    paths = list[Path]()
    visited = set[str]()
    for parent, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(parent)
        if real in visited:  # a link to a folder above or a second link
            folders.clear()
            continue
        visited.add(real)
        folders[:] = sorted(name for name in folders if name != DERIVED)
        paths += [Path(parent, name) for name in files]
    return sorted(path for path in paths if path.is_file())


def checksum(paths: Sequence[Path], names: Sequence[str] | None = None) -> str | None:
    """Hash contents and names of files, by default their own names; None without files."""
    if not paths:
        return None
    if names is None:
        names = [path.name for path in paths]
    digests = [_digest(path.resolve(), _state(path)) for path in paths]
    lines = [f"{name} {digest}" for name, digest in zip(names, digests, strict=True)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def checksums(files: Mapping[str, Path]) -> dict[str, str]:
    """Hash the content of each of some files."""
    return {name: _digest(path.resolve(), _state(path)) for name, path in files.items()}


def _state(path: Path) -> tuple[int, ...]:
    """Properties that change when the file changes."""
    stat = path.stat()
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


@cache
def _digest(path: Path, state: tuple[int, ...]) -> str:  # noqa: ARG001
    """SHA-256 of a file, cached until the file changes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
