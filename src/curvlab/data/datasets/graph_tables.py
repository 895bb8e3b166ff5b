"""Tables of edges and of nodes: which column says what, everything checked."""

import logging
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from curvlab.data.files.tables import Table, check_alike, ids_of, numbers_of
from curvlab.data.vocabulary import Vocabulary
from curvlab.errors import UsageError

log = logging.getLogger(__name__)

SOURCE = (
    "source", "src", "from", "u", "head", "node1", "node_1", "id1", "id_1", "node_id_1", "start",
)  # fmt: skip
TARGET = ("target", "dst", "to", "v", "tail", "node2", "node_2", "id2", "id_2", "node_id_2", "end")
WEIGHT = ("weight", "weights", "w", "value", "strength")
ID = ("id", "node", "node_id", "name")
LABEL = ("label", "class", "y", "category")
SPLIT = ("split", "part", "subset")
"""What columns are called, in any case."""


class Edges(NamedTuple):
    """Edges as their table has them.

    Attributes:
        table: that has them.
        ends: ids `[edges]` of both ends.
        weight: `[edges]`, positive; None without.
    """

    table: Table
    ends: tuple["pd.Series[Any]", "pd.Series[Any]"]
    weight: np.ndarray | None


class Nodes(NamedTuple):
    """Nodes as their table has them.

    Attributes:
        table: that has them.
        ids: one a node, each once.
        label: name of the column of classes; None without.
        split: name of the column of parts; None without.
        features: names of the columns of features.
    """

    table: Table
    ids: "pd.Index[Any]"
    label: str | None
    split: str | None
    features: list[str]


def named(names: Sequence[Hashable], words: Sequence[str]) -> str | None:
    """The column that is called by one of some words, the first word that is there."""
    folded = {str(name).casefold(): str(name) for name in names}
    return next((folded[word] for word in words if word in folded), None)


def edges_of(table: Table, weighted: bool) -> Edges:
    """Find the ends, and the weights, in a table of edges.

    Args:
        table: whose columns have names, or numbers where they have none.
        weighted: read weights.

    Raises:
        UsageError: there are not two columns of ids, or weights are missing or no weights.
    """
    columns = list(table.frame.columns)
    if len(columns) < 2:
        raise UsageError(
            f"{table.at(table.frame.index[0] if len(table.frame) else 1)}: one column, where two "
            "ids are expected, as in a,b: name another separator by separator="
            "tab, semicolon, space or bar."
        )
    source, target = named(columns, SOURCE), named(columns, TARGET)
    if source is None or target is None or source == target:
        source, target = columns[:2]
    others = [name for name in columns if name not in (source, target)]
    if not isinstance(columns[0], str) and len(others) > 1:
        raise UsageError(
            f"{table.at(table.frame.index[0])}: {len(columns)} columns without names: expected two "
            "ids and perhaps a weight; name the columns source, target, weight in the first line."
        )
    weight = named(others, WEIGHT) or next(iter(others), None)
    if not len(table.frame):
        raise UsageError(f"{table.path} has no edges: expected lines such as a,b.")
    ends = ids_of(table, source), ids_of(table, target)
    _refuse_triples(table, others)
    if weighted and weight is None:
        raise UsageError(
            f"weighted=True, but {table.path} has no third column: write the weight "
            "there, or drop the word."
        )
    unused = [str(name) for name in others if not (weighted and name == weight)]
    if unused:
        hint = "" if weighted else " (the option weighted reads weights)"
        log.info("%s: not used: column %s%s", table.path.name, ", ".join(unused), hint)
    return Edges(table, ends, _weights(table, weight) if weighted else None)


def _weights(table: Table, column: Any) -> np.ndarray:
    weights = numbers_of(table, column, "a weight", "correct it, or drop weighted=True")
    if (weights <= 0).any():
        line = table.first(weights <= 0)
        raise UsageError(
            f"{table.at(line)}: weight {weights[table.frame.index.get_loc(line)]:g} must be "
            "positive: take edges without weight out, and say by a feature what a sign means."
        )
    return weights


def _refuse_triples(table: Table, others: Sequence[Any]) -> None:
    """Point to the right data set where edges look like facts."""
    if named(list(others), ("relation", "predicate", "rel")) is not None:
        raise UsageError(
            f"{table.path} has a column of relations, as a knowledge graph has: use "
            "dataset=kg_folder dataset.source.path=FOLDER (train.txt, valid.txt, test.txt)."
        )


def nodes_of(table: Table, ignore: Sequence[str] = (), known: Vocabulary | None = None) -> Nodes:
    """Find ids, classes, parts and features in a table of nodes.

    Args:
        table: with names of its columns.
        ignore: columns that are not used.
        known: names of features that a trained model takes, in their order.

    Raises:
        UsageError: no column is one of ids, an id is there twice, or there are no nodes.
    """
    columns = [str(name) for name in table.frame.columns]
    strange = [name for name in ignore if name not in columns]
    if strange:
        raise UsageError(
            f"ignore=[{strange[0]}] names a column, but {table.path} has "
            f"{', '.join(columns[:8])}{' ...' if len(columns) > 8 else ''}."
        )
    key = named(columns, ID)
    if key is None:
        raise UsageError(
            f"{table.path} has no column id: name the columns in its first line, for instance "
            "id,label,split,age."
        )
    if not len(table.frame):
        raise UsageError(f"{table.path} has no nodes below its header: write a line a node.")
    ids = pd.Index(ids_of(table, key))
    if ids.has_duplicates:
        line = table.first(ids.duplicated())
        raise UsageError(
            f"{table.at(line)}: id {ids[table.frame.index.get_loc(line)]!r} is there a second "
            "time: keep one line a node."
        )
    check_alike(ids, table.path)
    left = [name for name in columns if name != key and name not in ignore]
    label, split = named(left, LABEL), named(left, SPLIT)
    features = [name for name in left if name not in (label, split)]
    if known is not None and known.features is not None:
        missing = [name for name in known.features if name not in features]
        if missing:
            raise UsageError(
                f"{table.path} has no column {missing[0]!r}, which is a feature of the graph that "
                "the model was trained on: give the same columns."
            )
        features = list(known.features)
    return Nodes(table, ids, label, split, features)
