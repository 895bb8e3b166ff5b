"""Words of a command line that no configuration forbids, but a run would ignore or be misnamed by.

What they set exists, for configurations to say; typed by hand it would change what a result is
called or counts as, and not what was computed.
"""

from collections.abc import Sequence
from typing import Any

from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, ListConfig, OmegaConf

from curvlab.errors import UsageError

CHOSEN = ("model", "dataset", "task", "manifold", "batching", "split")
"""Groups whose choices have names."""

DECLARED = {"bases", "transforms"}
"""What a model says of itself below `requires`; other keys there are for recipes to read."""

HOW_BUILT = {"_args_", "_convert_", "_partial_", "_recursive_"}
"""Hydra's keys beside a `_target_`."""

SCORING = ("task", "task.metric", "dataset.metric")
"""Keys that decide what the score of a run is."""


def check_key_is_for_users(override: Override) -> None:
    """Refuse keys by which a choice of a group says what it is.

    Raises:
        UsageError: with what to set instead.
    """
    key, line = override.key_or_group, override.input_line
    group, *names = key.split(".")
    if key == "tuned":
        raise UsageError(f"{line}: tuned values are recipes now, and recipe=none leaves them out")
    if group in CHOSEN and names == ["name"]:
        raise UsageError(
            f"{line} would give the results of one {group} the name of another: choose by "
            f"{group}=..., see --help"
        )
    if names[:1] == ["requires"] and (len(names) == 1 or names[1] in DECLARED):
        raise UsageError(
            f"{line}: what a {group} can do and needs is not to be set: choose another {group}=..."
        )
    if HOW_BUILT.intersection(names):
        raise UsageError(f"{line}: how a class is built is said by its file, not by a command")


def check_recipe(override: Override, choice: Any) -> None:
    """Refuse to choose a recipe, which would be of other data or another split than the run's.

    Raises:
        UsageError: the choice is not to have none.
    """
    if override.key_or_group == "recipe" and choice != "none":
        raise UsageError(
            f"{override.input_line}: a run takes the recipe of its task, model, data set and "
            "split; recipe=none leaves it out"
        )


def check_split_is_used(overrides: Sequence[Override], config: DictConfig) -> None:
    """Refuse a split of the nodes that a task with a split of its own would ignore.

    Args:
        overrides: of the command line alone; a table's columns may bring one for all tasks.
        config: composed with the task.

    Raises:
        UsageError: with the keys of the task's split.
    """
    own = config.task.get("split")
    for override in overrides:
        if own and override.key_or_group.partition(".")[0] == "split":
            keys = [f"task.split.{key}" for key in own if not str(key).startswith("_")]
            raise UsageError(
                f"{override.input_line} would be ignored, since task={config.task.name} of "
                f"dataset={config.dataset.name} has its own split: set {', '.join(keys)} instead"
            )


def is_read_by_nobody(key: str) -> bool:
    """Whether a key that a configuration does not have could not change anything if it had it.

    Other parts pass all their keys to the constructor, which refuses unknown ones.
    """
    part, *names = key.split(".")
    of_search = part == "search" and names[:1] not in (["space"], ["sampler"], ["pruner"])
    return not names or part in ("trainer", "paths") or of_search


def check_words_of_table(overrides: Sequence[Override], name: str, table: DictConfig) -> None:
    """Refuse what would put runs into a table that its numbers do not compare with.

    Args:
        overrides: of the command line.
        name: of the table.
        table: its file.

    Raises:
        UsageError: with the way out.
    """
    report = table.get("report")
    blocks = report if isinstance(report, ListConfig) else [report or {}]
    by_score = any(block.get("metric", "score") == "score" for block in blocks)
    swept = OmegaConf.select(table, "hydra.sweeper.params") or {}
    for override in overrides:
        key, line = override.key_or_group, override.input_line
        if key == "experiment":
            raise UsageError(
                f"{line}: the cells of table={name} are kept under its name: drop experiment="
            )
        if by_score and key in SCORING and key not in swept:
            raise UsageError(
                f"{line}: table={name} compares the score of each run with the printed numbers, "
                f"and it would be another one: drop {key}= or table="
            )
