"""All models of a task on all its datasets, from the runs of all tables.

A dataset has one split and one metric whichever table it stands in. Where several tables have a
model on it, the cell with the best mean validation score counts: no test score chooses. Within a
table a dataset has one protocol: the table's own where two models have it, else the one that most
models have. Then its column says so and takes no part in any ranking. Several splits of one graph
count once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from math import isnan, nan
from pathlib import Path

import numpy as np
import pandas as pd

from curvlab.errors import UsageError
from curvlab.statistics import decimals
from curvlab.tables.document import markdown_table
from curvlab.tables.leaderboard import Leaderboard, finished_runs, graphs, ranked
from curvlab.tables.spec import SCORE, Better, Coordinate, TableSpec
from curvlab.tables.twins import Twins, twins_in

AXES = ("model.name", "dataset.name")
"""Rows and columns of the tables that take part."""

FEW = 3
"""Cells of fewer runs are marked."""

NONE = "·"


@dataclass(frozen=True)
class TaskBoard:
    """All models of a task on all its datasets.

    Attributes:
        task: its name.
        scores: means by label of model and dataset; NaN where there is no run at the protocol of
            any table.
        runs: how many each mean is over; 0 where there is none.
        beaten: by model, best first: the share of the other models of a dataset that it beats, a
            tie counted as half, as a mean over its datasets at their table's protocol (of several
            splits of one graph the mean counts); NaN for a model that has none.
        judged: labels of the datasets at their table's protocol.
        block: the models and datasets of the largest part without gaps, ranked; None where fewer
            than three models share two datasets.
        twins: curved models less their flat twins.
        better: which scores are good.
    """

    task: str
    scores: pd.DataFrame
    runs: pd.DataFrame
    beaten: "pd.Series[float]"
    judged: frozenset[str]
    block: Leaderboard | None
    twins: list[Twins]
    better: Better


def task_board(
    task: str, specs: Iterable[TableSpec], results: Path, pairs: Sequence[tuple[str, str]] = ()
) -> TaskBoard:
    """Put the runs of all tables together that have models as rows and datasets as columns.

    Args:
        task: name of the task.
        specs: the tables.
        results: the folder of all tables' results.
        pairs: names of a curved model and of its flat twin, to be paired within a table.

    Raises:
        UsageError: there is no finished run of that task.
    """
    taking: dict[str, TableSpec] = {}
    for spec in specs:
        if (spec.report.rows, spec.report.columns) == AXES:
            taking.setdefault(spec.name, spec)  # of panels of the same runs the first
    tables = {}
    for name, spec in taking.items():
        whole = replace(
            spec.report, metric=SCORE, scale=1.0, second=None, where={"task.name": task}
        )
        runs = finished_runs(spec, results, whole)
        if not runs.empty:
            tables[name] = one_protocol_per_column(runs)
    if not tables:
        raise UsageError(f"no table has a finished run of task={task} on a dataset")
    spec = taking[next(iter(tables))]
    chosen = chosen_cells(pd.concat([runs.assign(table=name) for name, runs in tables.items()]))
    rows, columns = _labels(taking.values(), chosen, 0), _labels(taking.values(), chosen, 1)
    departing = chosen[chosen["departure"] != ""].groupby("column")["departure"].first()
    columns |= {
        c: f"{columns[c]} ({departing[c].partition(' where ')[0]})" for c in departing.index
    }
    cells = chosen.groupby(["row", "column"])["value"]
    means = cells.mean().unstack().reindex(index=list(rows), columns=list(columns))
    counts = cells.count().unstack().reindex(index=list(rows), columns=list(columns))
    better = spec.report.better
    judged = means.drop(columns=departing.index)
    of_graph = graphs(chosen)
    full, beaten = largest_block(judged, of_graph), _beaten(judged, better, of_graph)
    title = f"{task.replace('_', ' ').capitalize()}, all models that share these datasets"
    return TaskBoard(
        task=task,
        scores=means.rename(index=rows, columns=columns),
        runs=counts.fillna(0).astype(int).rename(index=rows, columns=columns),
        beaten=beaten.rename(rows).sort_values(ascending=False, kind="stable"),
        judged=frozenset(columns[column] for column in judged.columns),
        block=None if full is None else ranked(full, chosen, (rows, columns), title, better),
        twins=twins_in(list(tables.values()), (rows, columns), results, pairs),
        better=better,
    )


def one_protocol_per_column(runs: pd.DataFrame) -> pd.DataFrame:
    """Of each dataset the runs of one protocol.

    Args:
        runs: of a table, as `finished_runs` returns them.
    """
    kept = []
    for _, column in runs.groupby("column", sort=False):
        models = column.groupby("departure", sort=False)["row"].nunique()
        own = models.get("", 0) > 1 or len(models) == 1
        kept.append(
            column[column["departure"] == ("" if own and "" in models else models.idxmax())]
        )
    return pd.concat(kept)


def chosen_cells(runs: pd.DataFrame) -> pd.DataFrame:
    """Of each model on each dataset the runs of the table where validation is best.

    Without a validation score it is the first table.

    Args:
        runs: of several tables: `table`, `row`, `column`, `val`.
    """
    val = runs.groupby(["row", "column", "table"], sort=False)["val"].mean().reset_index()
    best = val.sort_values("val", ascending=False, kind="stable", na_position="last")
    kept = best.drop_duplicates(["row", "column"])[["row", "column", "table"]]
    return runs.merge(kept)


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


def task_board_text(board: TaskBoard) -> str:
    """All scores in Markdown: models by the share of others that they beat, a column a dataset."""
    form = f".{decimals(board.scores)}f"
    scores, runs = board.scores.to_numpy(float), board.runs.to_numpy()
    best = np.nanmin(scores, axis=0) if board.better is Better.lower else np.nanmax(scores, axis=0)
    best[[name not in board.judged for name in board.scores.columns]] = nan
    text = np.where(np.isnan(scores), NONE, np.vectorize(lambda score: f"{score:{form}}")(scores))
    text = np.char.add(text, np.where((runs > 0) & (runs < FEW), "*", ""))
    text = np.where(scores == best, np.char.add(np.char.add("**", text), "**"), text)
    cells = dict(zip(map(str, board.scores.index), text.tolist(), strict=True))
    lines = [
        f"{len(scores)} models on {len(best)} datasets: {(runs > 0).sum()} of {scores.size} cells "
        f"have runs, the others ({NONE}) have none.",
        "",
    ]
    rows = []
    for model, share in board.beaten.items():
        beats = NONE if isnan(share) else f"{100 * share:.0f} %"
        rows.append([str(model), beats, *cells[str(model)]])
    lines.append(markdown_table(["model", "beats", *board.scores.columns], rows))
    words = (
        "*Beats*: the share of a dataset's other models with a worse mean, averaged over the "
        "model's datasets, of which several splits of one graph count once; columns of a shorter "
        "protocol, named in their head, do not count. "
        f"A star marks fewer than {FEW} runs."
    )
    return "\n".join([*lines, words, ""])


def _labels(specs: Iterable[TableSpec], runs: pd.DataFrame, axis: int) -> dict[Coordinate, str]:
    """What models or datasets are called, in the order of the tables."""
    present = set(runs["column" if axis else "row"])
    ordered = list(specs)
    planned = [v for spec in ordered for v in (spec.planned_columns if axis else spec.planned_rows)]
    others = sorted(present - set(planned), key=str)
    names = [value for value in dict.fromkeys([*planned, *others]) if value in present]
    found = {value: ordered[0].label(AXES[axis], value) for value in names}
    first = {label: value for value, label in reversed(found.items())}
    return {v: label if first[label] == v else f"{label} ({v})" for v, label in found.items()}


def _beaten(means: pd.DataFrame, better: Better, of_graph: "pd.Series[str]") -> "pd.Series[float]":
    ranks = means.rank(ascending=better is Better.lower)  # 1 is the best, ties share
    counts = means.notna().sum()
    shares = (counts - ranks) / (counts - 1).replace(0, nan)
    return shares.T.groupby(of_graph[shares.columns].to_numpy()).mean().mean()
