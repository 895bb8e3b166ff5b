"""Files that say what is in them, so that damage is known before anything is read.

A JSON file has the CRC-32 of what it says as one key more, `checksum`.

`torch.save` writes a ZIP archive with the CRC-32 of every array, which `torch.load` never looks at.
A seal is one more file in that archive, `manifest.json`, with the size and the checksum of every
other file and the owner of the archive. The archive's comment is the CRC-32 of all bytes before
it, so that no byte is without a checksum.
"""

import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
CHECKSUM = "checksum"
DIGITS = 8  # of the checksum at the end, hexadecimal
BLOCK_BYTES = 2**22


class DamagedError(ValueError):
    """An archive is not what was written; the message says what is wrong with it."""


def with_checksum(content: Mapping[str, Any]) -> dict[str, Any]:
    """What a JSON file is to say, and its checksum."""
    return {**content, CHECKSUM: _checksum_of(content)}


def read_checked(path: Path, required: bool = True) -> Any:
    """Read a JSON file and compare what it says with its checksum, which is left out.

    Args:
        path: of the file.
        required: refuse a file without a checksum.

    Raises:
        OSError: it cannot be read.
        DamagedError: it is no JSON, or not what was written.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DamagedError("it is no JSON") from error
    if not isinstance(content, dict) or CHECKSUM not in content:
        if required:
            raise DamagedError("it has no checksum")
        return content
    if content.pop(CHECKSUM) != _checksum_of(content):
        raise DamagedError("its checksum does not match")
    return content


def file_checksum(path: Path) -> int:
    """CRC-32 of all bytes of a file."""
    value = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            value = zlib.crc32(block, value)
    return value


def is_sealed(path: Path) -> bool:
    """Whether an archive has a seal, whole or damaged; those of before there were seals have none.

    Raises:
        OSError: it cannot be read.
        zipfile.BadZipFile: it is no archive.
    """
    with zipfile.ZipFile(path) as archive:
        return bool(archive.comment) or any(n.endswith(MANIFEST) for n in archive.namelist())


def _checksum_of(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True)
    return f"{zlib.crc32(text.encode()):0{DIGITS}x}"


def seal(path: Path, facts: Mapping[str, Any]) -> None:
    """Add manifest and checksum to an archive that `torch.save` has just written.

    Args:
        path: of the archive.
        facts: what else the manifest is to say; must fit into JSON.
    """
    with zipfile.ZipFile(path, "a") as archive:
        root = archive.namelist()[0].partition("/")[0]
        content = json.dumps({**facts, "files": _files(archive)})
        archive.writestr(f"{root}/{MANIFEST}", content)
        archive.comment = b"0" * DIGITS
    checksum = _checksum(path)
    with path.open("r+b") as file:
        file.seek(-DIGITS, 2)
        file.write(checksum)


def check_seal(path: Path) -> dict[str, Any]:
    """Read an archive once and compare all of it with its checksum and its manifest.

    Returns:
        The facts of the manifest.

    Raises:
        DamagedError: it is no archive, has no manifest, or is not what was written.
    """
    try:
        whole = _checksum(path)
        with zipfile.ZipFile(path) as archive:
            sealed, found = archive.comment, _files(archive)
            broken = None if sealed == whole else archive.testzip()
            root = next(iter(found)).partition("/")[0]
            facts = json.loads(archive.read(f"{root}/{MANIFEST}"))
            files = facts.pop("files")
    except IsADirectoryError:
        raise DamagedError("it is a folder") from None
    except OSError as error:
        raise DamagedError(error.strerror or str(error)) from error
    except Exception as error:  # what is no archive can raise nearly anything
        raise DamagedError("it is no archive with a manifest") from error
    if broken is not None and broken in files:
        raise DamagedError(f"the checksum of {broken.partition('/')[2]} in it does not match")
    if sealed != whole or any(found.get(name) != entry for name, entry in files.items()):
        raise DamagedError("its checksum does not match")
    return dict(facts)


def _files(archive: zipfile.ZipFile) -> dict[str, list[int]]:
    """Size and CRC-32 of the files of an archive, as it says itself."""
    return {info.filename: [info.file_size, info.CRC] for info in archive.infolist()}


def _checksum(path: Path) -> bytes:
    """The checksum of a file without its last bytes, where its own is."""
    left, value = path.stat().st_size - DIGITS, 0
    with path.open("rb") as file:
        while block := file.read(max(0, min(left, BLOCK_BYTES))):
            value = zlib.crc32(block, value)
            left -= len(block)
    return f"{value:0{DIGITS}x}".encode()
