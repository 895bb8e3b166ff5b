"""Raw files: where they come from, what they must contain, and how they reach the data folder."""

import logging
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pooch
import requests
from torch_geometric.data import Data

from curvlab.errors import UsageError
from curvlab.results.files import arriving

log = logging.getLogger(__name__)

TIMEOUT_SECONDS = 30


class GraphSource(Protocol):
    """What a dataset's `source` must offer to be trained on."""

    def download(self) -> list[Path]:
        """Put the raw files in place and return where they are (none for a generated graph)."""

    def load(self) -> Data:
        """Return the graph: `edge_index [2, 2M]` coalesced, `num_nodes`, perhaps `x` and `y`."""


@dataclass(frozen=True)
class RemoteFile:
    """A raw file: its path inside the data folder (and any mirror), its address, its checksum.

    A checksum of None means that none is known: the file is then taken as it comes. An address of
    None means that there is none: somebody has to put the file in its place.
    """

    path: str
    url: str | None
    sha256: str | None


def fetch(file: RemoteFile, data_dir: str | Path, mirror: str | Path | None = None) -> Path:
    """Return the local path of a raw file, bringing it there if it is not there yet.

    Order: the data folder, the mirror (copied), the network. Whatever comes in is verified
    before it is renamed into place, so that a file that is there is whole, also when several
    processes fetch it at once.

    Raises:
        UsageError: The file in the data folder or the mirror is corrupt, or there is neither
            a network nor a mirror that has it.
    """
    target = Path(data_dir) / file.path
    if target.exists():
        _verify(target, file, f"delete it ({target}) and run again to fetch a fresh copy")
        return target
    if mirror is not None:
        mirrored = _mirrored(file, Path(mirror))
        if mirrored.exists():
            _verify(mirrored, file, "repair the mirror, or unset CURVLAB_MIRROR to download it")
            with arriving(target) as partial:
                shutil.copyfile(mirrored, partial)
            log.info("copied %s from the mirror %s", file.path, mirror)
            return target
    _download(file, target, mirror)
    return target


def _mirrored(file: RemoteFile, mirror: Path) -> Path:
    if not mirror.is_dir():
        raise UsageError(
            f"paths.mirror (CURVLAB_MIRROR) names {mirror}, which is not a folder: "
            f"name a folder that holds {file.path}, or unset it."
        )
    return mirror / file.path


def _verify(path: Path, file: RemoteFile, remedy: str) -> None:
    if file.sha256 is None:
        return
    found = pooch.file_hash(str(path), alg="sha256")
    if found != file.sha256:
        raise UsageError(
            f"{path} is corrupt: its SHA-256 is {found}, expected {file.sha256}; {remedy}."
        )


def _download(file: RemoteFile, target: Path, mirror: str | Path | None) -> None:
    tried = f"the mirror {mirror} does not have it" if mirror else "no mirror is set"
    remedy = f"put the file there by hand, or set CURVLAB_MIRROR to a folder that holds {file.path}"
    if file.url is None:
        raise UsageError(f"{target} is missing, {tried} and it cannot be downloaded: {remedy}.")
    fetch_url: Callable[..., None] = pooch.HTTPDownloader(timeout=TIMEOUT_SECONDS)
    log.info("downloading %s from %s", file.path, file.url)
    try:
        with arriving(target) as partial:
            fetch_url(file.url, str(partial), None)
            _verify(partial, file, f"{file.url} has changed or the connection altered it")
    except requests.RequestException as error:
        raise UsageError(
            f"{target} is missing, {tried} and {file.url} could not be downloaded "
            f"({_reason(error)}): {remedy}."
        ) from error


def _reason(error: requests.RequestException) -> str:
    if error.response is not None:
        return f"HTTP status {error.response.status_code}"
    return f"no connection: {type(error).__name__}"
