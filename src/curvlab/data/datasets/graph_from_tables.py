"""A graph from a table of edges and one of nodes: ids to numbers, classes and parts to tensors."""

import logging
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch_geometric.data import Data
from torch_geometric.utils import coalesce

from curvlab.data.datasets.graph_tables import Edges, Nodes
from curvlab.data.datasets.labelled import GIVEN
from curvlab.data.files.tables import check_alike, is_missing, numbers_of
from curvlab.data.vocabulary import Vocabulary
from curvlab.errors import UsageError

log = logging.getLogger(__name__)

PART_WORDS = {
    **dict.fromkeys(("train", "training"), "given_train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "given_val"),
    **dict.fromkeys(("test", "testing"), "given_test"),
}
NO_PART = ("", "none", "-", "nan")


def graph_of(
    edges: Edges,
    nodes: Nodes | None = None,
    features: np.ndarray | None = None,
    mutual: bool = False,
    known: Vocabulary | None = None,
    directed: bool = False,
) -> Data:
    """Number the nodes and put everything together.

    Nodes are in the order of their table, else of the rows of `features`, whose numbers the ids
    then are, else of their first appearance.

    Args:
        edges: in any order, loops and repetitions among them.
        nodes: None where there is no table of them.
        features: `[nodes, features]` of a file of its own.
        mutual: keep only edges that stand in both directions.
        known: names of classes in the order of their numbers.
        directed: keep the direction of edges.

    Returns:
        The graph that `simple_graph` makes with `vocabulary`, the numbers of edges left out or
        merged (`self_loops`, `repeated`, `both_ways`), and as far as there are such `x`, `y`,
        `labelled`, `edge_weight` and the split `given_train`, `given_val`, `given_test`
        `[nodes, 1]`.

    Raises:
        UsageError: what does not fit together.
    """
    ids = _order(edges, nodes, features)
    ends = [_numbers(edges, i, ids, nodes is not None) for i in (0, 1)]
    data = simple_graph(np.stack(ends), len(ids), edges.weight, mutual, directed)
    names: tuple[str, ...] | None = None
    if features is not None:
        data.x = torch.from_numpy(np.ascontiguousarray(features, dtype=np.float32))
    elif nodes is not None and nodes.features:
        data.x, names = _features(nodes), tuple(nodes.features)
    classes = None if nodes is None else _labels(data, nodes, known)
    if nodes is not None and nodes.split is not None:
        _split(data, nodes)
    data.vocabulary = Vocabulary(nodes=tuple(ids), classes=classes, features=names)
    return data


def simple_graph(
    ends: np.ndarray,
    num_nodes: int,
    weight: np.ndarray | None = None,
    mutual: bool = False,
    directed: bool = False,
) -> Data:
    """Both directions of every edge once, no loops; weights of merged edges are added.

    What of a directed graph is no edge, only the other direction of one, is so by `edge_forward
    [edges]`, and weighs 0. So tasks see the same pairs of every graph.

    Args:
        ends: `[2, edges]`.
        num_nodes: number of nodes.
        weight: `[edges]`; None without.
        mutual: keep only edges that stand in both directions.
        directed: add `edge_forward`.

    Raises:
        UsageError: no edge is left.
    """
    proper = ends[0] != ends[1]
    arcs = torch.from_numpy(ends[:, proper])
    values = torch.ones(arcs.shape[1], dtype=torch.float64)
    if weight is not None:
        values = torch.from_numpy(weight[proper])
    arcs, values = coalesce(arcs, values, num_nodes=num_nodes, reduce="sum")
    both = torch.cat([arcs, arcs.flip(0)], dim=1)
    index, times = coalesce(both, torch.ones(both.shape[1]), num_nodes=num_nodes, reduce="sum")
    back = torch.zeros_like(values) if directed else values
    _, total = coalesce(both, torch.cat([values, back]), num_nodes=num_nodes, reduce="sum")
    if mutual:
        index, total = index[:, times > 1], total[times > 1]
    if not index.shape[1]:
        why = "stand in both directions" if mutual and arcs.shape[1] else "join two nodes"
        raise UsageError(
            f"none of the graph's {ends.shape[1]} edges {why}: there is nothing to learn from; "
            "check the file of edges."
        )
    data = Data(edge_index=index.contiguous(), num_nodes=num_nodes)
    data.self_loops = int((~proper).sum())
    data.repeated = int(proper.sum()) - arcs.shape[1]
    data.both_ways = 0 if directed else arcs.shape[1] - len(times) // 2
    if directed:
        data.edge_forward = total > 0
    if weight is not None:
        data.edge_weight = total.float()
    return data


def _order(edges: Edges, nodes: Nodes | None, features: np.ndarray | None) -> "pd.Index[Any]":
    """The ids of all nodes in the order of their numbers."""
    if nodes is not None:
        if features is not None and len(features) != len(nodes.ids):
            raise UsageError(
                f"the file of features has {len(features)} rows, but {nodes.table.path} has "
                f"{len(nodes.ids)} nodes: give one row a node, in the same order."
            )
        return nodes.ids
    if features is not None:
        return pd.Index([str(i) for i in range(len(features))])
    interleaved = np.stack([end.to_numpy(dtype=object) for end in edges.ends], axis=1).ravel()
    ids = pd.Index(pd.unique(interleaved))
    check_alike(ids, edges.table.path)
    return ids


def _numbers(edges: Edges, end: int, ids: "pd.Index[Any]", in_table: bool) -> np.ndarray:
    """Numbers `[edges]` of the nodes at one end."""
    numbers = ids.get_indexer(pd.Index(edges.ends[end]))
    unknown = numbers < 0
    if unknown.any():
        line = edges.table.first(unknown)
        name = edges.ends[end].loc[line]
        others = f" and {int(unknown.sum()) - 1} more" if unknown.sum() > 1 else ""
        where = (
            "is no id of the table of nodes: add a line for it there, or take the edge out"
            if in_table
            else f"is no row of the features, 0 to {len(ids) - 1}: number the nodes by these rows, "
            "or give a nodes.csv with their ids in the order of the rows"
        )
        raise UsageError(f"{edges.table.at(line)}: {name!r}{others} {where}.")
    return np.asarray(numbers, dtype=np.int64)


def _features(nodes: Nodes) -> torch.Tensor:
    x = np.empty((len(nodes.ids), len(nodes.features)), dtype=np.float32)
    for i, name in enumerate(nodes.features):
        way_out = f"fill it, or leave the column out by ignore=[{name}]"
        x[:, i] = numbers_of(nodes.table, name, "a feature", way_out)
    return torch.from_numpy(x)


def _labels(data: Data, nodes: Nodes, known: Vocabulary | None) -> tuple[str, ...] | None:
    """Add `y` and, where some nodes have no class, `labelled`; return the names of the classes."""
    if nodes.label is None:
        return None
    texts = nodes.table.frame[nodes.label].fillna("").astype(str).str.strip()
    texts = texts.where(~is_missing(texts), "")
    counts = texts[texts != ""].value_counts()
    column = f"column {nodes.label!r} of {nodes.table.path}"
    if known is not None and known.classes is not None:
        strange = [name for name in counts.index if name not in known.classes]
        if strange:
            raise UsageError(
                f"{column} has the class {strange[0]!r}, which the model was not trained on: it "
                f"knows {', '.join(known.classes[:10])}."
            )
        names = list(known.classes)
    else:
        names = _in_order(list(counts.index))
        _check_classes(column, counts, nodes.label)
    number = {name: i for i, name in enumerate(names)}
    data.y = torch.tensor([number.get(text, -1) for text in texts])
    if bool((data.y < 0).any()):
        data.labelled = data.y >= 0
    return tuple(names)


def _check_classes(column: str, counts: "pd.Series[int]", label: str) -> None:
    """Refuse classes from which nothing can be learned."""
    way_out = f"correct it, or leave the column out by ignore=[{label}]"
    if len(counts) < 2:
        only = f"the one class {counts.index[0]!r}" if len(counts) else "no class in any line"
        raise UsageError(f"{column} has {only}, so that there is nothing to tell apart: {way_out}.")
    if counts.max() == 1:
        raise UsageError(
            f"{column} has {len(counts)} classes of one node each, as an id or a number to be "
            f"predicted has: {way_out}."
        )
    single = list(counts.index[counts == 1])
    if single:
        log.warning(
            "%s: class %r has one node, which can be in one part of a split only "
            "(such classes: %d)",
            column, single[0], len(single),
        )  # fmt: skip


def _in_order(names: list[str]) -> list[str]:
    """Numbers by size, else texts by letters."""
    try:
        return sorted(names, key=float)
    except ValueError:
        return sorted(names)


def _split(data: Data, nodes: Nodes) -> None:
    """Add the parts that a column names."""
    table, column = nodes.table, nodes.split
    if "y" not in data:
        log.warning("%s: the column %r has no use without labels", table.path.name, column)
        return
    words = table.frame[column].fillna("").astype(str).str.strip().str.casefold()
    strange = ~words.isin([*PART_WORDS, *NO_PART])
    if strange.any():
        line = table.first(strange)
        raise UsageError(
            f"{table.at(line, column)}: {words.loc[line]!r} is no part: write train, val or test, "
            "or nothing for a node in none."
        )
    parts = words.map(PART_WORDS)
    unlabelled = parts.notna().to_numpy() & (data.y < 0).numpy()
    if unlabelled.any():
        line = table.first(unlabelled)
        raise UsageError(
            f"{table.at(line)}: a node of the part {words.loc[line]!r} has no label: give it one, "
            "or no part."
        )
    for name in GIVEN:
        mask = (parts == name).to_numpy(copy=True)
        if not mask.any():
            raise UsageError(
                f"column {column!r} of {table.path} puts no node into "
                f"{name.removeprefix('given_')}: name nodes of each of train, val and test, or "
                f"leave the column out by ignore=[{column}]."
            )
        data[name] = torch.from_numpy(mask).unsqueeze(1)
    data.given = "given"
