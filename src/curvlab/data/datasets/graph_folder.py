"""A user's graph: a table of edges, optionally of nodes, and features."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
from scipy.sparse import load_npz
from torch_geometric.data import Data

from curvlab.data.datasets.graph_tables import TableGraph
from curvlab.data.readers.column_names import columns_by_role
from curvlab.data.readers.edge_headers import commented_names, read_header
from curvlab.data.readers.edge_lists import edge_columns
from curvlab.data.readers.endings import refuse_ending, say_unread
from curvlab.data.readers.tables import Table, check_file, read_table
from curvlab.data.readers.texts import Separator
from curvlab.errors import UsageError
from curvlab.options import UserFile

TEXTS = ("csv", "tsv", "txt", "edges", "edgelist", "el", "dat")
TABLES = (*TEXTS, *(f"{end}.gz" for end in TEXTS), "parquet")
ENDINGS = {"edges": TABLES, "nodes": TABLES, "features": ("npz", "npy")}
EDGES = tuple(f"edges.{ending}" for ending in TABLES)


class GraphFolder(TableGraph):
    """A folder with `edges.csv` and optionally `nodes.csv`, `features.npy` or `features.npz`.

    A table is a text (`.csv`, `.tsv`, `.txt`, ..., each perhaps with `.gz`), whose separator,
    encoding, comments and header are found and reported, or `.parquet`. A line of `edges.csv` has
    two ids, any texts, and perhaps a weight. The first line of `nodes.csv` names its columns: `id`,
    perhaps `label` (a class; empty for a node without one) and `split` (train, val, test, or
    empty); all others are features.

    Args:
        path: path of the folder, or of a table of edges by any name.
        nodes: path of the table of nodes; null: `nodes.csv` of the folder, if it is there.
        ends: columns of the two ends of an edge, by name or from 1; null: source and target, from
            and to, and similar names, else two columns that share values, else the first two.
        id: column of the ids; null: `id`, `node`, `node_id` or one with the ids of the edges.
        header: whether the first line of edges.csv names the columns; null: by what it says.
        separator: separator of the columns of edges.csv; null: the one that gives as many in every
            line.
    """

    file_names: ClassVar[tuple[str, ...]] = tuple(
        f"{name}.{end}" for name, endings in ENDINGS.items() for end in endings
    )

    nodes: UserFile[str | None] = None
    ends: Sequence[str | int] | None = None
    id: str | None = None
    header: bool | None = None
    separator: Separator | None = None

    def download(self) -> list[Path]:
        return list(self._files().values())

    def read(self) -> Data:
        files = self._files()
        raw_edges = read_table(files["edges"], self.separator)
        nodes = None
        if "nodes" in files:
            nodes = named_nodes(read_table(files["nodes"]), raw_edges, self.id)
        array = features_of(files["features"]) if "features" in files else None
        table, form = read_header(raw_edges, self.header, nodes)
        edges, line = edge_columns(table, self.ends, self.weighted, form)
        self.remarks.append(line)
        return self.from_tables(edges, nodes, array, self.id)

    def report(self, data: Data) -> str:
        lines = [super().report(data)]
        if self._folder.is_dir():
            remedy = "dataset.source.nodes=FILE names a table of nodes other than nodes.csv"
            lines += say_unread(self._folder, self._files().values(), remedy)
        return "\n  ".join(lines)

    @property
    def _folder(self) -> Path:
        """The folder of the graph; the path itself if it is a table by another name."""
        is_table = self.place.is_file() and self.place.name in EDGES
        return self.place.parent if is_table else self.place

    def _files(self) -> dict[str, Path]:
        """The existing files, by `edges`, `nodes` and `features`."""
        place = self._folder
        files = dict[str, Path]()
        refuse_ending(self.path or "")
        if place.is_file():
            files["edges"] = place
        elif not place.is_dir():
            raise UsageError(
                f"{place} is not there: dataset=graph_folder takes a folder with edges.csv, or a "
                "table of edges; a saved Data is read by dataset=pyg, GraphML or GML by "
                "dataset=networkx."
            )
        else:
            for name, endings in ENDINGS.items():
                paths = [place / f"{name}.{end}" for end in endings]
                paths = [path for path in paths if path.exists()]
                if len(paths) > 1:
                    raise UsageError(
                        f"{place} has {paths[0].name} and {paths[1].name}: take one of them away."
                    )
                if paths:
                    files[name] = paths[0]
        if self.nodes is not None:
            files["nodes"] = Path(self.nodes).expanduser()
        if "edges" not in files:
            raise UsageError(
                f"{place} has no edges.csv (or .tsv, .csv.gz, .parquet): write one line per edge, "
                "such as a,b, or give the path of the table; triples of a knowledge graph are read "
                "by dataset=kg_folder dataset.source.path=FOLDER."
            )
        return files


def named_nodes(nodes: Table, edges: Table, id_column: str | None) -> Table:
    """The table of nodes with the names of its columns, in its first line or in a comment.

    A first line without a name for ids is refused if it seems to be a node: if one of its words is
    an end of an edge, in a column of ends, or a text that the same column repeats.
    """
    if nodes.headed:
        return nodes
    if nodes.frame.empty:
        return nodes.with_header()
    names = commented_names(nodes, _name_nodes)
    if names:
        return nodes.replace(frame=nodes.frame.set_axis(names, axis=1), headed=True)
    first = [*nodes.frame.iloc[0].fillna("").str.strip()]
    if "id" not in columns_by_role(first) and id_column not in first:
        below = nodes.frame.iloc[1:]
        for place, word in enumerate(first):
            column = below.iloc[:, place]
            is_text = pd.isna(pd.to_numeric(word, errors="coerce"))
            is_value = bool(column.eq(word).any())
            is_repeated = is_text and is_value and not column.is_unique
            is_end = not is_value and _is_end(word, column, edges)
            if word and (is_end or is_repeated):
                reason = f"is an id in {edges.path.name}" if is_end else "is also a value below"
                raise UsageError(
                    f"{nodes.path} does not name its columns: {word!r} in its first line {reason}; "
                    "write names above it, as in id,label,age."
                )
    return nodes.with_header()


def _is_end(word: str, column: "pd.Series[str]", edges: Table) -> bool:
    """Whether a word is in a list of edges, as half of a column's values are."""
    values = edges.frame.iloc[1:]
    if not values.isin([word]).any(axis=None):
        return False
    ends = pd.unique(values.astype("str").to_numpy(object).ravel())
    return float(column.isin(ends).mean()) >= 0.5


def _name_nodes(names: Sequence[str], count: int) -> bool:
    """Whether names are those of `count` columns, one of ids among them."""
    return len(names) == len({*names}) == count and "id" in columns_by_role(names)


def features_of(path: Path) -> np.ndarray:
    """Features `[nodes, features]` of an array of NumPy, or a sparse matrix of SciPy."""
    check_file(path, "features")
    try:
        array = np.load(path, allow_pickle=False)
        if not isinstance(array, np.ndarray):
            with array:
                names = array.files
                is_sparse = "format" in names
                array = load_npz(path).toarray() if is_sparse else array[names[0]]
            if not is_sparse and len(names) > 1:
                raise ValueError(f"{len(names)} arrays")
        if array.ndim != 2 or not array.shape[1] or array.dtype.kind not in "biuf":
            raise ValueError(f"{array.dtype} of shape {list(array.shape)}")
    except Exception as error:  # damaged archives and pickles can raise nearly anything
        reason = " ".join(str(error).split())[:120]
        raise UsageError(
            f"{path} is not an array of features ({reason}): write numbers [nodes, features] by "
            "numpy.save, numpy.savez or scipy.sparse.save_npz."
        ) from error
    return np.asarray(array)
