"""All models of a table over its datasets: mean ranks, cost, and curved models less flat ones.

One table is one protocol: the same splits, search budget and seeds for every model. Cells of
another protocol, and columns that a model lacks, are left out and named.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan, sqrt
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from curvlab.errors import UsageError
from curvlab.tables.collect import collect
from curvlab.tables.departures import with_departures
from curvlab.tables.paired import paired
from curvlab.tables.spec import Better, Coordinate, TableSpec

LEAST_SHARE = 0.5
"""Of the columns with any number, what a model needs to be ranked."""


FACTS = "graphs.csv"
"""What graphs look like, beside the folder of all tables' results."""


@dataclass(frozen=True)
class Leaderboard:
    """Models of one table by their mean rank.

    Attributes:
        title: of the table.
        scores: mean of each model (index) on each dataset that all of them have.
        mean_ranks: by model, best first; 1 is the best.
        critical_difference: of two mean ranks, at 5 % (Nemenyi); NaN with fewer than two datasets.
        p: of Friedman's test that all models are alike; NaN with fewer than three models.
        cost: `parameters` and `seconds` of a run by model, medians over the datasets.
        left_out: labels of the models and of the datasets with too few cells to take part.
        better: which scores are good.
    """

    title: str
    scores: pd.DataFrame
    mean_ranks: "pd.Series[float]"
    critical_difference: float
    p: float
    cost: pd.DataFrame
    left_out: tuple[str, ...]
    better: Better


@dataclass(frozen=True)
class Twins:
    """A curved model and its flat twin on one graph.

    Attributes:
        curved: label of the one.
        flat: label of the other.
        dataset: label of the graph.
        difference: mean score of the curved one less that of the flat one, over common seeds.
        pm: half of its 95 % interval, paired by seed.
        delta: mean of Gromov's delta over quadruples of nodes; NaN where it is not known.
        homophily: share of the edges within a class; NaN where it is not known.
    """

    curved: str
    flat: str
    dataset: str
    difference: float
    pm: float
    delta: float
    homophily: float


def leaderboard(spec: TableSpec, results: Path) -> Leaderboard:
    """Rank the models of a table.

    Source of ranks and critical difference: Demsar 2006, "Statistical comparisons of classifiers
    over multiple data sets", JMLR 7, Section 3.2.2.

    Args:
        spec: the table; its rows are models, its columns datasets.
        results: the folder of all tables' results.

    Raises:
        UsageError: fewer than two models share a dataset.
    """
    runs = _own_runs(spec, results)
    means = runs.groupby(["row", "column"])["value"].mean().unstack()
    means = means.reindex([row for row in spec.planned_rows if row in means.index])
    means = means[[column for column in spec.planned_columns if column in means.columns]]
    ranked = means[means.notna().mean(axis=1) >= LEAST_SHARE]
    complete = ranked.dropna(axis=1)
    if len(complete) < 2 or complete.empty:
        raise UsageError(
            f"no two models of {spec.name} have finished runs on the same dataset: nothing to rank"
        )
    rows = {row: spec.label(spec.report.rows, row) for row in means.index}
    columns = {column: spec.label(spec.report.columns, column) for column in means.columns}
    sign = 1 if spec.report.better is Better.lower else -1
    ranks = complete.apply(lambda scores: stats.rankdata(sign * scores), axis=0)
    models, datasets = complete.shape
    cost = runs[runs["column"].isin(complete.columns)].groupby("row")[["parameters", "seconds"]]
    left_out = [
        *(rows[row] for row in means.index if row not in complete.index),
        *(columns[column] for column in means.columns if column not in complete.columns),
    ]
    return Leaderboard(
        title=spec.report.title,
        scores=complete.rename(index=rows, columns=columns),
        mean_ranks=ranks.mean(axis=1).rename(rows).sort_values(),
        critical_difference=critical_difference(models, datasets) if datasets > 1 else nan,
        p=float(stats.friedmanchisquare(*complete.to_numpy()).pvalue) if models > 2 else nan,
        cost=cost.median().reindex(complete.index).rename(index=rows),
        left_out=tuple(left_out),
        better=spec.report.better,
    )


def critical_difference(models: int, datasets: int, level: float = 0.05) -> float:
    """By how much two mean ranks must differ: `q sqrt(k (k + 1) / (6 N))`.

    q is the quantile of the studentised range of k means with infinite degrees of freedom, divided
    by sqrt(2).

    Source: Demsar 2006, Section 3.2.2 (Nemenyi's test).
    """
    q = float(stats.studentized_range.ppf(1 - level, models, inf)) / sqrt(2)
    return q * sqrt(models * (models + 1) / (6 * datasets))


def twins(spec: TableSpec, results: Path, pairs: Sequence[tuple[str, str]]) -> list[Twins]:
    """Each curved model less its flat twin on each dataset that both have at the table's protocol.

    Args:
        spec: the table; its rows are models, its columns datasets.
        results: the folder of all tables' results.
        pairs: names of a curved model and of its flat twin. What the graphs look like is read from
            `graphs.csv` beside the results, if it is there, as `plot facts` writes it.

    Raises:
        UsageError: a model is in no row of the table, or the file is not of that kind.
    """
    runs = _own_runs(spec, results)
    known = _facts(results.resolve().parent / FACTS)
    found = []
    for curved, flat in pairs:
        for name in (curved, flat):
            if name not in spec.planned_rows:
                rows = ", ".join(map(str, spec.planned_rows))
                raise UsageError(f"{spec.name} has no row {name}: its rows are {rows}")
        for column in spec.planned_columns:
            one, other = (_by_seed(runs, name, column) for name in (curved, flat))
            of_pair = paired(one, other)
            if not of_pair["common"]:
                continue
            delta, homophily = known.get(str(column), (nan, nan))
            found.append(
                Twins(
                    curved=spec.label(spec.report.rows, curved),
                    flat=spec.label(spec.report.rows, flat),
                    dataset=spec.label(spec.report.columns, column),
                    difference=of_pair["difference"],
                    pm=of_pair["difference_pm"],
                    delta=delta,
                    homophily=homophily,
                )
            )
    return found


def pairs_of(words: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of models, from `CURVED:FLAT`.

    Raises:
        UsageError: a word is no pair.
    """
    pairs = [(curved, flat) for curved, _, flat in (word.partition(":") for word in words)]
    for (curved, flat), word in zip(pairs, words, strict=True):
        if not curved or not flat:
            raise UsageError(f"{word} is no pair of models: say CURVED:FLAT, as in fpst:tokengt")
    return pairs


def leaderboard_text(board: Leaderboard, pairs: Sequence[Twins] = ()) -> str:
    """A leaderboard in Markdown, and below it the twins."""
    lines = [
        f"**{board.title}**, {len(board.scores)} models on {board.scores.shape[1]} datasets: "
        f"{', '.join(board.scores.columns)}.",
        "",
        "| model | mean rank | mean score | parameters | seconds a run |",
        "| --- | --- | --- | --- | --- |",
    ]
    for model in map(str, board.mean_ranks.index):
        cost = board.cost.loc[model]
        lines.append(
            f"| {model} | {board.mean_ranks[model]:.2f} | {board.scores.loc[model].mean():.2f} "
            f"| {cost['parameters']:,.0f} | {cost['seconds']:,.1f} |"
        )
    words = []
    if isfinite(board.critical_difference):
        words.append(
            "Mean ranks that differ by less than "
            f"{board.critical_difference:.2f} are not told apart (Nemenyi, 5 %)."
        )
    if isfinite(board.p):
        words.append(f"Friedman's test that all are alike: p = {board.p:.2g}.")
    if board.left_out:
        words.append(
            f"Left out, too few cells at the table's protocol: {', '.join(board.left_out)}."
        )
    lines += ["", " ".join(words)] if words else []
    return "\n".join([*lines, *_twins_text(pairs), ""])


def _twins_text(pairs: Sequence[Twins]) -> list[str]:
    if not pairs:
        return []
    rows = [
        f"| {pair.curved} less {pair.flat} | {pair.dataset} | {_number(pair.delta, '.2f')} "
        f"| {_number(pair.homophily, '.2f')} | {_number(pair.difference, '+.2f')} "
        f"{f'± {pair.pm:.2f}' if isfinite(pair.pm) else ''} |".replace("  |", " |")
        for pair in pairs
    ]
    head = "| curved less flat | dataset | mean delta | homophily | difference |"
    return ["", head, "| --- | --- | --- | --- | --- |", *rows]


def _number(value: float, form: str) -> str:
    return format(value, form).replace("-", "\N{MINUS SIGN}") if isfinite(value) else ""


def _own_runs(spec: TableSpec, results: Path) -> pd.DataFrame:
    """Finished runs at the table's own protocol, with their number of parameters."""
    runs = with_departures(spec, collect(results / spec.name, spec.report))
    return runs[(runs["status"] == "finished") & (runs["departure"] == "")]


def _by_seed(runs: pd.DataFrame, row: Coordinate, column: Coordinate) -> dict[int, float]:
    own = runs[(runs["row"] == row) & (runs["column"] == column)]
    return dict(zip(own["seed"], own["value"], strict=True))


def _facts(path: Path) -> Mapping[str, tuple[float, float]]:
    """Mean delta and homophily by dataset."""
    if not path.exists():
        return {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return {
                row["dataset"]: (_float(row["mean_delta"]), _float(row["homophily"]))
                for row in csv.DictReader(file)
            }
    except (OSError, KeyError, ValueError) as error:
        raise UsageError(f"{path} must be a file that `plot facts` has written: {error}") from None


def _float(text: str) -> float:
    return float(text) if text else np.nan
