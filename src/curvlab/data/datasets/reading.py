"""A graph from a file or folder in one call: for a library, and for what was trained elsewhere."""

from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from curvlab.data.datasets.graph_folder import GraphFolder
from curvlab.data.datasets.networkx_graph import NetworkXGraph
from curvlab.data.datasets.own_graph import OwnGraph
from curvlab.data.datasets.pyg_object import PyGObject
from curvlab.data.vocabulary import Vocabulary, vocabulary_of


def read_graph(
    path: str | Path, known: Vocabulary | None = None, **options: Any
) -> tuple[Data, Vocabulary]:
    """Read a graph: a folder as `dataset=graph_folder`, `.pt` as `pyg`, else as `networkx`.

    Args:
        path: of the folder or file.
        known: the vocabulary of a trained model: classes get the numbers that they have there, and
            columns of features are taken in that order.
        **options: of `GraphFolder`, `PyGObject` or `NetworkXGraph`.

    Returns:
        The simple undirected graph before any transform of features, and its names.

    Raises:
        UsageError: something is missing or malformed, or a class or feature is unknown.
    """
    path = Path(path).expanduser()
    source: type[OwnGraph] = GraphFolder
    if not path.is_dir() and path.suffix:
        source = PyGObject if path.suffix in (".pt", ".pth") else NetworkXGraph
    data = source(path=str(path), known=known, **options).load()
    return data, vocabulary_of(data)
