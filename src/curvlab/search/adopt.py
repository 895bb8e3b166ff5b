"""Turn a search's study into the recipe of a model on a data set and its split."""

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
from curvlab.config.folder import PROVENANCE
from curvlab.config.options import DECISIVE
from curvlab.config.resolvers import LINKS, name_of_recipe, recipe_name
from curvlab.config.trust import check
from curvlab.errors import UsageError
from curvlab.files import atomic_write
from curvlab.results.identity import canonical, stored_config
from curvlab.results.result import Result, read_result
from curvlab.run.reporting import shown
from curvlab.search.run import (
    COMMAND,
    COMMIT,
    SCORES,
    best_first,
    count,
    ended,
    minutes,
    read_study,
)


def adopt(folder: Path, configs: Path, force: bool = False) -> str:
    """Write the winner of a search to `CONFIGS/recipe/TASK/MODEL.yaml`, key `DATASET@SPLIT`."""
    study = read_study(folder)
    result = read_result(folder)
    if result is None:
        raise UsageError(
            f"the search in {shown(folder)} has not ended, after {len(ended(study))} trials; "
            f"this goes on with it: {study.user_attrs.get(COMMAND, 'the same command')}"
        )
    if result.status != "finished":
        raise UsageError(f"the search in {shown(folder)} has no winner: {result.error}")
    if [trial.value for trial in best_first(study)[:1]] != [result.val_score]:
        raise UsageError(
            f"the search in {shown(folder)} ended with validation {result.val_score}, and its "
            f"journal has another winner: it goes on, or one of the files is damaged; to end it, "
            f"{study.user_attrs.get(COMMAND, 'run the same command')}"
        )
    _check_names(folder, result, best_first(study)[0].params)
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
    known = target.is_file()
    recipes = yaml.load(target) if known else CommentedMap()
    before, better = _compare(new[PROVENANCE], recipes.get(key))
    score, place = _score(new[PROVENANCE]), f"{key} in {shown(target)}"
    if better and not force:
        raise UsageError(f"{place} has {before}, and the search has {score}: --force replaces it")
    recipes.ca.items.pop(key, None)  # comments on the replaced values
    recipes[key] = new
    text = io.StringIO("" if known else "# @package _global_\n")
    text.seek(0, io.SEEK_END)
    yaml.dump(recipes, text)
    atomic_write(target, text.getvalue())
    return f"wrote {place}: {score}" + (f" (before: {before})" if before else "")


def ranking(folder: Path, length: int) -> pd.DataFrame:
    """The best trials of a search, finished or not, one column per trial."""
    best = best_first(read_study(folder))[:length]
    if not best:
        raise UsageError(f"no trial of {shown(folder)} has a score yet")
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
    """Refuse names and values that would do more than set options: the files may be another's."""
    check(params, shown(folder))
    names = [getattr(result, key) for key in ("task", "model", "dataset")]
    names += [str((result.config.get("split") or {}).get("name", ""))]
    strange = [name for name in names if not re.fullmatch(r"([\w+-][\w.+-]*)?", str(name))]
    strange += [key for key in params if key.partition(".")[0] not in DECISIVE]
    if strange:
        raise UsageError(f"the search in {shown(folder)} has {strange[0]!r}: no recipe sets that")


def _drop_recipe(folder: Path, result: Result, configs: Path) -> dict[str, Any]:
    """The configuration of a run with the split and metric of the search, without its recipe."""
    split = result.config.get("split")
    words = [f"{key}={getattr(result, key)}" for key in ("task", "model", "dataset")]
    words += [f"split={split['name']}"] if split else []
    own = stored_config(compose([*words, "recipe=none"], configs))
    for key in ("split", "task.split", "task.metric"):
        group, _, name = key.partition(".")
        parts = (config.get(group) or {} for config in (result.config, own))
        searched, taken = (part.get(name) if name else part for part in parts)
        if canonical(searched) != canonical(taken):
            raise UsageError(
                f"the search in {shown(folder)} had {key}={searched}, and {' '.join(words)} has "
                f"{taken}: its scores say nothing of these runs, so search with what they have"
            )
    return own


def _compare(new: dict[str, Any], old: dict[str, Any] | None) -> tuple[str, bool]:
    """Describe the existing recipe, and whether `--force` is needed to replace it."""
    if old is None:
        return "", False
    if (found := old.get(PROVENANCE)) is None:
        return "values that no search has found", True
    if found.get("split", new.get("split")) != new.get("split"):
        return f"{_score(found)} on split {found['split']}", False
    return _score(found), found["validation"]["mean"] > new["validation"]["mean"]


def _score(found: dict[str, Any]) -> str:
    return f"validation {found['validation']['metric']} {found['validation']['mean']:.2f}"


def _recipe(result: Result, study: optuna.Study, own: dict[str, Any]) -> CommentedMap:
    done, winner = ended(study), best_first(study)[0]
    values, without = OmegaConf.create(), OmegaConf.create(own)
    for key, value in winner.params.items():
        if OmegaConf.select(without, key) != value:
            OmegaConf.update(values, key, value)
    links = result.config["task"].get("split")
    split = {"name": LINKS, **links} if links else result.config.get("split") or {}
    drawn = "another draw for each seed" if split.get("draw") is None else f"draw {split['draw']}"
    found = {
        "command": study.user_attrs[COMMAND],
        "validation": _one_line(
            metric=result.config["task"]["metric"],
            mean=round(float(winner.value or 0), 2),
            seeds=list(result.config["search"]["seeds"]),
            scores=[round(score, 2) for score in winner.user_attrs[SCORES]],
        ),
        "split": f"{split['name']}, {drawn}" if "draw" in split else split.get("name"),
        "trials": _one_line(
            best=winner.number, of=len(done), **count(done), minutes=round(minutes(done), 1)
        ),
        "study": f"search/{result.task}/{result.model}/{result.dataset} {study.study_name}",
        "date": max(trial.datetime_complete for trial in done if trial.datetime_complete).date(),
        "commit": study.user_attrs[COMMIT],
    }
    kept = {key: value for key, value in found.items() if value}
    return CommentedMap({PROVENANCE: kept, **OmegaConf.to_container(values)})  # type: ignore[dict-item]


def _one_line(**values: Any) -> CommentedMap:
    mapping = CommentedMap(values)
    mapping.fa.set_flow_style()
    return mapping
