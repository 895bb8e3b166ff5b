"""Graphs of the Open Graph Benchmark (Hu et al., 2020), read by OGB's own class.

OGB's class would ask at a prompt before it downloads or updates something, and unpickles whatever
files it finds. Here it gets a folder of raw files that are there already, and no pickle but the one
that it writes itself.
"""

import io
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.archives import unpack_zip
from curvlab.data.labelled import GIVEN, LabelledGraph
from curvlab.errors import UsageError

SUFFIXES = (".csv.gz", ".npz", ".txt")  # of raw files; archives may hold pickles too
PROCESSED = "processed/geometric_data_processed.pt"  # what OGB's class writes and reads


class OGBGraph(LabelledGraph):
    """A graph of `ogbn-*` from the archive that OGB publishes, with its official split.

    Nodes without features get the mean of the features of their edges; nodes whose label is NaN
    are `labelled = False` and in no part of the split.

    Args:
        dataset: OGB's name of it, for instance `ogbn-arxiv`.
        contents: Paths that its archive must hold below the folder that is named like it.
        **options: Of `LabelledGraph`; the one file is the archive.
    """

    def __init__(self, dataset: str, contents: Sequence[str], **options: Any) -> None:
        super().__init__(**options)
        self.dataset = dataset
        self.contents = contents

    def read(self, paths: list[Path]) -> Data:
        """Unpack the archive into a folder that is thrown away, and let OGB's class read it.

        Raises:
            UsageError: The archive lacks a file.
        """
        from curvlab._ogb import PygNodePropPredDataset

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
    """Let a block print nothing, and have whatever it asks at a prompt fail."""
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
