"""Lists of edges: which columns have the ends and the weights."""

from collections.abc import Sequence
from itertools import combinations
from textwrap import shorten

import numpy as np
import pandas as pd

from curvlab.data.readers.column_names import (
    NUMBERED,
    columns_by_role,
    find_ends,
    hydra_list,
    plain_name,
    quote_name,
)
from curvlab.data.readers.edge_headers import TO_THE_LEFT, UNNAMED, is_arrow, is_count
from curvlab.data.readers.ids import strip_zeros
from curvlab.data.readers.numbers import parse_numbers
from curvlab.data.readers.tables import Table
from curvlab.errors import UsageError

NUMBERING = ("column1", "unnamed0", "index", "row", "rownames", "no", "nr")
"""Names of a first column that numbers the rows, as `plain_name` writes them."""

EDGE_NUMBERS = (*NUMBERING, "id", "edgeid", "eid", "edge", "rowid", "number", "num")
"""Names of a first column that may have ids of the edges, as `plain_name` writes them."""

MOST_KINDS = 10
"""Largest number of different texts in a third column that has the kind of an edge."""

MOST_COLUMNS = 12
"""Number of columns that are compared to find the two ends."""

SHARED = 0.5
"""Share of a column's values that the column of the opposite end also has."""

ROWS_PER_ID = 1.5
"""Least number of edges per node for which a first column of 1, 2, 3 ... numbers the edges."""


def edge_columns(
    table: Table, ends: Sequence[str | int] | None, weighted: bool, header: str
) -> tuple[Table, str]:
    """Find the columns of a list of edges.

    Returns:
        A table with columns `source`, `target` and, if `weighted`, `weight`, and a description.
    """
    if table.frame.shape[1] < 2 or table.frame.empty:
        raise UsageError(
            f"{table.path} has no edges: write two ids in every line, as in a,b, or name another "
            "separator by separator=tab, semicolon, space or bar."
        )
    if ends is None:
        _refuse_matrix(table)
        _refuse_neighbours(table)
    columns = [str(name) for name in table.frame if not is_arrow(table.frame[name])]
    frame = table.frame[columns]
    numbering = _row_numbers(table)
    guess = ""
    if ends is not None:
        end_columns = _check_ends(table, ends)
    else:
        _refuse_blanks_in_names(table.replace(frame=frame))
        end_columns = find_ends(columns) if table.headed else []
        if not end_columns:
            end_columns, guess = _guess_ends(table, [n for n in columns if n not in numbering])
    if {*columns[:1]}.isdisjoint((*end_columns, columns_by_role(columns).get("weight"))):
        numbering = [name for name in columns[:1] if name in numbering or _may_number(table, name)]
    further = [name for name in columns if name not in end_columns]
    if "relation" in columns_by_role(further):
        raise UsageError(
            f"{table.path} has a column of relations, as a knowledge graph has: use "
            "dataset=kg_folder dataset.source.path=FOLDER (train.txt, valid.txt, test.txt); to "
            "split one file, add dataset.source.test_share=0.1 dataset.source.valid_share=0.1."
        )
    further = [name for name in further if name not in numbering]
    weight = _weight_columns(table, further)
    source, target = map(quote_name, end_columns)
    line = f"edges: {source} - {target}{guess}"
    form = "; ".join(filter(None, (header, *table.form)))
    if form:
        line += f" ({form})"
    line += _describe_weight(further, weight, weighted)
    if weighted and not weight:
        table.faults.append(
            f"weighted=True, but {table.path} has no third column: write the weights there, or "
            "omit the option"
        )
    selection = [*end_columns, *weight] if weighted else end_columns
    names = ["source", "target", "weight"][: len(selection)]
    edges = frame[selection].set_axis(names, axis=1)
    is_turned = _goes_left(table, end_columns)
    if is_turned.any():
        turned = edges[["target", "source"]].set_axis(["source", "target"], axis=1)
        edges[["source", "target"]] = edges[["source", "target"]].where(~is_turned, turned, axis=0)
        line += f"; {int(is_turned.sum()):,} edges of {TO_THE_LEFT[0]} go to the first end"
    return table.replace(frame=edges), line


def _goes_left(table: Table, ends: Sequence[str]) -> "pd.Series[bool]":
    """Where a sign between the two ends points at the first; nowhere if these are in reverse."""
    columns = [*map(str, table.frame)]
    first, second = map(columns.index, ends)
    arrows = [name for name in columns[first + 1 : second] if is_arrow(table.frame[name])]
    return table.frame[arrows].isin(TO_THE_LEFT).any(axis=1)


def _check_ends(table: Table, ends: Sequence[str | int]) -> list[str]:
    """The two columns that the user names as ends."""
    columns = table.names_of(ends)
    table.has(columns, "ends")
    if len({*columns}) != 2:
        table.faults.append(f"ends={columns} must name two columns of {table.path}")
    table.check()
    return columns


def _weight_columns(table: Table, columns: Sequence[str]) -> list[str]:
    """The column of weights: by its name, or else the first column of numbers; or none."""
    roles = columns_by_role(columns)
    if "weight" in roles:
        return [roles["weight"]]
    for name in columns:
        if not table.blank(name).all() and not table.is_text(name):
            return [name]
    return []


def _describe_weight(columns: Sequence[str], weight: Sequence[str], weighted: bool) -> str:
    """Say which of the columns next to the ends are used."""
    if weighted and weight:
        text = f"; weight: {quote_name(weight[0])}"
        ignored = [name for name in columns if name not in weight]
    else:
        text = "; weight: none"
        ignored = list(columns)
    if ignored:
        text += f"; not used: {shorten(', '.join(ignored), 160, placeholder=' ...')}"
    if weight and not weighted:
        name = quote_name(weight[0])
        text += f" (dataset.source.weighted=true takes {name} as weights)"
    return text


def _refuse_blanks_in_names(table: Table) -> None:
    """Refuse a list of edges whose names seem to have blanks without quotes."""
    frame = table.frame
    if table.headed or not table.form[0].startswith("separator space"):
        return
    columns = [str(name) for name in frame if NUMBERED.fullmatch(str(name))]
    if len(columns) == 3 and frame[columns[2]].nunique() <= MOST_KINDS:
        return
    has_text_end = any(table.is_text(name) for name in columns[:2])
    has_text_value = any(table.is_text(name) for name in columns[2:4])
    if has_text_end and has_text_value:
        raise UsageError(
            f"{table.path} has {len(columns)} words in a line, as if names had blanks: write "
            "names with blanks in quotes, or with tabs or commas between them; ends=[1,2] takes "
            "the first two words."
        )


def _refuse_matrix(table: Table) -> None:
    """Refuse a matrix with a row and a column for each node."""
    names = _names_of_matrix(table)
    size = names or _size_of_matrix(table)
    if size:
        remedy = "networkx.from_numpy_array(matrix)"
        if names:
            remedy = "networkx.from_pandas_adjacency(pandas.read_csv(FILE, index_col=0))"
        raise UsageError(
            f"{table.path} has {size} rows and {size} columns, as an adjacency matrix has: write "
            f"one line per edge, by networkx.write_edgelist of {remedy}; ends=[1,2] reads it as "
            "edges"
        )


def _names_of_matrix(table: Table) -> int:
    """The number of nodes of a matrix whose rows and columns have the same names, or 0."""
    frame = table.frame
    if not table.headed:  # a name recurs in the first column, so that the line was not a header
        first = [*frame.iloc[0].fillna("").str.strip()]
        if parse_numbers(pd.Series(first[:1]), table.comma_separates).notna().any():
            return 0
        frame = frame.iloc[1:].set_axis(first, axis=1)
    names = [*map(str, frame.columns[1:])]
    rows = [*frame.iloc[:, 0].astype("str").fillna("").str.strip()]
    if len(names) < 2 or len({*names}) < len(names) or sorted(names) != sorted(rows):
        return 0
    values = table.replace(frame=frame.iloc[:, 1:])
    is_numeric = all(values.parsed(name).notna().all() for name in names)
    return len(names) if is_numeric else 0


def _size_of_matrix(table: Table) -> int:
    """The number of rows of a square of numbers, without names or numbers of rows; or 0."""
    frame = table.frame.drop(columns=_unnamed_column(table))
    names = [str(name) for name in frame]
    is_cut = False
    if table.headed:
        roles = columns_by_role(names)
        has_ends = any(len(name) > 1 for name in find_ends(names))
        is_named = plain_name(names[0]) in EDGE_NUMBERS
        if has_ends or is_named or "weight" in roles or "relation" in roles:
            return 0
    elif len(frame) == len(names) + 1 and is_count(frame.iloc[0]):
        frame = frame.iloc[1:]  # pandas numbers columns that have no name
        is_cut = True
    elif len(frame) == len(names) - 1 and is_count(frame.iloc[:, 0]):
        frame = frame.iloc[:, 1:]
        is_cut = True
    size = len(frame)
    if frame.shape[1] != size or size < 4:
        return 0
    values = table.replace(frame=frame)
    numbers = np.stack([values.parsed(name).to_numpy(float) for name in frame], axis=1)
    is_matrix = bool(np.isfinite(numbers).all())
    if is_cut:  # fewer files of edges have these sizes by chance if the values are like a graph's
        is_matrix &= np.array_equal(numbers, numbers.T) or not numbers.diagonal().any()
    return size if is_matrix else 0


def _refuse_neighbours(table: Table) -> None:
    """Refuse lines of different lengths that have a node and its neighbours."""
    numbered = [name for name in table.frame if NUMBERED.fullmatch(str(name))]
    frame = table.frame[numbered]
    lengths = frame.notna().sum(axis=1)
    if table.headed or len(numbered) < 3 or lengths.nunique() < 2:
        return
    nodes = frame.iloc[:, 0]
    others = frame.iloc[:, 2:].stack().dropna()
    are_nodes = nodes.is_unique and bool(others.isin(nodes).all())
    is_ragged = len(numbered) > 3 and table.form[0].startswith("separator space")
    if are_nodes or is_ragged:
        raise UsageError(
            f"{table.path} has {lengths.min()} to {lengths.max()} words in a line, as a list of "
            "neighbours has: name it FILE.adjlist, or write one line per edge; ends=[1,2] takes "
            "the first two words"
        )


def _unnamed_column(table: Table) -> list[str]:
    """The first column, if the header has no name for it."""
    first = [str(name) for name in table.frame.columns[:1]]
    return first if table.headed and first in (["column 1"], [UNNAMED]) else []


def _row_numbers(table: Table) -> list[str]:
    """The first column, if it numbers the rows and has no name or is called the index."""
    frame = table.frame
    if not table.headed or frame.shape[1] < 3:
        return []
    first = frame.columns[0]
    if plain_name(first) not in NUMBERING:
        return []
    if is_count(frame.iloc[:, 0]):
        return [str(first)]
    return _unnamed_column(table)


def _guess_ends(table: Table, columns: Sequence[str]) -> tuple[list[str], str]:
    """The two columns with the ends, whose names do not say so, and a hint if this is a guess.

    The ends are in the first two columns. If these have no common value, they are in the two
    columns with the largest share of common values. If the first column can number the edges and
    the next two have common values, these are the ends, or a hint says that they could be.
    """
    first = [*columns[:2]]
    values = {name: {*_values(table, name)} for name in columns[:MOST_COLUMNS]}

    def share(pair: Sequence[str]) -> float:
        common = values[pair[0]] & values[pair[1]]
        smaller = min(len(values[name]) for name in pair)
        return len(common) / max(3, smaller)

    def hint(pair: Sequence[str]) -> str:
        return f" (guess: dataset.source.ends={hydra_list(pair)})"

    roles = columns_by_role(columns)
    no_ends = [roles[role] for role in ("weight", "label", "split") if role in roles]
    following = [name for name in columns[1:MOST_COLUMNS] if name not in no_ends][:2]
    if len(following) == 2 and _may_number(table, columns[0]):
        if _is_called_number(table, columns[0]) and share(following) > 0:
            return following, hint(first)
        if share(following) >= SHARED and share(first) > 0:
            if _numbers_rows(table, columns[0], following):
                return following, hint(first)
            return first, hint(following)
    best = max(combinations(values, 2), key=share)
    if share(first) > 0 or share(best) < SHARED:
        return first, ""
    return [*best], hint(first)


def _values(table: Table, column: str) -> "pd.Series[str]":
    """The values of a column that are not empty, without .0 if all are whole numbers with it."""
    texts = strip_zeros(table.texts(column))
    return texts[texts.ne("")]


def _may_number(table: Table, column: str) -> bool:
    """Whether a column may number the edges: all values differ, and it counts or is named so."""
    values = _values(table, column)
    if len(values) < len(table.frame) or not values.is_unique:
        return False
    return _is_called_number(table, column) or is_count(values)


def _is_called_number(table: Table, column: str) -> bool:
    """Whether a header calls a column as numbers of edges or rows are called."""
    return table.headed and plain_name(column) in EDGE_NUMBERS


def _numbers_rows(table: Table, column: str, ends: Sequence[str]) -> bool:
    """Whether a column that counts numbers the edges between two columns, rather than nodes.

    The two must have mostly the same values. Then the column has many more numbers than there are
    ids, or an edge from it would join a node with itself, which no edge between the two does.
    """
    numbers, first, second = (strip_zeros(table.texts(name)) for name in (column, *ends))
    ids = {*first} | {*second}
    if len({*first} & {*second}) < SHARED * len(ids):
        return False
    has_loops = bool(numbers.eq(first).any()) and not bool(first.eq(second).any())
    return has_loops or len(table.frame) >= ROWS_PER_ID * len(ids)
