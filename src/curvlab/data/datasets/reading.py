"""Read a graph from a file or folder in one call."""

from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from curvlab.data.datasets.graph_folder import GraphFolder
from curvlab.data.datasets.networkx_graph import NetworkXGraph
from curvlab.data.datasets.own_graph import OwnGraph
from curvlab.data.datasets.pyg_object import PyGObject
from curvlab.data.readers.endings import reader_name
from curvlab.data.vocabulary import Vocabulary, vocabulary_of


def reader_of(path: str | Path) -> type[OwnGraph]:
    """The class that reads a path: folders and tables, a saved `Data`, or networkx's files."""
    readers: dict[str, type[OwnGraph]] = {"pyg": PyGObject, "networkx": NetworkXGraph}
    return readers.get(reader_name(path), GraphFolder)


def read_graph(
    path: str | Path, known: Vocabulary | None = None, **options: Any
) -> tuple[Data, Vocabulary]:
    """Read a simple graph, before any transform of features, and its names from files.

    Args:
        path: path of the folder or file.
        known: the vocabulary of a trained model, whose classes and columns of features these are.
        **options: of the reader.
    """
    data = reader_of(path)(path=str(path), known=known, **options).load()
    return data, vocabulary_of(data)
