"""Curved models less their flat twins, by graph."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path

import pandas as pd

from curvlab.errors import UsageError
from curvlab.statistics import paired_by_seed
from curvlab.tables.document import markdown_table
from curvlab.tables.leaderboard import own_runs
from curvlab.tables.spec import Coordinate, TableSpec

FACTS = "graphs.csv"
"""What graphs look like, beside the folder of all tables' results."""


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
    for name in (name for pair in pairs for name in pair):
        if name not in spec.planned_rows:
            rows = ", ".join(map(str, spec.planned_rows))
            raise UsageError(f"{spec.name} has no row {name}: its rows are {rows}")
    labels = (
        {row: spec.label(spec.report.rows, row) for row in spec.planned_rows},
        {column: spec.label(spec.report.columns, column) for column in spec.planned_columns},
    )
    return twins_in([own_runs(spec, results)], labels, results, pairs)


def twins_in(
    tables: Sequence[pd.DataFrame],
    labels: tuple[Mapping[Coordinate, str], Mapping[Coordinate, str]],
    results: Path,
    pairs: Iterable[tuple[str, str]],
) -> list[Twins]:
    """Each curved model less its flat twin, within the first table that has both on a dataset.

    Args:
        tables: runs of each, as `own_runs` returns them.
        labels: of the rows and of the columns, in the order in which these come.
        results: the folder of all tables' results, beside which `graphs.csv` may lie.
        pairs: names of a curved model and of its flat twin.
    """
    known = _facts(results.resolve().parent / FACTS)
    found = []
    for curved, flat in pairs:
        for column, dataset in labels[1].items():
            sides = (
                tuple(_by_seed(runs, name, column) for name in (curved, flat)) for runs in tables
            )
            common = next((pair for pair in sides if pair[0].keys() & pair[1].keys()), None)
            if common is None:
                continue
            of_pair = paired_by_seed(*common)
            delta, homophily = known.get(str(column), (nan, nan))
            found.append(
                Twins(
                    curved=labels[0][curved],
                    flat=labels[0][flat],
                    dataset=dataset,
                    difference=of_pair.mean,
                    pm=of_pair.pm,
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


def twins_text(pairs: Sequence[Twins], decimals: int = 2) -> str:
    """Twins as a table in Markdown; nothing of none."""
    if not pairs:
        return ""
    rows = [
        (
            f"{pair.curved} less {pair.flat}",
            pair.dataset,
            _number(pair.delta, ".2f"),
            _number(pair.homophily, ".2f"),
            _number(pair.difference, f"+.{decimals}f")
            + (f" ± {pair.pm:.{decimals}f}" if isfinite(pair.pm) else ""),
        )
        for pair in pairs
    ]
    head = ("curved less flat", "dataset", "mean delta", "homophily", "difference")
    return markdown_table(head, rows)


def _number(value: float, form: str) -> str:
    return format(value, form).replace("-", "\N{MINUS SIGN}") if isfinite(value) else ""


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
    return float(text) if text else nan
