"""A user's own graph: a folder with a table of edges, and perhaps of nodes, and features."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import psutil
from scipy.sparse import load_npz
from torch_geometric.data import Data

from curvlab.data.datasets.graph_from_tables import graph_of
from curvlab.data.datasets.graph_tables import (
    ID,
    LABEL,
    SOURCE,
    SPLIT,
    TARGET,
    Edges,
    Nodes,
    edges_of,
    named,
    nodes_of,
)
from curvlab.data.datasets.own_graph import OwnGraph
from curvlab.data.files.tables import Table, check_is_file, check_memory, columns_of, read_table
from curvlab.errors import UsageError
from curvlab.options import Incidental

log = logging.getLogger(__name__)

TABLES = ("csv", "tsv", "csv.gz", "tsv.gz", "parquet")
ARRAYS = ("npz", "npy")
KNOWLEDGE_GRAPH = ("train.txt", "train.txt.gz")


class GraphFolder(OwnGraph):
    """A folder with `edges.csv` and perhaps `nodes.csv`, `features.npy` or `features.npz`.

    A table may end in `.csv`, `.tsv`, either with `.gz`, or `.parquet`. A line of `edges.csv` has
    two ids, any texts, and perhaps a weight. `nodes.csv` names its columns in the first line: `id`,
    perhaps `label` (a class; empty for a node without) and `split` (train, val, test, or empty),
    all others are features. Every edge goes both ways but for `directed`; lines that repeat one,
    and those from a node to itself, are counted and left out. A node without an edge stays.

    Weights of edges are the column `weight`, or the third.

    Args:
        path: of the folder.
        header: true: the first line of edges.csv names the columns; false: it is an edge; null:
            judge by what it says.
        separator: between columns of texts; null: tabs in .tsv, else commas.
        ignore: columns of nodes.csv that are not used.
        **options: of `OwnGraph`.
    """

    def __init__(
        self,
        path: Incidental[str | None] = None,
        header: bool | None = None,
        separator: Literal["tab", "comma", "semicolon", "space", "bar"] | None = None,
        ignore: Sequence[str] = (),
        **options: Any,
    ) -> None:
        super().__init__(path, **options)
        self.header = header
        self.separator = separator
        self.ignore = tuple(ignore)

    @property
    def options(self) -> Mapping[str, Any]:
        """How the files are read."""
        kept = ("header", "separator", "weighted", "mutual", "directed", "ignore")
        return {name: getattr(self, name) for name in kept}

    def download(self) -> list[Path]:
        """Return where the files are, that of the edges first.

        Raises:
            UsageError: there is no folder, no file of edges, or one is there twice.
        """
        return [path for path in self._files().values() if path is not None]

    def read(self) -> Data:
        """Read the folder.

        Raises:
            UsageError: a file is malformed, with the line.
        """
        files = self._files()
        assert files["edges"] is not None
        nodes = None if files["nodes"] is None else self._nodes(files["nodes"])
        edges = self._edges(files["edges"], None if nodes is None else nodes.ids)
        features = None if files["features"] is None else features_of(files["features"])
        if nodes is not None and nodes.features and features is not None:
            raise UsageError(
                f"{files['nodes']} has the column {nodes.features[0]!r} and {files['features']} is "
                "there too: keep features in one of them, or leave columns out by "
                f"ignore=[{','.join(nodes.features[:3])}]."
            )
        return graph_of(edges, nodes, features, self.mutual, self.known, self.directed)

    def _files(self) -> dict[str, Path | None]:
        if self.path is None:
            raise UsageError("a graph needs its folder, with edges.csv: path=FOLDER")
        if self.path.is_file():
            raise UsageError(
                f"{self.path} is a file: dataset=graph_folder takes a folder with edges.csv; a "
                "saved Data is read by dataset=pyg, GraphML or GML by dataset=networkx."
            )
        if not self.path.is_dir():
            raise UsageError(f"{self.path} is not there: path=FOLDER names a folder.")
        files = {
            "edges": self._file("edges", TABLES),
            "nodes": self._file("nodes", TABLES),
            "features": self._file("features", ARRAYS),
        }
        if files["edges"] is None:
            if any((self.path / name).is_file() for name in KNOWLEDGE_GRAPH):
                raise UsageError(
                    f"{self.path} is a knowledge graph: use dataset=kg_folder "
                    f"dataset.source.path={self.path}"
                )
            there = sorted(path.name for path in self.path.iterdir())[:5]
            raise UsageError(
                f"{self.path} has no edges.csv (or .tsv, .csv.gz, .parquet): write a line an edge, "
                f"such as a,b; there is {', '.join(there) or 'nothing'}."
            )
        return files

    def _file(self, name: str, endings: Sequence[str]) -> Path | None:
        assert self.path is not None
        there = [path for e in endings if (path := self.path / f"{name}.{e}").exists()]
        if len(there) > 1:
            raise UsageError(
                f"{self.path} has {there[0].name} and {there[1].name}: take one of them away."
            )
        for path in there:
            check_is_file(path, f"the file of {name}")
        return there[0] if there else None

    def _edges(self, path: Path, ids: "pd.Index[Any] | None") -> Edges:
        table = read_table(path, self.separator)
        if table.unit == "line":
            table = self._without_header(table, ids)
        return edges_of(table, self.weighted)

    def _without_header(self, table: Table, ids: "pd.Index[Any] | None") -> Table:
        """Take the names of the columns from the first line, if it has some.

        Words that are ids of no node, where a table has the ids, and stand in no other line do too.
        """
        frame = table.frame
        first = [str(name).strip() for name in frame.iloc[0]]
        header = is_header(frame) if self.header is None else self.header
        alone = len(frame) > 2 and not frame.iloc[1:, :2].isin(first[:2]).any(axis=None)
        if alone and self.header is None and ids is not None:
            header = header or set(first[:2]).isdisjoint(ids)
        if not header:
            if alone and self.header is None:
                log.info(
                    "%s is an edge: if it names the columns, set header",
                    table.at(frame.index[0]),
                )
            return table
        repeated = [name for i, name in enumerate(first) if name in first[:i]]
        if repeated:
            raise UsageError(
                f"{table.at(frame.index[0])}: two columns {repeated[0]!r}: give each a name of its "
                "own; header=False takes the line for an edge."
            )
        frame = frame.iloc[1:].set_axis(first, axis=1)
        return Table(table.path, frame)

    def _nodes(self, path: Path) -> Nodes:
        texts: list[str] = []
        if path.suffix != ".parquet":
            columns = columns_of(path, self.separator)
            found = (named(columns, words) for words in (ID, LABEL, SPLIT))
            texts = [name for name in found if name is not None] + list(self.ignore)
        return nodes_of(read_table(path, self.separator, True, texts), self.ignore, self.known)


def is_header(frame: pd.DataFrame) -> bool:
    """Whether the first line of texts names columns of edges.

    So do words that ends of edges are called by and no node is, a line of texts above numbers, and
    a third field that is no number above numbers.
    """
    first, rest = frame.iloc[0].astype(str).str.strip(), frame.iloc[1:]
    ends = [named(first.tolist(), words) for words in (SOURCE, TARGET)]
    if None not in ends:
        return not rest.isin(ends).any(axis=None)  # u and v can be nodes too
    if rest.empty:
        return False
    below = rest.head(1000).astype(str).apply(lambda column: column.str.strip())

    def named_above_numbers(i: int) -> bool:
        numbers = pd.to_numeric(below.iloc[:, i], errors="coerce").notna()
        is_name = bool(np.isnan(pd.to_numeric(first.iloc[i : i + 1], errors="coerce").iloc[0]))
        return is_name and bool(numbers.all())

    above = [named_above_numbers(i) for i in range(len(first))]
    return all(above[:2]) or any(above[2:3])


def features_of(path: Path) -> np.ndarray:
    """Features `[nodes, features]` of an array of NumPy, or a sparse matrix of SciPy.

    Raises:
        UsageError: the file holds something else.
    """
    check_memory(path)
    array = _array(path)
    if array.ndim != 2 or not (np.issubdtype(array.dtype, np.number) or array.dtype == bool):
        raise UsageError(
            f"{path} has {array.dtype} of shape {list(array.shape)}: features are numbers "
            "[nodes, features]."
        )
    if np.iscomplexobj(array):
        raise UsageError(f"{path} has complex numbers: give real and imaginary part as features.")
    if 0 in array.shape:
        raise UsageError(f"{path} has the shape {list(array.shape)}: there are no features.")
    with np.errstate(over="ignore"):
        array = array.astype(np.float32)
    wrong = ~np.isfinite(array)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise UsageError(
            f"{path}, row {row}, column {column} (from 0): {array[row, column]} is not finite: "
            "fill it, or leave the column out."
        )
    return array


def _array(path: Path) -> np.ndarray:
    try:
        with path.open("rb") as stream:
            loaded = np.load(stream, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return loaded
            names = loaded.files
            if {"format", "shape", "data"} <= set(names):
                sparse = load_npz(path)
                _check_dense(path, sparse.shape)
                return sparse.toarray()
            chosen = [name for name in ("features", "x") if name in names] or names
            if len(chosen) == 1:
                return loaded[chosen[0]]
    except UsageError:
        raise
    except Exception as error:  # damaged archives and pickles can raise nearly anything
        why = " ".join(str(error).split())[:120]
        raise UsageError(
            f"{path} is no array of numbers ({why}): write it by numpy.save, numpy.savez or "
            "scipy.sparse.save_npz."
        ) from error
    raise UsageError(
        f"{path} has {len(names)} arrays ({', '.join(names[:5])}): call the features x, or save "
        "them alone."
    )


def _check_dense(path: Path, shape: tuple[int, ...]) -> None:
    needed, free = 8 * int(np.prod(shape)), psutil.virtual_memory().available
    if needed > free:
        raise UsageError(
            f"{path} of shape {list(shape)} would take {needed / 1e9:.1f} GB as a dense matrix, of "
            f"which {free / 1e9:.1f} GB are free: keep fewer columns."
        )
