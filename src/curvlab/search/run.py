"""Hyperparameter search by validation scores: an Optuna study that workers share."""

import copy
import os
import shlex
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from math import isclose, prod
from pathlib import Path
from statistics import mean
from typing import Any
from uuid import uuid4

import lightning
import optuna
from hydra.core.hydra_config import HydraConfig
from lightning.pytorch.callbacks import LambdaCallback
from omegaconf import DictConfig, OmegaConf, open_dict
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, TrialState

from curvlab.callbacks import FiniteGuard
from curvlab.config.building import build
from curvlab.config.options import validate
from curvlab.errors import UsageError, one_sentence
from curvlab.files import atomic_write
from curvlab.leases import SUFFIX, HeldError, Holder, look, take
from curvlab.results.folder import RunDirectory
from curvlab.results.result import Result, git_commit
from curvlab.run.hardware import prepare_process
from curvlab.run.parts import build_data, build_selection, build_task, build_trainer
from curvlab.run.reporting import quiet, report_run, say, shown
from curvlab.run.sweep import LOOKS
from curvlab.run.train import conclude, describe
from curvlab.search.space import check_search, defaults, values_by_key

JOURNAL, CHECKSUM_FILE = "study.journal", "study.checksum"
ERROR = "error"  # of a trial's attributes: why it failed; absent where it was interrupted
SCORES = "scores"  # likewise: the score of each seed
PLACE = "place"  # likewise: in the sampler's order; a repeated trial has the same
WORKER = "worker"  # likewise: the name of the lease of its worker
COMMAND, COMMIT = "command", "commit"  # of the study's attributes: what ran it last
ENDS = {TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned", TrialState.FAIL: "failed"}

optuna.logging.set_verbosity(optuna.logging.ERROR)


def search(config: DictConfig) -> Result:
    """Search one model's hyperparameters on one data set; an existing study is continued.

    Another search in the same folder, or with `rerun=true`, is moved to `previous/HASH`.
    """
    folder = RunDirectory(Path(HydraConfig.get().runtime.output_dir))
    without_budget = copy.deepcopy(config)
    with open_dict(without_budget.search):
        del without_budget.search.trials, without_budget.search.minutes
    result = describe(without_budget)
    folder.path.mkdir(parents=True, exist_ok=True)
    worker = folder.path / f"worker-{uuid4().hex[:12]}{SUFFIX}"
    with take(worker):
        try:
            check_search(config)
            with _alone_in(folder):
                begun = any(look(w) for w in folder.path.glob(f"worker-*{SUFFIX}") if w != worker)
                fresh = config.rerun and not (begun and folder.config_hash == result.config_hash)
                if not fresh:
                    folder.restore(result.config_hash)
                folder.prepare(result, fresh)
                study = open_study(folder.path, config.search, result.config_hash)
            _search(config, study, result, folder, worker.name)
        except Exception as error:
            with _alone_in(folder):
                conclude(result, error, folder)
            report_run(result, folder.path)  # the disk may have no room for its file
    return result


def _alone_in(folder: RunDirectory) -> AbstractContextManager[None]:
    """Hold a search's folder for a moment."""
    return folder.locked(lambda _: None)


def _search(
    config: DictConfig, study: optuna.Study, result: Result, place: RunDirectory, worker: str
) -> None:
    """Run trials until the budget is spent; write the result if no other worker is running."""
    folder, options = place.path, config.search
    prepare_process(config.trainer.threads, config.trainer.accelerator)
    _ = build_data(config).graph  # what is wrong with the data is not the fault of a trial
    choices, done = values_by_key(config).values(), ended(study)
    limit = f" or {options.minutes} minutes" if options.minutes else ""
    say(
        f"{config.model.label} on {config.dataset.label}: searching {len(choices)} keys, "
        f"{prod(map(len, choices)):,} combinations, at {len(options.seeds)} seeds each; "
        f"{options.trials} trials{limit} in {shown(folder)}"
        + (f", {len(done)} trials in {minutes(done):.1f} minutes done" if done else "")
    )
    while True:
        with _alone_in(place):
            others = running(study, folder)
            trial = _next_trial(study, config, worker, len(others))
            if trial is None and not others:
                _write(study, result, folder)
                return
        if trial is not None:
            _run_trial(study, trial, config)
        elif all(holder.alive for holder in others.values()):
            who = ", ".join(f"trial {number} by {holder}" for number, holder in others.items())
            say(f"{result.model} on {result.dataset}: the last trials are at work elsewhere, {who}")
            return
        else:  # until it is known whether those of other machines live
            time.sleep(LOOKS)


def _next_trial(
    study: optuna.Study, config: DictConfig, worker: str, others: int
) -> optuna.Trial | None:
    """Take a trial if the budget allows; the caller holds the folder."""
    done, options = ended(study), config.search
    late = options.minutes is not None and minutes(done) >= options.minutes
    if len(done) + others >= options.trials or late:
        return None
    at_work = study.get_trials(deepcopy=False, states=[TrialState.RUNNING])
    taken = {trial.user_attrs.get(PLACE, i) for i, trial in enumerate(done + at_work)}
    place = next(place for place in range(len(taken) + 1) if place not in taken)
    words = [word for word in HydraConfig.get().overrides.task if not word.startswith("paths.")]
    study.set_user_attr(COMMAND, f"curvlab train {shlex.join(['-m', *words])}")
    study.set_user_attr(COMMIT, git_commit())
    waiting = study.get_trials(deepcopy=False, states=[TrialState.WAITING])
    if place == 0 and not waiting and (first := defaults(config)):
        study.enqueue_trial(first)
    # Seeded by its place, the trial of a worker that was killed is proposed again.
    study.sampler = build(options.sampler, seed=config.seed + 1000 * place)
    trial = study.ask()
    trial.set_user_attr(PLACE, place)
    trial.set_user_attr(WORKER, worker)
    return trial


def _run_trial(study: optuna.Study, trial: optuna.Trial, config: DictConfig) -> None:
    start, end = time.monotonic(), ""
    try:
        score = _mean_score(trial, config)
        study.tell(trial, score)
        end = f"{score:.2f}"
    except optuna.TrialPruned:
        value = study.tell(trial, state=TrialState.PRUNED).value
        scores = trial.user_attrs.get(SCORES, [])
        where = f"after {len(scores)} of its runs" if scores else "in its first run"
        end = f"{value:.2f} {where}, pruned"
    except Exception as error:
        trial.set_user_attr(ERROR, one_sentence(error))
        study.tell(trial, state=TrialState.FAIL)
        end = f"failed: {one_sentence(error)}"
    best = "".join(f"best {t.value:.2f} (trial {t.number})  " for t in best_first(study)[:1])
    seconds = time.monotonic() - start
    say(f"trial {trial.number}  {end}  {best}{seconds:.1f} s  {_words(trial.params)}")


def _mean_score(trial: optuna.Trial, config: DictConfig) -> float:
    """The mean over seeds of a combination's best validation scores, unless it is pruned."""
    run = OmegaConf.masked_copy(config, [str(key) for key in config if key != "search"])
    for key, values in values_by_key(config).items():
        OmegaConf.update(run, key, trial.suggest_categorical(key, values))
    validate(run)
    same = [t.user_attrs for t in ended(trial.study) if t.params == trial.params]
    known: list[float] = max((a.get(SCORES, []) for a in same), key=len, default=[])

    def report(step: int, score: float) -> None:
        trial.report(score, step)
        if trial.should_prune():
            raise optuna.TrialPruned

    scores: list[float] = []
    for i, seed in enumerate(config.search.seeds):
        if i:
            report(i * (run.trainer.max_steps + 1), mean(scores))  # after all of the first run's
        if i < len(known):
            scores.append(known[i])
        else:
            run.seed = seed
            scores.append(validation_score(run, None if i else report))
        trial.set_user_attr(SCORES, scores)
    return mean(scores)


def validation_score(run: DictConfig, report: Callable[[int, float], None] | None = None) -> float:
    """Train one run and return its best validation score, with nothing written or drawn."""
    lightning.seed_everything(run.seed, workers=True, verbose=False)
    data = build_data(run)
    task = build_task(run, data)
    best = build_selection(run, data)
    callbacks = [FiniteGuard(run.trainer.steps_per_epoch), best]
    if report is not None:
        told = LambdaCallback(on_train_epoch_end=lambda t, _: report(t.global_step, best.score))
        callbacks.append(told)
    with quiet():
        # `best` validates
        trainer = build_trainer(run, Path(), callbacks, logger=None, limit_val_batches=0)
        trainer.fit(task, datamodule=data)
    return best.score


def _write(study: optuna.Study, result: Result, folder: Path) -> None:
    """Write and print the result of a finished search, and fail the trials of killed workers."""
    for path in folder.glob(f"worker-*{SUFFIX}"):
        with suppress(HeldError), take(path):
            pass
    done = ended(study)
    if not (ranking := best_first(study)):
        raise UsageError(
            f"none of {len(done)} trials has a score; the last: {done[-1].user_attrs[ERROR]}"
        )
    result.status = "finished"
    result.val_score = ranking[0].value
    result.wall_seconds = 60 * minutes(done)
    result.write(folder)
    ends = ", ".join(f"{number} {end}" for end, number in count(done).items())
    metric, best = result.config["task"]["metric"], ranking[0]
    say(
        f"{result.model} on {result.dataset}: mean validation {metric} {best.value:.2f} by trial "
        f"{best.number} of {len(done)} ({ends}) in {minutes(done):.1f} minutes\n"
        f"  winner   {_words(best.params)}\n"
        f"  adopt    curvlab adopt {shown(folder)}"
    )


def _words(params: Mapping[str, Any]) -> str:
    words = {key: str(v).lower() if isinstance(v, bool) else v for key, v in params.items()}
    return " ".join(f"{key}={word}" for key, word in words.items())


def open_study(folder: Path, options: DictConfig, config_hash: str) -> optuna.Study:
    """Open the study of a folder, or create it."""
    pruner = build(options.pruner) if options.pruner else optuna.pruners.NopPruner()
    with _intact(folder / JOURNAL) as storage:
        names = optuna.get_all_study_names(storage)  # one at most: another search is set aside
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
        message = "name the folder that curvlab train -m search=... wrote"
        raise UsageError(f"there is no search in {folder}: {message}")
    with _intact(journal) as storage:
        study = optuna.load_study(study_name=None, storage=storage)
        _check_values(study)
    return study


def running(study: optuna.Study, folder: Path) -> dict[int, Holder]:
    """Trials of living workers; those of dead ones fail. The caller holds the folder."""
    found = {}
    for trial in study.get_trials(deepcopy=False, states=[TrialState.RUNNING]):
        name = trial.user_attrs.get(WORKER)
        if name and (holder := look(folder / name)):
            found[trial.number] = holder
        else:
            study.tell(trial.number, state=TrialState.FAIL)
    return found


@contextmanager
def _intact(journal: Path) -> Iterator[JournalStorage]:
    """Yield the storage of an intact journal; Optuna's error about its lines is a `UsageError`."""
    try:
        check_journal(journal)
        yield JournalStorage(JournalFileBackend(str(journal), _JournalLock(journal)))
    except (UsageError, OSError):
        raise
    except Exception as error:  # what damaged lines do to Optuna is anybody's guess
        raise _damaged(journal, one_sentence(error)) from error


def _check_values(study: optuna.Study) -> None:
    """Compare the values of complete trials with the means of their scores."""
    for trial in best_first(study):
        scores = trial.user_attrs.get(SCORES)
        if not scores or trial.value is None or not isclose(trial.value, mean(scores)):
            raise ValueError(f"the value of trial {trial.number} is not the mean of its scores")


class _JournalLock(JournalFileOpenLock):
    """Serialises writers, verifies what the last one wrote, and removes a killed one's half line.

    The side file holds the journal's size and its CRC-32 after the last complete write.
    """

    def __init__(self, journal: Path) -> None:
        super().__init__(str(journal))
        self._journal = journal

    def acquire(self) -> bool:
        """Wait for the lock; that of a killed writer is free after Optuna's 30 seconds."""
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
        """Write the checksum and give the lock back."""
        content = self._journal.read_bytes()
        atomic_write(_side_file(self._journal), f"{len(content)} {zlib.crc32(content):08x}\n")
        super().release()


def check_journal(journal: Path) -> None:
    """Refuse a journal that is not what was written; a killed writer's last lines may follow it."""
    side = _side_file(journal)
    if not side.is_file():  # of an earlier version, or new
        return
    try:  # before the journal, which another process may be writing
        size, expected = side.read_text(encoding="utf-8").split()
        written = journal.read_bytes()[: int(size)]
    except ValueError:
        raise _damaged(journal, f"{side.name} cannot be read") from None
    if len(written) < int(size):
        raise _damaged(journal, f"it has {len(written)} of {size} bytes")
    if f"{zlib.crc32(written):08x}" != expected:
        raise _damaged(journal, "its checksum does not match")


def _side_file(journal: Path) -> Path:
    return journal.with_name(CHECKSUM_FILE)


def _damaged(journal: Path, reason: object) -> UsageError:
    return UsageError(
        f"{shown(journal)} is damaged ({reason}): restore its folder from a copy, or search again "
        "with rerun=true, which moves it to previous/"
    )


def ended(study: optuna.Study) -> list[FrozenTrial]:
    """Trials that have ended: complete, pruned, or failed because of their values."""
    ended = (TrialState.COMPLETE, TrialState.PRUNED)
    trials = study.get_trials(deepcopy=False)
    return [trial for trial in trials if trial.state in ended or ERROR in trial.user_attrs]


def minutes(trials: Sequence[FrozenTrial]) -> float:
    """Sum of the durations of trials."""
    return sum(trial.duration.total_seconds() for trial in trials if trial.duration) / 60


def count(trials: Sequence[FrozenTrial]) -> dict[str, int]:
    """Number of trials by their end: complete, pruned, failed."""
    found = Counter(trial.state for trial in trials)
    return {end: found[state] for state, end in ENDS.items() if found[state]}


def best_first(study: optuna.Study) -> list[FrozenTrial]:
    """Complete trials by their scores; of equal ones the earlier first."""
    complete = study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])
    return sorted(complete, key=lambda trial: -(trial.value or 0))
