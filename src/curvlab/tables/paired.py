"""Finished runs side by side: differences, scores, cost, and a paired test."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from curvlab.errors import UsageError
from curvlab.results.identity import built, canonical
from curvlab.results.result import Result
from curvlab.statistics import (
    MRR_MARGIN,
    POINT,
    Paired,
    compare_pairs,
    decimals,
    holm,
    judge_pairs,
    metric_margin,
    paired_by_seed,
    summarise,
)
from curvlab.tables.runs import flatten

LABEL_LENGTH = 40


@dataclass
class Group:
    """Runs that differ in the seed alone, and `settings` that distinguish them from others."""

    settings: dict[str, Any]
    runs: dict[int, Result]
    label: str = ""

    @property
    def scores(self) -> dict[int, float]:
        """By seed."""
        return {seed: run.score for seed, run in self.runs.items() if run.score is not None}


def group_runs(results: Sequence[Result]) -> list[Group]:
    """Group finished runs of one task and metric, in the order of first appearance."""
    finished = [result for result in results if result.status == "finished"]
    if not finished:
        raise UsageError("none of these runs has finished: there is nothing to compare")
    kinds = {f"{result.task} by {result.config['dataset'].get('metric')}" for result in finished}
    if len(kinds) > 1:
        said = " and ".join(sorted(kinds))
        raise UsageError(f"scores of {said} cannot be compared: give runs of one task and metric")
    built = pd.DataFrame(map(_built, finished), dtype=object)
    built = built.where(built.notna(), None)
    settings = built.loc[:, built.map(canonical).nunique() > 1].to_dict("records")
    groups: dict[str, Group] = {}
    for result, setting in zip(finished, settings, strict=True):
        group = groups.setdefault(
            canonical(setting), Group({str(k): v for k, v in setting.items()}, {})
        )
        if result.seed in group.runs and group.runs[result.seed].score != result.score:
            raise UsageError(
                f"seed {result.seed} of {result.model} on {result.dataset} is there twice with "
                "different scores: leave one of the folders out"
            )
        group.runs[result.seed] = result
    for group, label in zip(groups.values(), _labels(list(groups.values())), strict=True):
        group.label = label
    return list(groups.values())


def comparison(groups: Sequence[Group]) -> pd.DataFrame:
    """A row per group: settings, score with its interval, cost, the test against the first.

    `above_the_first` is the verdict on the statement that a group's score is higher.
    """
    first, *rest = groups
    pairs = [paired_by_seed(group.scores, first.scores) for group in rest]
    pairs = [compare_pairs([], []), *pairs]
    table = pd.DataFrame([_row(g, paired) for g, paired in zip(groups, pairs, strict=True)])
    p_holm = holm(table["p"].tolist())
    margin = _margin(first)
    tests = max(1, table["p"].notna().sum())
    judged = [judge_pairs(one, p, margin, tests) for one, p in zip(pairs, p_holm, strict=True)]
    words = [str(verdict) for verdict in judged]
    return table.assign(p_holm=p_holm, margin=margin, above_the_first=["", *words[1:]])


def _margin(group: Group) -> float:
    """The margin of the runs' metric; by the scale of scores if it is not named."""
    run = next(iter(group.runs.values()))
    named = (run.config.get(part) or {} for part in ("dataset", "task"))
    metric = next((str(part["metric"]) for part in named if part.get("metric")), "")
    if metric:
        return metric_margin(metric)
    return POINT if decimals(list(group.scores.values())) == 2 else MRR_MARGIN


def _row(group: Group, paired: Paired) -> dict[str, Any]:
    summary = summarise(list(group.scores.values()))
    runs = pd.DataFrame(map(vars, group.runs.values()))
    costs = runs[["wall_seconds", "peak_memory_mb", "parameters"]].astype(float).median()
    return {
        "label": group.label,
        **group.settings,
        "runs": summary.seeds,
        "mean": summary.mean,
        "low": summary.mean - summary.student_pm,
        "high": summary.mean + summary.student_pm,
        **costs.rename({"wall_seconds": "seconds", "peak_memory_mb": "memory_mb"}),
        "common": paired.pairs,
        "difference": paired.mean,
        "difference_pm": paired.pm,
        "p": paired.p_t,
    }


def _built(result: Result) -> dict[str, Any]:
    what = built(result.config, result.revisions)
    what.pop("seed", None)
    for group in ("model", "dataset", "manifold"):
        part = what.get(group)
        part = part if isinstance(part, dict) else {}
        what[group] = {k: v for k, v in part.items() if k != "_target_"}
        what[group]["name"] = getattr(result, group)
    return flatten(what)


def _labels(groups: Sequence[Group]) -> list[str]:
    """Short names of groups: the choices that distinguish them, else what differs."""
    runs = [next(iter(group.runs.values())) for group in groups]
    parts: list[list[str]] = [[] for _ in groups]
    for choice in ("model", "dataset", "manifold"):
        names = [getattr(run, choice) for run in runs]
        if len(set(names)) > 1 and len(set(map(tuple, parts))) < len(groups):
            parts = [[*part, name] for part, name in zip(parts, names, strict=True)]
    if len(set(map(tuple, parts))) < len(groups):
        for part, group in zip(parts, groups, strict=True):
            for key, value in group.settings.items():
                last = key.rpartition(".")[2]
                if last not in ("name", "revision", "transforms"):
                    shown = str(value).rpartition(".")[2] if last == "_target_" else value
                    part.append(f"{last}={'default' if value is None else shown}")
    labels = [", ".join(part)[:LABEL_LENGTH] or runs[0].model for part in parts]
    return [
        label if labels.count(label) == 1 else f"{label} ({labels[: i + 1].count(label)})"
        for i, label in enumerate(labels)
    ]
