"""Graphs of networkx: GraphML, GML, and lists of edges or neighbours."""

from pathlib import Path

import networkx as nx
import pandas as pd
from torch_geometric.data import Data

from curvlab.data.datasets.graph_tables import TableGraph
from curvlab.data.files.tables import Table, check_file
from curvlab.errors import UsageError

FORMATS = {".edges": "edgelist", ".txt": "edgelist", ".net": "pajek"}
FORMATS |= {f".{name}": name for name in ("graphml", "gml", "gexf", "edgelist", "adjlist")}
"""networkx format by file ending, without `.gz`."""


class NetworkXGraph(TableGraph):
    """A file that networkx reads, by its ending: .graphml, .gml, .gexf, .net, .edgelist, .adjlist.

    Attributes of nodes are the columns of `curvlab.data.datasets.graph_folder.GraphFolder`: `label`
    (in GML `class`, since `label` is the id there) and `split` are class and part, all others are
    features.

    Args:
        path: of the file.
    """

    def download(self) -> list[Path]:
        check_file(self.place, "a graph, such as graph.graphml")
        return [self.place]

    def read(self) -> Data:
        (path,) = self.download()
        ending = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
        if ending not in FORMATS:
            raise UsageError(
                f"{path} ends in {ending or 'nothing'}: networkx reads "
                f"{', '.join(FORMATS)}; tables are read by dataset=graph_folder."
            )
        try:
            graph = getattr(nx, f"read_{FORMATS[ending]}")(path)  # which unpacks .gz
        except Exception as error:  # each format fails in its own way
            why = " ".join(str(error).split())[:160] or type(error).__name__
            raise UsageError(
                f"{path} is not read as {ending.removeprefix('.')} ({why}): correct the file, or "
                "write it again by networkx."
            ) from error
        if self.directed and not graph.is_directed():
            raise UsageError(f"{path} is undirected: drop directed=True.")
        columns = ["source", "target", "weight"] if self.weighted else ["source", "target"]
        ends = pd.DataFrame(graph.edges(data="weight"), columns=["source", "target", "weight"])
        rows = pd.DataFrame([attributes for _, attributes in graph.nodes(data=True)])
        rows = rows.drop(columns="id", errors="ignore")
        rows.insert(0, "id", [str(node) for node in graph])
        nodes = Table(path, rows.set_axis([repr(node) for node in rows["id"]]), "node")
        edges = Table(path, ends[columns].astype({"source": str, "target": str}), "edge")
        return self.from_tables(edges, nodes, id_column="id")
