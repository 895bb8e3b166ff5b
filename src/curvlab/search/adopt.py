"""Write the winner of a search into the recipe of its model, data set and split."""

import io
import re
from collections.abc import Mapping
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
from curvlab.config.validation import DECISIVE, leaves
from curvlab.errors import UsageError
from curvlab.files import atomic_write
from curvlab.results.identity import canonical, stored_config
from curvlab.results.result import Result, read_result
from curvlab.run.reporting import relative_path
from curvlab.search.journal import read_study
from curvlab.search.run import COMMAND, COMMIT, has_no_name, winner_command
from curvlab.search.space import search_seeds
from curvlab.search.trials import (
    SCORES,
    best_first,
    count_states,
    finished_trials,
    format_score,
    minutes,
)
from curvlab.statistics import decimals

FIXED = ("model", "manifold", "dataset", "task", "batching", "optimizer", "callbacks", "trainer")
"""Parts of a configuration that a search can fix and a recipe can set."""

FIXED_OF_TRAINER = ("trainer.precision", "trainer.gradient_clip")
"""Options of the trainer that a recipe has; steps and patience belong to the search."""


def adopt(folder: Path, configs: Path, force: bool = False, into: str = "") -> str:
    """Write the winner of a search to `CONFIGS/recipe/TASK/MODEL.yaml`, key `DATASET@SPLIT`.

    Args:
        folder: Folder of the search.
        configs: Folder of configurations.
        force: Whether to replace a better recipe.
        into: Folder below `recipe` in place of the task's, for values that only a table uses.
    """
    if into and not re.fullmatch(r"\w+", into):
        raise UsageError(f"--into {into} must be a name of letters, digits and underscores")
    study = read_study(folder)
    result = read_result(folder)
    subject = f"the search in {relative_path(folder)}"
    command = study.user_attrs.get(COMMAND, "run the same command")
    if result is None:
        raise UsageError(
            f"{subject} has not ended, after {len(finished_trials(study))} trials; "
            f"to continue it: {command}"
        )
    if result.status != "finished":
        raise UsageError(f"{subject} has no winner: {result.error}")
    trials = best_first(study)
    if not trials or trials[0].value != result.val_score:
        raise UsageError(
            f"{subject} ended with validation {result.val_score}, and its journal has "
            "another winner: the search is running, or one of the files is damaged; to end it: "
            f"{command}"
        )
    _check_names(folder, result, trials[0].params)
    if has_no_name(result):
        raise UsageError(
            f"{subject} is on a graph that the command names by its path, and a recipe "
            f"needs a data set's name; to train the winner: {winner_command(study, result)}"
        )
    default = _default_config(folder, result, configs)
    new = _recipe(result, study, default, _fixed_values(folder, result, default, trials[0].params))
    split = result.config.get("split")
    split_name = split["name"] if split else None
    key = name_of_recipe(result.task, result.dataset, split_name)
    task = into or recipe_name("task", result.task)
    target = configs / "recipe" / task / f"{result.model}.yaml"
    yaml = _yaml()
    exists = target.is_file()
    recipes = yaml.load(target) if exists else CommentedMap()
    current, needs_force = _compare(new[PROVENANCE], recipes.get(key))
    score = _score(new[PROVENANCE])
    recipe = f"{key} in {relative_path(target)}"
    if needs_force and not force:
        raise UsageError(f"{recipe} has {current}, and the search has {score}: --force replaces it")
    recipes.ca.items.pop(key, None)  # comments on the replaced values
    recipes[key] = new
    text = io.StringIO()
    if not exists:
        text.write("# @package _global_\n")
    yaml.dump(recipes, text)
    atomic_write(target, text.getvalue())
    replaced = f" (before: {current})" if current else ""
    return f"wrote {recipe}: {score}{replaced}"


def ranking(folder: Path, length: int) -> pd.DataFrame:
    """The best trials of a finished or running search, one column per trial."""
    trials = best_first(read_study(folder))[:length]
    if not trials:
        raise UsageError(f"no trial of {relative_path(folder)} has a score yet")
    columns = {}
    for trial in trials:
        scores = [format_score(score) for score in trial.user_attrs[SCORES]]
        columns[f"trial {trial.number}"] = {
            "mean score": format_score(trial.value),
            "of its runs": " ".join(scores),
            **trial.params,
        }
    return pd.DataFrame(columns, dtype=object).rename_axis("").reset_index()


def _yaml() -> YAML:
    """A reader and writer that keeps comments, quotes and long lines, and writes None as null."""
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 10_000
    yaml.indent(mapping=2, sequence=4, offset=2)
    null = "tag:yaml.org,2002:null"
    yaml.representer.add_representer(type(None), lambda r, _: r.represent_scalar(null, "null"))
    return yaml


def _check_names(folder: Path, result: Result, params: dict[str, Any]) -> None:
    """Refuse names and values that do more than set options: another user may have written them."""
    check(params, relative_path(folder))
    split = result.config.get("split") or {}
    names = [result.task, result.model, result.dataset, split.get("name", "")]
    pattern = re.compile(r"([\w+-][\w.+-]*)?")
    invalid = [name for name in names if not pattern.fullmatch(str(name))]
    invalid += [key for key in params if key.partition(".")[0] not in DECISIVE]
    if invalid:
        raise UsageError(
            f"the search in {relative_path(folder)} has {invalid[0]!r}, which no recipe can set"
        )


def _default_config(folder: Path, result: Result, configs: Path) -> dict[str, Any]:
    """The configuration without a recipe; its split and metric must be those of the search."""
    split = result.config.get("split")
    overrides = [f"{key}={getattr(result, key)}" for key in ("task", "model", "dataset")]
    if split:
        overrides.append(f"split={split['name']}")
    default = stored_config(compose([*overrides, "recipe=none"], configs))
    for key in ("split", "task.split", "task.metric"):
        searched = _lookup(result.config, key)
        current = _lookup(default, key)
        if canonical(searched) != canonical(current):
            raise UsageError(
                f"the search in {relative_path(folder)} had {key}={searched}, and "
                f"{' '.join(overrides)} has {current}: scores of different settings are not "
                f"comparable; search with {key}={current}"
            )
    return default


def _lookup(config: Mapping[str, Any], key: str) -> Any:
    """The value of a key `GROUP` or `GROUP.NAME`."""
    group, _, name = key.partition(".")
    options = config.get(group) or {}
    return options.get(name) if name else options


def _compare(new: dict[str, Any], old: dict[str, Any] | None) -> tuple[str, bool]:
    """Describe the existing recipe, and whether `--force` is needed to replace it."""
    if old is None:
        return "", False
    provenance = old.get(PROVENANCE, old.get(EARLIER_PROVENANCE))
    if provenance is None:
        return "values that no search has found", True
    score = _score(provenance)
    new_split = new.get("split")
    if provenance.get("split", new_split) != new_split:
        return f"{score} on split {provenance['split']}", False
    return score, provenance["validation"]["mean"] > new["validation"]["mean"]


def _score(provenance: dict[str, Any]) -> str:
    validation = provenance["validation"]
    return f"validation {validation['metric']} {format_score(validation['mean'])}"


def _fixed_values(
    folder: Path, result: Result, default: dict[str, Any], params: Mapping[str, Any]
) -> dict[str, Any]:
    """Values that all trials had and that are not the default, such as `model.dim=48`."""
    fixed: dict[str, Any] = {}
    subject = f"the search in {relative_path(folder)}"
    for group in FIXED:
        searched = dict(leaves(result.config.get(group) or {}, f"{group}."))
        current = dict(leaves(default.get(group) or {}, f"{group}."))
        for key in sorted(searched.keys() | current.keys()):
            is_tried = any(f"{key}.".startswith(f"{param}.") for param in params)
            if is_tried or canonical(searched.get(key)) == canonical(current.get(key)):
                continue
            if group == "trainer" and key not in FIXED_OF_TRAINER:
                continue
            if key.startswith("dataset.source."):
                raise UsageError(
                    f"{subject} was on another graph than dataset={result.dataset}, by "
                    f"{key}={searched.get(key)}, and a recipe is of the data set: train its winner "
                    f"by {winner_command(read_study(folder), result)}"
                )
            if key.endswith("_target_") or not searched.keys() & current.keys() >= {key}:
                raise UsageError(
                    f"{subject} had another {group} than the default, by {key}, which a recipe "
                    f"cannot set: train its winner by {winner_command(read_study(folder), result)}"
                )
            fixed[key] = searched[key]
    check(fixed, relative_path(folder))
    return fixed


def _recipe(
    result: Result, study: optuna.Study, default: dict[str, Any], fixed: Mapping[str, Any]
) -> CommentedMap:
    """Values of the winner that differ from the default, with their provenance."""
    winner = best_first(study)[0]
    values = OmegaConf.create()
    defaults = OmegaConf.create(default)
    for key, value in {**fixed, **winner.params}.items():
        if OmegaConf.select(defaults, key) != value:
            OmegaConf.update(values, key, value)
    provenance = _provenance(result, study)
    recipe = CommentedMap()
    recipe[PROVENANCE] = {key: value for key, value in provenance.items() if value}
    recipe.update(OmegaConf.to_container(values))
    return recipe


def _provenance(result: Result, study: optuna.Study) -> dict[str, Any]:
    """How the winner was found, as a recipe states it."""
    trials = finished_trials(study)
    winner = best_first(study)[0]
    dates = [trial.datetime_complete for trial in trials if trial.datetime_complete]
    return {
        "command": study.user_attrs[COMMAND],
        "validation": _flow_mapping(
            metric=result.config["task"]["metric"],
            mean=_rounded(winner.value or 0.0),
            seeds=search_seeds(OmegaConf.create(result.config)),
            scores=[_rounded(score) for score in winner.user_attrs[SCORES]],
        ),
        "split": _describe_split(result),
        "trials": _flow_mapping(
            best=winner.number,
            of=len(trials),
            **count_states(trials),
            minutes=round(minutes(trials), 1),
        ),
        "study": f"search/{result.task}/{result.model}/{result.dataset} {study.study_name}",
        "date": max(dates).date(),
        "commit": study.user_attrs[COMMIT],
    }


def _rounded(score: float) -> float:
    return round(float(score), decimals(score))


def _describe_split(result: Result) -> Any:
    """The name of a run's split, and its draw if it is random."""
    split = result.config.get("split") or {}
    links = result.config["task"].get("split")
    if links:
        split = {"name": LINKS, **links}
    if "draw" not in split:
        return split.get("name")
    if split["draw"] is None:
        return f"{split['name']}, another draw for each seed"
    return f"{split['name']}, draw {split['draw']}"


def _flow_mapping(**values: Any) -> CommentedMap:
    """A mapping that YAML writes in one line."""
    mapping = CommentedMap(values)
    mapping.fa.set_flow_style()
    return mapping
