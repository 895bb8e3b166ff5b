"""Headers of lists of edges: whether the first line names the columns."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from curvlab.data.readers.column_names import find_ends
from curvlab.data.readers.numbers import COMMA_NUMBER, parse_numbers
from curvlab.data.readers.tables import Table
from curvlab.data.readers.texts import split_lines

UNNAMED = "Unnamed: 0"
"""Name that pandas gives to a first column without a name."""

REMEDY = "dataset.source.header=false reads it as an edge"

TO_THE_LEFT = ("<-", "<--", "<=", "←")
"""Signs of an edge that goes from the second end in the line to the first."""

ARROWS = ("->", "<->", "--", "-->", "=>", "→", "↔", "—", *TO_THE_LEFT)
"""Signs between the two ends of an edge."""

RARE = 0.05
"""Share of edges between two nodes without other edges that is usual below a header."""


def read_header(table: Table, header: bool | None, nodes: Table | None = None) -> tuple[Table, str]:
    """Name the columns of a list of edges by its first line if this is a header.

    The first line is a header if its words name two ends, if it has texts above numbers, or if its
    two names occur in no other line.

    Returns:
        The table, and a description of its header.
    """
    if table.headed or table.frame.empty:  # the format has named columns
        return table, ""
    first = [*table.frame.iloc[0].fillna("").str.strip()]
    below = table.frame.iloc[1:]
    is_guess = False
    if header is None:
        names = commented_names(table, _name_ends)
        if names:
            renamed = dict(zip(table.frame.columns, names, strict=False))
            frame = table.frame.rename(columns=renamed)
            return table.replace(frame=frame, headed=True), "header in a comment"
        if _has_row_numbers(first, below):
            header = True
        elif _has_counts(table.frame):
            counts = f"first line {' '.join(first)} has counts (guess: {REMEDY})"
            return table.replace(frame=below), counts
        elif len(first) > 1 and "" not in first[:2]:
            header, is_guess = _looks_like_header(table, first, below, nodes)
    if not header:
        return table, "no header"
    guess = f" (guess: {REMEDY})" if is_guess else ""
    return table.with_header(), f"header read{guess}"


def _looks_like_header(
    table: Table, first: Sequence[str], below: pd.DataFrame, nodes: Table | None
) -> tuple[bool, bool]:
    """Whether the first line of a list of edges names its columns, and whether this is a guess."""
    signs = [i for i, name in enumerate(below) if len(below) and is_arrow(below[name])]
    if any(first[i] in ARROWS for i in signs):
        return False, False
    below = below.drop(columns=below.columns[signs])
    first = [name for i, name in enumerate(first) if i not in signs]
    ends = find_ends(first)
    if len({*first}) < len(first) and not ends:
        return False, False
    if ends and all(len(name) > 1 for name in ends):
        positions = [first.index(name) for name in ends]
        return not below.iloc[:, positions].isin(ends).any(axis=None), False
    pair = first[:2]
    if below.iloc[:, :2].isin(pair).any(axis=None):
        return False, False
    numbers = r"[+-]?\d+(?:\.0+)?"
    if all(re.fullmatch(numbers, name) for name in pair) and not ends:
        return False, False
    if nodes is not None:
        are_ids = any(nodes.texts(column).isin(pair).any() for column in nodes.frame)
        return not are_ids, False
    words = pd.Series(first)
    is_number = parse_numbers(words, table.comma_separates).notna()
    is_text = ~(is_number | words.str.fullmatch(COMMA_NUMBER)).to_numpy(bool)
    sample = Table(table.path, below.head(1000), form=table.form)
    is_numeric = np.array([sample.parsed(name).notna().all() for name in sample.frame])
    is_name = is_text & is_numeric & (len(below) > 0)
    is_numbered = len(first) > 2 and len(below) > 1 and is_name[0] and is_count(below.iloc[:, 0])
    if is_name[:2].all() or is_name[2:3].any() or is_numbered:
        return True, False
    is_guess = bool(is_text[:2].all()) and _pairs_are_rare(below)
    return is_guess, is_guess


def is_arrow(column: "pd.Series[Any]") -> bool:
    """Whether a column has a sign between two ends in every line, such as ->."""
    return bool(column.isin(ARROWS).all())


def is_count(values: "pd.Series[Any]") -> bool:
    """Whether values are 0, 1, 2 and so on, or 1, 2, 3."""
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(float)
    rows = np.arange(len(numbers))
    return np.array_equal(numbers, rows) or np.array_equal(numbers, rows + 1)


def _has_row_numbers(first: list[str], below: pd.DataFrame) -> bool:
    """Whether the first column has row numbers: pandas and R give it alone no name."""
    is_unnamed = first[0] in ("", UNNAMED) and "" not in first[1:]
    return is_unnamed and bool(below.iloc[:, 0].notna().all())


def _has_counts(frame: pd.DataFrame) -> bool:
    """Whether the first line has the numbers of nodes and edges that follow."""
    first = frame.iloc[0].dropna()
    below = frame.iloc[1:]
    if len(first) not in (2, 3) or len(below) < 2:
        return False
    if not first.str.fullmatch(r"\d+").all():
        return False
    counts = [int(count) for count in first]
    nodes = len(pd.unique(below.iloc[:, :2].to_numpy(object).ravel()))
    return counts[-1] == len(below) and {*counts[:-1]} == {nodes}


def _pairs_are_rare(below: pd.DataFrame) -> bool:
    """Whether fewer than one edge in twenty joins two nodes without other edges."""
    if len(below) < 2:
        return False
    ends = below.iloc[:, :2].astype("str")
    counts = pd.Series(ends.to_numpy(object).ravel()).value_counts()
    is_pair = ends.apply(lambda names: names.map(counts)).eq(1).all(axis=1)
    return float(is_pair.mean()) < RARE


def _name_ends(names: Sequence[str], count: int) -> bool:
    """Whether names are those of two ends, and perhaps of further ones of `count` columns."""
    return 1 < len(names) <= count and bool(find_ends(names))


def commented_names(table: Table, are_names: Callable[[Sequence[str], int], bool]) -> list[str]:
    """Names of columns in the last comment of a table; empty if there are none.

    Args:
        table: The table.
        are_names: Whether words can be the names of the table's columns, from their number.
    """
    comment = "".join(table.comments[-1:]).strip()
    if not comment:
        return []
    separator = table.form[0].split()[1]
    for candidate in (separator, "tab", "comma", "space"):
        (fields,) = split_lines([comment], candidate)
        names = [field.strip() for field in fields]
        if are_names(names, table.frame.shape[1]):
            return names
    return []
