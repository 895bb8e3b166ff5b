"""Compare the spaces of a study with flat space and recommend one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isinf
from typing import Any

import pandas as pd

from curvlab.statistics import (
    FEWEST,
    LEVEL,
    POINT,
    compare_pairs,
    detectable,
    holm,
    required_runs,
)
from curvlab.study.flat_counterpart import FLAT


@dataclass(frozen=True)
class Report:
    """A model's results and the recommended space.

    Attributes:
        alike: Spaces that are not distinguishable from the recommended one.
        decided: False if no gain over flat space is significant and one of `POINT` is possible.
    """

    label: str
    table: pd.DataFrame
    space: str
    alike: tuple[str, ...]
    text: str
    decided: bool = True

    @property
    def score(self) -> float:
        """Mean score in the recommended space."""
        return float(self.table.loc[self.table["space"] == self.space, "mean"].iloc[0])

    @property
    def highest(self) -> tuple[float, str]:
        """The highest mean score, and its space."""
        row = _best(self.table.dropna(subset="scores"))
        return float(row["mean"]), str(row["space"])


def compare(table: pd.DataFrame) -> pd.DataFrame:
    """Compare spaces with flat space, paired by seed."""
    rows = table.iloc[1:].dropna(subset="scores")
    pairs = [compare_pairs(scores, table["scores"].iloc[0]) for scores in rows["scores"]]
    tests = pd.DataFrame(
        {
            "pairs": [pair.pairs for pair in pairs],
            "difference": [pair.mean for pair in pairs],
            "pm": [pair.pm for pair in pairs],
            "std": [pair.std for pair in pairs],
            "p_t": [pair.p_t for pair in pairs],
            "p_ranks": [pair.p_wilcoxon for pair in pairs],
            "interval": [pair.interval for pair in pairs],
            "p_holm": holm([pair.p_t for pair in pairs]),
        },
        rows.index,
    )
    return table.join(tests)


def recommend(label: str, table: pd.DataFrame) -> Report:
    """Recommend a space for a model: the simplest that is not distinguishable from the best.

    Candidates beat flat space by the corrected t test at 5 %. Without one, flat space is
    recommended. The question is then undecided unless every other space is significantly worse, or
    has at least three pairs whose difference's 95 % interval ends below a gain of one point.
    """
    curved = table.iloc[1:].dropna(subset="scores")
    significant = curved["p_holm"] < LEVEL
    better = curved[significant & (curved["difference"] > 0)]
    if len(better):
        top = _best(better)["scores"]
        as_good = [not compare_pairs(top, scores).p_t < LEVEL for scores in better["scores"]]
        candidates = better[as_good]
        best: Any = candidates.iloc[0]
        names = tuple(candidates["space"].iloc[1:])
        text = (
            f"{label} gains from curvature: in {best['space']} space it scores "
            f"{best['difference']:.2f} points more than in flat space, 95 % interval "
            f"{best['interval']}, p = {best['p_holm']:.2g} after Holm."
        )
        text += f" {_list_names(names).capitalize()} did not do better." if names else ""
        return Report(label, table, best["space"], names, text)
    equal = curved[~significant]
    worse = curved[significant]
    if equal.empty:
        less = f"by {-worse['difference'].max():.2f} points or more"
        text = f"{label} stays flat: every other space scores less, {less}."
        return Report(label, table, FLAT, (), text)
    possible = equal[[_may_gain(row) for _, row in equal.iterrows()]]
    decided = possible.empty
    if decided:
        text = f"{label} stays flat: no space gains a point, "
        text += f"and no difference was found. {_budget(_best(equal), len(curved))}"
    else:
        text = f"{label}: undecided. No difference was found, but {_list_names(possible['space'])} "
        text += f"may gain a point or more. {_budget(_best(possible), len(curved))}"
    text += f" Worse than flat: {_list_names(worse['space'])}." if len(worse) else ""
    return Report(label, table, FLAT, tuple(equal["space"]), text, decided)


def _may_gain(row: Any) -> bool:
    """Whether the runs do not exclude that a space gains `POINT` over flat space."""
    all_equal = row["std"] == 0 and row["difference"] == 0
    excluded = all_equal or row["difference"] + row["pm"] < POINT
    return row["pairs"] < FEWEST or not excluded


def overall(reports: Sequence[Report]) -> str:
    """Whether curvature is worth it for any model, and where the highest mean is."""
    best = max(reports, key=lambda report: report.highest)
    score, space = best.highest
    gains = [report.label for report in reports if report.space != FLAT]
    undecided = [report.label for report in reports if not report.decided]
    curved = "Curvature was not found to be worth it on this graph."
    if undecided:
        curved = f"Whether curvature is worth it is undecided for {_list_names(undecided)}."
    if gains:
        curved = f"Curvature is worth it for {_list_names(gains)}."
    return f"{curved} The highest mean is {score:.2f}, of {best.label} in {space} space."


def _best(rows: pd.DataFrame) -> Any:
    return rows.iloc[int(rows["mean"].astype(float).argmax())]


def _budget(row: Any, tests: int) -> str:
    """The effect that this number of runs detects, and how many runs detect a smaller one."""
    std = float(row["std"])
    pairs = int(row["pairs"])
    level = LEVEL / tests
    difference = (
        f"The best curved space, {row['space']}, differs by {row['difference']:+.2f} points, "
        f"95 % interval {row['interval']}."
    )
    limit = detectable(std, pairs, level)
    if isinf(limit) or std == 0:
        return difference
    aim = POINT if limit > POINT else limit / 2
    runs = required_runs(aim, std, level)
    more = f", with about {runs} runs one of {aim:.2f} points" if runs else ""
    return (
        f"{difference} With {pairs} runs a difference of about {limit:.2f} points is detectable "
        f"with 80 % power{more}."
    )


def _list_names(listed: Iterable[str]) -> str:
    names = list(listed)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
