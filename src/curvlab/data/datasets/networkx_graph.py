"""Graphs of networkx: GraphML, GML, and lists of edges or neighbours."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from torch_geometric.data import Data

from curvlab.data.datasets.graph_from_tables import graph_of
from curvlab.data.datasets.graph_tables import edges_of, nodes_of
from curvlab.data.datasets.own_graph import OwnGraph
from curvlab.data.files.tables import Table, check_is_file, check_memory
from curvlab.errors import UsageError
from curvlab.options import Incidental

READERS = {
    ".graphml": "read_graphml",
    ".gml": "read_gml",
    ".edgelist": "read_edgelist",
    ".edges": "read_edgelist",
    ".txt": "read_edgelist",
    ".adjlist": "read_adjlist",
    ".net": "read_pajek",
    ".gexf": "read_gexf",
}
"""What networkx reads a file by, by its ending, `.gz` left out."""


class NetworkXGraph(OwnGraph):
    """A file that networkx reads, by its ending: .graphml, .gml, .gexf, .net, .edgelist, .adjlist.

    Attributes of nodes are the columns of `curvlab.data.datasets.graph_folder.GraphFolder`: `label`
    (in GML `class`, since `label` is the id there) and `split` are class and part, all others are
    features. Every edge goes both ways but for `directed`.

    Args:
        path: of the file.
        ignore: attributes of nodes that are not used.
        **options: of `OwnGraph`.
    """

    def __init__(
        self,
        path: Incidental[str | None] = None,
        ignore: Sequence[str] = (),
        **options: Any,
    ) -> None:
        super().__init__(path, **options)
        self.ignore = tuple(ignore)

    @property
    def options(self) -> Mapping[str, Any]:
        """How it is read."""
        kept = ("weighted", "mutual", "directed", "ignore")
        return {name: getattr(self, name) for name in kept}

    def download(self) -> list[Path]:
        """Return where the file is.

        Raises:
            UsageError: there is none.
        """
        if self.path is None:
            raise UsageError("a graph needs its file: path=graph.graphml")
        check_is_file(self.path, "a graph, such as graph.graphml")
        return [self.path]

    def read(self) -> Data:
        """Read the file.

        Raises:
            UsageError: networkx is not installed, or cannot read it, or what it holds does not fit.
        """
        (path,) = self.download()
        check_memory(path)
        graph = self._graph(path)
        arcs = graph.edges(data="weight")
        ends = pd.DataFrame(arcs, columns=["source", "target", "weight"])
        ends = ends if self.weighted else ends[["source", "target"]]
        ends = ends.astype({"source": str, "target": str})
        for name in ("mutual", "directed"):
            if graph.is_directed() is False and getattr(self, name):
                raise UsageError(f"{path} is undirected: drop {name}=True.")
        ends.index = pd.RangeIndex(1, len(ends) + 1)
        edges = edges_of(Table(path, ends, "edge"), self.weighted)
        rows = pd.DataFrame([attributes for _, attributes in graph.nodes(data=True)])
        rows.insert(0, "id", [str(node) for node in graph], allow_duplicates=True)
        rows = rows.loc[:, ~rows.columns.duplicated()]
        rows.index = pd.Index([repr(str(node)) for node in graph])
        nodes = nodes_of(Table(path, rows, "node"), self.ignore, self.known)
        return graph_of(edges, nodes, None, self.mutual, self.known, self.directed)

    def _graph(self, path: Path) -> Any:
        try:
            import networkx as nx
        except ImportError:
            raise UsageError(
                "dataset=networkx needs networkx: pip install 'curvlab[graphs]'"
            ) from None
        ending = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
        if ending not in READERS:
            raise UsageError(
                f"{path} ends in {ending or 'nothing'}: networkx reads "
                f"{', '.join(READERS)}; tables are read by dataset=graph_folder."
            )
        read: Callable[..., Any] = getattr(nx, READERS[ending])
        try:
            return read(path)  # which unpacks .gz
        except Exception as error:  # each format fails in its own way
            why = " ".join(str(error).split())[:160] or type(error).__name__
            raise UsageError(
                f"{path} is not read as {ending.removeprefix('.')} ({why}): correct the file, or "
                "write it again by networkx."
            ) from error
