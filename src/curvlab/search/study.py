"""The study of a search: an Optuna journal in a folder, which survives a kill at any moment."""

import os
from collections.abc import Sequence
from pathlib import Path

import optuna
from omegaconf import DictConfig
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from curvlab.config.building import build
from curvlab.errors import UsageError
from curvlab.program import command

JOURNAL = "study.journal"
ERROR = "error"  # of a trial's attributes: why it failed; absent where it was interrupted
SCORES = "scores"  # likewise: the score of each seed
COMMAND, COMMIT = "command", "commit"  # of the study's attributes: what ran it last

_ENDS = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
}

optuna.logging.set_verbosity(optuna.logging.ERROR)


def open_study(folder: Path, options: DictConfig, config_hash: str) -> optuna.Study:
    """Open the study of a folder that no other process works in, or begin it.

    What a killed process has left is put in order: half a line at the journal's end, its lock, and
    trials that nobody runs any more, which count as failed.

    Args:
        folder: the search's.
        options: the block `search` of the configuration.
        config_hash: name of the study.
    """
    journal = folder / JOURNAL
    journal.with_name(f"{JOURNAL}.lock").unlink(missing_ok=True)
    if journal.exists():
        os.truncate(journal, journal.read_bytes().rfind(b"\n") + 1)
    study = optuna.create_study(
        study_name=config_hash,
        storage=_storage(journal),
        pruner=build(options.pruner) if options.pruner else optuna.pruners.NopPruner(),
        direction="maximize",
        load_if_exists=True,
    )
    for trial in study.get_trials(states=[TrialState.RUNNING]):
        study.tell(trial.number, state=TrialState.FAIL)
    return study


def read_study(folder: Path) -> optuna.Study:
    """The study in a folder, to look at.

    Raises:
        UsageError: there is none.
    """
    journal = folder / JOURNAL
    if not journal.is_file():
        raise UsageError(
            f"there is no search in {folder}: name the folder that "
            f"{command('train')} -m search=... wrote"
        )
    return optuna.load_study(study_name=None, storage=_storage(journal))


def _storage(journal: Path) -> JournalStorage:
    return JournalStorage(JournalFileBackend(str(journal)))


def concluded(study: optuna.Study) -> list[FrozenTrial]:
    """Trials that need not be repeated: complete, pruned, or failed by their values."""
    return [
        trial
        for trial in study.get_trials(deepcopy=False)
        if trial.state in (TrialState.COMPLETE, TrialState.PRUNED) or ERROR in trial.user_attrs
    ]


def minutes(trials: Sequence[FrozenTrial]) -> float:
    """How long trials took."""
    durations = (trial.duration for trial in trials)
    return sum(duration.total_seconds() for duration in durations if duration) / 60


def count(trials: Sequence[FrozenTrial]) -> dict[str, int]:
    """How many trials ended in which way."""
    ends = [_ENDS[trial.state] for trial in trials]
    return {word: ends.count(word) for word in _ENDS.values() if word in ends}


def best_first(study: optuna.Study) -> list[FrozenTrial]:
    """Complete trials by their scores; of equal ones the earlier first."""
    complete = study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])
    return sorted(complete, key=lambda trial: -(trial.value or 0))
