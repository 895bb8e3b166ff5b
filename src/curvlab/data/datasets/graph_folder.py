"""A user's graph: a table of edges, optionally of nodes, and features."""

from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pandas as pd
from scipy.sparse import load_npz
from torch_geometric.data import Data

from curvlab.data.datasets.graph_tables import TableGraph, named_columns
from curvlab.data.files.tables import Table, check_file, read_table
from curvlab.errors import UsageError
from curvlab.options import UserFile

TABLES = ("csv", "tsv", "csv.gz", "tsv.gz", "parquet")
ENDINGS = {"edges": TABLES, "nodes": TABLES, "features": ("npz", "npy")}
EDGES = tuple(f"edges.{ending}" for ending in TABLES)


class GraphFolder(TableGraph):
    """A folder with `edges.csv` and optionally `nodes.csv`, `features.npy` or `features.npz`.

    A table may end in `.csv`, `.tsv`, either with `.gz`, or `.parquet`. A line of `edges.csv` has
    two ids, any texts, and perhaps a weight. `nodes.csv` names its columns in the first line: `id`,
    perhaps `label` (a class; empty for a node without) and `split` (train, val, test, or empty),
    all others are features.

    Args:
        path: of the folder, or of a table of edges by any name.
        nodes: path of the table of nodes; null: `nodes.csv` of the folder, if it is there.
        id: column of the ids; null: `id`, `node`, `node_id` or one with the ids of the edges.
        header: whether the first line of edges.csv names the columns; null: by what it says.
        separator: between columns of texts; null: tabs in .tsv, else commas.
    """

    file_names: ClassVar[tuple[str, ...]] = tuple(
        f"{name}.{end}" for name, endings in ENDINGS.items() for end in endings
    )

    nodes: UserFile[str | None] = None
    id: str | None = None
    header: bool | None = None
    separator: Literal["tab", "comma", "semicolon", "space", "bar"] | None = None

    def download(self) -> list[Path]:
        return list(self._files().values())

    def read(self) -> Data:
        files = self._files()
        nodes = None
        if "nodes" in files:
            nodes = read_table(files["nodes"], self.separator, True)
        array = features_of(files["features"]) if "features" in files else None
        edges = read_table(files["edges"], self.separator)
        if edges.unit == "line":
            names = list(edges.frame.iloc[0].fillna("").str.strip())
            headed = Table(edges.path, edges.frame.iloc[1:].set_axis(names, axis=1))
            if self._has_header(names, headed, nodes):
                edges = headed
        return self.from_tables(edges, nodes, array, self.id)

    def _files(self) -> dict[str, Path]:
        """The existing files, by `edges`, `nodes` and `features`."""
        place, files = self.place, dict[str, Path]()
        if place.is_file() and place.name in EDGES:
            place = place.parent
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
                there = [path for end in endings if (path := place / f"{name}.{end}").exists()]
                if len(there) > 1:
                    raise UsageError(
                        f"{place} has {there[0].name} and {there[1].name}: take one of them away."
                    )
                files.update(zip([name], there, strict=False))
        if self.nodes is not None:
            files["nodes"] = Path(self.nodes).expanduser()
        if "edges" not in files:
            raise UsageError(
                f"{place} has no edges.csv (or .tsv, .csv.gz, .parquet): write one line per edge, "
                "such as a,b, or give the path of the table; triples of a knowledge graph are read "
                "by dataset=kg_folder dataset.source.path=FOLDER."
            )
        return files

    def _has_header(self, names: list[str], below: Table, nodes: Table | None) -> bool:
        called = {"source", "target"} <= named_columns(names).keys()
        repeated = below.frame.isin(names if called else names[:2]).any(axis=None)
        if self.header is not None or repeated:
            return bool(self.header)
        if nodes is not None and not called:
            called = not any(nodes.texts(name).isin(names[:2]).any() for name in nodes.frame)
        if called:
            return True
        words = pd.to_numeric(pd.Series(names), errors="coerce").isna().to_numpy()
        numbers = below.frame.head(1000).apply(pd.to_numeric, errors="coerce").notna().all()
        above = words & numbers.to_numpy() & (len(below.frame) > 0)
        return bool(above[:2].all() or above[2:3].any())


def features_of(path: Path) -> np.ndarray:
    """Features `[nodes, features]` of an array of NumPy, or a sparse matrix of SciPy."""
    check_file(path, "features")
    try:
        array = np.load(path, allow_pickle=False)
        if not isinstance(array, np.ndarray):
            with array:
                names = array.files
                array = load_npz(path).toarray() if "format" in names else array[names[0]]
            if "format" not in names and len(names) > 1:
                raise ValueError(f"{len(names)} arrays")
        if array.ndim != 2 or not array.shape[1] or array.dtype.kind not in "biuf":
            raise ValueError(f"{array.dtype} of shape {list(array.shape)}")
    except Exception as error:  # damaged archives and pickles can raise nearly anything
        why = " ".join(str(error).split())[:120]
        raise UsageError(
            f"{path} is not an array of features ({why}): write numbers [nodes, features] by "
            "numpy.save, numpy.savez or scipy.sparse.save_npz."
        ) from error
    return np.asarray(array)
