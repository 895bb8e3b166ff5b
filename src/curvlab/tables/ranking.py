"""The order of the methods in each column: which is best, and whether ours is the paper's order."""

from math import nan

import pandas as pd

from curvlab.statistics import rank_correlation, rounded
from curvlab.tables.spec import Better, Coordinate

FEWEST = 3
"""Methods with both numbers from which on their order says something."""


def with_ranks(cells: pd.DataFrame, decimals: int, better: Better) -> pd.DataFrame:
    """Add where each method stands in its column, in the paper and here.

    Only methods with both numbers are ranked, so that the two ranks are of the same methods, and
    only where there are three of them; by numbers as they are printed, of equal ones the better
    rank for both. Numbers without a difference are not compared, and so not ranked.

    Args:
        cells: As `Report.cells`, with `row`, `column`, `our_mean`, `paper_mean`, `difference`.
        decimals: Digits after the point that are printed.
        better: Which numbers have the first ranks.

    Returns:
        The cells with `our_rank`, `paper_rank` (1 is best), `ranked` (methods ranked in the column)
        and `spearman` (correlation of the two orders of the column); NaN and 0 where not ranked.
    """
    cells = cells.assign(our_rank=nan, paper_rank=nan, ranked=0, spearman=nan)
    both = cells[cells["difference"].notna() & (better is not Better.neither)]
    for column, group in both.groupby("column", sort=False):
        if len(group) < FEWEST:
            continue
        ours, paper = (rounded(group[f"{kind}_mean"], decimals) for kind in ("our", "paper"))
        ascending = better is Better.lower
        cells.loc[group.index, "our_rank"] = ours.rank(method="min", ascending=ascending)
        cells.loc[group.index, "paper_rank"] = paper.rank(method="min", ascending=ascending)
        in_column = cells["column"] == column
        cells.loc[in_column, "ranked"] = len(group)
        cells.loc[in_column, "spearman"] = rank_correlation(ours, paper)
    return cells


def marks(
    cells: pd.DataFrame, kind: str, decimals: int, better: Better
) -> dict[tuple[Coordinate, Coordinate], int]:
    """1 for the best number of each column, 2 for the second, else 0.

    Among all numbers of their kind, as printed; ties together; the last one is never marked. Ours
    of another protocol than the table's are left out.

    Args:
        cells: As `Report.cells`.
        kind: `our` or `paper`.
        decimals: Digits after the point that are printed.
        better: Which numbers are the best.
    """
    found: dict[tuple[Coordinate, Coordinate], int] = {}
    if better is Better.neither:
        return found
    numbers = cells.assign(mean=rounded(cells[f"{kind}_mean"], decimals))
    if kind == "our":
        numbers = numbers[numbers["departure"] == ""]
    for _, group in numbers[numbers["mean"].notna()].groupby("column", sort=False):
        order = group["mean"].rank(method="min", ascending=better is Better.lower)
        for row, column, rank in zip(group["row"], group["column"], order, strict=True):
            found[row, column] = int(rank) if rank <= 2 and rank < len(group) else 0
    return found
