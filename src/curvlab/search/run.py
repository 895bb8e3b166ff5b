"""Search hyperparameters by validation scores, in an Optuna study that workers share."""

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
from curvlab.config.validation import validate
from curvlab.errors import UsageError, error_sentence
from curvlab.files import atomic_write
from curvlab.leases import SUFFIX, HeldError, Holder, acquire, find_holder
from curvlab.results.folder import RunDirectory
from curvlab.results.result import Result, git_commit
from curvlab.run.command import Command
from curvlab.run.endings import conclude
from curvlab.run.hardware import choose_device, prepare_process
from curvlab.run.parts import build_data, build_selection, build_task, build_trainer
from curvlab.run.reporting import quiet, relative_path, report_run, say
from curvlab.run.sweep import POLL_SECONDS
from curvlab.search.space import check_search, defaults, seeds_of, values_by_key

JOURNAL = "study.journal"
CHECKSUM_FILE = "study.checksum"
# Attributes of a trial.
ERROR = "error"  # why it failed; absent if it was interrupted
SCORES = "scores"  # the score of each seed
PLACE = "place"  # its place in the sampler's order, which a repeated trial keeps
WORKER = "worker"  # the name of its worker's lease
# Attributes of the study: the command and the commit that ran it last.
COMMAND = "command"
COMMIT = "commit"
ENDS = {TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned", TrialState.FAIL: "failed"}

optuna.logging.set_verbosity(optuna.logging.ERROR)


def search(command: Command) -> Result:
    """Search one model's hyperparameters on one data set, or continue an existing study.

    A different search in the same folder is moved to `previous/HASH`; with `rerun=true` any is.
    """
    folder = RunDirectory(Path(HydraConfig.get().runtime.output_dir))
    config = command.config
    without_budget = copy.deepcopy(config)
    with open_dict(without_budget.search):
        del without_budget.search.trials, without_budget.search.minutes
    result = Command(command.overrides, without_budget).initial_result()
    folder.path.mkdir(parents=True, exist_ok=True)
    worker = folder.path / f"worker-{uuid4().hex[:12]}{SUFFIX}"
    with acquire(worker):
        try:
            check_search(config)
            with _hold(folder):
                leases = set(folder.path.glob(f"worker-*{SUFFIX}")) - {worker}
                joins = any(map(find_holder, leases)) and folder.config_hash == result.config_hash
                fresh = config.rerun and not joins
                if not fresh:
                    folder.restore(result.config_hash)
                folder.prepare(result, fresh)
                study = open_study(folder.path, config.search, result.config_hash)
            _search(config, study, result, folder, worker.name)
        except Exception as error:
            with _hold(folder):
                conclude(result, error, folder)
            report_run(result, folder.path)  # also if the disk has no room for its file
    return result


def _hold(folder: RunDirectory) -> AbstractContextManager[None]:
    """Hold a search's folder, after other workers have released it."""
    return folder.locked(lambda _: None)


def _search(
    config: DictConfig, study: optuna.Study, result: Result, place: RunDirectory, worker: str
) -> None:
    """Run trials until the budget is spent; write the result if no other worker is running."""
    folder = place.path
    options = config.search
    device = choose_device(config.trainer.accelerator, config.trainer.precision)
    prepare_process(config.trainer.threads, device)
    _ = build_data(config).graph  # so that wrong data fail here and not in a trial
    choices = values_by_key(config).values()
    trials = ended(study)
    limit = f" or {options.minutes} minutes" if options.minutes else ""
    say(
        f"{config.model.label} on {config.dataset.label}: searching {len(choices)} keys, "
        f"{prod(map(len, choices)):,} combinations, at {len(seeds_of(config))} seeds each; "
        f"{options.trials} trials{limit} in {relative_path(folder)}"
        + (f", {len(trials)} trials in {minutes(trials):.1f} minutes done" if trials else "")
    )
    while True:
        with _hold(place):
            holders = running(study, folder)
            trial = _next_trial(study, config, worker, len(holders))
            if trial is None and not holders:
                _write(study, result, folder)
                return
        if trial is not None:
            _run_trial(study, trial, config)
        elif all(holder.alive for holder in holders.values()):
            who = ", ".join(f"trial {number} by {holder}" for number, holder in holders.items())
            say(f"{result.model} on {result.dataset}: the last trials are running elsewhere, {who}")
            return
        else:  # until the leases show whether other machines are alive
            time.sleep(POLL_SECONDS)


def _next_trial(
    study: optuna.Study, config: DictConfig, worker: str, num_running: int
) -> optuna.Trial | None:
    """Take a trial if the budget allows; the caller holds the folder."""
    options = config.search
    trials = ended(study)
    if len(trials) + num_running >= options.trials:
        return None
    if options.minutes is not None and minutes(trials) >= options.minutes:
        return None
    trials += study.get_trials(deepcopy=False, states=[TrialState.RUNNING])
    taken = {trial.user_attrs.get(PLACE, i) for i, trial in enumerate(trials)}
    place = next(place for place in range(len(taken) + 1) if place not in taken)
    overrides = [o for o in HydraConfig.get().overrides.task if not o.startswith("paths.")]
    study.set_user_attr(COMMAND, f"curvlab train {shlex.join(['-m', *overrides])}")
    study.set_user_attr(COMMIT, git_commit())
    waiting = study.get_trials(deepcopy=False, states=[TrialState.WAITING])
    start = defaults(config)
    if place == 0 and not waiting and start is not None:
        study.enqueue_trial(start)
    # The place is the seed: the trial of a killed worker is proposed again.
    study.sampler = build(options.sampler, seed=config.seed + 1000 * place)
    trial = study.ask()
    trial.set_user_attr(PLACE, place)
    trial.set_user_attr(WORKER, worker)
    return trial


def _run_trial(study: optuna.Study, trial: optuna.Trial, config: DictConfig) -> None:
    start = time.monotonic()
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
        trial.set_user_attr(ERROR, error_sentence(error))
        study.tell(trial, state=TrialState.FAIL)
        end = f"failed: {error_sentence(error)}"
    best = "".join(f"best {t.value:.2f} (trial {t.number})  " for t in best_first(study)[:1])
    seconds = time.monotonic() - start
    say(f"trial {trial.number}  {end}  {best}{seconds:.1f} s  {_as_overrides(trial.params)}")


def _mean_score(trial: optuna.Trial, config: DictConfig) -> float:
    """The mean over seeds of a combination's best validation scores, unless the trial is pruned."""
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
    for i, seed in enumerate(seeds_of(config)):
        if i:
            report(i * (run.trainer.max_steps + 1), mean(scores))  # after the first run's steps
        if i < len(known):
            scores.append(known[i])
        else:
            run.seed = seed
            scores.append(validation_score(run, None if i else report))
        trial.set_user_attr(SCORES, scores)
    return mean(scores)


def validation_score(run: DictConfig, report: Callable[[int, float], None] | None = None) -> float:
    """Train one run and return its best validation score; writes and draws nothing."""
    lightning.seed_everything(run.seed, workers=True, verbose=False)
    device = choose_device(run.trainer.accelerator, run.trainer.precision)
    data = build_data(run)
    task = build_task(run, data)
    best = build_selection(run, data)
    callbacks = [FiniteGuard(run.trainer.steps_per_epoch), best]
    if report is not None:
        reporter = LambdaCallback(
            on_train_epoch_end=lambda trainer, _: report(trainer.global_step, best.score)
        )
        callbacks.append(reporter)
    with quiet():
        # The callback `best` validates, not Lightning.
        trainer = build_trainer(run, device, Path(), callbacks, logger=None, limit_val_batches=0)
        trainer.fit(task, datamodule=data)
    return best.score


def _write(study: optuna.Study, result: Result, folder: Path) -> None:
    """Write and print the result of a finished search, and remove leases of killed workers."""
    for path in folder.glob(f"worker-*{SUFFIX}"):
        with suppress(HeldError), acquire(path):
            pass
    trials = ended(study)
    ranking = best_first(study)
    if not ranking:
        raise UsageError(
            f"none of {len(trials)} trials has a score; the last: {trials[-1].user_attrs[ERROR]}"
        )
    result.status = "finished"
    result.val_score = ranking[0].value
    result.wall_seconds = 60 * minutes(trials)
    result.write(folder)
    ends = ", ".join(f"{number} {end}" for end, number in count(trials).items())
    metric = result.config["task"]["metric"]
    best = ranking[0]
    use = f"adopt    curvlab adopt {relative_path(folder)}"
    if has_no_name(result):
        use = f"train    {winner_command(study, result)}"
    say(
        f"{result.model} on {result.dataset}: mean validation {metric} {best.value:.2f} by trial "
        f"{best.number} of {len(trials)} ({ends}) in {minutes(trials):.1f} minutes\n"
        f"  winner   {_as_overrides(best.params)}\n"
        f"  {use}"
    )


def has_no_name(result: Result) -> bool:
    """Whether a graph was given by its path, so that no `dataset=NAME` stands for it."""
    return bool(result.dataset != result.config["dataset"]["name"])


def winner_command(study: optuna.Study, result: Result) -> str:
    """The command that trains the winner of a search."""
    words = shlex.split(study.user_attrs[COMMAND])[2:]
    kept = [word for word in words if word != "-m" and not word.startswith("search")]
    if not any(word.startswith("model=") for word in kept):
        kept.insert(0, f"model={result.model}")
    winner = _as_overrides(best_first(study)[0].params)
    return f"curvlab train {shlex.join(kept)} {winner}".rstrip()


def _as_overrides(params: Mapping[str, Any]) -> str:
    values = {key: str(v).lower() if isinstance(v, bool) else v for key, v in params.items()}
    return " ".join(f"{key}={value}" for key, value in values.items())


def open_study(folder: Path, options: DictConfig, config_hash: str) -> optuna.Study:
    """Open the study of a folder, or create it."""
    pruner = build(options.pruner) if options.pruner else optuna.pruners.NopPruner()
    with _intact(folder / JOURNAL) as storage:
        names = optuna.get_all_study_names(storage)  # at most one: another search is set aside
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
    """Trials of living workers; trials of dead ones fail. The caller holds the folder."""
    holders = {}
    for trial in study.get_trials(deepcopy=False, states=[TrialState.RUNNING]):
        name = trial.user_attrs.get(WORKER)
        holder = find_holder(folder / name) if name else None
        if holder is not None:
            holders[trial.number] = holder
        else:
            study.tell(trial.number, state=TrialState.FAIL)
    return holders


@contextmanager
def _intact(journal: Path) -> Iterator[JournalStorage]:
    """Yield the storage of an intact journal; errors of Optuna become a `UsageError`."""
    try:
        check_journal(journal)
        yield JournalStorage(JournalFileBackend(str(journal), _JournalLock(journal)))
    except (UsageError, OSError):
        raise
    except Exception as error:  # damaged lines raise anything in Optuna
        raise _damaged(journal, error_sentence(error)) from error


def _check_values(study: optuna.Study) -> None:
    """Check that the values of complete trials are the means of their scores."""
    for trial in best_first(study):
        scores = trial.user_attrs.get(SCORES)
        if not scores or trial.value is None or not isclose(trial.value, mean(scores)):
            raise ValueError(f"the value of trial {trial.number} is not the mean of its scores")


class _JournalLock(JournalFileOpenLock):
    """Serialises writers, verifies the last write, and removes the half line of a killed writer.

    The side file holds the journal's size and its CRC-32 after the last complete write.
    """

    def __init__(self, journal: Path) -> None:
        super().__init__(str(journal))
        self._journal = journal

    def acquire(self) -> bool:
        """Wait for the lock; Optuna frees that of a killed writer after 30 seconds."""
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
        atomic_write(_side_file(self._journal), f"{len(content)} {zlib.crc32(content):08x}\n")
        super().release()


def check_journal(journal: Path) -> None:
    """Refuse a journal that differs from what was written, but for lines of a killed writer."""
    side = _side_file(journal)
    if not side.is_file():  # a journal that is new or of an earlier version
        return
    try:  # the side file first: another process may be writing the journal
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
        f"{relative_path(journal)} is damaged ({reason}): restore its folder from a copy, or "
        "search again with rerun=true, which moves it to previous/"
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
    counts = Counter(trial.state for trial in trials)
    return {end: counts[state] for state, end in ENDS.items() if counts[state]}


def best_first(study: optuna.Study) -> list[FrozenTrial]:
    """Complete trials, best score first; of equal scores, the earlier trial first."""
    complete = study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])
    return sorted(complete, key=lambda trial: -(trial.value or 0))
