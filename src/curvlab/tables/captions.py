"""The words around a table: the protocol under it and the footnotes about single cells."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from curvlab.tables.spec import LENGTHS, SCORE, Coordinate, TableSpec
from curvlab.tables.statistics import (
    INTERVAL_NAMES,
    PRINTED_INTERVALS,
    PRINTED_SPREADS,
    IntervalKind,
)

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
        sentences += [*departures(spec, runs), _steps(run)]
    else:
        sentences.append(f"Ours ({_metric(spec)}): no finished run yet.")
    if len(paper):
        notes = _notes(paper)
        shared = f"{notes[0]}; " if len(notes) == 1 and notes[0] else ""
        sentences.append(f"Paper: {shared}{_paper_spread(paper)}.")
    if (run["within"] == True).any():  # noqa: E712  (the column holds None too)
        within = "the two 95% intervals combined" if _has_interval(paper) else "our 95% interval"
        sentences.append(f"≈: the difference lies within {within} (ours by Student's t).")
    if (cells["ranked"] > 0).any():
        sentences.append(
            "Rank: among the methods of a column with both numbers; Spearman: the correlation of "
            "these ranks, number of methods in brackets."
        )
        sentences += _mean_correlation(cells)
    return sentences


def _mean_correlation(cells: pd.DataFrame) -> list[str]:
    """Whether the paper's order survives, over all columns."""
    columns = cells.groupby("column", sort=False)["spearman"].first().dropna()
    if len(columns) < 2:
        return []
    mean = f"{columns.mean():.2f}".replace("-", "\N{MINUS SIGN}")
    return [f"Mean Spearman of {len(columns)} columns: {mean}."]


FULL_PRECISION = "32-true"
"""Of Lightning; what is not said otherwise."""


def circumstances(
    spec: TableSpec, cells: pd.DataFrame, runs: pd.DataFrame, labels: Labels
) -> list[str]:
    """Which split each column's runs have, and on what and how they ran, as they say themselves."""
    sentences = _uneven(spec, cells, runs, labels)
    columns: dict[str, list[str]] = {}
    for (axis, column), label in labels.items():
        configs = runs.loc[(axis == "column") & (runs["column"] == column), "config"]
        for name in dict.fromkeys(filter(None, map(_split, configs))):
            columns.setdefault(name, []).append(label)
    if columns:
        used = "; ".join(f"{name} of {', '.join(labels)}" for name, labels in columns.items())
        sentences.append(f"Splits: {used}.")
    devices = sorted({device.partition(":")[0] for device in runs["device"] if device})
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
    """Runs left out, cells trained otherwise than most, and notes of the paper's cells."""
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
    lines += _other_patience(run, labels)
    if len(_notes(paper)) > 1:
        noted = paper[paper["note"] != ""]
        lines += [
            f"Paper, {_names(same, paper, labels)}: {note}."
            for note, same in noted.groupby("note", sort=False)
        ]
    return lines


def _names(cells: pd.DataFrame, of: pd.DataFrame, labels: Labels) -> str:
    """Cells by their names; a column or a row whose cells are all among them by its own."""
    columns = _whole("column", cells, of)
    rows = _whole("row", cells[~cells["column"].isin(columns)], of)
    words = [labels["row", row] for row in rows]
    for column in dict.fromkeys(cells["column"]):
        in_column = cells[(cells["column"] == column) & ~cells["row"].isin(rows)]
        if column in columns:
            words.append(labels["column", column])
        else:
            words += [_name(cell, labels) for _, cell in in_column.iterrows()]
    return "; ".join(words)


def _whole(axis: str, cells: pd.DataFrame, of: pd.DataFrame) -> list[Coordinate]:
    """Rows or columns with several cells, all of which are among these."""
    among, all_cells = cells[axis].value_counts(), of[axis].value_counts()
    return [
        value
        for value in dict.fromkeys(cells[axis])
        if among[value] > 1 and among[value] == all_cells[value]
    ]


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
    of_edges = (config.get("task") or {}).get("split") or {}
    if {"val", "test"} <= of_edges.keys():  # then nothing used the dataset's split of its nodes
        return f"{_fractions(of_edges)} ({_drawn(of_edges) or 'one for all runs'})"
    split = config.get("split") or {}
    if "name" not in split:
        return None
    drawn = _drawn(split)
    return f"{split['name']} ({drawn})" if drawn else split["name"]


def _drawn(split: Mapping[str, Any]) -> str | None:
    """How a split changes from run to run; some, as split=fit, are never drawn."""
    return "another for each seed" if split.get("draw", 0) is None else None


def _fractions(split: Mapping[str, Any]) -> str:
    """A split of edges by its parts in percent, training first: it has no name."""
    held_out = split["val"], split["test"]
    return "edges " + "/".join(f"{100 * part:.4g}" for part in (1 - sum(held_out), *held_out))


def _precision(config: Mapping[str, Any]) -> str:
    return (config.get("trainer") or {}).get("precision", FULL_PRECISION)


def departures(spec: TableSpec, runs: pd.DataFrame) -> list[str]:
    """Sentences on the runs that have not the table's protocol, if there are any."""
    sentences = [sentence] if (sentence := _reduced(spec, runs)) else []
    lengths = tuple(f"trainer.{key}=" for key in spec.planned_length)  # said already
    words = runs["changed"].map(
        lambda text: ", ".join(word for word in text.split(", ") if not word.startswith(lengths))
    )
    for text, same in words[words != ""].groupby(words):
        sentences.append(f"Not the table's protocol{_which(same, runs)}: {text}.")
    return sentences


def _uneven(spec: TableSpec, cells: pd.DataFrame, runs: pd.DataFrame, labels: Labels) -> list[str]:
    """A warning about columns that rank runs of the table's protocol among others."""
    departs = (_shorter(spec, runs) | (runs["changed"] != "")).groupby(runs["column"])
    uneven = departs.any() & ~departs.all()
    ranked = cells.loc[cells["ranked"] > 0, "column"].unique()
    names = [labels["column", column] for column in ranked if uneven.get(column, False)]
    if not names:
        return []
    return [f"Ranks of {', '.join(names)} are of runs at different protocols."]


def _shorter(spec: TableSpec, runs: pd.DataFrame) -> "pd.Series[bool]":
    """Which runs were to be shorter than the table's."""
    shorter = pd.Series(data=False, index=runs.index)
    for key, planned in spec.planned_length.items():
        shorter |= _trained(runs, key) < planned
    return shorter


def _trained(runs: pd.DataFrame, key: str) -> "pd.Series[float]":
    """How long runs were to be, in steps or passes."""
    return pd.to_numeric(runs["config"].map(lambda config: config.get("trainer", {}).get(key)))


def _which(some: "pd.Series[Any]", runs: pd.DataFrame) -> str:
    return "" if len(some) == len(runs) else f", {len(some)} of {len(runs)} runs"


def _reduced(spec: TableSpec, runs: pd.DataFrame) -> str | None:
    for key, unit in LENGTHS.items():
        if key not in spec.planned_length:
            continue
        lengths = _trained(runs, key)
        shorter = lengths[lengths < spec.planned_length[key]]
        if len(shorter):
            trained = " or ".join(f"{length:,.0f}" for length in sorted(set(shorter)))
            return (
                f"Reduced protocol{_which(shorter, runs)}: {trained} {unit} where the table's has "
                f"{spec.planned_length[key]:,}."
            )
    return None


def _steps(run: pd.DataFrame) -> str:
    most, patience = run["steps"].max(), run.loc[_can_end(run), "patience"]
    if patience.empty:
        unless = "" if run["steps"].min() == most else " if no note says otherwise"
        return f"Each run has {most:,} {_plural('step', most)}{unless}."
    least, greatest = patience.min(), patience.max()
    steps = f"{greatest:,.0f}" if least == greatest else f"{least:,.0f} to {greatest:,.0f}"
    usual = "" if least == greatest else f" ({_usual(patience):,.0f} if no note says otherwise)"
    return (
        f"Each run has at most {most:,} steps and ends after {steps} steps{usual} without a "
        "better validation score, whose weights are tested."
    )


def _other_patience(run: pd.DataFrame, labels: Labels) -> list[str]:
    """Footnotes about the cells of which the caption's usual patience is not true."""
    able = run[_can_end(run)]
    if able.empty:
        return []
    others = able[able["patience"] != _usual(able["patience"])]
    lines = [
        f"Ends after {patience:,.0f} steps without a better score: {_names(same, run, labels)}."
        for patience, same in others.groupby("patience")
    ]
    if len(able) < len(run):
        lines.append(f"Never ends early: {_names(run[~_can_end(run)], run, labels)}.")
    return lines


def _can_end(run: pd.DataFrame) -> "pd.Series[bool]":
    """Where validation can end a run: not without patience (NaN), nor with too few steps for it."""
    return run["patience"] < run["steps"]


def _usual(patience: "pd.Series[float]") -> float:
    """The patience of most cells; the least of several."""
    return float(patience.mode().min())


def _notes(paper: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(paper["note"]))


def _paper_spread(paper: pd.DataFrame) -> str:
    kinds = paper.loc[paper["pm"] != "", "pm_kind"].unique()
    if not len(kinds):
        return "no spread printed"
    known = [PRINTED_SPREADS[kind] for kind in kinds if kind in PRINTED_SPREADS]
    if not known:
        return "does not say what its ± is"
    where = "" if len(known) == len(kinds) else ", where that is known"
    return f"± is {' or '.join(known)}{where}"


def _has_interval(paper: pd.DataFrame) -> bool:
    return bool((paper["pm_kind"].isin(PRINTED_INTERVALS) & (paper["pm"] != "")).any())


def _name(cell: "pd.Series[str]", labels: Labels) -> str:
    return f"{labels['row', cell['row']]}, {labels['column', cell['column']]}"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
