"""From the study of a search to the tuned values of a model on a dataset."""

from pathlib import Path

import optuna
from omegaconf import OmegaConf
from optuna.trial import FrozenTrial
from rich.table import Table

from curvlab.config import base_name
from curvlab.errors import UsageError
from curvlab.files import atomic_write
from curvlab.reporting import shown
from curvlab.results import Result, read_result
from curvlab.search.study import (
    COMMAND,
    COMMIT,
    SCORES,
    best_first,
    concluded,
    count,
    minutes,
    read_study,
)


def adopt(folder: Path, tuned: Path) -> Path:
    """Write the winner of a search to `TUNED/TASK/MODEL/DATASET.yaml`.

    Args:
        folder: the search's.
        tuned: the folder `configs/tuned`.

    Raises:
        UsageError: there is no search, or it has not ended.
    """
    study = read_study(folder)
    result = _ended(folder, study)
    target = tuned / result.task / base_name(result.model) / f"{base_name(result.dataset)}.yaml"
    atomic_write(target, _tuned_values(result, study))
    return target


def ranking(folder: Path, length: int) -> Table:
    """The best trials of a search, finished or not.

    Raises:
        UsageError: there is no search, or no trial has a score yet.
    """
    study = read_study(folder)
    best = best_first(study)[:length]
    if not best:
        raise UsageError(f"no trial of {shown(folder)} has a score yet")
    names = (f"trial {trial.number}" for trial in best)
    table = Table("", *names, title=f"{shown(folder)}: {len(concluded(study))} trials")
    table.columns[0].no_wrap = True
    table.add_row("mean score", *(f"{trial.value:.2f}" for trial in best))
    table.add_row("of its runs", *(_scores(trial) for trial in best), end_section=True)
    for key in best[0].params:
        table.add_row(key, *(str(trial.params[key]) for trial in best))
    return table


def _ended(folder: Path, study: optuna.Study) -> Result:
    """The result of a search that has a winner.

    Raises:
        UsageError: it has none.
    """
    result = read_result(folder)
    if result is None:
        raise UsageError(
            f"the search in {shown(folder)} has not ended, after {len(concluded(study))} trials; "
            f"this goes on with it: {study.user_attrs.get(COMMAND, 'the same command')}"
        )
    if result.status != "finished":
        raise UsageError(f"the search in {shown(folder)} has no winner: {result.error}")
    return result


def _tuned_values(result: Result, study: optuna.Study) -> str:
    """The winner's values as a configuration file that says where they are from."""
    done, winner = concluded(study), best_first(study)[0]
    seeds = result.config["search"]["seeds"]
    metric = result.config["task"]["metric"]
    ends = ", ".join(f"{number} {end}" for end, number in count(done).items())
    last = max(trial.datetime_complete for trial in done if trial.datetime_complete)
    values = OmegaConf.create()
    for key, value in winner.params.items():
        OmegaConf.update(values, key, value)
    lines = [
        "# @package _global_",
        f"# Found by {study.user_attrs[COMMAND]}",
        f"# Validation {metric} {winner.value:.2f}, mean over seeds {', '.join(map(str, seeds))} "
        f"({_scores(winner)}); the test nodes were not scored",
        f"# Trial {winner.number} of {len(done)} ({ends}) in {minutes(done):.1f} minutes",
        f"# Study search/{result.task}/{result.model}/{result.dataset}, {study.study_name}, "
        f"{last:%Y-%m-%d}, commit {study.user_attrs[COMMIT]}",
    ]
    return "\n".join(lines) + "\n" + OmegaConf.to_yaml(values)


def _scores(trial: FrozenTrial) -> str:
    """The score of each seed."""
    return " ".join(f"{score:.2f}" for score in trial.user_attrs[SCORES])
