"""A graph from a file or folder in one call: for a library, and for what was trained elsewhere."""

from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from curvlab.data.datasets.graph_folder import TABLES, GraphFolder
from curvlab.data.datasets.networkx_graph import NetworkXGraph
from curvlab.data.datasets.own_graph import OwnGraph
from curvlab.data.datasets.pyg_object import PyGObject
from curvlab.data.vocabulary import Vocabulary, vocabulary_of


def source_of(path: str | Path, **options: Any) -> OwnGraph:
    """The reader of a path: `GraphFolder` of folders and tables, `PyGObject` of `.pt`, or networkx.

    Args:
        path: of the folder or file.
        **options: of `GraphFolder`, `PyGObject` or `NetworkXGraph`.
    """
    place = Path(path).expanduser()
    if place.suffix in (".pt", ".pth"):
        return PyGObject(path=str(path), **options)
    if place.is_dir() or not place.suffix or place.name.endswith(TABLES):
        return GraphFolder(path=str(path), **options)
    return NetworkXGraph(path=str(path), **options)


def read_graph(
    path: str | Path, known: Vocabulary | None = None, **options: Any
) -> tuple[Data, Vocabulary]:
    """Read a graph from files, see `source_of`.

    Args:
        path: of the folder or file.
        known: the vocabulary of a trained model: classes get the numbers that they have there, and
            columns of features are taken in that order.
        **options: of the reader.

    Returns:
        The simple undirected graph before any transform of features, and its names.

    Raises:
        UsageError: something is missing or malformed, or a class or feature is unknown.
    """
    data = source_of(path, known=known, **options).load()
    return data, vocabulary_of(data)
