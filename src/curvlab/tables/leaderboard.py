"""All models of a table over its datasets: mean ranks and cost.

One table is one protocol: the same splits, search budget and seeds for every model. Cells of
another protocol, columns that a model lacks, and further splits of a data set are left out and
named: the tests take data sets to be independent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

import pandas as pd

from curvlab.errors import UsageError
from curvlab.results.identity import canonical
from curvlab.statistics import critical_difference, decimals, friedman
from curvlab.tables.collect import collect
from curvlab.tables.departures import with_departures
from curvlab.tables.document import markdown_table
from curvlab.tables.spec import Better, Coordinate, ReportBlock, TableSpec

LEAST_SHARE = 0.5
"""Of the columns with any number, what a model needs to be ranked."""


@dataclass(frozen=True)
class Leaderboard:
    """Models of one table by their mean rank.

    Attributes:
        title: of the table.
        scores: mean of each model (index) on each dataset that all of them have.
        mean_ranks: by model, best first; 1 is the best.
        critical_difference: of two mean ranks, at 5 % (Nemenyi); NaN with fewer than two datasets.
        p: of Friedman's test that all models are alike; see `friedman`.
        cost: `parameters` and `seconds` of a run by model, medians over the datasets.
        left_out: labels of the models and of the datasets that do not take part.
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
    runs = own_runs(spec, results)
    means = runs.groupby(["row", "column"])["value"].mean().unstack()
    means = means.reindex([row for row in spec.planned_rows if row in means.index])
    means = means[[column for column in spec.planned_columns if column in means.columns]]
    ranked_rows = means[means.notna().mean(axis=1) >= LEAST_SHARE]
    complete = ranked_rows.dropna(axis=1)
    if len(complete) < 2 or complete.empty:
        raise UsageError(
            f"no two models of {spec.name} have finished runs on the same dataset: nothing to rank"
        )
    rows = {row: spec.label(spec.report.rows, row) for row in means.index}
    complete = complete.loc[:, ~graphs(runs)[complete.columns].duplicated()]
    columns: dict[Coordinate, str] = {c: spec.label(spec.report.columns, c) for c in means.columns}
    left_out = [
        *(rows[row] for row in means.index if row not in complete.index),
        *(columns[column] for column in means.columns if column not in complete.columns),
    ]
    title, better = spec.report.title, spec.report.better
    return ranked(complete, runs, (rows, columns), title, better, left_out)


def ranked(
    scores: pd.DataFrame,
    runs: pd.DataFrame,
    labels: tuple[Mapping[Coordinate, str], Mapping[Coordinate, str]],
    title: str,
    better: Better,
    left_out: Sequence[str] = (),
) -> Leaderboard:
    """Rank models that all have a score on all datasets.

    Args:
        scores: means, models as rows and datasets as columns.
        runs: with `row`, `column`, `parameters`, `seconds`: those of the scores, perhaps others.
        labels: of the rows and of the columns.
        title: what is ranked.
        better: which scores are good.
        left_out: labels of what takes no part.
    """
    ranks = scores.rank(ascending=better is Better.lower)
    cost = runs[runs["column"].isin(scores.columns)].groupby("row")[["parameters", "seconds"]]
    rows, columns = labels
    return Leaderboard(
        title=title,
        scores=scores.rename(index=rows, columns=columns),
        mean_ranks=ranks.mean(axis=1).rename(rows).sort_values(),
        critical_difference=critical_difference(*scores.shape),
        p=friedman(scores.to_numpy()),
        cost=cost.median().reindex(scores.index).rename(index=rows),
        left_out=tuple(left_out),
        better=better,
    )


def graphs(runs: pd.DataFrame) -> "pd.Series[str]":
    """What graph each column is of, by column: the same text for two splits of one data set.

    Args:
        runs: with `column`, `config` and `built`.
    """
    first = runs.drop_duplicates("column").set_index("column")
    names = []
    for config, built in zip(first["config"], first["built"], strict=True):
        data, made = (part.get("dataset") or {} for part in (config, built))
        source = data.get("source") or {}
        names.append(canonical([source.get("folder"), made.get("source") or data.get("name")]))
    return pd.Series(names, first.index)


def leaderboard_text(board: Leaderboard) -> str:
    """A leaderboard in Markdown."""
    digits = decimals(board.scores)
    title = (
        f"**{board.title}**, {len(board.scores)} models on {board.scores.shape[1]} datasets: "
        f"{', '.join(board.scores.columns)}."
    )
    table = pd.DataFrame(
        {
            "model": board.mean_ranks.index.astype(str),
            "mean rank": board.mean_ranks.map("{:.2f}".format),
            "mean score": board.scores.mean(axis=1).map(f"{{:.{digits}f}}".format),
            "parameters": board.cost["parameters"].map("{:,.0f}".format),
            "seconds a run": board.cost["seconds"].map("{:,.1f}".format),
        },
        index=board.mean_ranks.index,
    )
    words = []
    if isfinite(board.critical_difference):
        words.append(
            "Mean ranks that differ by less than "
            f"{board.critical_difference:.2f} are not distinguishable (Nemenyi, 5 %)."
        )
    if isfinite(board.p):
        words.append(f"Friedman's test that all are alike: p = {board.p:.2g}.")
    if board.left_out:
        words.append(
            "Left out, with too few cells at the table's protocol or another split of a dataset "
            f"that is there: {', '.join(board.left_out)}."
        )
    text = "\n".join([title, "", markdown_table([*map(str, table)], table.to_numpy().tolist())])
    return f"{text}\n{' '.join(words)}\n" if words else text


def own_runs(spec: TableSpec, results: Path, report: ReportBlock | None = None) -> pd.DataFrame:
    """Finished runs at the table's own protocol.

    Args:
        spec: the table.
        results: the folder of all tables' results.
        report: says what a run's row, column and number are; the table's own if None.
    """
    runs = finished_runs(spec, results, report or spec.report)
    return runs[runs["departure"] == ""]


def finished_runs(spec: TableSpec, results: Path, report: ReportBlock) -> pd.DataFrame:
    """Finished runs, with how they depart from the table's protocol in `departure`."""
    runs = with_departures(spec, collect(results / spec.name, report), results)
    return runs[runs["status"] == "finished"]
