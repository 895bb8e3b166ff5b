"""From the study of a search to the recipe of a model on a data set and its split."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from omegaconf import OmegaConf
from optuna.trial import FrozenTrial
from rich.table import Table
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from curvlab.config.compose import compose
from curvlab.config.folder import PROVENANCE
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


@dataclass(frozen=True)
class Adopted:
    """What has been written, and what it replaced.

    Attributes:
        path: the file of the model's recipes in the task.
        key: the recipe's, `DATASET@SPLIT`.
        score: the winner's, `validation accuracy 81.13`.
        before: what was there, in the same way; None for nothing.
    """

    path: Path
    key: str
    score: str
    before: str | None

    def __str__(self) -> str:
        """One line for the terminal."""
        before = "" if self.before is None else f" (before: {self.before})"
        return f"wrote {self.key} in {shown(self.path)}: {self.score}{before}"


def adopt(folder: Path, configs: Path, force: bool = False) -> Adopted:
    """Write the winner of a search to the key `DATASET@SPLIT` of `CONFIGS/recipe/TASK/MODEL.yaml`.

    The rest of the file stays as it is, with its comments.

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
    target = configs / "recipe" / task / f"{result.model}.yaml"
    yaml, known = _yaml(), target.is_file()
    recipes = yaml.load(target) if known else CommentedMap()
    new = _section(result, study, own)
    adopted = Adopted(target, name, *_compared(target, name, new, recipes.get(name), force))
    recipes.ca.items.pop(name, None)  # what the replaced values' comments say
    recipes[name] = new
    text = io.StringIO("" if known else "# @package _global_\n")
    text.seek(0, io.SEEK_END)
    yaml.dump(recipes, text)
    atomic_write(target, text.getvalue())
    return adopted


def _yaml() -> YAML:
    """What reads and writes the recipes of a model, all that it does not change as it is."""
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 10_000
    yaml.indent(mapping=2, sequence=4, offset=2)
    null = "tag:yaml.org,2002:null"
    yaml.representer.add_representer(type(None), lambda r, _: r.represent_scalar(null, "null"))
    return yaml


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


def _compared(
    target: Path, key: str, new: dict[str, Any], old: dict[str, Any] | None, force: bool
) -> tuple[str, str | None]:
    """The new score and what it replaces, in words.

    A recipe that says that it was found on other draws of the split has no score to compare with.

    Raises:
        UsageError: the recipe that is there has a higher score, or none, without `force`.
    """
    found, there = new[PROVENANCE], (old or {}).get(PROVENANCE)
    score = _score(found)
    if old is None:
        return score, None
    if there is None:
        before, worse = "values that no search has found", True
    elif there.get("split", found.get("split")) != found.get("split"):
        before, worse = f"{_score(there)} on split {there['split']}", False
    else:
        before, worse = _score(there), there["validation"]["mean"] > found["validation"]["mean"]
    if worse and not force:
        raise UsageError(
            f"{key} in {shown(target)} has {before}, and the search has {score}: --force "
            "replaces it"
        )
    return score, before


def _score(found: dict[str, Any]) -> str:
    return f"validation {found['validation']['metric']} {found['validation']['mean']:.2f}"


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


def _section(result: Result, study: optuna.Study, own: dict[str, Any]) -> CommentedMap:
    """Where the winner's values are from, and those that differ from a run's own."""
    done, winner = concluded(study), best_first(study)[0]
    last = max(trial.datetime_complete for trial in done if trial.datetime_complete)
    values = OmegaConf.create()
    without = OmegaConf.create(own)
    for key, value in winner.params.items():
        if OmegaConf.select(without, key) != value:
            OmegaConf.update(values, key, value)
    split = _split_of(result.config)
    validation = {
        "metric": result.config["task"]["metric"],
        "mean": round(float(winner.value or 0), 2),
        "seeds": list(result.config["search"]["seeds"]),
        "scores": [round(score, 2) for score in winner.user_attrs[SCORES]],
    }
    trials = {"best": winner.number, "of": len(done), **count(done)}
    found = {
        "command": study.user_attrs[COMMAND],
        "validation": _one_line(validation),
        **({"split": split} if split else {}),
        "trials": _one_line(trials | {"minutes": round(minutes(done), 1)}),
        "study": f"search/{result.task}/{result.model}/{result.dataset} {study.study_name}",
        "date": last.date(),
        "commit": study.user_attrs[COMMIT],
    }
    plain = OmegaConf.to_container(values)
    assert isinstance(plain, dict)
    return CommentedMap({PROVENANCE: found, **plain})


def _one_line(values: dict[str, Any]) -> CommentedMap:
    """A mapping that is written in one line."""
    mapping = CommentedMap(values)
    mapping.fa.set_flow_style()
    return mapping


def _scores(trial: FrozenTrial) -> str:
    """The score of each seed."""
    return " ".join(f"{score:.2f}" for score in trial.user_attrs[SCORES])
