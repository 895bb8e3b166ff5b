"""Graphs in tables of edges and of nodes: roles of columns, ids to numbers, columns to features."""

import re
from abc import ABC
from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.datasets.labelled import GIVEN_MASKS, missing_mask
from curvlab.data.datasets.own_graph import OwnGraph
from curvlab.data.readers.column_names import columns_by_role
from curvlab.data.readers.ids import plain_ids, two_forms, write_alike
from curvlab.data.readers.tables import MISSING, Table
from curvlab.data.vocabulary import Vocabulary

PARTS = {
    **dict.fromkeys(("train", "training"), "given_train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "given_val"),
    **dict.fromkeys(("test", "testing"), "given_test"),
    "": "none",
}
"""Names of the parts of a split, in any case."""

MASKS = {f"{name}_mask": part for name, part in PARTS.items() if name}
"""Names of columns that are true for the nodes of one part, in any case."""

MOST_TEXTS = 50
"""Different texts of a column that becomes one-hot by itself."""


class TableGraph(OwnGraph, ABC):
    r"""A graph with an optional table of nodes: ids, classes, a split, and feature columns.

    A missing number is the mean of its column. A column of texts becomes one of 0 and 1 for each
    text, and is left out if it has more than 50 different texts, or no text twice. Empty fields,
    NA, N/A, NaN, NULL, None, \N, a dot and a hyphen are missing values, in labels too. Columns
    `train_mask`, `val_mask` and `test_mask` are a split, as in a `Data`.

    Args:
        label: column of the classes; null: one named `label`, `class`, `y` or `category`.
        features: columns that are used; null: all without another role.
        ignore: columns that are not used.
        one_hot: false refuses columns of texts.
        fill: false refuses missing values.
        missing: texts of a missing value, in addition to an empty field; null: those above.
    """

    names_of_no_role: ClassVar[tuple[str, ...]] = ()

    label: str | None = None
    features: Sequence[str] | None = None
    ignore: Sequence[str] = ()
    one_hot: bool = True
    fill: bool = True
    missing: Sequence[str] | None = None

    def from_tables(
        self,
        edges: Table,
        nodes: Table | None = None,
        array: np.ndarray | None = None,
        id_column: str | None = None,
    ) -> Data:
        """Make the graph of the tables; one error lists all faults."""
        if nodes is None:
            rows = None if array is None else pd.Series(range(len(array))).astype("str")
            edges, _ = self._write_alike(edges, rows)
            numbered = self._number(edges, None, array)
            edges.check()
            return self.assemble(*numbered, array)
        texts = MISSING if self.missing is None else frozenset({"", *self.missing})
        nodes = nodes.replace(faults=edges.faults, missing=texts)
        roles = self._roles(nodes, edges, id_column)
        edges, (texts_of_ids,) = self._write_alike(edges, nodes.ids(roles["id"]))
        ids = pd.Index(texts_of_ids)
        nodes.refuse(ids.duplicated(), roles["id"], "is a second line: keep one line per node")
        _, ends, weight = self._number(edges, ids.drop_duplicates(), array, nodes, roles["id"])
        vocabulary = self.known or Vocabulary()
        labels = None
        classes = None
        masks = {}
        if "label" in roles:
            labels, classes = encode_classes(nodes, roles["label"], vocabulary.classes)
            ignored = nodes.missing_texts(roles["label"])
            if ignored:
                self.remarks.append(f"{roles['label']}: texts that are no label:{ignored}")
        if "split" in roles and labels is not None:
            parts = nodes.values(roles["split"]).str.casefold().map(PARTS)
            remedy = "is not a part: write train, val, test or nothing"
            nodes.refuse(parts.isna(), roles["split"], remedy)
            for name in GIVEN_MASKS:
                masks[name] = torch.tensor((parts == name).to_numpy()).unsqueeze(1)
        masks = masks or self._masks(nodes, labels)
        columns = self._feature_columns(nodes, roles)
        if columns and array is not None:
            nodes.faults.append(
                f"{self.title} has features in the column {columns[0]!r} of its nodes and in a "
                f"file: keep one, for instance by ignore=[{','.join(columns[:3])}]"
            )
        encoded = self._encode(nodes, columns, vocabulary.features)
        nodes.check()
        self.remarks += nodes.notes
        if "label" in roles:
            self._report_copies(nodes, columns, roles["label"])
        if masks and "split" not in roles:
            roles["split"] = "train_mask, val_mask, test_mask"
        self.remarks.insert(1, _summary(nodes, roles, [] if encoded.empty else columns))
        if not encoded.empty:
            array = encoded.to_numpy()
        features = tuple(map(str, encoded)) or None
        return self.assemble(ids, ends, weight, array, features, labels, classes, masks)

    def _report_copies(self, nodes: Table, columns: Sequence[str], label: str) -> None:
        """Remark on each column of features that seems to say the class."""
        for name in columns:
            if _is_copy(nodes, name, label):
                self.remarks.append(
                    f"{name}: one value for each class of {label!r}; if it says the class, leave "
                    f"it out by dataset.source.ignore=[{name}]"
                )

    def _roles(self, nodes: Table, edges: Table, id_column: str | None) -> dict[str, str]:
        """Columns of ids, and optionally of classes and a split, by `id`, `label` and `split`."""
        label = None if self.known else self.label  # another graph need not have the classes
        options = {"ignore": self.ignore, "features": self.features or ()}
        options |= {"label": [label] if label else [], "id": [id_column] if id_column else []}
        for key, columns in options.items():
            nodes.has(columns, key)
        for key, columns in (("features", self.features or ()), ("ignore", self.ignore)):
            if label in columns:
                nodes.faults.append(
                    f"label={label} is the column of classes, and {key} names it, too: take it out "
                    f"of {key}, or name another by label=COLUMN"
                )
        nodes.faults.extend(
            f"features and ignore both name {name!r}: take it out of one of them"
            for name in {*(self.features or ())}.intersection(self.ignore)
        )
        if nodes.frame.empty:
            nodes.faults.append(f"{nodes.path} has no nodes: write one per line")
        if nodes.frame.empty or id_column not in {None, *nodes.frame}:
            nodes.check()
        free = nodes.frame.columns.drop([*self.ignore, *(self.features or ())], errors="ignore")
        by_name = columns_by_role(free, self.names_of_no_role)
        roles = {
            "id": id_column or by_name.get("id") or self._column_of_ids(nodes, edges),
            "label": self.label or by_name.get("label", ""),
            "split": by_name.get("split", ""),
        }
        return {role: str(name) for role, name in roles.items() if name in nodes.frame}

    def _column_of_ids(self, nodes: Table, edges: Table) -> str:
        """A column, preferably `name`, that has at least half of the edges' ids, none twice."""
        columns_of_ends = [edges.texts("source"), edges.texts("target")]
        ends = pd.Series(pd.unique(pd.concat(columns_of_ends)))
        shares = {"": 0.5}
        name_first = sorted(nodes.frame, key=lambda name: str(name).casefold() != "name")
        for column in name_first:
            texts = nodes.texts(column)
            if texts.is_unique or str(column).casefold() == "name":
                *alike, ids = write_alike(columns_of_ends, texts)
                ends = pd.Series(pd.unique(pd.concat(alike)))
                shares[str(column)] = float(ends.isin(ids).mean())
        best = max(shares, key=lambda name: (shares[name], name == "name"))
        if best and sum(share == shares[best] for share in shares.values()) > 1:
            self.remarks.append(f"{best}: ids (guess: dataset.source.id=COLUMN names another)")
        if not best:
            nodes.faults.append(
                f"{nodes.path} has no column id, and no other has the ids of {edges.path.name} "
                f"such as {ends[0]!r}: name the columns in its first line, as in id,label,age, or "
                f"the column by id=COLUMN; it has {', '.join(map(str, nodes.frame.columns[:12]))}"
            )
            nodes.check()
        return best

    def _write_alike(
        self, edges: Table, ids: "pd.Series[Any] | None"
    ) -> tuple[Table, list["pd.Series[Any]"]]:
        """Edges, and `ids` if given, with ids such as 1.0 written as 1 where others are."""
        ends = [edges.texts("source"), edges.texts("target")]
        columns = write_alike(ends, ids)
        given = [*ends, *([] if ids is None else [ids])]
        for old, new in zip(given, columns, strict=True):
            if new is not old:
                self.remarks.append(
                    f"ids: {old.iloc[0]} is read as {new.iloc[0]}, as others are written"
                )
                break
        frame = edges.frame.assign(source=columns[0], target=columns[1])
        return edges.replace(frame=frame), columns[2:]

    def _number(
        self,
        edges: Table,
        ids: pd.Index | None,
        array: np.ndarray | None,
        nodes: Table | None = None,
        id_column: str = "",
    ) -> tuple[pd.Index, np.ndarray, np.ndarray | None]:
        """Ids of the nodes, the edges by their numbers, and their weights; faults are noted."""
        texts_of = {column: edges.ids(column) for column in ("source", "target")}
        remedy = "not in the table of nodes: add a line for it there, or remove the edge"
        if ids is None and array is not None:
            ids = pd.RangeIndex(len(array)).astype(str)
            last = len(array) - 1
            remedy = f"not a row of the features, 0 to {last}: give a nodes.csv with their ids"
        elif ids is None:
            ids = pd.Index(pd.unique(pd.DataFrame(texts_of).to_numpy(object).ravel()))
            pair = two_forms(pd.Series(ids))
            if pair:
                self.remarks.append(
                    f"ids: {' and '.join(pair)} are two nodes (guess: write them alike for one)"
                )
        ends = np.stack([ids.get_indexer(pd.Index(texts)) for texts in texts_of.values()])
        for (column, texts), numbers in zip(texts_of.items(), ends, strict=True):
            is_missing = (numbers < 0) & texts.ne("")
            if nodes is not None and is_missing.any():
                remedy = _remedy(texts, is_missing, ids, nodes, id_column) or remedy
            edges.refuse(is_missing, column, remedy)
        weight = None
        if "weight" in edges.frame:
            weight = edges.numbers("weight", "correct it, or drop weighted=True")
            positive = "is a weight that is not positive: take the edge out"
            edges.refuse(weight <= 0, "weight", positive)
        self.remarks += edges.notes
        return ids, ends.astype(np.int64), weight

    def _feature_columns(self, nodes: Table, roles: Mapping[str, str]) -> list[str]:
        if self.features is not None:
            return [name for name in self.features if name in nodes.frame]
        names = []
        no_features = [*roles.values(), *self.ignore, *mask_columns(nodes).values()]
        for name in nodes.frame.columns.drop(no_features, errors="ignore"):
            has_no_name = re.fullmatch(r"(column|Unnamed:) \d+", str(name))
            if has_no_name or name in self.names_of_no_role[:1]:
                continue
            counts = nodes.texts(name)[~nodes.blank(name)].value_counts()
            free = len(counts) > MOST_TEXTS or bool(counts.max() == 1 and len(counts) > 2)
            if self.one_hot and free and nodes.is_text(name):
                self.remarks.append(
                    f"{name}: {len(counts):,} different texts, left out; "
                    f"dataset.source.features=[{name},...] names the columns to use"
                )
            else:
                names.append(str(name))
        return names

    def _masks(self, nodes: Table, labels: Tensor | None) -> dict[str, Tensor]:
        """The split of columns `train_mask`, `val_mask` and `test_mask`, if there are all three."""
        every = mask_columns(nodes)
        columns = {part: name for part, name in every.items() if name not in self.ignore}
        if not columns or labels is None:
            return {}
        lacking = [part for part in GIVEN_MASKS if part not in columns]
        if lacking:
            names = [f"{part.removeprefix('given_')}_mask" for part in lacking]
            fault = missing_mask(str(nodes.path), [*columns.values()], names)
            nodes.faults.append(f"{fault} ignore=[{','.join(columns.values())}]")
            return {}
        masks = {}
        for part in GIVEN_MASKS:
            inside = nodes.parsed(columns[part])
            wrong = ~inside.isin([0, 1]) & ~nodes.blank(columns[part])
            nodes.refuse(wrong, columns[part], "is not true or false: write one of them")
            masks[part] = torch.tensor((inside == 1).to_numpy()).unsqueeze(1)
        return masks

    def _encode(
        self, nodes: Table, columns: Sequence[str], vocabulary: Sequence[str] | None
    ) -> pd.DataFrame:
        """Columns of numbers as float64, with those of one-hot texts called `COLUMN=TEXT`."""
        encoded: dict[str, np.ndarray] = {}
        if vocabulary is not None:
            names = [n if n in nodes.frame else n.partition("=")[0] for n in vocabulary]
            columns = [*dict.fromkeys(names)]
        for name in columns:
            if name not in nodes.frame:
                nodes.faults.append(
                    f"{nodes.path} has no column {name!r}, which is a feature of the graph that "
                    "the model was trained on: give the same columns"
                )
                continue
            if vocabulary is not None:
                is_one_hot = name not in vocabulary
            else:
                is_one_hot = self.one_hot and nodes.is_text(name)
            if is_one_hot:
                encoded |= self._one_hot(nodes, name)
            else:
                encoded[name] = self._fill(nodes, name)
        if vocabulary is not None:
            zeros = np.zeros(len(nodes.frame))
            encoded = {name: encoded.get(name, zeros) for name in vocabulary}
        return pd.DataFrame(encoded, index=nodes.frame.index, dtype=np.float64)

    def _one_hot(self, nodes: Table, name: str) -> dict[str, np.ndarray]:
        blank = nodes.blank(name)
        texts = nodes.texts(name)
        if not self.fill:
            nodes.refuse(blank, name, f"is missing: write a text, or ignore=[{name}]")
        values = sorted(texts[~blank].unique())
        remark = ""
        if blank.any():
            remark = f", {int(blank.sum()):,} nodes without one{nodes.missing_texts(name)}"
        self.remarks.append(
            f"{name}: {len(values)} texts as one-hot columns{remark} "
            "(dataset.source.one_hot=false refuses texts)"
        )
        return {f"{name}={value}": (texts == value).to_numpy(np.float32) for value in values}

    def _fill(self, nodes: Table, name: str) -> np.ndarray:
        remedy = f"correct it, or leave the column out by ignore=[{name}]"
        numbers = nodes.numbers(name, remedy, blank=self.fill)
        blank = np.isnan(numbers)
        if not nodes.faults and blank.any():
            mean = 0.0 if blank.all() else float(np.nanmean(numbers))
            numbers = np.where(blank, mean, numbers)
            self.remarks.append(
                f"{name}: {int(blank.sum()):,} missing{nodes.missing_texts(name)}, filled by the "
                f"mean {mean:.4g} of all nodes (dataset.source.fill=false refuses them)"
            )
        return numbers


def _remedy(
    texts: "pd.Series[Any]",
    is_missing: "pd.Series[bool]",
    ids: pd.Index,
    nodes: Table,
    id_column: str,
) -> str:
    """What to do about ids that are written otherwise in the table of nodes, or in a column of it.

    Args:
        texts: Ids of one end of the edges.
        is_missing: Where the table of nodes does not have them.
        ids: Ids of the table of nodes.
        nodes: The table.
        id_column: The column of `ids`.
    """
    written = pd.Series(ids, index=plain_ids(pd.Series(ids)), dtype=str)
    first = plain_ids(texts[is_missing].iloc[:1]).iloc[0]
    if first in written.index:
        other = written.loc[[first]].iloc[0]
        return f"not in the table of nodes, which has {other!r}: write ids alike in both"
    ends = pd.Series(pd.unique(texts))
    if ends.isin(ids).mean() >= 0.5:
        return ""
    for name in nodes.frame.columns.drop(id_column):
        values = nodes.texts(name)
        if values.is_unique and float(ends.isin(values).mean()) > 0.5:
            return (
                f"not in the column {id_column!r} of the table of nodes; the ids of the edges are "
                f"in {str(name)!r}: add id={name}"
            )
    return ""


def _summary(nodes: Table, roles: Mapping[str, str], features: Sequence[str]) -> str:
    """The roles of the columns of nodes, those of features, and those without a use."""
    summary = f"nodes: {', '.join(f'{role} {name!r}' for role, name in roles.items())}"
    if nodes.form:
        summary += f" ({'; '.join(nodes.form)})"
    if features:
        summary += f"; features {shorten(', '.join(features), 160, placeholder=' ...')}"
    has_use = {*roles.values(), *features, *mask_columns(nodes).values()}
    unused = [str(name) for name in nodes.frame if name not in has_use]
    if unused:
        summary += f"; not used: {shorten(', '.join(unused), 160, placeholder=' ...')}"
    return summary


def mask_columns(nodes: Table) -> dict[str, str]:
    """Columns that are true for the nodes of a part, by part."""
    columns = {}
    for name in nodes.frame:
        folded = str(name).casefold()
        if folded in MASKS:
            columns[MASKS[folded]] = str(name)
    return columns


def _is_copy(nodes: Table, column: str, label: str) -> bool:
    """Whether a column has one value for each class, and different ones for different classes."""
    pairs = pd.DataFrame({"value": nodes.values(column), "class": nodes.values(label)})
    pairs = pairs[pairs["class"].ne("")].drop_duplicates()
    return len(pairs) == pairs["value"].nunique() == pairs["class"].nunique()


def encode_classes(
    nodes: Table, column: str, vocabulary: Sequence[str] | None = None
) -> tuple[Tensor, tuple[str, ...]]:
    """Classes `[nodes]` by number, -1 where there is none, and their names."""
    texts = nodes.values(column)
    kind = nodes.frame[column].dtype
    counts = texts[texts != ""].value_counts()
    if vocabulary is None and len(counts) > 1 and counts.max() == 1:
        nodes.faults.append(
            f"the labels of {nodes.path} are {len(counts)} classes of one node each, as an id or a "
            f"number to be predicted has: leave the column out by ignore=[{column}], or name "
            "another by label=COLUMN"
        )
    names = list(vocabulary or map(str, getattr(kind, "categories", sorted(counts.index))))
    if vocabulary is None and pd.to_numeric(pd.Series(names), errors="coerce").notna().all():
        names.sort(key=float)
    numbers = np.asarray(pd.Index(names).get_indexer(pd.Index(texts)), dtype=np.int64)
    strange = (numbers < 0) & texts.ne("")
    nodes.refuse(strange, column, "is a class that the model was not trained on")
    return torch.from_numpy(numbers), tuple(names)
