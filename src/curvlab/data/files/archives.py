"""Archives of raw files, unpacked without trusting the paths that they name."""

import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

from curvlab.errors import UsageError


def unpack_zip(archive: Path, top: str, suffixes: Sequence[str], folder: Path) -> None:
    """Unpack what lies in one folder of a zip file.

    Args:
        archive: The zip file.
        top: The folder inside it whose files are wanted, without it in their paths.
        suffixes: Ends of the names that are wanted; other files are left out.
        folder: Where they go. Give a folder that is thrown away if this fails.

    Raises:
        UsageError: The archive names a path outside `top`.
        zipfile.BadZipFile: It is no zip file, or what is in it does not match its checksums.
    """
    with ZipFile(archive) as files:
        for member in files.infolist():
            place, *parts = PurePosixPath(member.filename).parts or ("",)
            if place != top or member.is_dir() or not member.filename.endswith(tuple(suffixes)):
                continue
            if ".." in parts:
                raise UsageError(
                    f"{archive} is not unpacked: it names the path {member.filename}, which leads "
                    "out of it; delete it and run again to fetch a fresh copy."
                )
            target = folder.joinpath(*parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            with files.open(member) as source, target.open("wb") as file:
                shutil.copyfileobj(source, file)
