"""Ids of one node that are written in two ways, as 1 and 1.0, or 1 and 01."""

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

WHOLE = r"[+-]?\d+\.0+"
"""A whole number as pandas writes those of a column that has had a missing value."""


def strip_zeros(texts: "pd.Series[Any]") -> "pd.Series[Any]":
    """Texts without .0 at their ends, if all that are not empty are such whole numbers."""
    filled = texts[texts.ne("")]
    if filled.empty or not filled.str.fullmatch(WHOLE).all():
        return texts
    return texts.str.replace(r"\.0+$", "", regex=True)


def write_alike(
    ends: Sequence["pd.Series[Any]"], ids: "pd.Series[Any] | None" = None
) -> list["pd.Series[Any]"]:
    """Columns of ids of which some have whole numbers with .0, where others have the same without.

    Columns stay as they are if the table of nodes has both kinds, or if all columns have the .0.

    Args:
        ends: Ids of the ends of the edges, in columns.
        ids: Ids of the table of nodes.

    Returns:
        The columns of the ends and of `ids`, of which none or all are without .0.
    """
    columns = [*ends, *([] if ids is None else [ids])]
    stripped = [strip_zeros(column) for column in columns]
    is_changed = [new is not old for new, old in zip(stripped, columns, strict=True)]
    others = _values(
        column for column, is_new in zip(columns, is_changed, strict=True) if not is_new
    )
    olds = _values(column for column, is_new in zip(columns, is_changed, strict=True) if is_new)
    news = _values(column for column, is_new in zip(stripped, is_changed, strict=True) if is_new)
    if others.isdisjoint(news):
        return columns
    if ids is not None and not olds.isdisjoint(ids) and not is_changed[-1]:
        return columns
    return stripped


def plain_ids(texts: "pd.Series[Any]") -> "pd.Series[Any]":
    """Ids in lower case, whole numbers without zeros in front and .0: equal for one node."""
    folded = texts.str.strip().str.casefold()
    return folded.str.replace(r"^\+?0*(\d+)(?:\.0*)?$", r"\1", regex=True)


def two_forms(texts: "pd.Series[Any]") -> list[str]:
    """The first two different ids that are one number; empty if there are none."""
    unique = pd.Series(pd.unique(texts), dtype=str)
    numbers = unique[unique.str.fullmatch(r"\+?\d+(?:\.0*)?")]
    plain = plain_ids(numbers)
    repeated = plain[plain.duplicated()]
    if repeated.empty:
        return []
    return [*numbers[plain.eq(repeated.iloc[0])][:2]]


def _values(columns: Iterable["pd.Series[Any]"]) -> set[str]:
    """All ids of columns that are not empty."""
    return {text for column in columns for text in pd.unique(column)} - {""}
