"""From the study of a search to the recipe of a model on a data set and its split."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from omegaconf import OmegaConf
from optuna.trial import FrozenTrial
from rich.table import Table

from curvlab.config.compose import compose
from curvlab.config.resolvers import LINKS, name_of_recipe, recipe_name
from curvlab.errors import UsageError
from curvlab.results.files import atomic_write
from curvlab.results.identity import canonical, stored
from curvlab.results.result import Result, read_result
from curvlab.run.reporting import shown
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

FOUND = re.compile(r"^# Validation (\S+) (\S+),", re.MULTILINE)
SPLIT = re.compile(r"^# Split (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Adopted:
    """What has been written, and what it replaced.

    Attributes:
        path: the recipe.
        score: the winner's, `validation accuracy 81.13`.
        before: what was there, in the same way; None for nothing.
    """

    path: Path
    score: str
    before: str | None

    def __str__(self) -> str:
        """One line for the terminal."""
        before = "" if self.before is None else f" (before: {self.before})"
        return f"wrote {shown(self.path)}: {self.score}{before}"


def adopt(folder: Path, configs: Path, force: bool = False) -> Adopted:
    """Write the winner of a search to `CONFIGS/recipe/TASK/MODEL/DATASET@SPLIT.yaml`.

    Args:
        folder: the search's.
        configs: the folder `configs`.
        force: replace a recipe whose validation score is higher, or that no search has found.

    Raises:
        UsageError: there is no search, or it has not ended; it was on a split or by a metric that
            the recipe's runs do not have; the recipe that is there is not to be replaced.
    """
    study = read_study(folder)
    result = _ended(folder, study)
    own = _without_recipe(folder, result, configs)
    split = result.config.get("split")
    name = name_of_recipe(result.task, result.dataset, split["name"] if split else None)
    task = recipe_name("task", result.task)
    target = configs / "recipe" / task / result.model / f"{name}.yaml"
    text = _values(result, study, own)
    adopted = Adopted(target, *_compared(target, text, _split_of(result.config), force))
    atomic_write(target, text)
    return adopted


def _without_recipe(folder: Path, result: Result, configs: Path) -> dict[str, Any]:
    """The configuration of a run that would take the recipe, without it.

    Its split and its metric must be those of the search.

    Raises:
        UsageError: it has others, for instance another draw.
    """
    split = result.config.get("split")
    words = [f"{key}={getattr(result, key)}" for key in ("task", "model", "dataset")]
    words += [f"split={split['name']}"] if split else []
    own = stored(compose([*words, "recipe=none"], configs))
    for key in ("split", "task.split", "task.metric"):
        group, _, name = key.partition(".")
        searched, taken = (
            part[group].get(name) if name else part.get(group) for part in (result.config, own)
        )
        if canonical(searched) != canonical(taken):
            raise UsageError(
                f"the search in {shown(folder)} had {key}={_short(searched, taken)}, and "
                f"{' '.join(words)} has {_short(taken, searched)}: its scores say nothing of "
                "these runs, so search with what they have"
            )
    return own


def _short(own: Any, other: Any) -> str:
    """What of a value is not in the other one."""
    if isinstance(own, dict) and isinstance(other, dict):
        return str({k: v for k, v in own.items() if k not in other or other[k] != v})
    return str(own)


def _compared(target: Path, text: str, split: str, force: bool) -> tuple[str, str | None]:
    """The new score and what it replaces, in words.

    A recipe that says that it was found on other draws of the split has no score to compare with.

    Raises:
        UsageError: the recipe that is there has a higher score, or none, without `force`.
    """
    new = FOUND.search(text)
    assert new is not None
    score = f"validation {new[1]} {new[2]}"
    if not target.is_file():
        return score, None
    there = target.read_text()
    old, drawn = FOUND.search(there), SPLIT.search(there)
    if old is None:
        before, worse = "values that no search has found", True
    elif drawn is not None and drawn[1] != split:
        before, worse = f"validation {old[1]} {old[2]} on split {drawn[1]}", False
    else:
        before, worse = f"validation {old[1]} {old[2]}", float(old[2]) > float(new[2])
    if worse and not force:
        raise UsageError(
            f"{shown(target)} has {before}, and the search has {score}: --force replaces it"
        )
    return score, before


def _split_of(config: dict[str, Any]) -> str:
    """A run's split in words; empty where there is none."""
    own = config["task"].get("split")
    split = {"name": LINKS, **own} if own else config.get("split")
    if not split:
        return ""
    drawn = "another draw for each seed" if split.get("draw") is None else f"draw {split['draw']}"
    return f"{split['name']}, {drawn}" if "draw" in split else split["name"]


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


def _values(result: Result, study: optuna.Study, own: dict[str, Any]) -> str:
    """The winner's values, where they differ from a run's own, and where they are from."""
    done, winner = concluded(study), best_first(study)[0]
    seeds = result.config["search"]["seeds"]
    metric = result.config["task"]["metric"]
    ends = ", ".join(f"{number} {end}" for end, number in count(done).items())
    last = max(trial.datetime_complete for trial in done if trial.datetime_complete)
    values = OmegaConf.create()
    without = OmegaConf.create(own)
    for key, value in winner.params.items():
        if OmegaConf.select(without, key) != value:
            OmegaConf.update(values, key, value)
    split = _split_of(result.config)
    lines = [
        "# @package _global_",
        f"# Found by {study.user_attrs[COMMAND]}",
        f"# Validation {metric} {winner.value:.2f}, mean over seeds {', '.join(map(str, seeds))} "
        f"({_scores(winner)}); the test nodes were not scored",
        *([f"# Split {split}"] if split else []),
        f"# Trial {winner.number} of {len(done)} ({ends}) in {minutes(done):.1f} minutes",
        f"# Study search/{result.task}/{result.model}/{result.dataset}, {study.study_name}, "
        f"{last:%Y-%m-%d}, commit {study.user_attrs[COMMIT]}",
    ]
    return "\n".join(lines) + "\n" + (OmegaConf.to_yaml(values) if values else "")


def _scores(trial: FrozenTrial) -> str:
    """The score of each seed."""
    return " ".join(f"{score:.2f}" for score in trial.user_attrs[SCORES])
