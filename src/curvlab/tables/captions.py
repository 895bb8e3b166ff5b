"""The words around a table: the protocol under it and the footnotes about single cells."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from curvlab.tables.spec import LENGTHS, SCORE, Coordinate, TableSpec
from curvlab.tables.statistics import INTERVAL_NAMES, IntervalKind

Labels = Mapping[tuple[str, Coordinate], str]


def caption(
    spec: TableSpec,
    cells: pd.DataFrame,
    runs: pd.DataFrame,
    paper: pd.DataFrame,
    kind: IntervalKind,
) -> list[str]:
    """Metric, seeds, steps and the meaning of every sign in the table, one sentence each."""
    run = cells[cells["seeds"] > 0]
    spread = f"mean ± {INTERVAL_NAMES[kind]}"
    sentences = []
    if len(run):
        sentences.append(f"Ours: {_metric(spec)}, {spread}, {_seeds(spec, run)}.")
        sentences += filter(None, [reduced(spec, runs), _steps(run)])
    else:
        sentences.append(f"Ours ({_metric(spec)}): no finished run yet.")
    if len(paper):
        notes = _notes(paper)
        shared = f"{notes[0]}; " if len(notes) == 1 and notes[0] else ""
        sentences.append(f"Paper: {shared}{_paper_spread(paper, kind)}.")
    if (run["within"] == True).any():  # noqa: E712  (the column holds None too)
        within = "the two 95% intervals combined" if _has_ci95(paper) else "our 95% interval"
        sentences.append(f"≈: the difference lies within {within} (ours by Student's t).")
    if (cells["ranked"] > 0).any():
        sentences.append(
            "Rank: among the methods of a column with both numbers; Spearman: the correlation of "
            "these ranks, number of methods in brackets."
        )
    return sentences


FULL_PRECISION = "32-true"
"""Of Lightning; what is not said otherwise."""


def circumstances(runs: pd.DataFrame, labels: Labels) -> list[str]:
    """Which split each column's runs have, and on what and how they ran, as they say themselves."""
    sentences = []
    columns: dict[str, list[str]] = {}
    for (axis, column), label in labels.items():
        configs = runs.loc[(axis == "column") & (runs["column"] == column), "config"]
        for name in dict.fromkeys(filter(None, map(_split, configs))):
            columns.setdefault(name, []).append(label)
    if columns:
        used = "; ".join(f"{name} of {', '.join(labels)}" for name, labels in columns.items())
        sentences.append(f"Splits: {used}.")
    devices = sorted({device.partition(":")[0] for device in runs["device"].dropna()})
    if devices:
        sentences.append(f"Ours ran on {' and '.join(devices)}.")
    rows: dict[str, list[str]] = {}
    used_by = zip(map(_precision, runs["config"]), runs["row"], strict=True)
    for precision, row in dict.fromkeys(used_by):
        if precision != FULL_PRECISION:
            rows.setdefault(precision, []).append(labels["row", row])
    sentences += [f"In {precision}: {', '.join(of)}." for precision, of in rows.items()]
    return sentences


def footnotes(
    cells: pd.DataFrame, paper: pd.DataFrame, left_out: pd.DataFrame, labels: Labels
) -> list[str]:
    """Runs left out, cells trained for fewer steps than others, and notes of the paper's cells."""
    lines = [
        f"{_name(cell, labels)}: {cell['runs']} {_plural('run', cell['runs'])} left out "
        f"({cell['reason']})."
        for _, cell in left_out.iterrows()
    ]
    run = cells[cells["seeds"] > 0]
    shorter = run[run["steps"] < run["steps"].max()]
    lines += [
        f"{steps:,} steps: {_names(same, run, labels)}." for steps, same in shorter.groupby("steps")
    ]
    if len(_notes(paper)) > 1:
        noted = paper[paper["note"] != ""]
        lines += [
            f"Paper, {_names(same, paper, labels)}: {note}."
            for note, same in noted.groupby("note", sort=False)
        ]
    return lines


def _names(cells: pd.DataFrame, of: pd.DataFrame, labels: Labels) -> str:
    """Cells by their names; a column whose cells are all among them by its own."""
    words = []
    for column in dict.fromkeys(cells["column"]):
        in_column = cells[cells["column"] == column]
        if len(in_column) > 1 and len(in_column) == (of["column"] == column).sum():
            words.append(labels["column", column])
        else:
            words += [_name(cell, labels) for _, cell in in_column.iterrows()]
    return "; ".join(words)


def _metric(spec: TableSpec) -> str:
    metric = spec.report.metric
    return "the metric of each dataset" if metric == SCORE else metric


def _seeds(spec: TableSpec, run: pd.DataFrame) -> str:
    fewest, most = run["seeds"].min(), run["seeds"].max()
    count = f"{most}" if fewest == most else f"{fewest} to {most}"
    planned = len(spec.planned_seeds)
    of = f", {planned} planned" if fewest < planned else ""
    return f"number of seeds in brackets ({count}{of})"


def _split(config: Mapping[str, Any]) -> str | None:
    split = config.get("split")
    if not split:
        return None
    redrawn = split.get("draw", 0) is None  # some splits, as split=fit, are never drawn
    return f"{split['name']} (another for each seed)" if redrawn else split["name"]


def _precision(config: Mapping[str, Any]) -> str:
    return (config.get("trainer") or {}).get("precision", FULL_PRECISION)


def reduced(spec: TableSpec, runs: pd.DataFrame) -> str | None:
    """A sentence on the runs that may train for less than the table says, if there are any."""
    for key, unit in LENGTHS.items():
        if key not in spec.planned_length:
            continue
        lengths = runs["config"].map(lambda config, key=key: config.get("trainer", {}).get(key))
        shorter = lengths[pd.to_numeric(lengths) < spec.planned_length[key]]
        if len(shorter):
            which = "" if len(shorter) == len(runs) else f", {len(shorter)} of {len(runs)} runs"
            trained = " or ".join(f"{length:,}" for length in sorted(set(shorter)))
            return (
                f"Reduced protocol{which}: {trained} {unit} where the table's has "
                f"{spec.planned_length[key]:,}."
            )
    return None


def _steps(run: pd.DataFrame) -> str:
    most, patience = run["steps"].max(), run["patience"].max()
    if patience < most:  # not so where there is none (NaN), or too few steps for it to end a run
        return (
            f"Each run has at most {most:,} steps and ends after {patience:.0f} steps without a "
            "better validation score, whose weights are tested."
        )
    return f"Each run has {most:,} {_plural('step', most)}."


def _notes(paper: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(paper["note"]))


def _paper_spread(paper: pd.DataFrame, kind: IntervalKind) -> str:
    if not (paper["pm"] != "").any():
        return "no spread printed"
    known = paper["pm_kind"].isin(["ci95", "std"]).any()
    return f"± is {INTERVAL_NAMES[kind]}" if known else "does not say what its ± is"


def _has_ci95(paper: pd.DataFrame) -> bool:
    return bool(((paper["pm_kind"] == "ci95") & (paper["pm"] != "")).any())


def _name(cell: "pd.Series[str]", labels: Labels) -> str:
    return f"{labels['row', cell['row']]}, {labels['column', cell['column']]}"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
