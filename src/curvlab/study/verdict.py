"""Compare the spaces of a study with flat space and recommend one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isinf
from typing import Any

import pandas as pd

from curvlab.statistics import (
    FEWEST_SPREAD,
    LEVEL,
    POINT,
    compare_pairs,
    detectable_difference,
    holm,
    required_runs,
)
from curvlab.study.flat_counterpart import FLAT


@dataclass(frozen=True)
class Report:
    """A model's results and the recommended space.

    Attributes:
        label: The model's label.
        table: Scores and comparisons with flat space, one row per space.
        space: The recommended space.
        alike: Spaces that are not distinguishable from the recommended space.
        text: The answer in sentences.
        decided: False if no gain over flat space is significant and a gain of `POINT` is possible.
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

    Candidates beat flat space by the corrected t test at 5 %. Without a candidate, flat space is
    recommended. The question is then undecided unless every other space is significantly worse, or
    has at least three pairs and a 95 % interval of the difference below a gain of one point.
    """
    curved = table.iloc[1:].dropna(subset="scores")
    significant = curved["p_holm"] < LEVEL
    better = curved[significant & (curved["difference"] > 0)]
    if len(better):
        highest = _best(better)["scores"]
        p_values = [compare_pairs(highest, scores).p_t for scores in better["scores"]]
        candidates = better[[not p < LEVEL for p in p_values]]
        best: Any = candidates.iloc[0]
        names = tuple(candidates["space"].iloc[1:])
        text = (
            f"{label} gains from curvature: in {best['space']} space it scores "
            f"{best['difference']:.2f} points more than in flat space, 95 % interval "
            f"{best['interval']}, p = {best['p_holm']:.2g} after Holm."
        )
        if names:
            text += f" {_list_names(names).capitalize()} did not do better."
        return Report(label, table, best["space"], names, text)
    equal = curved[~significant]
    worse = curved[significant]
    if equal.empty:
        loss = -worse["difference"].max()
        text = f"{label} stays flat: every other space scores less, by {loss:.2f} points or more."
        return Report(label, table, FLAT, (), text)
    possible = equal[[_may_gain(row) for _, row in equal.iterrows()]]
    decided = possible.empty
    if decided:
        text = (
            f"{label} stays flat: no space gains a point, and no difference was found. "
            f"{_budget(_best(equal), len(curved))}"
        )
    else:
        text = (
            f"{label}: undecided. No difference was found, but {_list_names(possible['space'])} "
            f"may gain a point or more. {_budget(_best(possible), len(curved))}"
        )
    if len(worse):
        text += f" Worse than flat: {_list_names(worse['space'])}."
    return Report(label, table, FLAT, tuple(equal["space"]), text, decided)


def _may_gain(row: Any) -> bool:
    """Whether the runs do not exclude that a space gains `POINT` over flat space."""
    if row["pairs"] < FEWEST_SPREAD:
        return True
    all_equal = row["std"] == 0 and row["difference"] == 0
    is_excluded = all_equal or row["difference"] + row["pm"] < POINT
    return not is_excluded


def overall(reports: Sequence[Report]) -> str:
    """Say whether curvature is worth it for any model, and which space has the highest mean."""
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
    """State the effect that the runs detect, and the number of runs for a smaller effect."""
    std = float(row["std"])
    pairs = int(row["pairs"])
    level = LEVEL / tests
    difference = (
        f"The best curved space, {row['space']}, differs by {row['difference']:+.2f} points, "
        f"95 % interval {row['interval']}."
    )
    limit = detectable_difference(std, pairs, level)
    if isinf(limit) or std == 0:
        return difference
    aim = POINT if limit > POINT else limit / 2
    runs = required_runs(aim, std, level)
    text = (
        f"{difference} With {pairs} runs a difference of about {limit:.2f} points is detectable "
        "with 80 % power"
    )
    if runs:
        text += f", with about {runs} runs one of {aim:.2f} points"
    return f"{text}."


def _list_names(spaces: Iterable[str]) -> str:
    *names, last = spaces
    return f"{', '.join(names)} and {last}" if names else last
