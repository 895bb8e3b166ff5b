"""Trials of a study: their attributes, states and order."""

from collections import Counter
from collections.abc import Sequence

from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from curvlab.statistics import decimals

# Attributes of a trial.
ERROR = "error"  # reason of a failure; absent if the trial was interrupted
SCORES = "scores"  # score of each seed
PLACE = "place"  # index in the sampler's order; a repeated trial has the same
WORKER = "worker"  # name of the worker's lease

NAMES = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
}
"""Names of the states of finished trials."""


def finished_trials(study: Study) -> list[FrozenTrial]:
    """Trials that are complete, pruned, or failed with an error."""
    states = (TrialState.COMPLETE, TrialState.PRUNED)
    return [
        trial
        for trial in study.get_trials(deepcopy=False)
        if trial.state in states or ERROR in trial.user_attrs
    ]


def best_first(study: Study) -> list[FrozenTrial]:
    """Complete trials, best score first; of equal scores, the earlier trial first."""
    complete = study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])
    return sorted(complete, key=lambda trial: -(trial.value or 0))


def format_score(score: float | None) -> str:
    """A score with four digits if it is a fraction, else with two."""
    return f"{score:.{decimals(score)}f}"


def minutes(trials: Sequence[FrozenTrial]) -> float:
    """Sum of the durations of trials."""
    durations = [trial.duration for trial in trials if trial.duration]
    return sum(duration.total_seconds() for duration in durations) / 60


def count_states(trials: Sequence[FrozenTrial]) -> dict[str, int]:
    """Number of trials by the name of their state: complete, pruned, failed."""
    counts = Counter(trial.state for trial in trials)
    return {name: counts[state] for state, name in NAMES.items() if counts[state]}
