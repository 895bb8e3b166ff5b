"""Results of a study: comparisons with flat space, and a recommendation."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isinf
from typing import Any

import pandas as pd

from curvlab.statistics import LEVEL, compare_pairs, detectable, holm, required_runs
from curvlab.study.flat_counterpart import FLAT

ONE_POINT = 1.0


@dataclass(frozen=True)
class Report:
    """A model's results and the recommended space; `alike` are others that are as good."""

    label: str
    table: pd.DataFrame
    space: str
    alike: tuple[str, ...]
    text: str

    @property
    def score(self) -> float:
        """Mean score in the recommended space."""
        return float(self.table.loc[self.table["space"] == self.space, "mean"].iloc[0])


def compare(table: pd.DataFrame) -> pd.DataFrame:
    """Compare spaces with flat space, paired by seed."""
    rows = table.iloc[1:].dropna(subset="scores")
    pairs = [compare_pairs(scores, table["scores"].iloc[0]) for scores in rows["scores"]]
    found = pd.DataFrame([asdict(pair) | {"interval": pair.interval} for pair in pairs], rows.index)
    found["p_holm"] = holm(found["p_t"].tolist())
    return table.join(found.rename(columns={"mean": "difference", "p_wilcoxon": "p_ranks"}))


def recommend(label: str, table: pd.DataFrame) -> Report:
    """Recommend a space for a model: the simplest of those not distinguishable from the best.

    Only spaces that beat flat by the corrected t test at 5 % are; else flat space.
    """
    others = table.iloc[1:].dropna(subset="scores")
    significant = others["p_holm"] < LEVEL
    better = others[significant & (others["difference"] > 0)]
    if len(better):
        top = _best(better)["scores"]
        alike = better[[not compare_pairs(top, scores).p_t < LEVEL for scores in better["scores"]]]
        best: Any = alike.iloc[0]
        names = tuple(alike["space"].iloc[1:])
        text = (
            f"{label} gains from curvature: in {best['space']} space it scores "
            f"{best['difference']:.2f} points more than in flat space, 95 % interval "
            f"{best['interval']}, p = {best['p_holm']:.2g} after Holm."
        )
        text += f" {_list_names(names).capitalize()} did not do better." if names else ""
        return Report(label, table, best["space"], names, text)
    equal, worse = others[~significant], others[significant]
    if equal.empty:
        less = f"by {-worse['difference'].max():.2f} points or more"
        text = f"{label} stays flat: every other space scores less, {less}."
    else:
        budget = _budget(_best(equal), len(others))
        text = f"{label} stays flat: no difference was found with this budget. {budget}"
        text += f" Worse than flat: {_list_names(list(worse['space']))}." if len(worse) else ""
    return Report(label, table, FLAT, tuple(equal["space"]), text)


def overall(reports: Sequence[Report]) -> str:
    """The recommendation over all models, in a sentence: the best one in its best space."""
    best = max(reports, key=lambda report: report.score)
    gains = [report.label for report in reports if report.space != FLAT]
    curved = "Curvature was not found to be worth it on this graph."
    if gains:
        curved = f"Curvature is worth it for {_list_names(gains)}."
    score = f"{best.label} in {best.space} space, {best.score:.2f} on average"
    return f"{curved} The best score of all has {score}."


def _best(rows: pd.DataFrame) -> Any:
    return rows.iloc[int(rows["mean"].astype(float).argmax())]


def _budget(row: Any, tests: int) -> str:
    """The effect that this number of runs detects, and how many runs detect a smaller one."""
    std, pairs, level = float(row["std"]), int(row["pairs"]), LEVEL / tests
    found = (
        f"The best curved space, {row['space']}, differs by {row['difference']:+.2f} points, "
        f"95 % interval {row['interval']}."
    )
    limit = detectable(std, pairs, level)
    if isinf(limit) or std == 0:
        return found
    aim = ONE_POINT if limit > ONE_POINT else limit / 2
    runs = required_runs(aim, std, level)
    more = f", with about {runs} runs one of {aim:.2f} points" if runs else ""
    return (
        f"{found} With {pairs} runs a difference of about {limit:.2f} points is detectable with "
        f"80 % power{more}."
    )


def _list_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
