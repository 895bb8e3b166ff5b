"""Graphs of the Open Graph Benchmark (Hu et al., 2020), read by OGB's own class.

OGB's class would ask at a prompt before it downloads or updates something, and unpickles any
files it finds. Here it gets a folder of raw files that are there already, and no pickle but the one
that it writes itself.
"""

import io
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any
from zipfile import ZipFile

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.datasets.labelled import GIVEN, LabelledGraph
from curvlab.data.files.archives import unpack_zip
from curvlab.data.files.checks import check_labels, check_statistics, not_finite
from curvlab.data.files.disk_graph import DiskGraph, DiskGraphWriter
from curvlab.errors import UsageError
from curvlab.options import Incidental

SUFFIXES = (".csv.gz", ".npz", ".txt")  # of raw files; archives may hold pickles too
BINARY = "raw/data.npz"  # of sets that are too large for text
PIECE = 2**22  # numbers of an array that are read at a time
PROCESSED = "processed/geometric_data_processed.pt"  # what OGB's class writes and reads


class OGBGraph(LabelledGraph):
    """A graph of `ogbn-*` from the archive that OGB publishes, with its official split.

    Nodes without features get the mean of the features of their edges; nodes whose label is NaN
    are `labelled = False` and in no part of the split.

    Args:
        dataset: OGB's name of it, for instance `ogbn-arxiv`.
        contents: paths that its archive must hold, below a folder with the archive's name.
        **options: of `LabelledGraph`; the one file is the archive.
    """

    def __init__(self, dataset: str, contents: Incidental[Sequence[str]], **options: Any) -> None:
        super().__init__(**options)
        self.dataset = dataset
        self.contents = contents

    def read(self, paths: list[Path]) -> Data:
        """Unpack the archive into a folder that is thrown away, and let OGB's class read it.

        Raises:
            UsageError: The archive lacks a file.
        """
        from curvlab.data.files._ogb import PygNodePropPredDataset

        (archive,) = paths
        # Beside the archive, since a folder for temporary files can be too small for it.
        with TemporaryDirectory(dir=archive.parent, prefix=".unpacked-") as place:
            folder = Path(place) / self.dataset.replace("-", "_")
            unpack_zip(archive, archive.stem, SUFFIXES, folder)
            for path in self.contents:
                if not (folder / path).is_file():
                    raise UsageError(
                        f"{archive} does not hold {archive.stem}/{path}, so that it is not what "
                        f"OGB publishes as {self.dataset}: delete it and run again to fetch a "
                        "fresh copy."
                    )
            with _unattended(), _trusting(folder / PROCESSED):
                dataset = PygNodePropPredDataset(self.dataset, root=place)
                return prepared(dataset[0], dataset.get_idx_split())

    @property
    def to_disk(self) -> Callable[[Path], DiskGraph] | None:
        """Writes a graph in OGB's binary format piece by piece; None for other formats."""
        return self._to_disk if BINARY in self.contents else None

    def _to_disk(self, folder: Path) -> DiskGraph:
        (archive,) = self.download()
        with TemporaryDirectory(dir=archive.parent, prefix=".unpacked-") as place:
            unpack_zip(archive, archive.stem, SUFFIXES, Path(place))
            missing = [path for path in self.contents if not (Path(place) / path).is_file()]
            if missing:
                raise UsageError(
                    f"{archive} does not hold {', '.join(missing)}: delete it and run again to "
                    "fetch a fresh copy."
                )
            return binary_to_disk(self.name, Path(place), self.statistics, folder, self.given)


def binary_to_disk(
    name: str, place: Path, statistics: Mapping[str, Any], folder: Path, given: str | None
) -> DiskGraph:
    """Write a graph in OGB's binary format to disk, edges and features a piece at a time.

    Args:
        name: What messages call the graph.
        place: Where the archive has been unpacked.
        statistics: See `LabelledGraph`; homophily is not compared.
        folder: Where it goes.
        given: What its split is called.

    Raises:
        UsageError: It has other statistics, or features, labels or parts that are unusable.
    """
    with ZipFile(place / BINARY) as files:
        (_, raw_edges), by_column = _layout(files, "edge_index")
        features, features_by_column = _layout(files, "node_feat")
        if features_by_column:
            raise UsageError(f"{BINARY} keeps features by columns, which is not what OGB publishes")
        nodes, labels, masks = _labelled_nodes(name, place, features[0], statistics["num_classes"])
        counts = np.bincount(labels).tolist()
        found = {
            "num_nodes": features[0],
            "raw_edges": raw_edges,
            "num_features": features[1],
            "num_classes": len(counts),
            "class_counts": counts,
            "given_sizes": [int(mask.sum()) for mask in masks.values()],
        }
        check_statistics(name, found, statistics)
        writer = DiskGraphWriter(folder, features[0])
        if by_column:
            pairs = _pieces(files, "edge_index", 2 * raw_edges, 0, 2)
            writer.edges(piece.reshape(-1, 2).T for piece in pairs)
        else:
            rows = (_pieces(files, "edge_index", raw_edges, i * raw_edges) for i in range(2))
            writer.edges(np.stack(ends) for ends in zip(*rows, strict=True))
        check_statistics(name, {"num_edges": writer.entries // 2}, statistics)
        numbers = _pieces(files, "node_feat", features[0] * features[1], 0, features[1])
        pieces = (piece.reshape(-1, features[1]) for piece in numbers)
        writer.features(_finite(name, pieces), features[1])
    writer.labels(nodes, labels, masks)
    return writer.finish(given)


def _labelled_nodes(
    name: str, place: Path, num_nodes: int, num_classes: int
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """The nodes that have a label, ascending, their labels, and the parts that they are in."""
    y = torch.from_numpy(np.load(place / "raw" / "node-label.npz")["node_label"].ravel())
    known = ~y.isnan()
    try:
        check_labels(Data(y=y, num_nodes=num_nodes, labelled=known), num_classes)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from error
    nodes = known.nonzero().flatten().numpy()
    masks = {}
    for part, file in zip(GIVEN, ("train", "valid", "test"), strict=True):
        (path,) = place.glob(f"split/*/{file}.csv.gz")
        members = np.atleast_1d(np.loadtxt(path, dtype=np.int64))
        masks[part] = np.isin(nodes, members)[:, None]
    return nodes, y[known].long().numpy(), masks


def _finite(name: str, pieces: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Pieces of features `[some nodes, features]` as they come, unless some are not finite.

    Raises:
        UsageError: How many nodes have such features, after the last piece.
    """
    seen, bad, first = 0, 0, 0
    for piece in pieces:
        rows = np.flatnonzero(~np.isfinite(piece).all(axis=1))
        if len(rows) and not bad:
            first = seen + int(rows[0])
        bad += len(rows)
        seen += len(piece)
        yield piece
    if bad:
        raise UsageError(f"{name}: {not_finite(bad, first)}")


def _layout(files: ZipFile, name: str) -> tuple[tuple[int, ...], bool]:
    """Shape of an array, and whether it is stored by columns."""
    with files.open(f"{name}.npy") as file:
        return _header(file)[:2]


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, "np.dtype[Any]"]:
    """Shape, order and type of an array in a `.npy` file, which is left at its first number."""
    first = np.lib.format.read_magic(file) == (1, 0)
    numpy = np.lib.format
    return (numpy.read_array_header_1_0 if first else numpy.read_array_header_2_0)(file)


def _pieces(
    files: ZipFile, name: str, count: int, skipped: int, multiple: int = 1
) -> Iterator[np.ndarray]:
    """Numbers of an array in an archive, flat, after those that are skipped, a piece at a time."""
    size = max(1, PIECE // multiple) * multiple
    with files.open(f"{name}.npy") as file:
        *_, dtype = _header(file)
        left = skipped
        while left:
            left -= len(file.read(min(left, size) * dtype.itemsize)) // dtype.itemsize
        while count:
            block = file.read(min(count, size) * dtype.itemsize)
            count -= len(block) // dtype.itemsize
            yield np.frombuffer(block, dtype=dtype)


def prepared(raw: Data, parts: Mapping[str, Tensor]) -> Data:
    """The graph as models need it.

    Args:
        raw: What OGB's class reads: `edge_index`, `y [nodes, tasks]`, `x` or `edge_attr`.
        parts: Nodes of `train`, `valid` and `test`.

    Returns:
        `x`, `edge_index`, `y` (`[nodes]` if there is one task), the given split, and, if labels are
        missing, `labelled [nodes]`; a missing class is -1.
    """
    nodes = int(raw.num_nodes or 0)
    x = raw.x if raw.x is not None else mean_of_edges(raw.edge_index, raw.edge_attr, nodes)
    y = raw.y[:, 0] if raw.y.shape[1] == 1 else raw.y
    data = Data(x=x, edge_index=raw.edge_index, y=y, num_nodes=nodes)
    if y.dim() == 1 and y.is_floating_point():
        data.labelled = ~y.isnan()
        data.y = torch.where(data.labelled, y, -1).long()
    for name, part in zip(GIVEN, ("train", "valid", "test"), strict=True):
        data[name] = torch.zeros(nodes, 1, dtype=torch.bool)
        data[name][parts[part]] = True
        if "labelled" in data:
            data[name] &= data.labelled.unsqueeze(1)
    return data


def mean_of_edges(edge_index: Tensor, edge_attr: Tensor, num_nodes: int) -> Tensor:
    """Mean of the features of a node's edges, `[nodes, features]` (float32); 0 if it has none.

    x_v = sum of edge_attr_(v, u) over neighbours u / number of neighbours u.

    Args:
        edge_index: Both directions of every edge, `[2, edges]`.
        edge_attr: `[edges, features]`.
        num_nodes: Number of nodes.
    """
    source = edge_index[0].numpy()
    degree = np.maximum(np.bincount(source, minlength=num_nodes), 1)
    sums = [  # in double precision, in which a copy of all features at once would not fit
        np.bincount(source, weights=column, minlength=num_nodes) for column in edge_attr.numpy().T
    ]
    return torch.from_numpy(np.stack(sums, axis=1) / degree[:, None]).float()


@contextmanager
def _unattended() -> Iterator[None]:
    """Let a block print nothing, and have anything it asks at a prompt fail."""
    before = sys.stdin
    sys.stdin = io.StringIO()
    try:
        with (
            redirect_stdout(io.StringIO()),
            redirect_stderr(io.StringIO()),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")  # of pandas' arrays, which are not to be written to
            yield
    finally:
        sys.stdin = before


@contextmanager
def _trusting(written: Path) -> Iterator[None]:
    """Let `torch.load` read pickled objects from one file, which the block itself must write.

    Raises:
        UsageError: The file is there already, so that somebody else has written it.
    """
    if written.exists():
        raise UsageError(f"{written} is there before it was written: it is not read.")
    load = torch.load

    def load_written(file: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(file, str | Path) and Path(file).resolve() == written.resolve():
            options["weights_only"] = False
        return load(file, *arguments, **options)

    torch.load = load_written  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.load = load
