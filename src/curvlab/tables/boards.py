"""All models of a task on all its datasets, from the runs of all tables or of one.

If several tables have a cell, the table with the best mean validation score counts; no choice
depends on test scores. A column with another protocol than the table's is marked and not ranked.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from math import isfinite, isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from curvlab.config.folder import choices
from curvlab.errors import UsageError
from curvlab.results.identity import canonical
from curvlab.statistics import Draw, critical_difference, decimals, friedman, paired_by_seed
from curvlab.tables.render import decimal, markdown_table, plus_minus
from curvlab.tables.runs import CELL, one_protocol_per_cell, table_runs
from curvlab.tables.spec import SCORE, Coordinate, TableSpec, load_tables

AXES = ("model.name", "dataset.name")  # rows and columns of the tables that take part
FEWEST_RUNS = 3  # cells of fewer runs are marked
NO_RUN = "·"
GRAPHS = "graphs.csv"
"""Measures of graphs, next to the folder of all tables' results, as `plot facts` writes them."""

TAILS = ", tails"
BOTH_SIDES = ", both sides"
"""Ends of columns that are scored by the ranks of tails, or of heads and tails."""

TABLES_OWN = r" where the table's has [^,]+"
"""The part of a deviation that is about the table."""

Labels = dict[Coordinate, str]


@dataclass(frozen=True)
class Leaderboard:
    """Models that all have a `score` on all datasets, with the medians of their `cost`.

    Source of ranks and critical difference: Demsar 2006, "Statistical comparisons of classifiers
    over multiple data sets", JMLR 7, Section 3.2.2.
    """

    title: str
    scores: pd.DataFrame
    cost: pd.DataFrame

    @property
    def mean_ranks(self) -> "pd.Series[float]":
        """Mean ranks of the models, best first; 1 is the best."""
        return ranks_of(self.scores).mean(axis=1).sort_values(kind="stable")

    @property
    def critical_difference(self) -> float:
        """Critical difference of mean ranks at 5 % (Nemenyi); NaN with fewer than two datasets."""
        return critical_difference(*self.scores.shape)

    @property
    def leaders(self) -> str:
        """The models that are not distinguishable from the best, with the range of their ranks."""
        ranks = self.mean_ranks
        leading = ranks[ranks <= ranks.iloc[0] + self.critical_difference]
        names = ", ".join(map(str, leading.index))
        return (
            f"{len(leading)} of {len(ranks)} models ({names}; mean ranks "
            f"{leading.iloc[0]:.2f} to {leading.iloc[-1]:.2f} on {self.scores.shape[1]} graphs)"
        )

    def text(self) -> str:
        """The ranks in Markdown."""
        ranks = self.mean_ranks
        digits = decimals(self.scores)
        table = pd.DataFrame(
            {
                "model": ranks.index.astype(str),
                "mean rank": ranks.map("{:.2f}".format),
                "mean score": self.scores.mean(axis=1).map(f"{{:.{digits}f}}".format),
                "parameters": self.cost["parameters"].map("{:,.0f}".format),
                "seconds a run": self.cost["seconds"].map("{:,.1f}".format),
            },
            index=ranks.index,
        )
        words = []
        if isfinite(self.critical_difference):
            words.append(
                f"Mean ranks that differ by less than {self.critical_difference:.2f} are not "
                "distinguishable (Nemenyi, 5 %)."
            )
        p = friedman(rounded(self.scores).to_numpy())
        if isfinite(p):
            words.append(f"Friedman's test that all are alike: p = {p:.2g}.")
        models, datasets = self.scores.shape
        names = ", ".join(self.scores.columns)
        title = f"**{self.title}**, {models} models on {datasets} datasets: {names}."
        text = f"{title}\n\n{markdown_table(table)}"
        if words:
            text += f"\n{' '.join(words)}\n"
        return text


@dataclass(frozen=True)
class TaskBoard:
    """All models of a task on all datasets, by their labels.

    `beaten` is the share of other models that a model beats; `block` is the largest gap-free part.
    """

    scores: pd.DataFrame
    runs: pd.DataFrame
    beaten: "pd.Series[float]"
    ranked: frozenset[str]
    block: Leaderboard | None
    counterparts: pd.DataFrame

    def text(self) -> str:
        """All scores, the largest gap-free part, and curved models minus flat ones, in Markdown."""
        digits = decimals(self.scores)
        scores = self.scores
        stars = self.runs.map(lambda runs: "*" if 0 < runs < FEWEST_RUNS else "")
        texts = scores.map(lambda score: decimal(score, digits) or NO_RUN) + stars
        first = scores.eq(scores.max()) & scores.columns.isin(list(self.ranked))
        texts = texts.mask(first, "**" + texts + "**").reindex(self.beaten.index)
        beats = self.beaten.map(lambda share: NO_RUN if isnan(share) else f"{100 * share:.0f} %")
        texts.insert(0, "beats", beats)
        models, datasets = scores.shape
        parts = [
            f"{models} models on {datasets} datasets: {(self.runs > 0).sum().sum()} of "
            f"{scores.size} cells have runs; {NO_RUN} marks cells without runs.\n",
            markdown_table(texts.reset_index(names="model")),
            "*Beats*: the share of a dataset's other models with a worse mean, averaged over "
            "the model's datasets, of which several splits of one graph count once; columns "
            "of a shorter protocol, named in their head, do not count. Models on fewer than "
            "half of the graphs have no share and come last. "
            f"A star marks fewer than {FEWEST_RUNS} runs.\n",
        ]
        if self.block:
            parts.append(self.block.text())
        if not self.counterparts.empty:
            pairs = self.counterparts
            differences = zip(pairs["difference"], pairs["pm"], strict=True)
            rows = {
                "curved minus flat": pairs["curved"] + " minus " + pairs["flat"],
                "dataset": pairs["dataset"],
                "mean delta": [decimal(value, 2) for value in pairs["mean_delta"]],
                "homophily": [decimal(value, 2) for value in pairs["homophily"]],
                "difference": [plus_minus(mean, pm, digits, "+") for mean, pm in differences],
            }
            parts.append(markdown_table(pd.DataFrame(rows)))
        return "\n".join(parts)


@dataclass(frozen=True)
class ScoredTable:
    """A table of models by datasets with its finished runs of all tasks, by their scores."""

    spec: TableSpec
    runs: pd.DataFrame

    def of_task(self, task: str) -> pd.DataFrame:
        """The runs of a task."""
        names = [(config.get("task") or {}).get("name") for config in self.runs["config"]]
        return self.runs[[name == task for name in names]]


def scored_tables(configs: Path, results: Path, names: Sequence[str] = ()) -> list[ScoredTable]:
    """Read the tables of these names, or all, that have models by datasets."""
    specs: dict[str, TableSpec] = {}
    for spec in load_tables(configs, names):
        if (spec.report.rows, spec.report.columns) == AXES:
            specs.setdefault(spec.name, spec)  # the first of the panels with the same runs
    tables = []
    for spec in specs.values():
        block = replace(spec.report, metric=SCORE, scale=1.0, second=None, where={})
        runs = table_runs(spec, results, block)
        tables.append(ScoredTable(spec, runs[runs["status"] == "finished"]))
    return tables


def board(
    configs: Path,
    subject: str,
    results: Path,
    pairs: Sequence[str] = (),
    scored: Sequence[ScoredTable] | None = None,
) -> TaskBoard:
    """Combine the runs of a task from all tables of models by datasets, or those of one table.

    Args:
        configs: Folder of configurations.
        subject: Name of the task, or of the table.
        results: Folder of all tables' results.
        pairs: Pairs `CURVED:FLAT` of models to compare.
        scored: Result of `scored_tables`, if it is used for several tasks.
    """
    is_table = "/" in subject
    tasks = choices(configs, "task")
    if not is_table and subject not in tasks:
        raise UsageError(f"{subject} is not a task: there is {', '.join(tasks)}")
    if scored is None:
        scored = scored_tables(configs, results, [subject] if is_table else [])
    if is_table:
        scored = [table for table in scored if table.spec.name == subject]
    specs = [table.spec for table in scored]
    tables = {}
    for table in scored:
        runs = table.runs if is_table else table.of_task(subject)
        if not runs.empty:
            name = table.spec.name
            tables[name] = one_protocol_per_column(runs).assign(table=name)
    if not tables:
        raise UsageError(f"no table has a finished run of {subject} on a dataset")
    tables = one_metric_per_column(tables)
    every = pd.concat(tables.values())  # the best table by validation counts
    val = every.groupby([*CELL, "table"], sort=False)["val"].mean().reset_index()
    best = val.sort_values("val", ascending=False, kind="stable", na_position="last")
    best_runs = every.merge(best.drop_duplicates(CELL)[[*CELL, "table"]])
    rows = _labels(specs, best_runs, axis=0)
    columns = _labels(specs, best_runs, axis=1)
    deviating = best_runs[best_runs["deviation"] != ""].groupby("column")["deviation"].first()
    for column in deviating.index:
        columns[column] += f" ({re.sub(TABLES_OWN, '', deviating[column])})"
    labelled = best_runs.assign(
        row=best_runs["row"].map(rows), column=best_runs["column"].map(columns)
    )
    splits = labelled["drawn"].map(lambda draw: draw.split)
    by_split = labelled.groupby([*CELL, splits])["value"].mean()
    means = by_split.groupby(CELL).mean().unstack()
    means = means.reindex(list(rows.values()), columns=list(columns.values()))
    counts = labelled.groupby(CELL)["value"].count().unstack()
    counts = counts.reindex_like(means).fillna(0).astype(int)
    ranked = means.drop(columns=[columns[column] for column in deviating.index])
    of_graph = graphs(labelled)
    leaders = None
    full = largest_block(ranked, of_graph)
    if full is not None:
        models = labelled[labelled["column"].isin(full.columns)].groupby("row")
        cost = models[["parameters", "seconds"]].median().reindex(full.index)
        name = specs[0].report.title if is_table else subject.replace("_", " ").capitalize()
        title = f"{name}, all models that share these datasets"
        leaders = Leaderboard(title, full, cost)
    return TaskBoard(
        scores=means,
        runs=counts,
        beaten=_beaten(ranked, of_graph).sort_values(ascending=False, kind="stable"),
        ranked=frozenset(ranked.columns),
        block=leaders,
        counterparts=counterparts(list(tables.values()), (rows, columns), results, pairs),
    )


def one_protocol_per_column(runs: pd.DataFrame) -> pd.DataFrame:
    """Select the finished runs of one protocol per dataset."""
    parts = []
    for _, column in runs.groupby("column", sort=False):
        models = column.groupby("deviation", sort=False)["row"].nunique()
        at_protocol = "" in models and (models[""] > 1 or len(models) == 1)
        deviation = "" if at_protocol else models.idxmax()
        parts.append(column[column["deviation"] == deviation])
    return pd.concat(parts)


def one_metric_per_column(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Separate the columns of data sets that some tables score by tails and some by both sides."""
    sides_of_column: dict[Coordinate, set[str]] = {}
    sides = {}
    for name, runs in tables.items():
        sides[name] = runs["config"].map(_sides)
        for column, side in zip(runs["column"], sides[name], strict=True):
            sides_of_column.setdefault(column, set()).add(side)
    mixed = {column for column, found in sides_of_column.items() if len(found) > 1}
    return {
        name: runs.assign(
            column=[
                f"{column}{side}" if column in mixed else column
                for column, side in zip(runs["column"], sides[name], strict=True)
            ]
        )
        for name, runs in tables.items()
    }


def _sides(config: Mapping[str, Any]) -> str:
    """The end of a column's name by the sides of the test queries; empty for other tasks."""
    both = (config.get("task") or {}).get("inverse_relations")
    if both is None:
        return ""
    return BOTH_SIDES if both else TAILS


def largest_block(scores: pd.DataFrame, of_graph: "pd.Series[str]") -> pd.DataFrame | None:
    """The largest gap-free block of cells with at least three models and two datasets."""
    present = scores.notna().to_numpy()
    names = of_graph[scores.columns].tolist()
    best: tuple[np.ndarray, np.ndarray] | None = None
    largest = 0
    for first, second in combinations_with_replacement(present, 2):
        shared = np.flatnonzero(first & second)
        shared = shared[~pd.Index([names[i] for i in shared]).duplicated()]
        models = np.flatnonzero(present[:, shared].all(axis=1))
        size = len(models) * len(shared)
        if len(models) > 2 and len(shared) > 1 and size > largest:
            best = (models, shared)
            largest = size
    return None if best is None else scores.iloc[best]


def graphs(runs: pd.DataFrame) -> "pd.Series[str]":
    """The graph of each column; all splits of a data set have the same graph."""
    names = {}
    for run in runs.drop_duplicates("column").to_dict("records"):
        data = run["config"].get("dataset") or {}
        source = {k: v for k, v in run["built"].items() if k.startswith("dataset.source")}
        folder = (data.get("source") or {}).get("folder")
        names[run["column"]] = canonical([folder, source or data.get("name")])
    return pd.Series(names)


def ranks_of(scores: pd.DataFrame) -> pd.DataFrame:
    """Ranks in each column; 1 is the best, and ties have their mean rank.

    Scores that differ by the rounding of single precision are tied.
    """
    return rounded(scores).rank(ascending=False)


def rounded(scores: pd.DataFrame) -> pd.DataFrame:
    """Scores to two decimals more than are printed."""
    return scores.round(decimals(scores) + 2)


def _beaten(means: pd.DataFrame, of_graph: "pd.Series[str]") -> "pd.Series[float]":
    ranks = ranks_of(means)
    counts = means.notna().sum()
    shares = (counts - ranks) / (counts - 1).replace(0, nan)
    by_graph = shares.T.groupby(of_graph[shares.columns].to_numpy()).mean()
    return by_graph.mean().where(2 * by_graph.notna().sum() >= len(by_graph))


def _labels(specs: Sequence[TableSpec], runs: pd.DataFrame, axis: int) -> Labels:
    """Labels of models or data sets, in the order of the tables."""
    present = set(runs[CELL[axis]])
    planned: list[Coordinate] = []
    for spec in specs:
        planned += spec.planned_columns if axis else spec.planned_rows
    ordered = [*planned, *sorted(present - set(planned), key=str)]
    labels = {v: _label(specs[0], AXES[axis], v) for v in dict.fromkeys(ordered) if v in present}
    first = {label: value for value, label in reversed(labels.items())}
    return {v: label if first[label] == v else f"{label} ({v})" for v, label in labels.items()}


def _label(spec: TableSpec, axis: str, value: Coordinate) -> str:
    for sides in (TAILS, BOTH_SIDES):
        if str(value).endswith(sides):
            return f"{spec.label(axis, str(value).removesuffix(sides))}{sides}"
    return spec.label(axis, value)


def counterparts(
    tables: Sequence[pd.DataFrame],
    labels: tuple[Labels, Labels],
    results: Path,
    pairs: Iterable[str],
) -> pd.DataFrame:
    """Each curved model minus its flat one on each dataset, by the first table with both."""
    path = results.resolve().parent / GRAPHS
    measures = ["mean_delta", "homophily"]
    measured = pd.DataFrame(columns=measures)
    if path.is_file():
        measured = pd.read_csv(path, index_col="dataset")[measures]
    rows = []
    scores = [seed_scores(runs) for runs in tables]
    for word in pairs:
        curved, _, flat = word.partition(":")
        if not curved or not flat:
            raise UsageError(f"{word} is not a pair of models: say CURVED:FLAT, as in fpst:tokengt")
        absent = [name for name in (curved, flat) if name not in labels[0]]
        if absent:
            raise UsageError(
                f"{word}: no run of {absent[0]}, but of {', '.join(map(str, labels[0]))}"
            )
        for column, dataset in labels[1].items():
            for of_table in scores:
                curved_scores = of_table.get((curved, str(column)), {})
                flat_scores = of_table.get((flat, str(column)), {})
                paired = paired_by_seed(curved_scores, flat_scores)
                if paired.pairs:
                    graph = measured.reindex([str(column)]).astype(float).iloc[0]
                    names = labels[0][curved], labels[0][flat], dataset
                    rows.append((*names, paired.mean, paired.pm, *graph))
                    break
    columns = ["curved", "flat", "dataset", "difference", "pm", *measures]
    return pd.DataFrame(rows, columns=columns)


def seed_scores(runs: pd.DataFrame) -> dict[tuple[str, str], dict[Draw, float]]:
    """Values by seed and split, for each cell by the names of its row and column."""
    scores: dict[tuple[str, str], dict[Draw, float]] = {}
    values = runs[[*CELL, "drawn", "value"]].itertuples(index=False, name=None)
    for row, column, draw, value in values:
        scores.setdefault((str(row), str(column)), {})[draw] = value
    return scores


def difference(
    spec: TableSpec, results: Path, cell: tuple[str, str], baseline: tuple[str, str]
) -> str:
    """The mean of cell - baseline over their common seeds, with its 95 % interval."""
    runs, _ = one_protocol_per_cell(table_runs(spec, results))
    scores = seed_scores(runs[runs["status"] == "finished"])
    ours = scores.get(cell, {})
    theirs = scores.get(baseline, {})
    paired = paired_by_seed(ours, theirs)
    if paired.pairs < 2:
        names_of_cells = " and ".join(", ".join(names) for names in (cell, baseline))
        raise UsageError(f"{spec.name}: {names_of_cells} share {paired.pairs} seeds; run more")
    digits = decimals([*ours.values(), *theirs.values()]) - 1
    mean = f"{paired.mean:+.{digits}f}"
    if isnan(paired.pm):
        return f"{mean} with each of {paired.pairs} seeds"
    low = paired.mean - paired.pm
    high = paired.mean + paired.pm
    return f"{mean} ({low:+.{digits}f} to {high:+.{digits}f})"
