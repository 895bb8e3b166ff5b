"""A search for hyperparameters by validation scores, from a configuration to its study."""

import copy
import shlex
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any
from uuid import uuid4

import lightning
import optuna
from hydra.core.hydra_config import HydraConfig
from lightning import Callback, LightningModule, Trainer
from omegaconf import DictConfig, OmegaConf, open_dict
from optuna.trial import TrialState

from curvlab.callbacks import BestValidation, FiniteGuard
from curvlab.config.building import build
from curvlab.config.rules import validate
from curvlab.errors import UsageError
from curvlab.program import command as typed
from curvlab.results.folder import CONFIG, RunDirectory
from curvlab.results.leases import SUFFIX, HeldError, Holder, look, take
from curvlab.results.result import Result, git_commit
from curvlab.run import reporting
from curvlab.run.ending import conclude, one_sentence
from curvlab.run.hardware import prepare_determinism, prepare_processor
from curvlab.run.parts import build_data, build_selection, build_task, build_trainer
from curvlab.run.sweep import LOOKS, written_since
from curvlab.run.train import describe
from curvlab.search.report import search_finished, search_left, search_starting, trial_done
from curvlab.search.space import check_search, defaults, values_by_key
from curvlab.search.study import (
    COMMAND,
    COMMIT,
    ERROR,
    PLACE,
    SCORES,
    WORKER,
    best_first,
    concluded,
    minutes,
    next_place,
    open_study,
    running,
)

BUDGET = ("trials", "minutes")  # how long a study goes on, not what it is


def search(config: DictConfig) -> Result:
    """Search one model's hyperparameters on one dataset; the study is kept and gone on with.

    The study of another space, other seeds or another configuration in the same folder is moved to
    `previous/HASH`. `rerun=true` does so with the same one's.

    Args:
        config: the composed configuration, with `search`.

    Any number of workers share a study: each runs trials until no more are to be begun, and the
    last one writes the result.

    Returns:
        Its `val_score` is the winner's; whatever ended the search is in it too. Where other workers
        are at the last trials it is without score, and not written.
    """
    folder = RunDirectory(Path(HydraConfig.get().runtime.output_dir))
    result = describe(_without_budget(config))
    folder.path.mkdir(parents=True, exist_ok=True)
    worker = folder.path / f"worker-{uuid4().hex[:12]}{SUFFIX}"
    with take(worker):
        try:
            check_search(config)
            with _alone_in(folder):
                others = {*folder.path.glob(f"worker-*{SUFFIX}")} - {worker}
                begun = written_since(folder.path / CONFIG) or any(map(look, others))
                fresh = config.rerun and not (begun and folder.is_own(result.config_hash))
                if not fresh:
                    folder.recall(result.config_hash)
                folder.prepare(result, fresh)
                study = open_study(folder.path, config.search, result.config_hash)
            _search(config, study, result, folder, worker.name)
        except Exception as error:
            with _alone_in(folder):
                conclude(result, error, folder)
    return result


def _alone_in(folder: RunDirectory) -> AbstractContextManager[None]:
    """Hold a search's folder, which others do for moments."""
    return folder.claimed(lambda _: None)


def _search(
    config: DictConfig, study: optuna.Study, result: Result, place: RunDirectory, worker: str
) -> None:
    """Run trials until none is left to begin; write the result if none is at work either."""
    run, folder = _run_of(config), place.path
    prepare_processor(config.trainer.threads)
    prepare_determinism(run.trainer.deterministic, run.trainer.accelerator)
    _ = build_data(run).graph  # what is wrong with the data is no trial's fault
    search_starting(config, study, folder)
    while True:
        with _alone_in(place):
            others = running(study, folder)
            trial = _next_trial(study, config, worker) if _goes_on(study, config, others) else None
            if trial is None and not others:
                _write(study, result, folder)
                return
        if trial is not None:
            _run_trial(study, trial, partial(_score, config=config, run=run, folder=folder))
            trial_done(study, trial.number)
        elif all(holder.alive for holder in others.values()):
            search_left(result, others)
            return
        else:  # until it is known whether those of other machines live
            time.sleep(LOOKS)


def _next_trial(study: optuna.Study, config: DictConfig, worker: str) -> optuna.Trial:
    """Take a trial; to be called by who holds the folder."""
    # Seeded by its place, the trial of a worker that was killed is proposed again.
    place = next_place(study)
    study.set_user_attr(COMMAND, command())
    study.set_user_attr(COMMIT, git_commit())
    if place == 0:
        waiting = study.get_trials(deepcopy=False, states=[TrialState.WAITING])
        if not waiting and (first := defaults(config)):
            study.enqueue_trial(first)
    study.sampler = build(config.search.sampler, seed=config.seed + 1000 * place)
    trial = study.ask()
    trial.set_user_attr(PLACE, place)
    trial.set_user_attr(WORKER, worker)
    return trial


def _run_trial(
    study: optuna.Study, trial: optuna.Trial, score: Callable[[optuna.Trial], float]
) -> None:
    """Score a trial and write to the study how it ended."""
    try:
        value = score(trial)
    except optuna.TrialPruned:
        study.tell(trial, state=TrialState.PRUNED)
    except Exception:
        study.tell(trial, state=TrialState.FAIL)
    else:
        study.tell(trial, value)


def _write(study: optuna.Study, result: Result, folder: Path) -> None:
    """Write the result of a search that is done, and forget workers that were killed."""
    for path in folder.glob(f"worker-*{SUFFIX}"):
        with suppress(HeldError):
            take(path).release()
    if not (ranking := best_first(study)):
        raise UsageError(
            f"none of {len(concluded(study))} trials has a score; the last: "
            f"{concluded(study)[-1].user_attrs[ERROR]}"
        )
    result.status = "finished"
    result.val_score = ranking[0].value
    result.wall_seconds = 60 * minutes(concluded(study))
    result.write(folder)
    search_finished(result, study, folder)


def _goes_on(study: optuna.Study, config: DictConfig, others: Mapping[int, Holder]) -> bool:
    """Whether a trial is left of the budget, beside those that others are at."""
    done, options = concluded(study), config.search
    return len(done) + len(others) < options.trials and (
        options.minutes is None or minutes(done) < options.minutes
    )


def _score(trial: optuna.Trial, config: DictConfig, run: DictConfig, folder: Path) -> float:
    """The mean over seeds of a combination's best validation scores.

    Raises:
        TrialPruned: it is not worth more seeds.
    """
    values = {
        key: trial.suggest_categorical(key, choices)
        for key, choices in values_by_key(config).items()
    }
    try:
        return _mean_score(trial, _with(run, values), list(config.search.seeds), folder)
    except optuna.TrialPruned:
        raise
    except Exception as error:
        trial.set_user_attr(ERROR, one_sentence(error))
        raise


def _mean_score(trial: optuna.Trial, run: DictConfig, seeds: list[int], folder: Path) -> float:
    """Score seed after seed, as long as the combination is worth it."""
    known = _known_scores(trial)
    validate(run)

    def report(step: int, score: float) -> None:
        trial.report(score, step)
        if trial.should_prune():
            raise optuna.TrialPruned

    scores: list[float] = []
    for i, seed in enumerate(seeds):
        if i:
            report(i * (run.trainer.max_steps + 1), mean(scores))  # after all of the first run's
        if i < len(known):
            scores.append(known[i])
        else:
            changed = _with(run, {"seed": seed})
            scores.append(validation_score(changed, folder, None if i else report))
        trial.set_user_attr(SCORES, scores)
    return mean(scores)


def _known_scores(trial: optuna.Trial) -> list[float]:
    """The scores of the first seeds, where an earlier trial had the same values."""
    same = [t for t in concluded(trial.study) if t.params == trial.params]
    return max((t.user_attrs.get(SCORES, []) for t in same), key=len, default=[])


def validation_score(
    run: DictConfig, folder: Path, report: Callable[[int, float], None] | None = None
) -> float:
    """Train one run and return its best validation score, with nothing written or drawn.

    The score is the `val_score` of the result that the same configuration has in `train`.

    Args:
        run: a run's configuration.
        folder: where weights are saved when they are not finite.
        report: told step and best score so far after each epoch.
    """
    lightning.seed_everything(run.seed, workers=True, verbose=False)
    data = build_data(run)
    task = build_task(run, data)
    best = build_selection(run, data)
    guard = FiniteGuard(folder, interval=run.trainer.steps_per_epoch)
    with reporting.quiet():
        trainer = build_trainer(
            run,
            folder,
            [guard, best, *([_Report(best, report)] if report else [])],
            logger=None,
            limit_val_batches=0,  # `best` validates
            enable_progress_bar=False,
        )
        trainer.fit(task, datamodule=data)
    return best.score


class _Report(Callback):
    """Reports the best score so far after each epoch.

    Args:
        best: what knows it.
        report: is told step and score.
    """

    def __init__(self, best: BestValidation, report: Callable[[int, float], None]) -> None:
        self.best = best
        self.report = report

    def on_train_epoch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,  # noqa: ARG002 - Lightning's signature
    ) -> None:
        """Report."""
        self.report(trainer.global_step, self.best.score)


def _with(config: DictConfig, values: dict[str, Any]) -> DictConfig:
    """A copy with other values."""
    changed = copy.deepcopy(config)
    for key, value in values.items():
        OmegaConf.update(changed, key, value)
    return changed


def _run_of(config: DictConfig) -> DictConfig:
    """The configuration of a run without that of the search."""
    run = copy.deepcopy(config)
    with open_dict(run):
        del run["search"]
    return run


def _without_budget(config: DictConfig) -> DictConfig:
    """The configuration of a search without how long it goes on."""
    kept = copy.deepcopy(config)
    with open_dict(kept):
        for key in BUDGET:
            del kept.search[key]
    return kept


def command() -> str:
    """The command line of this search, without the folders of this machine."""
    words = HydraConfig.get().overrides.task
    kept = [word for word in words if not word.startswith("paths.")]
    return f"{typed('train')} {shlex.join(['-m', *kept])}"
