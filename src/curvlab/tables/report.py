"""A table as data: each cell's published and reproduced number, deviations, and gaps."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import isnan, nan
from pathlib import Path
from typing import Any

import pandas as pd

from curvlab.config.folder import find
from curvlab.statistics import (
    DEVIATIONS,
    FEWEST,
    FEWEST_NORMAL,
    NOT_RUN,
    PRINTED_SPREADS,
    IntervalKind,
    half_a_digit,
    judge_number,
    metric_margin,
    printed_std,
    summarise,
    welch_pm,
)
from curvlab.tables.published import paper_numbers
from curvlab.tables.runs import CELL, LOST, STATUSES, VARYING, one_protocol_per_cell, table_runs
from curvlab.tables.spec import SCORE, Better, Coordinate, TableSpec

LETTERS = "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ"  # marks of protocols
FEWEST_RANKED = 3  # methods with both numbers from which on their order says something
SAME = [*CELL, "seed", "value", "seconds", "commit"]

WELCH, NEXT_DRAW = "≈", "‡"
"""Signs of the two rules by which a published number is judged.

Welch's interval of the difference of two means; the interval of one more value, where the paper
has one draw of a split that nobody knows and we have several.
"""

FULL_PRECISION = "32-true"  # Lightning's default


@dataclass(frozen=True)
class Report:
    """A table, ready to be rendered.

    `cells` has one row per cell: the published number (`paper_`), ours (`our_`), a second one
    (`second_`), the numbers of another source (`other_`), and the differences. `collected` has all
    runs, `runs` the runs of the cells, and `replaced` runs that are shown beside them. If a cell
    has own and shipped runs, the own runs count, unless only the shipped ones follow the table's
    protocol.
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
        """The protocol, one sentence a line."""
        return list(self._sentences())

    @cached_property
    def footnotes(self) -> list[str]:
        """Notes of the table, and runs left out."""
        left_out = (
            f"{self.name_of(cell)}: {cell['runs']} run{'s' * (cell['runs'] > 1)} left out "
            f"({cell['reason']})."
            for cell in self.left_out.to_dict("records")
        )
        notes = [*self.spec.report.notes, *left_out]
        if self.with_references and self.references.empty:
            notes.append("No run has reference points; `curvlab evaluate RUN` adds them.")
        return notes

    @cached_property
    def references(self) -> pd.DataFrame:
        """Reference points by name and column: means over the runs' data sets and splits."""
        rows = [
            {"column": column, "seed": seed, "name": name, "value": value}
            for column, seed, points in self.runs[["column", "seed", "references"]].itertuples(
                index=False, name=None
            )
            for name, value in points.items()
        ]
        if not rows:
            return pd.DataFrame()
        points = pd.DataFrame(rows).drop_duplicates()
        return points.pivot_table("value", "name", "column", sort=False)

    @cached_property
    def cell_notes(self) -> dict[tuple[Coordinate, Coordinate], list[str]]:
        """Notes on single cells: what differs from most of the table, and the paper's own notes."""
        notes = defaultdict(list)
        for what, values in self._lengths():
            cells = self.cells.loc[values.index, CELL].itertuples(index=False, name=None)
            for cell, value in zip(cells, values, strict=True):
                if value != values.value_counts().index[0]:
                    notes[cell].append(f"{what}: {value}")
        for row, column, note in self.paper[[*CELL, "note"]].itertuples(index=False, name=None):
            notes[row, column] += [f"paper: {note}"] if note else []
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
            seeds = run["seeds"]
            yield f"Ours: {metric}, {_spread(self.kind, seeds)}, {self._seeds(seeds)}."
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
        for what, values in self._lengths():
            usual, *rest = values.value_counts().index
            yield f"{what}: {usual}{' in most cells' if rest else ''}."
        splits = [
            f"{split!s} of {self._columns(of_split)}"
            for split, of_split in run.groupby("split", sort=False)
            if split
        ]
        if splits:
            yield f"Splits: {'; '.join(splits)}."
        yield from self._draws(run)
        devices = sorted({device.partition(":")[0] for device in self.runs["device"] if device})
        if devices:
            yield f"Ours ran on {' and '.join(devices)}."

    def _lengths(self) -> Iterator[tuple[str, "pd.Series[str]"]]:
        """Steps, patience and precision of the cells of the table's protocol, else of all."""
        run = self.cells[self.cells["seeds"] > 0]
        cells = run[run["deviation"] == ""]
        cells = cells if len(cells) else run  # marks explain the remaining runs
        able = cells["patience"] < cells["steps"]
        if len(cells):
            yield "Steps, at most", cells["steps"].map("{:,}".format)
        if able.any():
            patience = cells["patience"].map("{:,.0f}".format).where(able, "never")
            yield "Ends after steps without a better validation score", patience
        if (cells["precision"] != FULL_PRECISION).any():
            yield "Precision", cells["precision"]

    def _draws(self, run: pd.DataFrame) -> Iterator[str]:
        spread = run[run["seeds"] >= FEWEST]
        published = run[run["paper_mean"].notna()]
        varying = spread["draw"].isin(VARYING)
        if varying.any():
            draws = _range(spread.loc[varying, "seeds"])
            where = self._columns(spread[varying])
            yield f"± is over {draws} draws of the split, one initialisation each: {where}."
        fixed = ~varying & (spread["draw"] != "none")
        if fixed.any():
            where = self._columns(spread[fixed])
            yield f"± is over initialisations on one draw of the split: {where}."
        ours = published["draw"] == "own"
        if ours.any():
            yield (
                "One draw of the split, not known to be the paper's, and so without difference, "
                f"verdict and rank: {self._columns(published[ours])}."
            )
        each = (published["draw"] == "own_each") & published["within"].notna()
        if each.any() and not self.spec.report.redrawn:
            yield (
                f"{NEXT_DRAW} takes the paper's number for one more draw, since its draw of the "
                f"split is not known (ours ± t s √(1 + 1/n)): {self._columns(published[each])}."
            )

    def _columns(self, cells: pd.DataFrame) -> str:
        return ", ".join(self.labels["column", column] for column in cells["column"].unique())

    def name_of(self, cell: Mapping[Any, Any]) -> str:
        """Row and column of a cell."""
        return f"{self.labels['row', cell['row']]}, {self.labels['column', cell['column']]}"

    def _seeds(self, seeds: "pd.Series[int]") -> str:
        planned = len(self.spec.planned_seeds)
        of = f", {planned} planned" if seeds.min() < planned else ""
        both = ", of two seeds both values instead" if (seeds == 2).any() else ""
        return f"number of seeds in brackets ({_range(seeds)}{of}){both}"


def build_report(spec: TableSpec, results: Path, shipped: Path | None = None) -> Report:
    """Join the paper's numbers with the runs below `results / spec.name`."""
    file = find(spec.configs, f"table/{spec.name}.yaml")
    paper = paper_numbers(spec.report, file.parent)
    collected = table_runs(spec, results).assign(shipped=False)
    replaced = collected[:0]
    if shipped is not None:
        given = table_runs(spec, shipped).assign(shipped=True)
        copied = collected.set_index(SAME).index.isin(given.set_index(SAME).index)
        new = collected[~copied]
        new_counts = _cells_of(new, at_protocol=True)
        new_counts |= _cells_of(new) - _cells_of(given, at_protocol=True)
        beside_new = given.set_index(CELL).index.isin(new_counts)
        beside_shipped = new.set_index(CELL).index.isin(_cells_of(given) - new_counts)
        beside = pd.concat([given[beside_new], new[beside_shipped]], ignore_index=True)
        replaced, _ = one_protocol_per_cell(beside)
        collected = pd.concat([new[~beside_shipped], given[~beside_new]], ignore_index=True)
    runs, left_out = one_protocol_per_cell(collected)
    rows = _order_coordinates(paper["row"], spec.planned_rows, runs["row"])
    columns = _order_coordinates(paper["column"], spec.planned_columns, runs["column"])
    kind: IntervalKind = "student"
    if paper["pm_kind"].isin(DEVIATIONS).any():
        kind = "std"  # our spread is what the paper says that its own is
    elif (paper["pm_kind"] == "ci95").any():
        kind = "ci95"
    decimals = max((len(mean.partition(".")[2]) for mean in paper["mean"]), default=2)
    published = {cell: records[0] for cell, records in _by_cell(paper).items()}
    ours = _by_cell(runs)
    other_runs = _by_cell(replaced)
    letters = _letters(pd.concat([runs, replaced]))
    cell_records = [
        _cell(spec, cell, published.get(cell, {}), ours[cell], other_runs[cell], kind, letters)
        for cell in product(rows, columns)
    ]
    cells = pd.DataFrame(cell_records).astype({"row": object, "column": object})
    cells = _add_ranks(cells, decimals, spec.report.better)
    return Report(spec, cells, collected, runs, left_out, replaced, paper, kind, decimals)


def _cells_of(runs: pd.DataFrame, at_protocol: bool = False) -> set[tuple[Any, ...]]:
    """Cells with a finished run, of the table's protocol or of any."""
    finished = runs[runs["status"] == "finished"]
    if at_protocol:
        finished = finished[finished["deviation"] == ""]
    return set(finished[CELL].itertuples(index=False, name=None))


def _marks(deviating: Iterable[str], letters: Mapping[str, str]) -> str:
    return "".join(letters[text] for text in sorted({*deviating} - {""}))


def _letters(runs: pd.DataFrame) -> dict[str, str]:
    """The mark of each protocol that deviates from the table's."""
    words = sorted(set(runs["deviation"]) - {""})
    letters = len(LETTERS)
    return {text: LETTERS[i % letters] * (1 + i // letters) for i, text in enumerate(words)}


def deviations(runs: pd.DataFrame) -> dict[str, str]:
    """For each mark, a sentence on the runs that deviate from the table's protocol."""
    sentences = {}
    counts = runs["deviation"].value_counts()
    for text, mark in _letters(runs).items():
        which = "" if counts[text] == len(runs) else f", {counts[text]} of {len(runs)} runs"
        sentences[mark] = f"Not the table's protocol{which}: {text}."
    return sentences


def _order_coordinates(*coordinates: Iterable[Coordinate]) -> list[Coordinate]:
    """Unique coordinates: numbers sorted, names in the paper's order, then the sweep's."""
    unique = list(dict.fromkeys(value for values in coordinates for value in values))
    numbers = [value for value in unique if isinstance(value, int | float)]
    return [*sorted(numbers)] if len(numbers) == len(unique) else unique


def _by_cell(records: pd.DataFrame) -> dict[tuple[Coordinate, Coordinate], list[dict[Any, Any]]]:
    records_by_cell = defaultdict(list)
    for record in records.to_dict("records"):
        records_by_cell[record["row"], record["column"]].append(record)
    return records_by_cell


def _cell(
    spec: TableSpec,
    cell: tuple[Coordinate, Coordinate],
    published: Mapping[Any, str],
    runs: list[dict[Any, Any]],
    replaced: list[dict[Any, Any]],
    kind: IntervalKind,
    letters: Mapping[str, str],
) -> dict[str, Any]:
    row, column = cell
    ended = Counter(run["status"] for run in runs)
    first = runs[0] if runs else {"split": "", "draw": "none", "shipped": None, "config": {}}
    trainer = first["config"].get("trainer") or {}
    deviating = {run["deviation"] for run in runs}
    mean, pm, count = (float(published.get(key) or nan) for key in ("mean", "pm", "runs"))
    of_kind = {"our": (runs, "value"), "second": (runs, "second"), "other": (replaced, "value")}
    numbers = {
        name: [run[key] for run in among if not isnan(run[key])]
        for name, (among, key) in of_kind.items()
    }
    summaries = {name: summarise(values, kind) for name, values in numbers.items()}
    ours = summaries["our"]
    difference = nan
    difference_pm = nan
    rule = ""
    if first["draw"] != "own" and not any(deviating):
        difference = ours.mean - mean
    if not isnan(difference):
        std = printed_std(pm, published["pm_kind"], count)
        if spec.report.redrawn or first["draw"] != "own_each":
            difference_pm = welch_pm(ours, std, count, half_a_digit(published["mean"]))
            rule = WELCH
        elif not isnan(std):  # the paper's number is one more value of ours
            difference_pm, rule = ours.next_pm, NEXT_DRAW
    planned = sum(r["status"] == "finished" and r["seed"] in spec.planned_seeds for r in runs)
    if ours.seeds:
        status = "finished" if planned == len(spec.planned_seeds) else "partial"
    elif runs:
        status = max(STATUSES, key=lambda status: ended[status])
    elif row in spec.planned_rows and column in spec.planned_columns:
        status = "not run"
    else:
        status = "cited" if row in spec.report.cited else "missing"
    margin = spec.report.scale * metric_margin(spec.report.metric)
    verdict = NOT_RUN if status == "not run" else judge_number(difference, difference_pm, margin)
    return {
        "row": row,
        "column": column,
        "planned_seeds": planned,
        "split": first["split"],
        "draw": first["draw"],
        "precision": str(trainer.get("precision", FULL_PRECISION)) if runs else "",
        "source": {True: "shipped", False: "own", None: ""}[first["shipped"]],
        "deviation": "; ".join(sorted(deviating - {""})),
        "mark": _marks(deviating, letters),
        "steps": max((run["steps"] for run in runs), default=0),
        "patience": max((run["patience"] for run in runs if run["patience"] > 0), default=nan),
        **{status: ended[status] for status in LOST},
        "other_mark": _marks((run["deviation"] for run in replaced), letters),
        "seeds": ours.seeds,
        **{f"{name}_seeds": summaries[name].seeds for name in ("second", "other")},
        **{f"{name}_mean": summary.mean for name, summary in summaries.items()},
        **{f"{name}_pm": summary.pm for name, summary in summaries.items()},
        "our_std": ours.std,
        **{f"{name}_low": min(values, default=nan) for name, values in numbers.items()},
        **{f"{name}_high": max(values, default=nan) for name, values in numbers.items()},
        "metric": spec.report.metric,
        "paper_mean": mean,
        "paper_pm": pm,
        "our_t95": ours.student_pm,
        "difference": difference,
        "difference_pm": difference_pm,
        "within": None if isnan(difference_pm) else abs(difference) <= difference_pm,
        "rule": "" if isnan(difference_pm) else rule,
        "verdict": verdict,
        "margin": margin,
        "counted": column not in spec.report.repeated,
        "status": status,
    }


def _add_ranks(cells: pd.DataFrame, decimals: int, better: Better) -> pd.DataFrame:
    """Add the places of all numbers of a column, and the ranks of those with a difference."""
    ranked = cells["difference"].notna() & (better != "neither")
    counts = ranked.groupby(cells["column"]).transform("sum")
    ranked &= counts >= FEWEST_RANKED
    lower = better == "lower"
    for name in ("our", "paper"):
        means = cells[f"{name}_mean"].map(f"{{:.{decimals}f}}".format).astype(float)
        listed = means.where((cells["deviation"] == "") | (name == "paper"))
        columns = (listed if better != "neither" else listed * nan).groupby(cells["column"])
        place = columns.rank("min", ascending=lower)
        marked = (place <= 2) & (place < columns.transform("count"))
        cells[f"{name}_place"] = place.where(marked, 0).astype(int)
        of_ranked = means.where(ranked).groupby(cells["column"])
        cells[f"{name}_rank"] = of_ranked.rank("min", ascending=lower)
        cells[f"{name}_order"] = of_ranked.rank()
    cells["ranked"] = counts.where(counts >= FEWEST_RANKED, 0).astype(int)
    spearman = {
        column: of_column["our_order"].corr(of_column["paper_order"])
        if of_column["ranked"].any()
        else nan
        for column, of_column in cells.groupby("column", sort=False)
    }
    cells["spearman"] = cells["column"].map(spearman).astype(float)
    return cells.drop(columns=["our_order", "paper_order"])


def _spread(kind: IntervalKind, seeds: "pd.Series[int]") -> str:
    if (seeds < FEWEST).all():
        return "mean"
    if kind == "std":
        return "mean ± the sample standard deviation"
    if kind == "student" or (seeds < FEWEST_NORMAL).all():
        return "mean ± Student's 95% interval"
    few = ((seeds >= FEWEST) & (seeds < FEWEST_NORMAL)).any()
    return "mean ± 1.96 std/√n" + ", of fewer than five seeds Student's 95% interval" * int(few)


def _paper_spread(paper: pd.DataFrame) -> str:
    spreads = paper[paper["pm"] != ""]
    kinds = spreads["pm_kind"].unique()
    known = [PRINTED_SPREADS[kind] for kind in kinds if kind in PRINTED_SPREADS]
    if not known:
        return "does not say what its ± is" if len(kinds) else "no spread published"
    where = "" if len(known) == len(kinds) else ", where that is known"
    counts = pd.to_numeric(spreads["runs"]).dropna()
    runs = f", over {_range(counts.astype(int))} runs" if len(counts) else ""
    return f"± is {' or '.join(known)}{where}{runs}"


def _range(numbers: "pd.Series[int]") -> str:
    fewest = numbers.min()
    most = numbers.max()
    return f"{most}" if fewest == most else f"{fewest} to {most}"
