"""Comparison of finished runs: differences, scores, cost, and a paired test."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from curvlab.errors import UsageError
from curvlab.results.identity import canonical
from curvlab.results.result import Result
from curvlab.results.settings import differing_settings, setting_texts
from curvlab.results.splits import drawn
from curvlab.statistics import (
    MRR_MARGIN,
    POINT,
    Draw,
    PairedDifferences,
    compare_pairs,
    decimals,
    holm,
    judge_pairs,
    metric_margin,
    paired_by_seed,
    split_means,
    summarise,
)

LABEL_LENGTH = 40


@dataclass
class Group:
    """Runs that differ only in the seed, and the `settings` that distinguish the group."""

    settings: dict[str, Any]
    runs: dict[int, Result]
    label: str = ""

    @property
    def example(self) -> Result:
        """The first run, which has the settings of all."""
        return next(iter(self.runs.values()))

    @property
    def scores(self) -> dict[int, float]:
        """Scores by seed."""
        return {seed: run.score for seed, run in self.runs.items() if run.score is not None}

    @property
    def scores_by_draw(self) -> dict[Draw, float]:
        """Scores by seed and split."""
        return {drawn(self.runs[seed].config, seed): score for seed, score in self.scores.items()}


def group_runs(results: Sequence[Result]) -> list[Group]:
    """Group finished runs of one task and metric, in the order of first appearance."""
    selection = [result for result in results if result.status == "finished"]
    if not selection:
        raise UsageError("none of these runs has finished: there is nothing to compare")
    kinds = {f"{result.task} by {result.config['dataset'].get('metric')}" for result in selection}
    if len(kinds) > 1:
        names = " and ".join(sorted(kinds))
        raise UsageError(f"scores of {names} cannot be compared: give runs of one task and metric")
    groups: dict[str, Group] = {}
    for result, settings in zip(selection, differing_settings(selection), strict=True):
        group = groups.setdefault(canonical(settings), Group(settings, {}))
        if result.seed in group.runs and group.runs[result.seed].score != result.score:
            raise UsageError(
                f"seed {result.seed} of {result.model} on {result.dataset} occurs twice with "
                "different scores: omit one of the folders"
            )
        group.runs[result.seed] = result
    for group, label in zip(groups.values(), _labels(list(groups.values())), strict=True):
        group.label = label
    return list(groups.values())


def comparison(groups: Sequence[Group]) -> pd.DataFrame:
    """A row for each group: settings, score with its interval, cost, test against the first.

    `above_the_first` is the verdict on the statement that a group's score is higher.
    """
    first, *rest = groups
    pairs = [paired_by_seed(group.scores_by_draw, first.scores_by_draw) for group in rest]
    pairs = [compare_pairs([], []), *pairs]
    table = pd.DataFrame([_row(g, paired) for g, paired in zip(groups, pairs, strict=True)])
    p_holm = holm(table["p"].tolist())
    margin = _margin(first)
    tests = max(1, table["p"].notna().sum())
    words = []
    for paired, p in zip(pairs, p_holm, strict=True):
        words.append(str(judge_pairs(paired, p, margin, tests)))
    return table.assign(p_holm=p_holm, margin=margin, above_the_first=["", *words[1:]])


def _margin(group: Group) -> float:
    """The margin of the runs' metric; without a metric, a margin by the scale of scores."""
    run = group.example
    for name in ("dataset", "task"):
        section = run.config.get(name) or {}
        if section.get("metric"):
            return metric_margin(str(section["metric"]))
    return POINT if decimals(list(group.scores.values())) == 2 else MRR_MARGIN


def _row(group: Group, paired: PairedDifferences) -> dict[str, Any]:
    summary = summarise(split_means(group.scores_by_draw))
    runs = pd.DataFrame(map(vars, group.runs.values()))
    costs = runs[["wall_seconds", "peak_memory_mb", "parameters"]].astype(float).median()
    return {
        "label": group.label,
        **group.settings,
        "runs": len(group.scores),
        "mean": summary.mean,
        "low": summary.mean - summary.student_pm,
        "high": summary.mean + summary.student_pm,
        **costs.rename({"wall_seconds": "seconds", "peak_memory_mb": "memory_mb"}),
        "common": paired.runs,
        "pairs": paired.pairs,
        "difference": paired.mean,
        "difference_pm": paired.pm,
        "p": paired.p_t,
    }


def _labels(groups: Sequence[Group]) -> list[str]:
    """Short names of groups: the choices that distinguish them, else their settings."""
    runs = [group.example for group in groups]
    parts: list[list[str]] = [[] for _ in groups]
    for choice in ("model", "dataset", "manifold"):
        names = [getattr(run, choice) for run in runs]
        if len(set(names)) > 1 and len(set(map(tuple, parts))) < len(groups):
            parts = [[*part, name] for part, name in zip(parts, names, strict=True)]
    if len(set(map(tuple, parts))) < len(groups):
        for part, group in zip(parts, groups, strict=True):
            part.extend(setting_texts(group.settings, group.example.config))
    labels = [", ".join(part)[:LABEL_LENGTH] or runs[0].model for part in parts]
    return [
        label if labels.count(label) == 1 else f"{label} ({labels[: i + 1].count(label)})"
        for i, label in enumerate(labels)
    ]
