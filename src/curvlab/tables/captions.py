"""The words around a table: the protocol under it and the footnotes about single cells."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from curvlab.statistics import FEWEST, FEWEST_NORMAL, PRINTED_SPREADS, IntervalKind
from curvlab.tables.departures import departures
from curvlab.tables.draws import Draw, draw_of, split_of
from curvlab.tables.spec import SCORE, Coordinate, TableSpec

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
    sentences = []
    if len(run):
        sentences.append(f"Ours: {_metric(spec)}, {_spread(kind, run)}, {_seeds(spec, run)}.")
        if spec.report.second and run["second_seeds"].any():
            second = spec.report.second
            sentences.append(f"{second.label.capitalize()}: {second.metric} of runs that have it.")
        sentences += [f"{mark} {sentence}" for mark, sentence in departures(runs).items()]
        sentences.append(_steps(run))
    else:
        sentences.append(f"Ours ({_metric(spec)}): no finished run yet.")
    if len(paper):
        notes = _notes(paper)
        shared = f"{notes[0]}; " if len(notes) == 1 and notes[0] else ""
        sentences.append(f"Paper: {shared}{_paper_spread(paper)}.")
    if (run["within"] == True).any():  # noqa: E712  (the column holds None too)
        sentences.append(
            "≈: 0 lies in the difference's 95% interval (Welch's t; the paper's standard deviation "
            "from its ± and number of runs, no verdict where these are unknown)."
        )
    if (cells["ranked"] > 0).any():
        sentences.append(
            "Rank: among the methods of a column with a difference; Spearman: the correlation of "
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
    sentences = []
    columns: dict[str, list[str]] = {}
    for (axis, column), label in labels.items():
        configs = runs.loc[(axis == "column") & (runs["column"] == column), "config"]
        for name in dict.fromkeys(filter(None, map(_split, configs))):
            columns.setdefault(name, []).append(label)
    if columns:
        used = "; ".join(f"{name} of {', '.join(labels)}" for name, labels in columns.items())
        sentences.append(f"Splits: {used}.")
    sentences += _draws(spec, cells, labels)
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
    run = _own(cells[cells["seeds"] > 0])
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


def _own(run: pd.DataFrame) -> pd.DataFrame:
    """The cells of the table's protocol; all where there are none. Marks explain the others."""
    own = run[run["departure"] == ""]
    return own if len(own) else run


def _spread(kind: IntervalKind, run: pd.DataFrame) -> str:
    """What stands beside our means, of the numbers of seeds that there are."""
    seeds = run["seeds"]
    words = ["mean"]
    if kind == "std" and (seeds >= FEWEST).any():
        words = ["mean ± the sample standard deviation"]
    elif kind == "ci95" and (seeds >= FEWEST_NORMAL).any():
        words = ["mean ± 1.96 std/√n"]
        if ((seeds >= FEWEST) & (seeds < FEWEST_NORMAL)).any():
            words.append("of fewer than five seeds Student's 95% interval")
    elif (seeds >= FEWEST).any():
        words = ["mean ± Student's 95% interval"]
    return ", ".join(words)


def _seeds(spec: TableSpec, run: pd.DataFrame) -> str:
    fewest, planned = run["seeds"].min(), len(spec.planned_seeds)
    of = f", {planned} planned" if fewest < planned else ""
    both = ", of two seeds both values instead" if (run["seeds"] == 2).any() else ""
    return f"number of seeds in brackets ({_range(run['seeds'])}{of}){both}"


def _range(numbers: "pd.Series[int]") -> str:
    fewest, most = numbers.min(), numbers.max()
    return f"{most}" if fewest == most else f"{fewest} to {most}"


def _split(config: Mapping[str, Any]) -> str | None:
    split, another = split_of(config), draw_of(config).varies
    if "name" in split:
        return f"{split['name']} (another for each seed)" if another else split["name"]
    if {"val", "test"} <= split.keys():
        return f"{_fractions(split)} ({'another for each seed' if another else 'one for all runs'})"
    return None


def _draws(spec: TableSpec, cells: pd.DataFrame, labels: Labels) -> list[str]:
    """Over what our spread is, and what that means for the comparison with the paper."""

    def where(some: "pd.Series[bool]", of: pd.DataFrame) -> str:
        return ", ".join(labels["column", column] for column in of.loc[some, "column"].unique())

    run = cells[cells["seeds"] > 0]
    spread, printed = run[run["seeds"] >= FEWEST], run[run["paper_mean"].notna()]
    varies = spread["draw"].map(lambda name: Draw[name].varies).astype(bool)
    sentences = []
    if varies.any():
        draws = _range(spread.loc[varies, "seeds"])
        sentences.append(
            f"± is over {draws} draws of the split, one initialisation each: "
            f"{where(varies, spread)}."
        )
    if (one := ~varies & (spread["draw"] != Draw.none.name)).any():
        sentences.append(
            f"± is over initialisations on one draw of the split: {where(one, spread)}."
        )
    if (own := printed["draw"] == Draw.own.name).any():
        sentences.append(
            "One draw of the split, not known to be the paper's, and so without difference, ≈ and "
            f"rank: {where(own, printed)}."
        )
    each = (printed["draw"] == Draw.own_each.name) & printed["within"].notna()
    if each.any() and not spec.report.redrawn:
        sentences.append(
            "≈ takes the paper's number for one more draw, since its draw of the split is not "
            f"known (ours ± t s √(1 + 1/n)): {where(each, printed)}."
        )
    return sentences


def _fractions(split: Mapping[str, Any]) -> str:
    """A split of edges by its parts in percent, training first: it has no name."""
    held_out = split["val"], split["test"]
    return "edges " + "/".join(f"{100 * part:.4g}" for part in (1 - sum(held_out), *held_out))


def _precision(config: Mapping[str, Any]) -> str:
    return (config.get("trainer") or {}).get("precision", FULL_PRECISION)


def _steps(run: pd.DataFrame) -> str:
    run, of_all = _own(run), run
    each = "Each run" if len(run) == len(of_all) else "Each run without a letter"
    most, patience = run["steps"].max(), run.loc[_can_end(run), "patience"]
    if patience.empty:
        unless = "" if run["steps"].min() == most else " if no note says otherwise"
        return f"{each} has {most:,} {_plural('step', most)}{unless}."
    least, greatest = patience.min(), patience.max()
    steps = f"{greatest:,.0f}" if least == greatest else f"{least:,.0f} to {greatest:,.0f}"
    usual = "" if least == greatest else f" ({_usual(patience):,.0f} if no note says otherwise)"
    return (
        f"{each} has at most {most:,} steps and ends after {steps} steps{usual} without a "
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
    counts = pd.to_numeric(paper.loc[paper["pm"] != "", "runs"]).dropna()
    runs = f", over {_range(counts.astype(int))} runs" if len(counts) else ""
    return f"± is {' or '.join(known)}{where}{runs}"


def _name(cell: "pd.Series[str]", labels: Labels) -> str:
    return f"{labels['row', cell['row']]}, {labels['column', cell['column']]}"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
