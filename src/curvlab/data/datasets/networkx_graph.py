"""Graphs of networkx: GraphML, GML, GEXF, Pajek, and lists of neighbours."""

from pathlib import Path
from typing import ClassVar

from torch_geometric.data import Data

from curvlab.data.datasets.graph_tables import TableGraph
from curvlab.data.readers.edge_lists import edge_columns
from curvlab.data.readers.endings import READERS, ending_of, refuse_ending
from curvlab.data.readers.networkx import read_networkx
from curvlab.data.readers.tables import check_file
from curvlab.errors import UsageError


class NetworkXGraph(TableGraph):
    """A file that networkx reads, by its ending: .graphml, .gml, .gexf, .net, .adjlist.

    Attributes of nodes are the columns of `curvlab.data.datasets.graph_folder.GraphFolder`: `class`
    and `split` are class and part, all others are features. `label` and `y` are a name and a
    coordinate in these formats, and classes only if the option `label` says so.

    Args:
        path: path of the file.
    """

    names_of_no_role: ClassVar[tuple[str, ...]] = ("label", "y")

    def download(self) -> list[Path]:
        refuse_ending(self.path or "")
        check_file(self.place, "a graph, such as graph.graphml")
        return [self.place]

    def read(self) -> Data:
        (path,) = self.download()
        if ending_of(path) not in READERS["networkx"]:
            raise UsageError(
                f"{path} ends in {ending_of(path) or 'nothing'}: networkx reads "
                f"{', '.join(READERS['networkx'])}; tables are read by dataset=graph_folder."
            )
        table, nodes, says = read_networkx(path, self.directed)
        edges, line = edge_columns(table, ("source", "target"), self.weighted, "")
        self.remarks += [line, *says]
        self.remarks.extend(
            f"{name}: classes only by dataset.source.label={name}"
            for name in self.names_of_no_role
            if name in nodes.frame and name != self.label
        )
        return self.from_tables(edges, nodes, id_column="id")
