"""What the runs of a study say: comparisons with the flat twin, and a recommendation in words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isinf
from statistics import mean
from typing import Literal

from curvlab.statistics import LEVEL, Paired, detectable, holm, paired, runs_needed
from curvlab.study.floor import Floor
from curvlab.study.twins import FLAT

ONE_POINT = 1.0
HIGHEST = 100.0
"""Every metric's best score."""


@dataclass(frozen=True)
class Outcome:
    """A model in a space: what its runs came to.

    Attributes:
        model: choice of `model=`.
        label: of the model.
        space: kind of space.
        dim: width.
        words: with which it was run, without the seed.
        chosen: values that its trials chose.
        scores: one a seed, in the seeds' order; empty if a run has none.
        curvatures: learned ones, by name, the mean over seeds of each component.
        negative: share of the runs' curvatures below 0, None without any.
        parameters: number of parameters.
        ms_per_step: mean over seeds of the median step.
        seconds: mean over seeds of a run's time.
        memory_mb: mean over seeds of the peak.
        error: why it has no scores.
    """

    model: str
    label: str
    space: str
    dim: int
    words: tuple[str, ...]
    chosen: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()
    curvatures: Mapping[str, Sequence[float]] | None = None
    negative: float | None = None
    parameters: int | None = None
    ms_per_step: float | None = None
    seconds: float | None = None
    memory_mb: float | None = None
    error: str | None = None

    @property
    def mean(self) -> float:
        """Mean score."""
        return mean(self.scores)


@dataclass(frozen=True)
class Comparison:
    """A twin against the flat one.

    Attributes:
        outcome: of the twin.
        paired: differences over seeds.
        corrected: p of the t test, by Holm for all twins of the model.
    """

    outcome: Outcome
    paired: Paired
    corrected: float

    @property
    def significant(self) -> bool:
        """Whether there is a difference."""
        return self.corrected < LEVEL


@dataclass(frozen=True)
class Verdict:
    """What is recommended for a model.

    Attributes:
        kind: a curved space is better; none is, and some are worse or all alike; or no score is
            above the floor, and nothing is recommended.
        space: that is recommended; flat where no other is better.
        alike: other spaces that do as well.
        text: in sentences.
    """

    kind: Literal["curved", "flat", "no difference", "floor"]
    space: str
    alike: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class ModelReport:
    """All of one model.

    Attributes:
        flat: the flat twin.
        others: the other twins, compared with it.
        failed: twins without scores.
        narrower: the best curved twin and the flat one at smaller widths, compared with the flat
            one of full width.
        verdict: the recommendation.
    """

    flat: Outcome
    others: tuple[Comparison, ...]
    failed: tuple[Outcome, ...]
    narrower: tuple[Comparison, ...]
    verdict: Verdict

    @property
    def recommended(self) -> Outcome:
        """The outcome of the recommended space."""
        found = (c.outcome for c in self.others if c.outcome.space == self.verdict.space)
        return next(found, self.flat)


def compared(flat: Outcome, others: Sequence[Outcome]) -> tuple[Comparison, ...]:
    """Compare twins with the flat one, corrected for their number."""
    pairs = [paired(other.scores, flat.scores) for other in others]
    corrected = holm([pair.p_t for pair in pairs])
    return tuple(Comparison(*found) for found in zip(others, pairs, corrected, strict=True))


def best_curved(others: Sequence[Comparison]) -> Comparison | None:
    """The curved twin with the best mean score."""
    return max(others, key=lambda c: c.outcome.mean, default=None)


def verdict(flat: Outcome, others: Sequence[Comparison], floor: Floor | None = None) -> Verdict:
    """Recommend a space for a model.

    Spaces count as better that beat flat by the corrected t test at 5 %. Of the one with the best
    mean and the others that no paired t test separates from it, the first in the study's order is
    recommended: a space with one curvature of a known sign before one that learns it, and that
    before a product. Flat, if none is better. None, if no score is above the noise of the floor.
    """
    limit = -inf if floor is None else floor.limit
    highest = max([flat, *(c.outcome for c in others)], key=lambda outcome: outcome.mean)
    if floor is not None and highest.mean <= limit:
        text = (
            f"No space is recommended for {flat.label}: its best score, {highest.mean:.2f} in "
            f"{highest.space} space, is not above the floor of {floor}. More steps, another "
            "learning rate or other features may help."
        )
        return Verdict("floor", FLAT, (), text)
    better = [c for c in others if c.significant and c.paired.mean > 0 and c.outcome.mean > limit]
    worse = [c for c in others if c.significant and c.paired.mean < 0]
    top = best_curved(better)
    if top is not None:
        alike = [c for c in better if c is top or not _differ(top, c)]
        best, *rest = alike
        names = tuple(c.outcome.space for c in rest)
        text = (
            f"{best.outcome.label} gains from curvature: its {best.outcome.space} twin scores "
            f"{_points(best.paired.mean)} more than the flat one, {_interval(best.paired)}, "
            f"p = {_p(best.corrected)} after Holm."
        )
        if names:
            text += f" {_listed(names).capitalize()} did not do better."
        return Verdict("curved", best.outcome.space, names, text)
    open_ = [c for c in others if not c.significant]
    if not open_:
        text = (
            f"{flat.label} stays flat: every other space scores less, by "
            f"{_points(min(-c.paired.mean for c in worse))} or more."
        )
        return Verdict("flat", FLAT, (), text)
    nearest = best_curved(open_)
    assert nearest is not None
    text = (
        f"{flat.label} stays flat: no difference was found with this budget. "
        f"{_budget(nearest, len(others))}"
    )
    if worse:
        text += f" Worse than flat: {_listed([c.outcome.space for c in worse])}."
    if (room := HIGHEST - flat.mean) < ONE_POINT:
        text += (
            f" The flat twin leaves {_points(room)} to gain, so that these runs cannot tell spaces "
            f"apart: repeat them with a smaller width, such as study.dim={max(flat.dim // 4, 2)}."
        )
    return Verdict("no difference", FLAT, tuple(c.outcome.space for c in open_), text)


def _differ(one: Comparison, other: Comparison) -> bool:
    """Whether two twins differ, by the paired t test alone."""
    return paired(one.outcome.scores, other.outcome.scores).p_t < LEVEL


def widths_saved(narrower: Sequence[Comparison]) -> Iterator[str]:
    """What narrower twins say of the width, a sentence each, corrected for their number."""
    for twin in narrower:
        outcome, pair = twin.outcome, twin.paired
        where = f"At dim {outcome.dim}, {outcome.space}"
        against = f"the flat twin of full width, {_interval(pair)}."
        if twin.significant:
            more = f"{_points(abs(pair.mean))} {'more' if pair.mean > 0 else 'less'}"
            yield f"{where} scores {more} than {against[:-1]}, p = {_p(twin.corrected)} after Holm."
        else:
            yield f"{where} was not found to differ from {against}"


def overall(reports: Sequence[ModelReport]) -> str:
    """The recommendation over all models, in a sentence: the best one in its best space."""
    best = max(reports, key=lambda report: report.recommended.mean)
    gains = [r.flat.label for r in reports if r.verdict.kind == "curved"]
    curved = (
        f"Curvature is worth it for {_listed(gains)}."
        if gains
        else "Curvature was not found to be worth it on this graph."
    )
    winner = best.recommended
    if all(report.verdict.kind == "floor" for report in reports):
        curved = "Nothing is recommended: no score is above the floor."
    return (
        f"{curved} The best score of all has {winner.label} in "
        f"{'flat' if winner.space == FLAT else winner.space} space, {winner.mean:.2f} in the mean."
    )


def _budget(comparison: Comparison, tests: int) -> str:
    """What this number of runs would have found, and how many find less.

    The level is that of Holm's first step, which the best of all comparisons has to pass.
    """
    pair, level = comparison.paired, LEVEL / tests
    found = (
        f"The best curved space, {comparison.outcome.space}, differs by {pair.mean:+.2f} points, "
        f"{_interval(pair)}."
    )
    limit = detectable(pair.std, pair.pairs, level)
    if isinf(limit) or pair.std == 0:
        return found
    aim = ONE_POINT if limit > ONE_POINT else limit / 2
    runs = runs_needed(aim, pair.std, level)
    more = f", with about {runs} runs one of {_points(aim)}" if runs else ""
    return (
        f"{found} With {pair.pairs} runs a difference of about {_points(limit)} is detectable with "
        f"80 % power{more}."
    )


def _points(value: float) -> str:
    return f"{value:.2f} points"


def _interval(pair: Paired) -> str:
    return f"95 % interval {pair.interval}"


def _p(value: float) -> str:
    return f"{value:.2g}" if value >= 1e-4 else "0.0001 or less"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
