"""Raw files: addresses, checksums, and their way into the data folder."""

import hashlib
import io
import logging
import shutil
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from traceback import clear_frames
from typing import Any, Protocol

import pooch
import requests
from torch_geometric.data import Data

from curvlab.checked import CheckedFields
from curvlab.checksums import checksum
from curvlab.data.files.cache import cached_graph
from curvlab.data.files.cleaning import check_statistics
from curvlab.errors import UsageError
from curvlab.files import atomic_path
from curvlab.options import DatasetFiles, Incidental, Passed, RelativePath

log = logging.getLogger(__name__)

TIMEOUT_SECONDS = 30


class GraphSource(Protocol):
    """Interface of a data set's `source`.

    One that knows its size before it loads has `memory_bytes`, what the graph takes at least.
    """

    def download(self) -> list[Path]:
        """Put the raw files in place and return their paths (none for a generated graph)."""

    def load(self) -> Data:
        """Return the graph: `edge_index [2, 2M]` coalesced, `num_nodes`, perhaps `x` and `y`."""


def graph_bytes(num_nodes: int, num_edges: int, num_features: int) -> int:
    """Memory in bytes that a graph takes at least, by its number of undirected edges.

    Features take 4 bytes a number, an edge 100 bytes: its two directions as pairs of int64 (32),
    and again with their places while they are sorted, or for mini-batches.
    """
    return 4 * num_nodes * num_features + 100 * num_edges


class Generated(CheckedFields):
    """A source that needs no file.

    Attributes:
        seed: seed of the graph, not of the run: every run trains on the same graph.
        num_nodes: number of points; the largest component is kept.
    """

    def download(self) -> list[Path]:
        return []


class Downloaded(CheckedFields, ABC, kw_only=True):
    """A source that reads downloaded files once and caches the result.

    Args:
        folder: folder of the raw files inside `data_dir`, and inside the mirror.
        files: raw files, each with `path`, its address after `url`; `name`, its name in the folder
            (by default the last part of `path`); `sha256`, null where nobody has stated one; and
            `git_blob`, the output of `git hash-object`, where only that is known.
        statistics: numbers that the graph must have, null where unknown.
        url: address that the files' paths continue; null if they cannot be downloaded.
        name: name of the graph in messages and in the cache.
        data_dir: folder of raw and processed files.
        mirror: folder with the same layout, used instead of the network.
    """

    revision = 1  # of the reader, raised whenever the same files are read into another graph

    folder: DatasetFiles[RelativePath]
    files: DatasetFiles[Sequence[Mapping[str, Any]]]
    statistics: Incidental[Mapping[str, Any]]
    url: Incidental[str | None] = None
    name: Passed[str] = "graph"
    data_dir: Passed[str | Path] = "data"
    mirror: Passed[str | Path | None] = None

    @property
    def variant(self) -> str:
        """Options that the cached graph depends on, as a part of its name."""
        return ""

    def download(self) -> list[Path]:
        paths = []
        for file in self.files:
            name = file.get("name", PurePosixPath(file["path"]).name)
            path = fetch(
                f"{self.folder}/{name}",
                None if self.url is None else f"{self.url}/{file['path']}",
                file["sha256"],
                self.data_dir,
                self.mirror,
                file.get("git_blob"),
            )
            paths.append(path)
        return paths

    @property
    def memory_bytes(self) -> int:
        """See `graph_bytes`; statistics that are unknown count as 0."""
        statistics = self.statistics
        nodes = statistics.get("num_nodes") or 0
        edges = statistics.get("num_edges") or (statistics.get("raw_edges") or 0) // 2
        return graph_bytes(nodes, edges, statistics.get("num_features") or 0)

    @abstractmethod
    def read(self, paths: list[Path]) -> Data:
        """Read the raw files, in the order of `files`."""

    @abstractmethod
    def facts(self, data: Data) -> Mapping[str, Any]:
        """Return the numbers of a graph that `statistics` are compared with."""

    def process(self, paths: list[Path]) -> Data:
        """Read the graph, as it is cached."""
        return self.read(paths)

    def load(self) -> Data:
        paths = self.download()
        key = f"{self.name}{self.variant}-{checksum(paths)}"
        folder = paths[0].parent.parent / "processed"

        def check_downloads() -> Data:
            try:
                return self.process(paths)
            except UsageError as error:
                raise UsageError(f"{self.name}: {error}") from error
            except Exception as error:  # a malformed file can make its reader raise anything
                clear_frames(error.__traceback__)  # closes the files that the reader left open
                raise UsageError(
                    f"the raw files of {self.name} in {paths[0].parent} cannot be read "
                    f"({type(error).__name__}: {error}): delete them and run again to fetch fresh "
                    "ones."
                ) from error

        data = cached_graph(folder, key, check_downloads, self.revision)
        check_statistics(self.name, self.facts(data), self.statistics)
        return data


@contextmanager
def pyg_root(files: Mapping[str, Path]) -> Iterator[Path]:
    """A temporary folder with links to files, for a dataset class of PyTorch Geometric."""
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old names of classes inside the files
        for place, path in files.items():
            link = Path(folder) / place
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path.resolve())
        with redirect_stderr(io.StringIO()):  # "Processing... Done!"
            yield Path(folder)


def fetch(
    path: str,
    url: str | None,
    sha256: str | None,
    data_dir: str | Path,
    mirror: str | Path | None = None,
    git_blob: str | None = None,
) -> Path:
    """The verified path of a raw file: in the data folder, or fetched from mirror or network."""
    checksums = {"SHA-256": sha256, "git blob hash": git_blob}
    target = Path(data_dir) / path
    mirror_result = "no mirror is set"
    if target.exists():
        _verify(target, checksums, f"delete it ({target}) and run again to fetch a fresh copy")
        return target
    if mirror is not None:
        folder = Path(mirror).expanduser()
        if not folder.is_dir():
            raise UsageError(
                f"paths.mirror (CURVLAB_MIRROR) names {folder}, which is not a folder: "
                f"name a folder that holds {path}, or unset it."
            )
        if (folder / path).exists():
            remedy = "repair the mirror, or unset CURVLAB_MIRROR to download it"
            _verify(folder / path, checksums, remedy)
            with atomic_path(target) as partial:
                shutil.copyfile(folder / path, partial)
            log.info("copied %s from the mirror %s", path, mirror)
            return target
        mirror_result = f"the mirror {mirror} does not have it"
    remedy = "put it there by hand, or below the folder CURVLAB_MIRROR"
    if url is None:
        raise UsageError(
            f"{target} is missing, {mirror_result} and it cannot be downloaded: {remedy}."
        )
    fetch_url: Callable[..., None] = pooch.HTTPDownloader(timeout=TIMEOUT_SECONDS)
    log.info("downloading %s from %s", path, url)
    try:
        with atomic_path(target) as partial:
            fetch_url(url, str(partial), None)
            _verify(partial, checksums, f"{url} has changed or the connection altered it")
    except requests.RequestException as error:
        status = getattr(error.response, "status_code", None)
        reason = f"HTTP status {status}" if status else "no connection"
        raise UsageError(
            f"{target} is missing, {mirror_result}, {url} could not be had ({reason}): {remedy}."
        ) from error
    return target


def _verify(path: Path, checksums: Mapping[str, str | None], remedy: str) -> None:
    """Compare a file with its checksums, by their kind; None where one is unknown."""
    for kind, expected in checksums.items():
        if expected is None:
            continue
        actual = CHECKSUMS[kind](path)
        if actual != expected:
            raise UsageError(
                f"{path} is corrupt: its {kind} is {actual}, expected {expected}; {remedy}."
            )


def _sha256(path: Path) -> str:
    return pooch.file_hash(str(path), alg="sha256")


def git_blob_hash(path: Path) -> str:
    """The SHA-1 of `blob`, the file's length and its content, as `git hash-object` prints it."""
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as stream:
        while part := stream.read(2**20):
            digest.update(part)
    return digest.hexdigest()


CHECKSUMS: Mapping[str, Callable[[Path], str]] = {
    "SHA-256": _sha256,
    "git blob hash": git_blob_hash,
}
