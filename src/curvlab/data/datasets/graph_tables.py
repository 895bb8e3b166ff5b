"""Tables of edges and of nodes: which column says what, and ids to numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import coalesce

from curvlab.data.datasets.labelled import GIVEN
from curvlab.data.files.tables import Table
from curvlab.errors import UsageError

ROLES = {
    "source": ("source", "src", "from", "u", "head", "node1", "id1", "id_1", "node_id_1", "start"),
    "target": ("target", "dst", "to", "v", "tail", "node2", "id2", "id_2", "node_id_2", "end"),
    "weight": ("weight", "weights", "w", "value", "strength"),
    "relation": ("relation", "predicate", "rel"),
    "id": ("id", "node", "node_id", "name"),
    "label": ("label", "class", "y", "category"),
    "split": ("split", "part", "subset"),
}
"""What columns are called, in any case."""

PARTS = {
    **dict.fromkeys(("train", "training"), "given_train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "given_val"),
    **dict.fromkeys(("test", "testing"), "given_test"),
    **dict.fromkeys(("", "none", "-", "nan"), "none"),
}
"""What parts of a split are called, in any case."""


class NumberedEdges(NamedTuple):
    """Edges by the numbers of their nodes.

    Attributes:
        ids: of the nodes, in the order of their numbers.
        ends: `[2, edges]`, in any order, loops and repetitions among them.
        weight: `[edges]`, positive; None without.
    """

    ids: pd.Index
    ends: np.ndarray
    weight: np.ndarray | None = None


def with_roles(table: Table, roles: Sequence[str], ignore: Sequence[str] = ()) -> Table:
    """A table whose columns with a role, one of `ROLES`, are called by it.

    Args:
        table: of edges or of nodes.
        roles: of which a table may have any; the first of a role's names that is there has it.
        ignore: columns to leave out.

    Raises:
        UsageError: a column to be left out is not there.
    """
    strange = [name for name in ignore if name not in table.frame]
    if strange:
        raise UsageError(
            f"ignore=[{strange[0]}] names a column, but {table.path} has "
            f"{', '.join(map(str, table.frame.columns[:8]))}."
        )
    frame = table.frame.drop(columns=list(ignore))
    folded = {str(name).casefold(): name for name in frame}
    found = {role: [folded[w] for w in ROLES[role] if w in folded][:1] for role in roles}
    frame = frame.rename(columns={name: role for role, names in found.items() for name in names})
    return replace(table, frame=frame)


def node_table(table: Table, ignore: Sequence[str] = ()) -> Table:
    """A table of nodes with the column `id` and perhaps `label` and `split`; others are features.

    Raises:
        UsageError: there is no id, one is missing or there twice, or there are no nodes.
    """
    nodes = with_roles(table, ("id", "label", "split"), ignore)
    if "id" not in nodes.frame or nodes.frame.empty:
        raise UsageError(
            f"{table.path} has no column id, or no nodes: name the columns in its first line, for "
            "instance id,label,split,age, and write one line per node below."
        )
    ids = nodes.ids("id")
    nodes.refuse(ids.duplicated(), "id", "is there a second time: keep one line per node")
    return replace(nodes, frame=nodes.frame.assign(id=ids))


def numbered(
    edges: Table, ids: pd.Index | None = None, rows: int | None = None, weighted: bool = False
) -> NumberedEdges:
    """Find the ends, and the weights, in a table of edges, and number the nodes.

    Args:
        edges: whose columns have names, or numbers where they have none.
        ids: of the nodes, where a table has them. Else they are the numbers of the rows of
            features, else the ends in the order of their first appearance.
        rows: number of rows of features.
        weighted: read weights.

    Raises:
        UsageError: there are not two columns of ids, an id is unknown, or weights are missing.
    """
    edges = with_roles(edges, ("source", "target", "weight", "relation"))
    if edges.frame.shape[1] < 2 or edges.frame.empty:
        raise UsageError(
            f"{edges.path} has no edges: write two ids in every line, as in a,b, or name another "
            "separator by separator=tab, semicolon, space or bar."
        )
    if not {"source", "target"} <= {*edges.frame}:
        names = ["source", "target", *edges.frame.columns[2:]]
        edges = replace(edges, frame=edges.frame.set_axis(names, axis=1))
    others = edges.frame.columns.drop(["source", "target"])
    if "relation" in others:
        raise UsageError(
            f"{edges.path} has a column of relations, as a knowledge graph has: use "
            "dataset=kg_folder dataset.source.path=FOLDER (train.txt, valid.txt, test.txt)."
        )
    found = {column: edges.ids(column) for column in ("source", "target")}
    remedy = "not in the table of nodes: add a line for it there, or remove the edge"
    if ids is None and rows is not None:
        ids = pd.RangeIndex(rows).astype(str)
        remedy = f"not a row of the features, 0 to {rows - 1}: give a nodes.csv with their ids"
    elif ids is None:
        ids = pd.Index(pd.unique(pd.DataFrame(found).to_numpy(object).ravel()))
    ends = {column: ids.get_indexer(pd.Index(texts)) for column, texts in found.items()}
    for column, numbers in ends.items():
        edges.refuse(numbers < 0, column, remedy)
    weight = None
    if weighted:
        if others.empty:
            raise UsageError(
                f"weighted=True, but {edges.path} has no third column: write the weight there, or "
                "drop the option."
            )
        column = "weight" if "weight" in others else others[0]
        weight = edges.numbers(column, "correct it, or drop weighted=True")
        edges.refuse(weight <= 0, column, "is a weight that is not positive: take the edge out")
    return NumberedEdges(ids, np.stack([*ends.values()]).astype(np.int64), weight)


def simple_graph(edges: NumberedEdges, mutual: bool = False, directed: bool = False) -> Data:
    """Both directions of every edge once, no loops; weights of merged edges are added.

    What of a directed graph is no edge, only the other direction of one, is so by `edge_forward
    [edges]`, and weighs 0. So tasks see the same pairs of every graph. The numbers of edges left
    out or merged are `self_loops`, `repeated` and `both_ways`.

    Args:
        edges: of the graph.
        mutual: keep only edges that stand in both directions.
        directed: add `edge_forward`.

    Raises:
        UsageError: no edge is left.
    """
    ends, nodes = edges.ends, len(edges.ids)
    proper = ends[0] != ends[1]
    arcs = torch.from_numpy(ends[:, proper])
    values = torch.ones(arcs.shape[1], dtype=torch.float64)
    if edges.weight is not None:
        values = torch.from_numpy(edges.weight[proper])
    arcs, values = coalesce(arcs, values, num_nodes=nodes, reduce="sum")
    both = torch.cat([arcs, arcs.flip(0)], dim=1)
    index, times = coalesce(both, torch.ones(both.shape[1]), num_nodes=nodes, reduce="sum")
    back = torch.zeros_like(values) if directed else values
    _, total = coalesce(both, torch.cat([values, back]), num_nodes=nodes, reduce="sum")
    if mutual:
        index, total = index[:, times > 1], total[times > 1]
    if not index.shape[1]:
        why = "stand in both directions" if mutual and arcs.shape[1] else "join two nodes"
        raise UsageError(
            f"none of the graph's {ends.shape[1]} edges {why}: there is nothing to learn from; "
            "check the file of edges."
        )
    data = Data(edge_index=index.contiguous(), num_nodes=nodes)
    data.self_loops = int((~proper).sum())
    data.repeated = int(proper.sum()) - arcs.shape[1]
    data.both_ways = 0 if directed else arcs.shape[1] - len(times) // 2
    if directed:
        data.edge_forward = total > 0
    if edges.weight is not None:
        data.edge_weight = total.float()
    return data


def features_in(nodes: Table, columns: Sequence[str]) -> np.ndarray:
    """Columns of a table of nodes as features `[nodes, features]`.

    Raises:
        UsageError: a column is not there, or has something else than finite numbers.
    """
    x = np.empty((len(nodes.frame), len(columns)), dtype=np.float32)
    for i, name in enumerate(columns):
        if name not in nodes.frame:
            raise UsageError(
                f"{nodes.path} has no column {name!r}, which is a feature of the graph that the "
                "model was trained on: give the same columns."
            )
        x[:, i] = nodes.numbers(name, f"fill it, or leave the column out by ignore=[{name}]")
    return x


def classes_in(nodes: Table, known: Sequence[str] | None = None) -> tuple[Tensor, tuple[str, ...]]:
    """Classes `[nodes]` by number, -1 where there is none, and their names.

    Args:
        nodes: their table. A label of categories has their order, others that of numbers or of the
            alphabet.
        known: names that a trained model has, in their order.

    Raises:
        UsageError: a class is not known, or every node has its own.
    """
    texts, kind = nodes.texts("label"), nodes.frame["label"].dtype
    counts = texts[texts != ""].value_counts()
    if known is None and len(counts) > 1 and counts.max() == 1:
        raise UsageError(
            f"the labels of {nodes.path} are {len(counts)} classes of one node each, as an id or a "
            "number to be predicted has: leave the column out by ignore=[label]."
        )
    names = list(known or map(str, getattr(kind, "categories", sorted(counts.index))))
    if known is None and pd.to_numeric(pd.Series(names), errors="coerce").notna().all():
        names.sort(key=float)
    numbers = np.asarray(pd.Index(names).get_indexer(pd.Index(texts)), dtype=np.int64)
    strange = (numbers < 0) & texts.ne("")
    nodes.refuse(strange, "label", "is a class that the model was not trained on")
    return torch.from_numpy(numbers), tuple(names)


def parts_in(nodes: Table) -> dict[str, Tensor]:
    """The masks `given_train`, `given_val` and `given_test` `[nodes, 1]`; none without a split.

    Raises:
        UsageError: a part has an unknown name.
    """
    if "split" not in nodes.frame:
        return {}
    parts = nodes.texts("split").str.casefold().map(PARTS)
    nodes.refuse(parts.isna(), "split", "is no part: write train, val, test or nothing")
    return {name: torch.tensor((parts == name).to_numpy()).unsqueeze(1) for name in GIVEN}


def add_given_split(data: Data, masks: Mapping[str, Tensor], place: str) -> None:
    """Add the masks of a split `[nodes, splits]`, of nodes with a label.

    Raises:
        UsageError: a part is empty, or a node is in two.
    """
    splits = max((mask.shape[1] for mask in masks.values()), default=0)
    for name, mask in masks.items():
        mask = mask.expand(-1, splits) & data.get("labelled", torch.tensor([True])).unsqueeze(1)
        if not bool(mask.any(dim=0).all()):
            part = name.removeprefix("given_")
            raise UsageError(f"{place} has no {part} node with a label: give all three parts some.")
        data[name] = mask
    if bool((sum(data[name].int() for name in masks) > torch.tensor(1)).any()):
        raise UsageError(f"{place} has a node in two parts of its split: keep one.")
    if masks:
        data.given = "given"
