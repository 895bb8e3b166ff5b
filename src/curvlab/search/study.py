"""The study of a search: an Optuna journal in a folder, which many workers share.

It survives a kill of any of them at any moment.
"""

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import optuna
from omegaconf import DictConfig
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, TrialState

from curvlab.config.building import build
from curvlab.errors import UsageError
from curvlab.results.leases import SUFFIX, Holder, held, look

JOURNAL = "study.journal"
ERROR = "error"  # of a trial's attributes: why it failed; absent where it was interrupted
SCORES = "scores"  # likewise: the score of each seed
PLACE = "place"  # likewise: in the sampler's order; a repeated trial has the same
WORKER = "worker"  # likewise: the name of the lease of its worker
COMMAND, COMMIT = "command", "commit"  # of the study's attributes: what ran it last

optuna.logging.set_verbosity(optuna.logging.ERROR)


def open_study(folder: Path, options: DictConfig, config_hash: str) -> optuna.Study:
    """Open the study of a folder, or begin it.

    Args:
        folder: the search's.
        options: the block `search` of the configuration.
        config_hash: name of the study.
    """
    return optuna.create_study(
        study_name=config_hash,
        storage=_storage(folder / JOURNAL),
        pruner=build(options.pruner) if options.pruner else optuna.pruners.NopPruner(),
        direction="maximize",
        load_if_exists=True,
    )


def read_study(folder: Path) -> optuna.Study:
    """The study in a folder, to look at.

    Raises:
        UsageError: there is none.
    """
    journal = folder / JOURNAL
    if not journal.is_file():
        raise UsageError(
            f"there is no search in {folder}: name the folder that "
            f"curvlab train -m search=... wrote"
        )
    return optuna.load_study(study_name=None, storage=_storage(journal))


def running(study: optuna.Study, folder: Path) -> dict[int, Holder]:
    """Trials of living workers, with these. Trials of dead ones fail, and are repeated.

    To be called by who holds the folder: a worker takes its trials within that.
    """
    found = {}
    for trial in study.get_trials(deepcopy=False, states=[TrialState.RUNNING]):
        name = trial.user_attrs.get(WORKER)
        if name and (holder := look(folder / name)):
            found[trial.number] = holder
        else:
            study.tell(trial.number, state=TrialState.FAIL)
    return found


def next_place(study: optuna.Study) -> int:
    """The first place in the sampler's order without a trial that has ended or is at work."""
    trials = concluded(study) + study.get_trials(deepcopy=False, states=[TrialState.RUNNING])
    taken = {trial.user_attrs.get(PLACE, i) for i, trial in enumerate(trials)}
    return next(place for place in range(len(taken) + 1) if place not in taken)


def _storage(journal: Path) -> JournalStorage:
    return JournalStorage(JournalFileBackend(str(journal), _JournalLock(journal)))


class _JournalLock(JournalFileOpenLock):
    """Lets one process at a time write, and removes half a line that a killed one has left."""

    def __init__(self, journal: Path) -> None:
        super().__init__(str(journal))
        self._journal = journal
        self._held = ExitStack()

    def acquire(self) -> bool:
        """Wait for the lease."""
        lease = self._journal.with_name(f"{JOURNAL}{SUFFIX}")
        self._held.enter_context(held(lease, lambda _: None))
        with self._journal.open("rb+") as file:
            if size := file.seek(0, os.SEEK_END):
                file.seek(size - 1)
                if file.read(1) != b"\n":
                    file.seek(0)
                    file.truncate(file.read().rfind(b"\n") + 1)
        return True

    def release(self) -> None:
        """Give it back."""
        self._held.close()


def concluded(study: optuna.Study) -> list[FrozenTrial]:
    """Trials that need not be repeated: complete, pruned, or failed by their values."""
    ended = (TrialState.COMPLETE, TrialState.PRUNED)
    trials = study.get_trials(deepcopy=False)
    return [trial for trial in trials if trial.state in ended or ERROR in trial.user_attrs]


def minutes(trials: Sequence[FrozenTrial]) -> float:
    """Sum of the durations of trials."""
    return sum(trial.duration.total_seconds() for trial in trials if trial.duration) / 60


def count(trials: Sequence[FrozenTrial]) -> dict[str, int]:
    """Number of trials by their end."""
    found = Counter(trial.state for trial in trials)
    words = {
        "complete": TrialState.COMPLETE,
        "pruned": TrialState.PRUNED,
        "failed": TrialState.FAIL,
    }
    return {word: found[state] for word, state in words.items() if found[state]}


def best_first(study: optuna.Study) -> list[FrozenTrial]:
    """Complete trials by their scores; of equal ones the earlier first."""
    complete = study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])
    return sorted(complete, key=lambda trial: -(trial.value or 0))
