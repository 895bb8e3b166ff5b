"""Finished runs side by side: how they differ, what they score and cost, and a paired test."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
import pandas as pd

from curvlab.errors import UsageError
from curvlab.results.identity import built, canonical
from curvlab.results.result import Result
from curvlab.statistics import holm, paired_by_seed, summarise

LABEL_LENGTH = 40


@dataclass(frozen=True)
class Group:
    """Runs that differ in nothing but their seed.

    Attributes:
        label: what they differ in from the others, short.
        settings: all that differs between groups, by key.
        runs: by seed.
    """

    label: str
    settings: dict[str, Any]
    runs: dict[int, Result]

    @property
    def scores(self) -> dict[int, float]:
        """By seed."""
        return {seed: run.score for seed, run in self.runs.items() if run.score is not None}


def grouped(results: Sequence[Result]) -> list[Group]:
    """Groups of finished runs, in the order in which they are first met.

    Raises:
        UsageError: there are none, their scores are of different metrics, or a run is there twice.
    """
    finished = [result for result in results if result.status == "finished"]
    if not finished:
        raise UsageError("none of these runs has finished: there is nothing to compare")
    kinds = {(result.task, str(result.config["dataset"].get("metric"))) for result in finished}
    if len(kinds) > 1:
        said = " and ".join(sorted(f"{task} by {metric}" for task, metric in kinds))
        raise UsageError(f"scores of {said} cannot be compared: give runs of one task and metric")
    flat = [_flat(_identity(result)) for result in finished]
    keys = list(dict.fromkeys(key for settings in flat for key in settings))
    varied = [key for key in keys if len({canonical(s.get(key)) for s in flat}) > 1]
    groups: dict[str, dict[int, Result]] = {}
    settings_of: dict[str, dict[str, Any]] = {}
    for result, settings in zip(finished, flat, strict=True):
        differing = {key: settings.get(key) for key in varied}
        name = canonical(differing)
        settings_of[name] = differing
        runs = groups.setdefault(name, {})
        if result.seed in runs and runs[result.seed].score != result.score:
            raise UsageError(
                f"seed {result.seed} of {result.model} on {result.dataset} is there twice with "
                "different scores: leave one of the folders out"
            )
        runs[result.seed] = result
    labels = _labels([(next(iter(r.values())), settings_of[n]) for n, r in groups.items()])
    return [
        Group(label, settings_of[name], groups[name])
        for label, name in zip(labels, groups, strict=True)
    ]


def comparison(groups: Sequence[Group]) -> pd.DataFrame:
    """A row a group: settings, score with its 95 % interval, cost, and the test against the first.

    Returns:
        `label`, the settings that differ, `runs`, `mean`, `low` and `high` (Student's 95 %
        interval; NaN with fewer than three runs), `seconds`, `memory_mb`, `parameters` (medians),
        and of the seeds shared with the first group `common`, `difference` (mean), `difference_pm`
        (half its 95 % interval) and `p` (see `curvlab.statistics.Paired`), and `p_holm`, corrected
        by Holm for the number of groups that have one.
    """
    table = pd.DataFrame([_row(group, groups[0]) for group in groups])
    return table.assign(p_holm=holm(table["p"].tolist()))


def _row(group: Group, first: Group) -> dict[str, Any]:
    scores = list(group.scores.values())
    summary = summarise(scores)
    runs = list(group.runs.values())
    row: dict[str, Any] = {"label": group.label, **group.settings, "runs": len(scores)}
    row |= {
        "mean": summary.mean,
        "low": summary.mean - summary.student_pm,
        "high": summary.mean + summary.student_pm,
        "seconds": _median([run.wall_seconds for run in runs]),
        "memory_mb": _median([run.peak_memory_mb for run in runs]),
        "parameters": _median([run.parameters for run in runs]),
    }
    if group is first:
        return row | {"common": 0, "difference": nan, "difference_pm": nan, "p": nan}
    pair = paired_by_seed(group.scores, first.scores)
    found = {"common": pair.pairs, "difference": pair.mean, "difference_pm": pair.pm}
    return row | found | {"p": pair.p_t}


def _median(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else nan


def _identity(result: Result) -> dict[str, Any]:
    """What a run built, by the names of what was chosen rather than of its classes."""
    what = built(result.config, result.revisions)
    what.pop("seed", None)
    names = {"model": result.model, "dataset": result.dataset, "manifold": result.manifold}
    for group, name in names.items():
        part = what.get(group)
        what[group] = {**(part if isinstance(part, dict) else {}), "name": name}
    return what


def _flat(node: Any, path: str = "") -> dict[str, Any]:
    """Dotted keys of nested mappings; classes go by their names, where these have none."""
    if isinstance(node, list) and any(isinstance(part, dict) for part in node):
        return {path: ", ".join(str(_flat(part).get("_target_", part)) for part in node)}
    if not isinstance(node, dict):
        short = path.endswith("_target_") and isinstance(node, str)
        return {path: node.rpartition(".")[2] if short else node}
    found: dict[str, Any] = {}
    for key, value in node.items():
        if key != "_target_" or "name" not in node:
            found |= _flat(value, f"{path}.{key}" if path else str(key))
    return found


def _labels(groups: Sequence[tuple[Result, dict[str, Any]]]) -> list[str]:
    """Short names: choices as far as they distinguish groups, else what differs."""
    parts: list[tuple[str, ...]] = [() for _ in groups]
    for choice in ("model", "dataset", "manifold"):
        names = [getattr(result, choice) for result, _ in groups]
        if len(set(names)) > 1 and len(set(parts)) < len(groups):
            parts = [(*part, name) for part, name in zip(parts, names, strict=True)]
    if len(set(parts)) < len(groups):
        parts = [
            (*part, *(_said(key, value) for key, value in settings.items() if _tells(key)))
            for part, (_, settings) in zip(parts, groups, strict=True)
        ]
    labels = [", ".join(part)[:LABEL_LENGTH] or groups[0][0].model for part in parts]
    return [
        label if labels.count(label) == 1 else f"{label} ({labels[: i + 1].count(label)})"
        for i, label in enumerate(labels)
    ]


def _tells(key: str) -> bool:
    return not key.endswith((".name", ".revision")) and key != "transforms"


def _said(key: str, value: Any) -> str:
    shown = "default" if value is None else f"{value:g}" if isinstance(value, float) else value
    return f"{key.rpartition('.')[2]}={shown}"
