"""Finished runs side by side: differences, scores, cost, and a paired test."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Any

import pandas as pd

from curvlab.errors import UsageError
from curvlab.results.identity import built, canonical
from curvlab.results.result import Result
from curvlab.statistics import holm, paired_by_seed, summarise
from curvlab.tables.runs import flatten

LABEL_LENGTH = 40


@dataclass(frozen=True)
class Group:
    """Runs that differ in the seed alone, and `settings` that distinguish them from others."""

    label: str
    settings: dict[str, Any]
    runs: dict[int, Result]

    @property
    def scores(self) -> dict[int, float]:
        """By seed."""
        return {seed: run.score for seed, run in self.runs.items() if run.score is not None}


def group_runs(results: Sequence[Result]) -> list[Group]:
    """Group finished runs of one task and metric, in the order of first appearance."""
    finished = [result for result in results if result.status == "finished"]
    if not finished:
        raise UsageError("none of these runs has finished: there is nothing to compare")
    kinds = {(result.task, str(result.config["dataset"].get("metric"))) for result in finished}
    if len(kinds) > 1:
        said = " and ".join(sorted(f"{task} by {metric}" for task, metric in kinds))
        raise UsageError(f"scores of {said} cannot be compared: give runs of one task and metric")
    all_made = [_built(result) for result in finished]
    keys = list(dict.fromkeys(key for made in all_made for key in made))
    varied = [key for key in keys if len({canonical(made.get(key)) for made in all_made}) > 1]
    groups: dict[str, Group] = {}
    for result, made in zip(finished, all_made, strict=True):
        settings = {key: made.get(key) for key in varied}
        group = groups.setdefault(canonical(settings), Group("", settings, {}))
        if result.seed in group.runs and group.runs[result.seed].score != result.score:
            raise UsageError(
                f"seed {result.seed} of {result.model} on {result.dataset} is there twice with "
                "different scores: leave one of the folders out"
            )
        group.runs[result.seed] = result
    labels = _labels(list(groups.values()))
    return [replace(g, label=label) for g, label in zip(groups.values(), labels, strict=True)]


def comparison(groups: Sequence[Group]) -> pd.DataFrame:
    """A row per group: settings, score with its interval, cost, the test against the first."""
    table = pd.DataFrame([_row(group, groups[0]) for group in groups])
    return table.assign(p_holm=holm(table["p"].tolist()))


def _row(group: Group, first: Group) -> dict[str, Any]:
    summary = summarise(list(group.scores.values()))
    runs = pd.DataFrame(map(vars, group.runs.values()))
    costs = runs[["wall_seconds", "peak_memory_mb", "parameters"]].astype(float).median()
    row = {
        "label": group.label,
        **group.settings,
        "runs": summary.seeds,
        "mean": summary.mean,
        "low": summary.mean - summary.student_pm,
        "high": summary.mean + summary.student_pm,
        **costs.rename({"wall_seconds": "seconds", "peak_memory_mb": "memory_mb"}),
    }
    if group is first:
        return row | {"common": 0, "difference": nan, "difference_pm": nan, "p": nan}
    pair = paired_by_seed(group.scores, first.scores)
    found = {"common": pair.pairs, "difference": pair.mean, "difference_pm": pair.pm}
    return row | found | {"p": pair.p_t}


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
