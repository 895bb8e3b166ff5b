"""Optuna studies in journals whose checksums are verified before each read and write."""

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from math import isclose
from pathlib import Path
from statistics import mean

import optuna
from omegaconf import DictConfig
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from curvlab.config.building import build
from curvlab.errors import UsageError, error_sentence
from curvlab.files import atomic_write
from curvlab.run.reporting import relative_path
from curvlab.search.trials import SCORES, best_first

JOURNAL = "study.journal"
CHECKSUM_FILE = "study.checksum"

optuna.logging.set_verbosity(optuna.logging.ERROR)


def open_study(folder: Path, options: DictConfig, config_hash: str) -> optuna.Study:
    """Open the study of a folder, or create it."""
    pruner = build(options.pruner) if options.pruner else optuna.pruners.NopPruner()
    with _open_journal(folder / JOURNAL) as storage:
        names = optuna.get_all_study_names(storage)  # at most one study per folder
        study = optuna.create_study(
            study_name=names[0] if names else config_hash,
            storage=storage,
            pruner=pruner,
            direction="maximize",
            load_if_exists=True,
        )
        _check_values(study)
    return study


def read_study(folder: Path) -> optuna.Study:
    """Read the study in a folder."""
    journal = folder / JOURNAL
    if not journal.is_file():
        remedy = "name the folder that curvlab train -m search=... wrote"
        raise UsageError(f"there is no search in {folder}: {remedy}")
    with _open_journal(journal) as storage:
        study = optuna.load_study(study_name=None, storage=storage)
        _check_values(study)
    return study


@contextmanager
def _open_journal(journal: Path) -> Iterator[JournalStorage]:
    """Yield the storage of an intact journal; errors of Optuna become a `UsageError`."""
    try:
        check_journal(journal)
        yield JournalStorage(JournalFileBackend(str(journal), _JournalLock(journal)))
    except (UsageError, OSError):
        raise
    except Exception as error:  # Optuna can raise nearly anything for damaged lines
        raise _damage(journal, error_sentence(error)) from error


def _check_values(study: optuna.Study) -> None:
    """Check that the values of complete trials are the means of their scores."""
    for trial in best_first(study):
        scores = trial.user_attrs.get(SCORES)
        if not scores or trial.value is None or not isclose(trial.value, mean(scores)):
            raise ValueError(f"the value of trial {trial.number} is not the mean of its scores")


class _JournalLock(JournalFileOpenLock):
    """Serialises writers, verifies the last write, and removes a killed writer's partial line.

    The checksum file holds the journal's size and CRC-32 after the last complete write.
    """

    def __init__(self, journal: Path) -> None:
        super().__init__(str(journal))
        self._journal = journal

    def acquire(self) -> bool:
        """Wait for the lock; Optuna releases a killed writer's lock after 30 seconds."""
        super().acquire()
        try:
            check_journal(self._journal)
            content = self._journal.read_bytes()
            os.truncate(self._journal, content.rfind(b"\n") + 1)
        except BaseException:
            super().release()
            raise
        return True

    def release(self) -> None:
        """Write the checksum and release the lock."""
        content = self._journal.read_bytes()
        checksum = f"{len(content)} {zlib.crc32(content):08x}\n"
        atomic_write(_checksum_file(self._journal), checksum)
        super().release()


def check_journal(journal: Path) -> None:
    """Refuse a damaged journal; lines that a killed writer added later are no damage."""
    checksum_file = _checksum_file(journal)
    if not checksum_file.is_file():  # a new journal, or one of an earlier version
        return
    try:  # read the checksum first: another process may be writing the journal
        size_text, checksum = checksum_file.read_text(encoding="utf-8").split()
        size = int(size_text)
    except ValueError:
        raise _damage(journal, f"{checksum_file.name} cannot be read") from None
    content = journal.read_bytes()[:size]
    if len(content) < size:
        raise _damage(journal, f"it has {len(content)} of {size} bytes")
    if f"{zlib.crc32(content):08x}" != checksum:
        raise _damage(journal, "its checksum does not match")


def _checksum_file(journal: Path) -> Path:
    return journal.with_name(CHECKSUM_FILE)


def _damage(journal: Path, reason: object) -> UsageError:
    return UsageError(
        f"{relative_path(journal)} is damaged ({reason}): restore its folder from a copy, or "
        "search again with rerun=true, which moves it to previous/"
    )
