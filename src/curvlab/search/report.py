"""What a search says on the terminal."""

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import optuna
from omegaconf import DictConfig
from optuna.trial import FrozenTrial, TrialState

from curvlab.program import command, plain_console
from curvlab.results.leases import Holder
from curvlab.results.result import Result
from curvlab.run.reporting import shown
from curvlab.search.space import values_by_key
from curvlab.search.study import ERROR, SCORES, best_first, concluded, count, minutes

_console = plain_console(soft_wrap=True)


def search_starting(config: DictConfig, study: optuna.Study, folder: Path) -> None:
    """Say what is searched, how long, and where the study is."""
    space, options, done = values_by_key(config), config.search, concluded(study)
    limit = f" or {options.minutes} minutes" if options.minutes else ""
    _console.print(
        f"{config.model.label} on {config.dataset.label}: searching {len(space)} keys, "
        f"{prod(map(len, space.values())):,} combinations, at {len(options.seeds)} seeds each; "
        f"{options.trials} trials{limit} in {shown(folder)}"
        + (f", {len(done)} trials in {minutes(done):.1f} minutes done" if done else "")
    )


def trial_done(study: optuna.Study, number: int) -> None:
    """Say how a trial ended, and which is the best."""
    trial = study.get_trials(deepcopy=False)[number]
    best = best_first(study)
    seconds = trial.duration.total_seconds() if trial.duration else 0
    _console.print(
        f"trial {trial.number}  {_end(trial)}  "
        + (f"best {best[0].value:.2f} (trial {best[0].number})  " if best else "")
        + f"{seconds:.1f} s  {words(trial.params)}"
    )


def search_left(result: Result, others: Mapping[int, Holder]) -> None:
    """Say who is at the last trials."""
    who = ", ".join(f"trial {number} by {holder}" for number, holder in others.items())
    _console.print(
        f"{result.model} on {result.dataset}: the last trials are at work elsewhere, {who}"
    )


def search_finished(result: Result, study: optuna.Study, folder: Path) -> None:
    """Say what won and how it is adopted."""
    best, metric = best_first(study)[0], result.config["task"]["metric"]
    done = concluded(study)
    ends = ", ".join(f"{number} {end}" for end, number in count(done).items())
    _console.print(
        f"{result.model} on {result.dataset}: mean validation {metric} {best.value:.2f} by trial "
        f"{best.number} of {len(done)} ({ends}) in {minutes(done):.1f} minutes"
    )
    _console.print(f"  winner   {words(best.params)}")
    _console.print(f"  adopt    {command('adopt')} {shown(folder)}")


def words(params: dict[str, Any]) -> str:
    """Values of a trial as one would type them."""
    return " ".join(f"{key}={_word(value)}" for key, value in params.items())


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _end(trial: FrozenTrial) -> str:
    """How a trial ended."""
    scores = trial.user_attrs.get(SCORES, [])
    if trial.state == TrialState.PRUNED:
        where = f"after {len(scores)} of its runs" if scores else "in its first run"
        return f"{trial.value:.2f} {where}, pruned"
    if trial.state == TrialState.FAIL:
        return f"failed: {trial.user_attrs.get(ERROR, 'interrupted')}"
    return f"{trial.value:.2f}"
