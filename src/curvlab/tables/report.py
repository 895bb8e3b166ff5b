"""A table as data: its cells, and the sentences on its protocol."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from curvlab.config.folder import find
from curvlab.statistics import (
    DEVIATIONS,
    FEWEST_NORMAL,
    FEWEST_SPREAD,
    PUBLISHED_SPREADS,
    IntervalKind,
    count_of_runs,
)
from curvlab.tables.cells import (
    FULL_PRECISION,
    NEXT_DRAW,
    add_ranks,
    deviations,
    make_cells,
)
from curvlab.tables.published import paper_numbers
from curvlab.tables.runs import CELL, VARYING, one_protocol_per_cell, table_runs
from curvlab.tables.spec import SCORE, Better, Coordinate, TableSpec

IDENTITY = [*CELL, "seed", "value", "seconds", "commit"]
"""Columns that are equal for copies of a run."""


@dataclass(frozen=True)
class Report:
    """A table, ready to be rendered.

    `cells` has one row for each cell: the published number (`paper_`), ours (`our_`), a second one
    (`second_`), the number of another source (`other_`), and the differences. `collected` has all
    runs, `runs` the runs of the cells, and `replaced` runs that are shown next to them. If a cell
    has user's and shipped runs, the user's runs count, unless only the shipped runs follow the
    table's protocol.
    """

    spec: TableSpec
    cells: pd.DataFrame
    collected: pd.DataFrame
    runs: pd.DataFrame
    left_out: pd.DataFrame
    replaced: pd.DataFrame
    paper: pd.DataFrame
    kind: IntervalKind
    decimals: int
    with_references: bool = False

    @property
    def title(self) -> str:
        """Name of the table in the paper."""
        return self.spec.report.title

    @property
    def better(self) -> Better:
        """Whether high or low numbers are better."""
        return self.spec.report.better

    @property
    def second(self) -> str:
        """Meaning of the second number; empty without one."""
        return self.spec.report.second.label if self.spec.report.second else ""

    @property
    def rows(self) -> list[Coordinate]:
        """Row coordinates in published order."""
        return list(dict.fromkeys(self.cells["row"]))

    @property
    def columns(self) -> list[Coordinate]:
        """Column coordinates in published order."""
        return list(dict.fromkeys(self.cells["column"]))

    @cached_property
    def labels(self) -> dict[tuple[str, Coordinate], str]:
        """Labels of rows and columns, by coordinate."""
        block = self.spec.report
        label = self.spec.label
        rows = {("row", row): label(block.rows, row) for row in self.rows}
        return rows | {("column", c): label(block.columns, c) for c in self.columns}

    def lines(self, number: str) -> pd.DataFrame:
        """A number of the cells by column, with a column for each row's label."""
        lines = self.cells.pivot(index="column", columns="row", values=number)
        return lines.reindex(self.columns)[self.rows].set_axis(
            [self.labels["row", row] for row in self.rows], axis=1
        )

    @cached_property
    def caption(self) -> list[str]:
        """Sentences on the protocol."""
        return list(self._sentences())

    @cached_property
    def footnotes(self) -> list[str]:
        """Notes of the table, and notes on runs that are left out."""
        notes = [*self.spec.report.notes]
        for cell in self.left_out.to_dict("records"):
            plural = "s" if cell["runs"] > 1 else ""
            runs = f"{cell['runs']} run{plural} left out ({cell['reason']})"
            notes.append(f"{self.name_of(cell)}: {runs}.")
        if self.with_references and self.references.empty:
            notes.append("No run has reference points; `curvlab evaluate RUN` adds them.")
        return notes

    @cached_property
    def references(self) -> pd.DataFrame:
        """Reference points by name and column: means over the runs' data sets and splits."""
        rows = []
        for run in self.runs[["column", "seed", "references"]].to_dict("records"):
            for name, value in run["references"].items():
                rows.append(
                    {"column": run["column"], "seed": run["seed"], "name": name, "value": value}
                )
        if not rows:
            return pd.DataFrame()
        points = pd.DataFrame(rows).drop_duplicates()
        return points.pivot_table("value", "name", "column", sort=False)

    @cached_property
    def cell_notes(self) -> dict[tuple[Coordinate, Coordinate], list[str]]:
        """Notes on single cells: differences from most of the table, and notes of the paper."""
        notes = defaultdict(list)
        for name, values in self._lengths():
            usual = values.value_counts().index[0]
            cells = self.cells.loc[values.index, CELL].itertuples(index=False, name=None)
            for cell, value in zip(cells, values, strict=True):
                if value != usual:
                    notes[cell].append(f"{name}: {value}")
        repeated = self.cells[self.cells["runs"] > self.cells["seeds"]]
        counts = repeated[[*CELL, "runs", "seeds"]].itertuples(index=False, name=None)
        for row, column, runs, splits in counts:
            notes[row, column].append(f"number of runs: {count_of_runs(runs, splits)}")
        for row, column, note in self.paper[[*CELL, "note"]].itertuples(index=False, name=None):
            if note:
                notes[row, column].append(f"paper: {note}")
        return notes

    def _sentences(self) -> Iterator[str]:
        report = self.spec.report
        cells = self.cells
        run = self.cells[self.cells["seeds"] > 0]
        metric = "the metric of each dataset" if report.metric == SCORE else report.metric
        runs = pd.concat([self.runs, self.replaced])
        if run.empty:
            yield f"Ours ({metric}): no finished run yet."
        else:
            spread = _spread(self.kind, run["seeds"])
            yield f"Ours: {metric}, {spread}, {self._seeds(run['runs'])}."
            if report.second and run["second_seeds"].any():
                label = report.second.label.capitalize()
                yield f"{label}: {report.second.metric} of runs that have it."
            if run["source"].eq("shipped").any() or run["other_seeds"].any():
                yield (
                    "Shipped: runs of the repository, compared where there are none of ours at the "
                    "table's protocol."
                )
            yield from (f"{mark} {sentence}" for mark, sentence in deviations(runs).items())
        if len(self.paper):
            notes = self.paper["note"].unique()
            shared = f"{notes[0]}; " if len(notes) == 1 and notes[0] else ""
            yield f"Paper: {shared}{_paper_spread(self.paper)}."
        if cells["ranked"].any():
            columns = cells.groupby("column", sort=False)["spearman"].first().dropna()
            if len(columns) > 1:
                mean = f"{columns.mean():.2f}".replace("-", "\N{MINUS SIGN}")
                yield f"Mean Spearman of {len(columns)} columns: {mean}."
        for name, values in self._lengths():
            usual, *further = values.value_counts().index
            cells_with_it = " in most cells" if further else ""
            yield f"{name}: {usual}{cells_with_it}."
        splits = []
        for split, of_split in run.groupby("split", sort=False):
            if split:
                splits.append(f"{split!s} of {self._columns(of_split)}")
        if splits:
            yield f"Splits: {'; '.join(splits)}."
        yield from self._draws(run)
        devices = sorted({device.partition(":")[0] for device in self.runs["device"] if device})
        if devices:
            yield f"Ours ran on {' and '.join(devices)}."

    def _lengths(self) -> Iterator[tuple[str, "pd.Series[str]"]]:
        """Steps, patience and precision of the cells at the table's protocol, else of all."""
        run = self.cells[self.cells["seeds"] > 0]
        cells = run[run["deviation"] == ""]
        if cells.empty:
            cells = run  # marks explain their protocols
        able = cells["patience"] < cells["steps"]
        if len(cells):
            yield "Steps, at most", cells["steps"].map("{:,}".format)
        if able.any():
            patience = cells["patience"].map("{:,.0f}".format).where(able, "never")
            yield "Ends after steps without a better validation score", patience
        if (cells["precision"] != FULL_PRECISION).any():
            yield "Precision", cells["precision"]

    def _draws(self, run: pd.DataFrame) -> Iterator[str]:
        spread = run[run["seeds"] >= FEWEST_SPREAD]
        with_paper = run[run["paper_mean"].notna()]
        varying = spread["draw"].isin(VARYING)
        if varying.any():
            draws = _range(spread.loc[varying, "seeds"])
            where = self._columns(spread[varying])
            once = "one initialisation each"
            if (spread["runs"] > spread["seeds"]).any():
                once += " in most cells, of others the mean of several"
            yield f"± is over {draws} draws of the split, {once}: {where}."
        fixed = ~varying & (spread["draw"] != "none")
        if fixed.any():
            where = self._columns(spread[fixed])
            yield f"± is over initialisations on one draw of the split: {where}."
        ours = with_paper["draw"] == "own"
        if ours.any():
            yield (
                "One draw of the split, not known to be the paper's, and so without difference, "
                f"verdict and rank: {self._columns(with_paper[ours])}."
            )
        by_next_draw = (with_paper["draw"] == "own_each") & with_paper["within"].notna()
        if by_next_draw.any() and not self.spec.report.redrawn:
            where = self._columns(with_paper[by_next_draw])
            yield (
                f"{NEXT_DRAW} takes the paper's number for one more draw, since its draw of the "
                f"split is not known (ours ± t s √(1 + 1/n)): {where}."
            )

    def _columns(self, cells: pd.DataFrame) -> str:
        return ", ".join(self.labels["column", column] for column in cells["column"].unique())

    def name_of(self, cell: Mapping[Any, Any]) -> str:
        """Row and column of a cell."""
        return f"{self.labels['row', cell['row']]}, {self.labels['column', cell['column']]}"

    def _seeds(self, seeds: "pd.Series[int]") -> str:
        planned = len(self.spec.planned_seeds)
        plan = f", {planned} planned" if seeds.min() < planned else ""
        text = f"number of seeds in brackets ({_range(seeds)}{plan})"
        if (seeds == 2).any():
            text += ", of two seeds both values instead"
        return text


def build_report(spec: TableSpec, results: Path, shipped: Path | None = None) -> Report:
    """Join the paper's numbers with the runs below `results / spec.name`."""
    file = find(spec.configs, f"table/{spec.name}.yaml")
    paper = paper_numbers(spec.report, file.parent)
    collected = table_runs(spec, results).assign(shipped=False)
    replaced = collected[:0]
    if shipped is not None:
        collected, replaced = _with_shipped(collected, table_runs(spec, shipped))
    runs, left_out = one_protocol_per_cell(collected)
    rows = _order_coordinates(paper["row"], spec.planned_rows, runs["row"])
    columns = _order_coordinates(paper["column"], spec.planned_columns, runs["column"])
    kind: IntervalKind = "student"
    if paper["pm_kind"].isin(DEVIATIONS).any():
        kind = "std"  # our spread is of the paper's kind
    elif (paper["pm_kind"] == "ci95").any():
        kind = "ci95"
    decimals = max((len(mean.partition(".")[2]) for mean in paper["mean"]), default=2)
    cells = make_cells(spec, (rows, columns), paper, runs, replaced, kind)
    cells = add_ranks(cells, decimals, spec.report.better)
    return Report(spec, cells, collected, runs, left_out, replaced, paper, kind, decimals)


def _with_shipped(
    collected: pd.DataFrame, shipped: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Merge the user's runs with shipped ones: the runs that count, and those next to them."""
    shipped = shipped.assign(shipped=True)
    is_copy = collected.set_index(IDENTITY).index.isin(shipped.set_index(IDENTITY).index)
    new = collected[~is_copy]
    # Cells in which the user's runs count.
    new_cells = _cells_of(new, at_protocol=True)
    new_cells |= _cells_of(new) - _cells_of(shipped, at_protocol=True)
    shipped_is_replaced = shipped.set_index(CELL).index.isin(new_cells)
    new_is_replaced = new.set_index(CELL).index.isin(_cells_of(shipped) - new_cells)
    counting = [new[~new_is_replaced], shipped[~shipped_is_replaced]]
    next_to_them = [shipped[shipped_is_replaced], new[new_is_replaced]]
    replaced, _ = one_protocol_per_cell(pd.concat(next_to_them, ignore_index=True))
    return pd.concat(counting, ignore_index=True), replaced


def _cells_of(runs: pd.DataFrame, at_protocol: bool = False) -> set[tuple[Any, ...]]:
    """Cells with a finished run, of the table's protocol or of any protocol."""
    finished_runs = runs[runs["status"] == "finished"]
    if at_protocol:
        finished_runs = finished_runs[finished_runs["deviation"] == ""]
    return set(finished_runs[CELL].itertuples(index=False, name=None))


def _order_coordinates(*coordinates: Iterable[Coordinate]) -> list[Coordinate]:
    """Unique coordinates: numbers sorted, names in the paper's order, then the sweep's."""
    unique = list(dict.fromkeys(value for values in coordinates for value in values))
    numbers = [value for value in unique if isinstance(value, int | float)]
    return [*sorted(numbers)] if len(numbers) == len(unique) else unique


def _spread(kind: IntervalKind, seeds: "pd.Series[int]") -> str:
    if (seeds < FEWEST_SPREAD).all():
        return "mean"
    if kind == "std":
        return "mean ± the sample standard deviation"
    if kind == "student" or (seeds < FEWEST_NORMAL).all():
        return "mean ± Student's 95% interval"
    text = "mean ± 1.96 std/√n"
    if ((seeds >= FEWEST_SPREAD) & (seeds < FEWEST_NORMAL)).any():
        text += ", of fewer than five seeds Student's 95% interval"
    return text


def _paper_spread(paper: pd.DataFrame) -> str:
    spreads = paper[paper["pm"] != ""]
    kinds = spreads["pm_kind"].unique()
    meanings = [PUBLISHED_SPREADS[kind] for kind in kinds if kind in PUBLISHED_SPREADS]
    if not meanings:
        return "does not say what its ± is" if len(kinds) else "no spread published"
    where = "" if len(meanings) == len(kinds) else ", where that is known"
    counts = pd.to_numeric(spreads["runs"]).dropna()
    runs = f", over {_range(counts.astype(int))} runs" if len(counts) else ""
    return f"± is {' or '.join(meanings)}{where}{runs}"


def _range(numbers: "pd.Series[int]") -> str:
    smallest = numbers.min()
    largest = numbers.max()
    return f"{largest}" if smallest == largest else f"{smallest} to {largest}"
