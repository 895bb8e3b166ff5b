"""Write the winner of a search into the recipe of its model, data set and split."""

import io
import re
from pathlib import Path
from typing import Any

import optuna
import pandas as pd
from omegaconf import OmegaConf
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from curvlab.config.compose import compose
from curvlab.config.folder import EARLIER_PROVENANCE, PROVENANCE
from curvlab.config.resolvers import LINKS, name_of_recipe, recipe_name
from curvlab.config.trust import check
from curvlab.config.validation import DECISIVE
from curvlab.errors import UsageError
from curvlab.files import atomic_write
from curvlab.results.identity import canonical, stored_config
from curvlab.results.result import Result, read_result
from curvlab.run.reporting import relative_path
from curvlab.search.run import (
    COMMAND,
    COMMIT,
    SCORES,
    best_first,
    count,
    ended,
    has_no_name,
    minutes,
    read_study,
    winner_command,
)
from curvlab.search.space import seeds_of


def adopt(folder: Path, configs: Path, force: bool = False) -> str:
    """Write the winner of a search to `CONFIGS/recipe/TASK/MODEL.yaml`, key `DATASET@SPLIT`."""
    study = read_study(folder)
    result = read_result(folder)
    place = relative_path(folder)
    command = study.user_attrs.get(COMMAND, "run the same command")
    if result is None:
        raise UsageError(
            f"the search in {place} has not ended, after {len(ended(study))} trials; "
            f"to continue it: {command}"
        )
    if result.status != "finished":
        raise UsageError(f"the search in {place} has no winner: {result.error}")
    if [trial.value for trial in best_first(study)[:1]] != [result.val_score]:
        raise UsageError(
            f"the search in {place} ended with validation {result.val_score}, and its journal has "
            f"another winner: it is running, or one of the files is damaged; to end it: {command}"
        )
    _check_names(folder, result, best_first(study)[0].params)
    if has_no_name(result):
        raise UsageError(
            f"the search in {place} is on a graph that was given by its path, and a recipe belongs "
            f"to a data set by name; to train the winner: {winner_command(study, result)}"
        )
    new = _recipe(result, study, _drop_recipe(folder, result, configs))
    split = result.config.get("split")
    key = name_of_recipe(result.task, result.dataset, split["name"] if split else None)
    target = configs / "recipe" / recipe_name("task", result.task) / f"{result.model}.yaml"
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 10_000
    yaml.indent(mapping=2, sequence=4, offset=2)
    null = "tag:yaml.org,2002:null"
    yaml.representer.add_representer(type(None), lambda r, _: r.represent_scalar(null, "null"))
    exists = target.is_file()
    recipes = yaml.load(target) if exists else CommentedMap()
    before, needs_force = _compare(new[PROVENANCE], recipes.get(key))
    score = _score(new[PROVENANCE])
    recipe = f"{key} in {relative_path(target)}"
    if needs_force and not force:
        raise UsageError(f"{recipe} has {before}, and the search has {score}: --force replaces it")
    recipes.ca.items.pop(key, None)  # comments on the replaced values
    recipes[key] = new
    text = io.StringIO("" if exists else "# @package _global_\n")
    text.seek(0, io.SEEK_END)
    yaml.dump(recipes, text)
    atomic_write(target, text.getvalue())
    return f"wrote {recipe}: {score}" + (f" (before: {before})" if before else "")


def ranking(folder: Path, length: int) -> pd.DataFrame:
    """The best trials of a search, finished or running, one column per trial."""
    best = best_first(read_study(folder))[:length]
    if not best:
        raise UsageError(f"no trial of {relative_path(folder)} has a score yet")
    columns = {
        f"trial {trial.number}": {
            "mean score": f"{trial.value:.2f}",
            "of its runs": " ".join(f"{score:.2f}" for score in trial.user_attrs[SCORES]),
            **trial.params,
        }
        for trial in best
    }
    return pd.DataFrame(columns, dtype=object).rename_axis("").reset_index()


def _check_names(folder: Path, result: Result, params: dict[str, Any]) -> None:
    """Refuse names and values that do more than set options: another user may have written them."""
    place = relative_path(folder)
    check(params, place)
    names = [getattr(result, key) for key in ("task", "model", "dataset")]
    names += [str((result.config.get("split") or {}).get("name", ""))]
    strange = [name for name in names if not re.fullmatch(r"([\w+-][\w.+-]*)?", str(name))]
    strange += [key for key in params if key.partition(".")[0] not in DECISIVE]
    if strange:
        raise UsageError(f"the search in {place} has {strange[0]!r}, which no recipe can set")


def _drop_recipe(folder: Path, result: Result, configs: Path) -> dict[str, Any]:
    """The configuration of a run with the split and metric of the search, without its recipe."""
    split = result.config.get("split")
    overrides = [f"{key}={getattr(result, key)}" for key in ("task", "model", "dataset")]
    overrides += [f"split={split['name']}"] if split else []
    default = stored_config(compose([*overrides, "recipe=none"], configs))
    for key in ("split", "task.split", "task.metric"):
        group, _, name = key.partition(".")
        parts = (config.get(group) or {} for config in (result.config, default))
        searched, current = (part.get(name) if name else part for part in parts)
        if canonical(searched) != canonical(current):
            raise UsageError(
                f"the search in {relative_path(folder)} had {key}={searched}, and "
                f"{' '.join(overrides)} has {current}: scores of the one say nothing about the "
                f"other; search with {key}={current}"
            )
    return default


def _compare(new: dict[str, Any], old: dict[str, Any] | None) -> tuple[str, bool]:
    """Describe the existing recipe, and whether `--force` is needed to replace it."""
    if old is None:
        return "", False
    provenance = old.get(PROVENANCE, old.get(EARLIER_PROVENANCE))
    if provenance is None:
        return "values that no search has found", True
    if provenance.get("split", new.get("split")) != new.get("split"):
        return f"{_score(provenance)} on split {provenance['split']}", False
    return _score(provenance), provenance["validation"]["mean"] > new["validation"]["mean"]


def _score(provenance: dict[str, Any]) -> str:
    validation = provenance["validation"]
    return f"validation {validation['metric']} {validation['mean']:.2f}"


def _recipe(result: Result, study: optuna.Study, default: dict[str, Any]) -> CommentedMap:
    """Values of the winner that differ from the default, with their provenance."""
    trials = ended(study)
    winner = best_first(study)[0]
    values = OmegaConf.create()
    defaults = OmegaConf.create(default)
    for key, value in winner.params.items():
        if OmegaConf.select(defaults, key) != value:
            OmegaConf.update(values, key, value)
    links = result.config["task"].get("split")
    split = result.config.get("split") or {}
    if links:
        split = {"name": LINKS, **links}
    draw = "another draw for each seed" if split.get("draw") is None else f"draw {split['draw']}"
    provenance = {
        "command": study.user_attrs[COMMAND],
        "validation": _one_line(
            metric=result.config["task"]["metric"],
            mean=round(float(winner.value or 0), 2),
            seeds=seeds_of(OmegaConf.create(result.config)),
            scores=[round(score, 2) for score in winner.user_attrs[SCORES]],
        ),
        "split": f"{split['name']}, {draw}" if "draw" in split else split.get("name"),
        "trials": _one_line(
            best=winner.number, of=len(trials), **count(trials), minutes=round(minutes(trials), 1)
        ),
        "study": f"search/{result.task}/{result.model}/{result.dataset} {study.study_name}",
        "date": max(trial.datetime_complete for trial in trials if trial.datetime_complete).date(),
        "commit": study.user_attrs[COMMIT],
    }
    known = {key: value for key, value in provenance.items() if value}
    return CommentedMap({PROVENANCE: known, **OmegaConf.to_container(values)})  # type: ignore[dict-item]


def _one_line(**values: Any) -> CommentedMap:
    mapping = CommentedMap(values)
    mapping.fa.set_flow_style()
    return mapping
