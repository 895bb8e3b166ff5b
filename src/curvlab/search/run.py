"""Search hyperparameters by validation scores, in an Optuna study that workers share."""

import copy
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from math import prod
from pathlib import Path
from statistics import mean
from typing import Any
from uuid import uuid4

import lightning
import optuna
from hydra.core.hydra_config import HydraConfig
from lightning.pytorch.callbacks import LambdaCallback
from omegaconf import DictConfig, OmegaConf, open_dict
from optuna.trial import TrialState

from curvlab.callbacks import FiniteGuard
from curvlab.checked import format_value
from curvlab.config.building import build
from curvlab.config.compose import compose
from curvlab.config.schema import is_subclass
from curvlab.config.validation import leaves, validate
from curvlab.errors import UsageError, error_sentence
from curvlab.leases import SUFFIX, HeldError, Holder, acquire, find_holder
from curvlab.results.folder import RunDirectory
from curvlab.results.identity import canonical, stored_config
from curvlab.results.result import Result, git_commit
from curvlab.run.command import Command
from curvlab.run.endings import conclude
from curvlab.run.hardware import choose_device, prepare_process
from curvlab.run.parts import build_data, build_selection, build_task, build_trainer
from curvlab.run.reporting import quiet, relative_path, report_run, say
from curvlab.run.sweep import POLL_SECONDS
from curvlab.search.journal import open_study
from curvlab.search.space import check_search, defaults, search_seeds, values_by_key
from curvlab.search.trials import (
    ERROR,
    PLACE,
    SCORES,
    WORKER,
    best_first,
    count_states,
    finished_trials,
    format_score,
    minutes,
)
from curvlab.tasks.task import SelectedTask

PLATEAU = "curvlab.optim.optimisers.ReduceOnPlateau"

# Attributes of a study.
COMMAND = "command"  # the last command of the search
COMMIT = "commit"  # commit of the last command


def search(command: Command) -> Result:
    """Search one model's hyperparameters on one data set, or continue an existing study.

    A different search in the same folder is moved to `previous/HASH`. With `rerun=true` the same
    search is moved, too.
    """
    folder = RunDirectory(Path(HydraConfig.get().runtime.output_dir))
    config = command.config
    endless = copy.deepcopy(config)  # a search's identity has no budget
    with open_dict(endless.search):
        del endless.search.trials
        del endless.search.minutes
        if is_subclass(str(OmegaConf.select(config, "task.scheduler._target_")), PLATEAU):
            endless.search.revision = 2  # earlier trials kept the first learning rate
    result = Command(command.overrides, endless).initial_result()
    folder.path.mkdir(parents=True, exist_ok=True)
    worker = folder.path / f"worker-{uuid4().hex[:12]}{SUFFIX}"
    with acquire(worker):
        try:
            check_search(config)
            with _lock(folder):
                leases = set(folder.path.glob(f"worker-*{SUFFIX}")) - {worker}
                has_workers = any(map(find_holder, leases))
                joins = has_workers and folder.config_hash == result.config_hash
                fresh = config.rerun and not joins
                earlier = folder.config_hash
                if earlier is not None and earlier != result.config_hash:
                    place = relative_path(folder.aside(earlier).path)
                    say(f"another search was here: it is moved to {place}")
                if not fresh:
                    folder.restore(result.config_hash)
                folder.prepare(result, fresh)
                study = open_study(folder.path, config.search, result.config_hash)
            _search(config, study, result, folder, worker.name)
        except Exception as error:
            with _lock(folder):
                conclude(result, error, folder)
            report_run(result, folder.path)  # even if the disk has no room for the result
    return result


def _lock(folder: RunDirectory) -> AbstractContextManager[None]:
    """Wait for a search's folder, and lock it."""
    return folder.locked(lambda _: None)


def _search(
    config: DictConfig, study: optuna.Study, result: Result, directory: RunDirectory, worker: str
) -> None:
    """Run trials until the budget is spent; write the result if no other worker is running."""
    folder = directory.path
    device = choose_device(config.trainer.accelerator, config.trainer.precision)
    prepare_process(config.trainer.threads, device)
    _ = build_data(config).graph  # wrong data fail here and not in a trial
    _announce(config, study, folder)
    while True:
        with _lock(directory):
            holders = running_trials(study, folder)
            trial = _next_trial(study, config, worker, len(holders))
            if trial is None and not holders:
                _write(study, result, folder)
                return
        if trial is not None:
            _run_trial(study, trial, config)
        elif all(holder.alive for holder in holders.values()):
            trials = [f"trial {number} by {holder}" for number, holder in holders.items()]
            say(
                f"{result.model} on {result.dataset}: the last trials are running elsewhere, "
                f"{', '.join(trials)}"
            )
            return
        else:  # until the leases show whether processes of other machines are alive
            time.sleep(POLL_SECONDS)


def _announce(config: DictConfig, study: optuna.Study, folder: Path) -> None:
    """Print the size and the budget of a search, and the finished trials."""
    options = config.search
    choices = values_by_key(config).values()
    limit = f" or {options.minutes} minutes" if options.minutes else ""
    trials = finished_trials(study)
    progress = ""
    if trials:
        progress = f", {len(trials)} of them in {minutes(trials):.1f} minutes done"
    seeds = len(search_seeds(config))
    planned = options.trials
    say(
        f"{config.model.label} on {config.dataset.label}: searching {len(choices)} keys, "
        f"{prod(map(len, choices)):,} combinations, {seeds} seed{'s' * (seeds != 1)} each; "
        f"{planned} trial{'s' * (planned != 1)}{limit} in {relative_path(folder)}{progress}"
    )


def running_trials(study: optuna.Study, folder: Path) -> dict[int, Holder]:
    """Trials of living workers; trials of dead workers fail. The caller locks the folder."""
    holders = {}
    for trial in study.get_trials(deepcopy=False, states=[TrialState.RUNNING]):
        name = trial.user_attrs.get(WORKER)
        holder = find_holder(folder / name) if name else None
        if holder is not None:
            holders[trial.number] = holder
        else:
            study.tell(trial.number, state=TrialState.FAIL)
    return holders


def _next_trial(
    study: optuna.Study, config: DictConfig, worker: str, num_running: int
) -> optuna.Trial | None:
    """Start a trial if the budget allows; the caller locks the folder."""
    options = config.search
    trials = finished_trials(study)
    if len(trials) + num_running >= options.trials:
        return None
    if options.minutes is not None and minutes(trials) >= options.minutes:
        return None
    trials += study.get_trials(deepcopy=False, states=[TrialState.RUNNING])
    occupied = {trial.user_attrs.get(PLACE, i) for i, trial in enumerate(trials)}
    place = min(set(range(len(occupied) + 1)) - occupied)
    overrides = HydraConfig.get().overrides.task
    overrides = [override for override in overrides if not override.startswith("paths.")]
    study.set_user_attr(COMMAND, f"curvlab train {shlex.join(['-m', *overrides])}")
    study.set_user_attr(COMMIT, git_commit())
    queue = study.get_trials(deepcopy=False, states=[TrialState.WAITING])
    start = defaults(config)
    if place == 0 and not queue and start is not None:
        study.enqueue_trial(start)
    # The place is the seed, so that the trial of a killed worker is proposed again.
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
        end = format_score(score)
    except optuna.TrialPruned:
        value = study.tell(trial, state=TrialState.PRUNED).value
        scores = trial.user_attrs.get(SCORES, [])
        progress = f"after {len(scores)} of its runs" if scores else "in its first run"
        end = f"{format_score(value)} {progress}, pruned"
    except Exception as error:
        trial.set_user_attr(ERROR, error_sentence(error))
        study.tell(trial, state=TrialState.FAIL)
        end = f"failed: {error_sentence(error)}"
    best = ""
    for winner in best_first(study)[:1]:
        best = f"best {format_score(winner.value)} (trial {winner.number})  "
    seconds = time.monotonic() - start
    say(f"trial {trial.number}  {end}  {best}{seconds:.1f} s  {_as_overrides(trial.params)}")


def _mean_score(trial: optuna.Trial, config: DictConfig) -> float:
    """The mean over seeds of a combination's best validation scores, unless the trial is pruned."""
    run = OmegaConf.masked_copy(config, [str(key) for key in config if key != "search"])
    for key, values in values_by_key(config).items():
        OmegaConf.update(run, key, trial.suggest_categorical(key, values))
    validate(run)
    earlier_scores = _earlier_scores(trial)

    def report(step: int, score: float) -> None:
        trial.report(score, step)
        if trial.should_prune():
            raise optuna.TrialPruned

    scores: list[float] = []
    for i, seed in enumerate(search_seeds(config)):
        is_first = i == 0
        if not is_first:
            report(i * (run.trainer.max_steps + 1), mean(scores))  # after the first run's steps
        if i < len(earlier_scores):
            score = earlier_scores[i]
        else:
            run.seed = seed
            score = validation_score(run, report if is_first else None)
        scores.append(score)
        trial.set_user_attr(SCORES, scores)
    return mean(scores)


def _earlier_scores(trial: optuna.Trial) -> list[float]:
    """Scores of an earlier trial with the same values: of several trials, the longest list."""
    longest: list[float] = []
    for earlier in finished_trials(trial.study):
        scores = earlier.user_attrs.get(SCORES, [])
        if earlier.params == trial.params and len(scores) > len(longest):
            longest = scores
    return longest


def validation_score(run: DictConfig, report: Callable[[int, float], None] | None = None) -> float:
    """Train one run and return its best validation score, without files and pictures."""
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
    options = {}
    if not (isinstance(task, SelectedTask) and task.needs_validation):
        options["limit_val_batches"] = 0  # the callback `best` validates, not Lightning
    with quiet():
        trainer = build_trainer(run, device, Path(), callbacks, logger=None, **options)
        trainer.fit(task, datamodule=data)
    return best.score


def _write(study: optuna.Study, result: Result, folder: Path) -> None:
    """Write and print the result of a finished search; delete leases of killed workers."""
    for path in folder.glob(f"worker-*{SUFFIX}"):
        with suppress(HeldError), acquire(path):
            pass
    trials = finished_trials(study)
    ranking = best_first(study)
    if not ranking:
        raise UsageError(
            f"none of {len(trials)} trials has a score; the last: {trials[-1].user_attrs[ERROR]}"
        )
    best = ranking[0]
    result.status = "finished"
    result.val_score = best.value
    result.wall_seconds = 60 * minutes(trials)
    result.write(folder)
    counts = ", ".join(f"{number} {state}" for state, number in count_states(trials).items())
    metric = result.config["task"]["metric"]
    use = f"adopt    curvlab adopt {relative_path(folder)}"
    if has_no_name(result):
        use = f"train    {winner_command(study, result)}"
    score = format_score(best.value)
    say(
        f"{result.model} on {result.dataset}: mean validation {metric} {score} by trial "
        f"{best.number} of {len(trials)} ({counts}) in {minutes(trials):.1f} minutes\n"
        f"  winner   {_as_overrides(best.params)}\n"
        f"  {use}"
    )


def has_no_name(result: Result) -> bool:
    """Whether the command names the graph by its path, not by `dataset=NAME`."""
    return bool(result.dataset != result.config["dataset"]["name"])


def winner_command(study: optuna.Study, result: Result) -> str:
    """The command that trains the winner of a search, without the recipe of its data set."""
    overrides = shlex.split(study.user_attrs[COMMAND])[2:]
    overrides = [o for o in overrides if o != "-m" and not o.lstrip("+~").startswith("search")]
    if not any(override.startswith("model=") for override in overrides):
        overrides.insert(0, f"model={result.model}")
    overrides.append("recipe=none")
    params = best_first(study)[0].params
    values = _set_by_search(overrides, result, params) | params
    return f"curvlab train {shlex.join(overrides)} {_as_overrides(values)}".rstrip()


def _set_by_search(
    overrides: Sequence[str], result: Result, params: Mapping[str, Any]
) -> dict[str, Any]:
    """Values of the search's own file, such as `task.corruption`, which other commands lack.

    Values that follow from others, such as the steps of an epoch, are not repeated.
    """
    tried = tuple(f"{param}." for param in params)
    searched = {
        key: value
        for key, value in decisive_leaves(result.config).items()
        if not f"{key}.".startswith(tried)
    }
    values: dict[str, Any] = {}
    while True:
        set_here = [f"++{key}={format_value(value)}" for key, value in values.items()]
        config = compose([*overrides, *set_here])
        composed = decisive_leaves(stored_config(config))
        differing = [
            key
            for key in sorted(searched, key=lambda key: key.startswith("trainer."))
            if key not in values and canonical(searched[key]) != canonical(composed.get(key))
        ]
        if not differing:
            return {key if key in composed else f"+{key}": value for key, value in values.items()}
        leading = [key for key in differing if not _follows(config, key)]
        values |= {key: searched[key] for key in leading or differing[:1]}


def _follows(config: DictConfig, key: str) -> bool:
    """Whether a key's value is an expression of others."""
    path, _, name = key.rpartition(".")
    node = OmegaConf.select(config, path)
    return isinstance(node, DictConfig) and OmegaConf.is_interpolation(node, name)


def decisive_leaves(config: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys and values of a stored configuration, but for its seed and its search."""
    parts = {key: part for key, part in config.items() if key not in ("search", "seed", "files")}
    return dict(leaves(parts))


def _as_overrides(params: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={format_value(value)}" for key, value in params.items())
