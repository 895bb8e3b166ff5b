"""Main claims of the papers that one method is better than another, judged by our runs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isnan, nan
from pathlib import Path
from typing import Any

import pandas as pd

from curvlab.results.splits import CYCLE
from curvlab.statistics import (
    FEWEST_SPREAD,
    NOT_RUN,
    VERDICTS,
    PairedDifferences,
    Verdict,
    holm,
    judge_pairs,
    metric_margin,
    paired_by_seed,
)
from curvlab.tables.boards import seed_scores
from curvlab.tables.render import decimal
from curvlab.tables.report import Report
from curvlab.tables.runs import PUBLISHED_EACH, PUBLISHED_SPLITS
from curvlab.tables.spec import LENGTHS, Coordinate

SECONDS = 3600.0


@dataclass(frozen=True)
class Comparison:
    """Two methods on one data set: the published difference, ours, and the verdict.

    Positive differences agree with the claim. `counted` is whether the comparison is a published
    one of the claim; `note` is the deviation that both methods share. `at_first` is the verdict on
    the seeds that the table plans, if more were run.
    """

    claim: "Claim"
    column: Coordinate
    label: str
    published: float
    pairs: PairedDifferences
    p: float  # corrected for the comparisons of the claim
    margin: float
    verdict: Verdict
    counted: bool
    note: str
    seconds: float  # of the runs that would decide it; NaN without a stored run
    splits: int | None = None  # of the data set, if each seed has one of them
    at_first: Verdict | None = None

    @property
    def repeats_splits(self) -> bool:
        """Whether all of the data set's splits are used: further seeds have one of them again."""
        return self.splits is not None and self.pairs.pairs >= self.splits

    @property
    def seeds(self) -> range:
        """Seeds that would decide the comparison; those that are stored are not run again."""
        missing = self.verdict.missing_seeds
        if self.repeats_splits:
            return range(self.splits or 0, self.pairs.runs + (missing or 0))
        if self.splits is None:
            return range(self.pairs.pairs + (missing or 0))
        return range(min(self.splits, self.pairs.pairs + (missing or self.splits)))

    @property
    def is_open(self) -> bool:
        """Whether more runs could decide the comparison."""
        return not self.verdict.decided and self.seeds.stop > self.pairs.runs

    @property
    def hours(self) -> float:
        """Hours of training that would decide the comparison."""
        return self.seconds / SECONDS

    @property
    def command(self) -> str:
        """Command that would decide the comparison; finished seeds are not repeated."""
        claim = self.claim
        seeds = f"'seed=range({self.seeds.start},{self.seeds.stop})' {CYCLE}={self.splits}"
        if not self.repeats_splits:
            count = self.seeds.stop
            seeds = f"'seed=range({count})'"
            if count < 6:
                seeds = f"seed={','.join(map(str, self.seeds))}"
        cells = f"model={claim.method},{claim.baseline} dataset={self.column}"
        return f"curvlab train -m table={claim.table} {cells} {seeds}"

    @property
    def verdict_and_splits(self) -> str:
        """The verdict, and how many splits are left if they are too few to decide it."""
        missing = self.verdict.missing_seeds
        if self.verdict.decided or self.splits is None or self.repeats_splits:
            return str(self.verdict)
        left = self.splits - self.pairs.pairs
        if missing is not None and missing <= left:
            return str(self.verdict)
        return f"{self.verdict}; {left} more split{'s' * (left != 1)}"

    @property
    def verdict_in_words(self) -> str:
        """The verdict, with another one of the planned seeds alone, or hours of missing runs."""
        text = self.verdict_and_splits
        if self.verdict.word == NOT_RUN and self.seconds < inf:
            text += f" ({self.hours:.1f} hours)"
        if self.at_first and self.at_first.word != self.verdict.word:
            text += f"; {self.at_first.word} with the {self.claim.first_seeds} planned seeds"
        return f"{text} ({self.note})" if self.note else text

    def in_words(self, digits: int = 2) -> str:
        """The difference with its interval."""
        if not self.pairs.pairs:
            return ""
        mean = decimal(self.pairs.mean, digits, "+")
        if isnan(self.pairs.pm):
            return mean
        low = self.pairs.mean - self.pairs.pm
        high = self.pairs.mean + self.pairs.pm
        return f"{mean} ({decimal(low, digits, '+')} to {decimal(high, digits, '+')})"


@dataclass(frozen=True)
class Claim:
    """A claim of a paper that `method` is better than `baseline`, and the report to judge it."""

    paper: str
    claim: str
    table: str
    method: str
    baseline: str
    link: str
    report: Report
    aside: bool = False  # on the page of its paper only, not in tables of claims

    @property
    def name(self) -> str:
        """Name of the claim on the command line."""
        return f"{self.table}:{self.method}:{self.baseline}"

    @property
    def folder(self) -> str:
        """Folder of the paper's tables, such as `fpst`."""
        return self.table.partition("/")[0]

    @property
    def digits(self) -> int:
        """Decimals of the claim's differences."""
        return self.report.decimals

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """Published comparisons, followed by comparisons that do not count."""
        counted = list(self._judged_twice(self._counted))
        finished = {one.column for one in counted if one.pairs.pairs}
        further = [column for column in self.report.columns if column not in finished]
        return [*counted, *self._judged_twice(further, counted=False)]

    @property
    def first_seeds(self) -> int:
        """Number of seeds that the table plans, and at least those that a spread needs."""
        return max(FEWEST_SPREAD, len(self.report.spec.planned_seeds))

    @property
    def counted(self) -> list[Comparison]:
        """The published comparisons."""
        return [one for one in self.comparisons if one.counted]

    @property
    def counts(self) -> dict[str, int]:
        """Number of published comparisons with each of the five words."""
        words = [one.verdict.word for one in self.counted]
        return {word: words.count(word) for word in VERDICTS}

    @property
    def _sign(self) -> int:
        return -1 if self.report.better == "lower" else 1

    @cached_property
    def published(self) -> "pd.Series[float]":
        """Published differences by column; NaN where a number is missing."""
        cells = self.report.cells.set_index(["row", "column"])["paper_mean"]
        return self._sign * (cells[self.method] - cells[self.baseline])

    @property
    def _counted(self) -> list[Coordinate]:
        repeated = self.report.spec.report.repeated
        columns = [c for c in self.report.columns if c not in repeated]
        return [c for c in columns if self.published[c] > 0]

    def _judged_twice(self, columns: Sequence[Any], counted: bool = True) -> Iterator[Comparison]:
        """Comparisons on all seeds, each with the verdict on the planned ones if more were run."""
        judged = list(self._judged(columns, counted))
        extended = {one.column for one in judged if one.pairs.runs > self.first_seeds}
        planned = self._judged(columns, counted, self.first_seeds) if extended else ()
        first_verdicts = {one.column: one.verdict for one in planned}
        for one in judged:  # the correction of all depends on those with more seeds
            yield replace(one, at_first=first_verdicts.get(one.column))

    def _judged(
        self, columns: Sequence[Any], counted: bool, seeds: int | None = None
    ) -> Iterator[Comparison]:
        """Comparisons on the first `seeds` common seeds, or on all."""
        pairs_by_column = {}
        for column in columns:
            pairs, note = self._paired(column, counted, seeds)
            if counted or pairs.pairs:
                pairs_by_column[column] = (pairs, note)
        tested = [c for c, (pairs, _) in pairs_by_column.items() if pairs.pairs >= FEWEST_SPREAD]
        corrected = holm([pairs_by_column[column][0].p_t for column in tested])
        p_values = dict(zip(tested, corrected, strict=True))
        block = self.report.spec.report
        smallest = block.scale * metric_margin(block.metric)
        for column, (pairs, note) in pairs_by_column.items():
            published = float(self.published[column])
            half = 0.0 if isnan(published) else abs(published) / 2
            margin = max(smallest, half)
            p = p_values.get(column, nan)
            splits = self._splits(column)
            verdict = judge_pairs(pairs, p, margin, max(1, len(tested)), splits)
            label = self.report.labels["column", column]
            one = Comparison(
                claim=self,
                column=column,
                label=label,
                published=published,
                pairs=pairs,
                p=p,
                margin=margin,
                verdict=verdict,
                counted=counted,
                note=note,
                seconds=nan,
                splits=splits,
            )
            yield replace(one, seconds=self._seconds(one))

    def _splits(self, column: Coordinate) -> int | None:
        """Number of published splits of which each seed has one; None if seeds draw splits."""
        runs = self.report.runs
        each = runs[(runs["column"] == column) & (runs["draw"] == PUBLISHED_EACH)]
        return None if each.empty else PUBLISHED_SPLITS

    def _paired(
        self, column: Coordinate, at_protocol: bool, seeds: int | None
    ) -> tuple[PairedDifferences, str]:
        runs = self.report.runs
        selected = runs[(runs["column"] == column) & runs["row"].isin([self.method, self.baseline])]
        selected = selected[selected["status"] == "finished"]
        note = ""
        shared = set(selected["deviation"])
        if not at_protocol and len(shared) == 1:
            (note,) = shared
        selected = selected[selected["deviation"] == note]
        selected = selected.assign(value=self._sign * selected["value"])
        scores = seed_scores(selected)
        method_scores = scores.get((self.method, str(column)), {})
        baseline_scores = scores.get((self.baseline, str(column)), {})
        common = sorted(method_scores.keys() & baseline_scores.keys())[:seeds]
        return paired_by_seed({seed: method_scores[seed] for seed in common}, baseline_scores), note

    def _seconds(self, one: Comparison) -> float:
        """Seconds of the runs that would decide a comparison; NaN without a stored run."""
        if one.verdict.decided:
            return 0.0
        if one.verdict.missing_seeds is None and one.splits is None:
            return inf
        methods = (self.method, self.baseline)
        return sum(self._seconds_of(method, one.column, one.seeds) for method in methods)

    def _seconds_of(self, row: str, column: Coordinate, seeds: range) -> float:
        runs = self.report.collected
        selected = runs[(runs["row"] == row) & (runs["column"] == column)]
        at_protocol = selected[(selected["status"] == "finished") & (selected["deviation"] == "")]
        seeds_to_run = len({*seeds} - {*at_protocol["seed"]})
        timed = selected if at_protocol.empty else at_protocol
        timed = timed[timed["seconds"].notna() & (timed["steps"] > 0)]
        timed = timed[timed["changed"].map(self._length_is_known)]
        if not seeds_to_run:
            return 0.0
        if timed.empty:
            return nan
        seconds = timed["seconds"] * timed.apply(self._longer, axis=1)
        return seeds_to_run * float(seconds.median())

    def _length_is_known(self, changed: str) -> bool:
        """Whether the ratio of a run's length to that of the table is known.

        It is not if the run set a length that only a recipe or a task has.
        """
        planned = self.report.spec.planned_length
        return not any(f"trainer.{key}=" in changed for key in LENGTHS if not planned.get(key))

    def _longer(self, run: "pd.Series[Any]") -> float:
        """Length of a run at the table's protocol divided by that of a stored run."""
        trainer = run["config"].get("trainer") or {}
        for key in LENGTHS:
            planned = self.report.spec.planned_length.get(key)
            if planned and trainer.get(key):
                return float(planned / trainer[key])
        return 1.0


def load_claims(reports: Callable[[str], Sequence[Report]]) -> list[Claim]:
    """The listed claims, each with the first report of its table."""
    file = Path(__file__).with_name("claims.csv")
    listed = pd.read_csv(file, dtype=str, keep_default_na=False)
    rows: list[dict[Any, str]] = listed.to_dict("records")
    return [
        Claim(
            paper=row["paper"],
            claim=row["claim"],
            table=row["table"],
            method=row["method"],
            baseline=row["other"],
            link=row["link"],
            report=reports(row["table"])[0],
            aside=bool(row["aside"]),
        )
        for row in rows
    ]


def agenda(claims: Sequence[Claim]) -> list[Comparison]:
    """Undecided and missing comparisons that more runs could decide, the cheapest first.

    Comparisons without a stored run come last, since a run must first be timed.
    """
    open_comparisons = [one for claim in claims for one in claim.counted if one.is_open]
    return sorted(open_comparisons, key=lambda one: inf if isnan(one.seconds) else one.seconds)
