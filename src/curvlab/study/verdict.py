"""Results of a study: comparisons with the flat space, and a recommendation in words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isinf
from statistics import mean
from typing import Literal

from curvlab.statistics import LEVEL, Paired, detectable, holm, paired, runs_needed
from curvlab.study.floor import Floor
from curvlab.study.twins import FLAT

ONE_POINT = 1.0


@dataclass(frozen=True)
class Outcome:
    """A model in a space and its runs.

    Attributes:
        model: choice of `model=`.
        label: of the model.
        space: kind of space.
        dim: width.
        words: overrides of its runs, without the seed.
        chosen: values that its trials chose.
        scores: one a seed, in the seeds' order; empty if a run has none.
        curvatures: learned ones, by name, the mean over seeds of each component.
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
    parameters: float | None = None
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
    """A space against the flat one.

    Attributes:
        outcome: of the space.
        paired: differences over seeds.
        corrected: p of the t test, by Holm for all spaces of the model.
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
    """The recommendation for a model.

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
        flat: the flat space.
        others: the other spaces, compared with it.
        failed: spaces without scores.
        narrower: the best curved space and the flat one at smaller widths, compared with the flat
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
    """Compare spaces with the flat one, corrected for their number."""
    pairs = [paired(other.scores, flat.scores) for other in others]
    corrected = holm([pair.p_t for pair in pairs])
    return tuple(Comparison(*found) for found in zip(others, pairs, corrected, strict=True))


def best_of(others: Sequence[Comparison]) -> Comparison:
    """The space with the best mean score."""
    return max(others, key=lambda comparison: comparison.outcome.mean)


def verdict(flat: Outcome, others: Sequence[Comparison], floor: Floor | None = None) -> Verdict:
    """Recommend a space for a model.

    Spaces count as better that beat flat by the corrected t test at 5 %. Of the one with the best
    mean and the others that no paired t test separates from it, the first in the study's order is
    recommended: a space with one curvature of a known sign before one that learns it, and that
    before a product. Flat, if none is better. None, if no score is above the noise of the floor.
    """
    limit = -inf if floor is None else floor.limit
    highest = max([flat, *(c.outcome for c in others)], key=lambda outcome: outcome.mean)
    if highest.mean <= limit:
        text = (
            f"No space is recommended for {flat.label}: its best score, {highest.mean:.2f} in "
            f"{highest.space} space, is not above the floor of {floor}. More steps, another "
            "learning rate or other features may help."
        )
        return Verdict("floor", FLAT, (), text)
    better = [c for c in others if c.significant and c.paired.mean > 0 and c.outcome.mean > limit]
    if better:
        top = best_of(better)
        alike = [c for c in better if not paired(top.outcome.scores, c.outcome.scores).p_t < LEVEL]
        best, *rest = alike
        names = tuple(c.outcome.space for c in rest)
        text = (
            f"{best.outcome.label} gains from curvature: in {best.outcome.space} space it scores "
            f"{best.paired.mean:.2f} points more than in flat space, 95 % interval "
            f"{best.paired.interval}, p = {best.corrected:.2g} after Holm."
        )
        text += f" {_listed(names).capitalize()} did not do better." if names else ""
        return Verdict("curved", best.outcome.space, names, text)
    equal = [c for c in others if not c.significant]
    if not equal:
        least = min(-c.paired.mean for c in others)
        less = f"by {least:.2f} points or more"
        text = f"{flat.label} stays flat: every other space scores less, {less}."
        return Verdict("flat", FLAT, (), text)
    text = (
        f"{flat.label} stays flat: no difference was found with this budget. "
        f"{_budget(best_of(equal), len(others))}"
    )
    if worse := [c.outcome.space for c in others if c.significant]:
        text += f" Worse than flat: {_listed(worse)}."
    return Verdict("no difference", FLAT, tuple(c.outcome.space for c in equal), text)


def widths_saved(narrower: Sequence[Comparison]) -> Iterator[str]:
    """Compare smaller widths with the full one, a sentence each, corrected for their number."""
    for cut in narrower:
        pair, where = cut.paired, f"At dim {cut.outcome.dim}, {cut.outcome.space}"
        against = f"flat space of full width, 95 % interval {pair.interval}"
        if cut.significant:
            more = f"{abs(pair.mean):.2f} points {'more' if pair.mean > 0 else 'less'}"
            yield f"{where} scores {more} than {against}, p = {cut.corrected:.2g} after Holm."
        else:
            yield f"{where} was not found to differ from {against}."


def overall(reports: Sequence[ModelReport]) -> str:
    """The recommendation over all models, in a sentence: the best one in its best space."""
    best = max((report.recommended for report in reports), key=lambda outcome: outcome.mean)
    gains = [report.flat.label for report in reports if report.verdict.kind == "curved"]
    curved = "Curvature was not found to be worth it on this graph."
    if gains:
        curved = f"Curvature is worth it for {_listed(gains)}."
    elif all(report.verdict.kind == "floor" for report in reports):
        curved = "Nothing is recommended: no score is above the floor."
    score = f"{best.label} in {best.space} space, {best.mean:.2f} on average"
    return f"{curved} The best score of all has {score}."


def _budget(comparison: Comparison, tests: int) -> str:
    """The effect that this number of runs detects, and how many runs detect a smaller one.

    The level is that of Holm's first step, which the best of all comparisons has to pass.
    """
    pair, level = comparison.paired, LEVEL / tests
    found = (
        f"The best curved space, {comparison.outcome.space}, differs by {pair.mean:+.2f} points, "
        f"95 % interval {pair.interval}."
    )
    limit = detectable(pair.std, pair.pairs, level)
    if isinf(limit) or pair.std == 0:
        return found
    aim = ONE_POINT if limit > ONE_POINT else limit / 2
    runs = runs_needed(aim, pair.std, level)
    more = f", with about {runs} runs one of {aim:.2f} points" if runs else ""
    return (
        f"{found} With {pair.pairs} runs a difference of about {limit:.2f} points is detectable "
        f"with 80 % power{more}."
    )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
