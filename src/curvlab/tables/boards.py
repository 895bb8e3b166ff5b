"""All models of a task on all its datasets, from the runs of all tables.

A dataset has one split and one metric whichever table it is in. Where several tables have a model
on it, the cell with the best mean validation score counts: no test score chooses. Within a table a
dataset has one protocol: the table's own where two models have it, else the one that most models
have. Then its column says so and takes no part in any ranking. Several splits of one graph count
once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from math import isfinite, isnan, nan
from pathlib import Path

import pandas as pd

from curvlab.config.folder import choices
from curvlab.errors import UsageError
from curvlab.results.identity import canonical
from curvlab.statistics import critical_difference, decimals, friedman, paired_by_seed
from curvlab.tables.render import fixed, markdown_table, plus_minus
from curvlab.tables.runs import CELL, one_protocol_per_cell, table_runs
from curvlab.tables.spec import SCORE, Better, Coordinate, TableSpec, load_table, load_tables

AXES = ("model.name", "dataset.name")
"""Rows and columns of the tables that take part."""

FEW = 3
"""Cells of fewer runs are marked."""

NONE = "·"
GRAPHS = "graphs.csv"
"""Measures of graphs, next to the folder of all tables' results, as `plot facts` writes them."""


@dataclass(frozen=True)
class Leaderboard:
    """Models that all have a score on all datasets, by their mean rank.

    Source of ranks and critical difference: Demsar 2006, "Statistical comparisons of classifiers
    over multiple data sets", JMLR 7, Section 3.2.2.

    Attributes:
        title: what is ranked.
        scores: mean of each model (index) on each dataset.
        cost: `parameters` and `seconds` of a run by model, medians over the datasets.
        better: which scores are good.
    """

    title: str
    scores: pd.DataFrame
    cost: pd.DataFrame
    better: Better

    @property
    def mean_ranks(self) -> "pd.Series[float]":
        """By model, best first; 1 is the best."""
        ranks = self.scores.rank(ascending=self.better is Better.lower)
        return ranks.mean(axis=1).sort_values()

    @property
    def critical_difference(self) -> float:
        """Of two mean ranks, at 5 % (Nemenyi); NaN with fewer than two datasets."""
        return critical_difference(*self.scores.shape)

    def text(self) -> str:
        """The ranks in Markdown."""
        ranks, digits = self.mean_ranks, decimals(self.scores)
        names = ", ".join(self.scores.columns)
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
        if isfinite(p := friedman(self.scores.to_numpy())):
            words.append(f"Friedman's test that all are alike: p = {p:.2g}.")
        models, datasets = self.scores.shape
        title = f"**{self.title}**, {models} models on {datasets} datasets: {names}."
        return f"{title}\n\n{markdown_table(table)}" + (f"\n{' '.join(words)}\n" if words else "")


@dataclass(frozen=True)
class TaskBoard:
    """All models of a task, or of a table, on all datasets.

    Attributes:
        scores: means by label of model and dataset; NaN where there is no run.
        runs: how many each mean is over; 0 where there is none.
        beaten: by model, best first: the share of the other models of a dataset that it beats, a
            tie counted as half, as a mean over its datasets at their table's protocol (of several
            splits of one graph the mean counts); NaN on fewer than half of the graphs.
        ranked: labels of the datasets at their table's protocol.
        block: the models and datasets of the largest part without gaps; None where fewer than three
            models share two datasets.
        counterparts: curved models less flat ones, as `counterparts` returns them.
        better: which scores are good.
    """

    scores: pd.DataFrame
    runs: pd.DataFrame
    beaten: "pd.Series[float]"
    ranked: frozenset[str]
    block: Leaderboard | None
    counterparts: pd.DataFrame
    better: Better

    def text(self) -> str:
        """All scores in Markdown, the largest part without gaps, curved models less flat ones."""
        digits, scores = decimals(self.scores), self.scores
        best = scores.min() if self.better is Better.lower else scores.max()
        few = self.runs.map(lambda runs: "*" if 0 < runs < FEW else "")
        texts = scores.map(lambda score: fixed(score, digits) or NONE) + few
        first = scores.eq(best) & scores.columns.isin(list(self.ranked))
        texts = texts.mask(first, "**" + texts + "**").reindex(self.beaten.index)
        beats = self.beaten.map(lambda share: NONE if isnan(share) else f"{100 * share:.0f} %")
        texts.insert(0, "beats", beats)
        models, datasets = scores.shape
        return "\n".join(
            [
                f"{models} models on {datasets} datasets: {(self.runs > 0).sum().sum()} of "
                f"{scores.size} cells have runs, the others ({NONE}) have none.\n",
                markdown_table(texts.reset_index(names="model")),
                "*Beats*: the share of a dataset's other models with a worse mean, averaged over "
                "the model's datasets, of which several splits of one graph count once; columns "
                "of a shorter protocol, named in their head, do not count. Models on fewer than "
                "half of the graphs have no share and come last. "
                f"A star marks fewer than {FEW} runs.\n",
                *([self.block.text()] if self.block else []),
                *([] if self.counterparts.empty else [self._counterparts(digits)]),
            ]
        )

    def _counterparts(self, digits: int) -> str:
        rows = [
            {
                "curved less flat": f"{pair['curved']} less {pair['flat']}",
                "dataset": pair["dataset"],
                "mean delta": fixed(pair["mean_delta"], 2),
                "homophily": fixed(pair["homophily"], 2),
                "difference": plus_minus(pair["difference"], pair["pm"], digits, "+"),
            }
            for pair in self.counterparts.to_dict("records")
        ]
        return markdown_table(pd.DataFrame(rows))


def board(configs: Path, name: str, results: Path, pairs: Sequence[str] = ()) -> TaskBoard:
    """Put the runs of all tables together that have models as rows and datasets as columns.

    Args:
        configs: the folder of configurations.
        name: a task, or a table whose runs alone are meant.
        results: the folder of all tables' results.
        pairs: names of a curved model and of its flat counterpart, `CURVED:FLAT`, which are paired
            within a table. What the graphs look like is read from `graphs.csv` next to the results.

    Raises:
        UsageError: there is no finished run, or a pair is none.
    """
    is_task = name in choices(configs, "task")
    specs = load_tables(configs) if is_task else load_table(configs, name)[:1]
    taking: dict[str, TableSpec] = {}
    for spec in specs:
        if (spec.report.rows, spec.report.columns) == AXES:
            taking.setdefault(spec.name, spec)  # of panels of the same runs the first
    tables = {}
    for table, spec in taking.items():
        block = spec.report
        if is_task:
            block = replace(block, metric=SCORE, scale=1.0, second=None, where={"task.name": name})
        runs = table_runs(spec, results, block)
        runs = runs[runs["status"] == "finished"]
        if not runs.empty:
            tables[table] = one_protocol_per_column(runs).assign(table=table)
    if not tables:
        raise UsageError(f"no table has a finished run of {name} on a dataset")
    first = taking[next(iter(tables))]
    chosen = chosen_cells(pd.concat(tables.values()))
    rows, columns = (_labels(list(taking.values()), chosen, axis) for axis in (0, 1))
    deviating = chosen[chosen["deviation"] != ""].groupby("column")["deviation"].first()
    for column in deviating.index:
        columns[column] += f" ({deviating[column].partition(' where ')[0]})"
    values = chosen.groupby(CELL)["value"]
    means = values.mean().unstack().reindex(index=list(rows), columns=list(columns))
    counts = values.count().unstack().reindex_like(means).fillna(0).astype(int)
    ranked, of_graph = means.drop(columns=deviating.index), graphs(chosen)
    better, full = first.report.better, largest_block(ranked, of_graph)
    title = first.report.title
    if is_task:
        title = f"{name.replace('_', ' ').capitalize()}, all models that share these datasets"
    leaders = None
    if full is not None:
        models = chosen[chosen["column"].isin(full.columns)].groupby("row")
        cost = models[["parameters", "seconds"]].median().reindex(full.index).rename(index=rows)
        leaders = Leaderboard(title, full.rename(index=rows, columns=columns), cost, better)
    beaten = _beaten(ranked, better, of_graph).rename(rows)
    return TaskBoard(
        scores=means.rename(index=rows, columns=columns),
        runs=counts.rename(index=rows, columns=columns),
        beaten=beaten.sort_values(ascending=False, kind="stable"),
        ranked=frozenset(columns[column] for column in ranked.columns),
        block=leaders,
        counterparts=counterparts(list(tables.values()), (rows, columns), results, pairs),
        better=better,
    )


def one_protocol_per_column(runs: pd.DataFrame) -> pd.DataFrame:
    """Of each dataset the runs of one protocol.

    Args:
        runs: the finished ones of a table, with `deviation`.
    """
    kept = []
    for _, column in runs.groupby("column", sort=False):
        models = column.groupby("deviation", sort=False)["row"].nunique()
        own = "" in models and (models[""] > 1 or len(models) == 1)
        kept.append(column[column["deviation"] == ("" if own else models.idxmax())])
    return pd.concat(kept)


def chosen_cells(runs: pd.DataFrame) -> pd.DataFrame:
    """Of each model on each dataset the runs of the table where validation is best.

    Without a validation score it is the first table.

    Args:
        runs: of several tables: `table`, `row`, `column`, `val`.
    """
    val = runs.groupby([*CELL, "table"], sort=False)["val"].mean().reset_index()
    best = val.sort_values("val", ascending=False, kind="stable", na_position="last")
    return runs.merge(best.drop_duplicates(CELL)[[*CELL, "table"]])


def largest_block(scores: pd.DataFrame, of_graph: "pd.Series[str]") -> pd.DataFrame | None:
    """The part without gaps that has the most cells, of at least three models on two datasets.

    Its datasets are those that some two models share, of the splits of one graph the first; its
    models are all that have these. None where there is no such part.

    Args:
        scores: models as rows, datasets as columns, NaN where there is none.
        of_graph: what graph each dataset is of, see `graphs`.
    """
    present = scores.notna()
    best: pd.DataFrame | None = None
    for one, other in combinations_with_replacement(present.index, 2):
        shared = present.columns[present.loc[one] & present.loc[other]]
        shared = shared[~of_graph[shared].duplicated()]
        part = scores.loc[present[shared].all(axis=1), shared]
        if len(part) > 2 and len(shared) > 1 and (best is None or part.size > best.size):
            best = part
    return best


def graphs(runs: pd.DataFrame) -> "pd.Series[str]":
    """The graph of each column; two splits of one data set have the same one."""
    first = runs.drop_duplicates("column").set_index("column")
    names = []
    for config, made in zip(first["config"], first["built"], strict=True):
        data = config.get("dataset") or {}
        source = {k: v for k, v in made.items() if k.startswith("dataset.source")}
        folder = (data.get("source") or {}).get("folder")
        names.append(canonical([folder, source or data.get("name")]))
    return pd.Series(names, first.index)


def _beaten(means: pd.DataFrame, better: Better, of_graph: "pd.Series[str]") -> "pd.Series[float]":
    ranks = means.rank(ascending=better is Better.lower)  # 1 is the best, ties share
    counts = means.notna().sum()
    shares = (counts - ranks) / (counts - 1).replace(0, nan)
    by_graph = shares.T.groupby(of_graph[shares.columns].to_numpy()).mean()
    return by_graph.mean().where(2 * by_graph.notna().sum() >= len(by_graph))


def _labels(specs: Sequence[TableSpec], runs: pd.DataFrame, axis: int) -> dict[Coordinate, str]:
    """Labels of models or data sets, in the order of the tables."""
    present = set(runs[CELL[axis]])
    planned = [v for spec in specs for v in (spec.planned_columns if axis else spec.planned_rows)]
    ordered = [*planned, *sorted(present - set(planned), key=str)]
    found = {v: specs[0].label(AXES[axis], v) for v in dict.fromkeys(ordered) if v in present}
    first = {label: value for value, label in reversed(found.items())}
    return {v: label if first[label] == v else f"{label} ({v})" for v, label in found.items()}


def counterparts(
    tables: Sequence[pd.DataFrame],
    labels: tuple[Mapping[Coordinate, str], Mapping[Coordinate, str]],
    results: Path,
    pairs: Iterable[str],
) -> pd.DataFrame:
    """Each curved model less its flat one, within the first table that has both on a dataset.

    Args:
        tables: finished runs of each.
        labels: of the rows and of the columns, in the order in which these come.
        results: the folder of all tables' results, next to which `graphs.csv` may be.
        pairs: `CURVED:FLAT`.

    Returns:
        Labels `curved`, `flat` and `dataset`, mean `difference` of the scores over common seeds,
        `pm` (half of its 95 % interval), and of the graph `mean_delta` (of Gromov's delta over
        quadruples of nodes) and `homophily` (share of edges within a class), NaN where not known.

    Raises:
        UsageError: a pair is none, or has a model without runs.
    """
    path, measures = results.resolve().parent / GRAPHS, ["mean_delta", "homophily"]
    known = pd.DataFrame(columns=measures)
    if path.is_file():
        try:
            known = pd.read_csv(path, index_col="dataset")[measures]
        except (OSError, KeyError, ValueError) as error:
            raise UsageError(f"{path} must be what `plot facts` writes: {error}") from None
    found = []
    for word in pairs:
        curved, _, flat = word.partition(":")
        if not curved or not flat:
            raise UsageError(f"{word} is no pair of models: say CURVED:FLAT, as in fpst:tokengt")
        if missing := [name for name in (curved, flat) if name not in labels[0]]:
            raise UsageError(
                f"{word}: no run of {missing[0]}, but of {', '.join(map(str, labels[0]))}"
            )
        for column, dataset in labels[1].items():
            sides = (
                tuple(by_seed(runs, name, column) for name in (curved, flat)) for runs in tables
            )
            common = next((pair for pair in sides if pair[0].keys() & pair[1].keys()), None)
            if common is None:
                continue
            paired = paired_by_seed(*common)
            graph = known.reindex([str(column)]).astype(float).iloc[0]
            names = labels[0][curved], labels[0][flat], dataset
            found.append((*names, paired.mean, paired.pm, *graph))
    columns = ["curved", "flat", "dataset", "difference", "pm", *measures]
    return pd.DataFrame(found, columns=columns)


def by_seed(runs: pd.DataFrame, row: Coordinate, column: Coordinate) -> dict[int, float]:
    """Values of a cell by seed."""
    own = runs[(runs["row"].astype(str) == str(row)) & (runs["column"].astype(str) == str(column))]
    return dict(zip(own["seed"], own["value"], strict=True))


def difference(
    spec: TableSpec, results: Path, cell: tuple[str, str], other: tuple[str, str]
) -> str:
    """The mean of cell - other over the seeds that both have, with its 95 % interval.

    Args:
        spec: the table.
        results: the folder of all tables' results.
        cell: its row and column, as the report names them.
        other: those of the other cell.

    Raises:
        UsageError: they share fewer than two seeds.
    """
    runs, _ = one_protocol_per_cell(table_runs(spec, results))
    finished = runs[runs["status"] == "finished"]
    found = paired_by_seed(by_seed(finished, *cell), by_seed(finished, *other))
    if found.pairs < 2:
        both = " and ".join(", ".join(names) for names in (cell, other))
        raise UsageError(f"{spec.name}: {both} share {found.pairs} seeds; run more")
    if isnan(found.pm):
        return f"{found.mean:+.1f} with each of {found.pairs} seeds"
    return f"{found.mean:+.1f} ({found.mean - found.pm:+.1f} to {found.mean + found.pm:+.1f})"
