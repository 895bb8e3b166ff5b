"""Words `key=value` of a command line: each is checked before anything runs."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, ValueType
from hydra.errors import HydraException
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from curvlab.cli import workers
from curvlab.cli.help import choices, refuse
from curvlab.cli.words import (
    check_key_is_for_users,
    check_recipe,
    check_split_is_used,
    check_words_of_table,
    is_read_by_nobody,
)
from curvlab.config.compose import compose
from curvlab.config.folder import find, is_group
from curvlab.config.options import check_setting, keys_of
from curvlab.config.rules import check_devices, validate
from curvlab.config.schema import options_of, takes_others
from curvlab.errors import UsageError, of_omegaconf
from curvlab.program import command
from curvlab.search.space import SPACE, check_search
from curvlab.study.twins import check_study

PLACES_OF_HYDRA = ("hydra.run.dir", "hydra.sweep.dir", "hydra.sweep.subdir")
"""Without a name they would be the folder that one is in."""

NAME_OF_LOG = "hydra.job.name"


def check_overrides(words: Sequence[str], config_dir: Path, multirun: bool) -> None:
    """Check overrides: they parse, their groups, choices and keys exist, their values fit together.

    What only some cells of a sweep get wrong is left to those cells.

    Raises:
        UsageError: the first that is wrong.
    """
    overrides = [parsed(word) for word in words]
    if not multirun:
        _refuse_sweeps(overrides)
    if {"table", "search"} <= {o.key_or_group for o in overrides}:
        raise UsageError(
            "table= and search= are two sweeps: search first, take over the winner with "
            f"{command('adopt')}, then fill the table"
        )
    _refuse_empty_sweeps(overrides)
    groups = choosing(overrides, config_dir)
    for override in groups:
        for choice in _values(override):
            check_recipe(override, choice)
            group, names = override.key_or_group, choices(config_dir, override.key_or_group)
            if choice not in names:
                refuse(f"{group}={'null' if choice is None else choice}", str(choice), names)
    planned = _sweep_of_table(overrides, config_dir)
    groups += [o for o in planned if chooses(o.key_or_group, config_dir)]
    settings = [o for o in overrides if o not in groups]
    for chosen in _variations([o for o in groups if o.key_or_group != "table"]):
        default = compose(chosen, config_dir)
        check_split_is_used(overrides, default)
        for override in settings:
            _check_setting(override, default, " ".join(chosen))
    settled = [str(o.input_line) for o in settings if not o.is_sweep_override()]
    config = compose([*(first(o) for o in groups), *settled], config_dir)
    _check_batching(groups, config)
    for override in settings:
        key = override.key_or_group
        if any(map(_is_interpolated, _values(override))) and key in keys_of(default):
            check_setting(key, default, _resolved(config, key))
    if config.trainer.parallel_seeds > 1:
        _check_seeds([*overrides, *planned], config.trainer.parallel_seeds)
    launcher = next((o.value() for o in overrides if o.key_or_group == "hydra/launcher"), None)
    try:
        if not multirun:
            validate(config)
        check_devices(config)
        if config.trainer.devices > 1 and launcher == "parallel":
            raise UsageError(
                "trainer.devices and hydra/launcher=parallel would both share out devices: keep "
                "one of them (with the launcher, each run has one)"
            )
        if config.trainer.parallel_seeds > 1 and launcher == "parallel":
            raise UsageError(
                "trainer.parallel_seeds and hydra/launcher=parallel would both share out cores: "
                "keep one of them (with the launcher, seed=0,1,2 runs the seeds)"
            )
        if "search" in config:
            check_search(config, {o.key_or_group: str(o.input_line) for o in settings})
        if "study" in config:
            check_study(config, words, choices(config_dir, "model"))
    except OmegaConfBaseException as error:
        raise UsageError(of_omegaconf(error)) from None


def _is_interpolated(value: Any) -> bool:
    return isinstance(value, str) and "${" in value


def _resolved(config: DictConfig, key: str) -> Any:
    """A value of a configuration, a plain one.

    Raises:
        UsageError: what it refers to is not there.
    """
    try:
        value = OmegaConf.select(config, key)
    except OmegaConfBaseException as error:
        raise UsageError(f"{key}: {of_omegaconf(error)}") from None
    is_node = isinstance(value, DictConfig | ListConfig)
    return OmegaConf.to_container(value, resolve=True) if is_node else value


def _check_batching(groups: Sequence[Override], config: DictConfig) -> None:
    """Refuse a choice of batches that the model overrules."""
    for override in groups:
        if override.key_or_group == "batching" and _values(override)[0] != config.batching.name:
            raise UsageError(
                f"{override.input_line}: model={config.model.name} brings "
                f"batching={config.batching.name} of its own; drop the word, or take another model"
            )


def _variations(groups: Sequence[Override]) -> Iterator[list[str]]:
    """Choices of the groups: the first of each, then one group's others at a time."""
    firsts = [first(o) for o in groups]
    yield firsts
    for i, override in enumerate(groups):
        for value in _values(override)[1:]:
            yield [*firsts[:i], f"{override.key_or_group}={value}", *firsts[i + 1 :]]


def _check_setting(override: Override, default: DictConfig, choices: str) -> None:
    """Check key and values of an override that chooses from no group.

    Args:
        override: `key=value`.
        default: the configuration without it.
        choices: what `default` was composed with, as words.
    """
    key = override.key_or_group
    if key == "hydra/launcher":
        workers.check_launcher(override.value())
    if key.startswith("hydra"):
        if "." not in key and "/" not in key:
            raise UsageError(f"{override.input_line}: set a key below it, as hydra.sweep.dir=...")
        if key in PLACES_OF_HYDRA and not str(override.value()).strip():
            raise UsageError(f"{override.input_line} must name a folder")
        if key == NAME_OF_LOG and "/" in str(override.value()):
            raise UsageError(f"{override.input_line} must be a name without slashes")
        return
    check_key_is_for_users(override)
    where = f" with {choices}" if choices else ""
    if (not override.is_add() or is_read_by_nobody(key)) and key not in (keys := keys_of(default)):
        refuse(f"key {key}{where}", key, keys)
    if override.is_add():
        _check_added(key, default, where)
        return
    if key.startswith(f"{SPACE}."):
        return  # lists of values, which are looked at as a whole
    for value in _values(override):
        if not _is_interpolated(value):  # else checked when it is resolved
            check_setting(key, default, value)


def _check_added(key: str, default: DictConfig, where: str) -> None:
    """Refuse an addition that the class does not take; other keys are for interpolations."""
    path, _, name = key.rpartition(".")
    node = OmegaConf.select(default, path)
    target = str(node.get("_target_", "")) if isinstance(node, DictConfig) else ""
    taken = options_of(target)
    if taken and name not in taken and name not in node and not takes_others(target):
        refuse(f"key {key}{where}", key, [*keys_of(default), *(f"{path}.{o}" for o in taken)])


def parsed(word: str) -> Override:
    """A word as Hydra reads it.

    Raises:
        UsageError: it cannot be read, or takes something away.
    """
    if word.startswith("~"):
        raise UsageError(f"{word} would remove what a run needs: give it a value instead")
    if not re.fullmatch(r"[^=]+=.*", word, re.DOTALL):
        raise UsageError(f"{word!r} is not of the form key=value, for instance model=fpst")
    try:
        return OverridesParser.create().parse_override(word)
    except (HydraException, ValueError, RecursionError):  # Python's, of numbers with 5,000 digits
        raise UsageError(
            f"{word!r} cannot be read; put values with commas, spaces or brackets in quotes"
        ) from None


def chooses(key: str, config_dir: Path) -> bool:
    """Whether a key is a group, from which a word chooses."""
    return "." not in key and not key.startswith("hydra") and is_group(config_dir, key)


def _check_seeds(overrides: Sequence[Override], at_once: int) -> None:
    """Refuse a sweep over seeds where each cell already runs several seeds at once."""
    for override in overrides:
        if override.key_or_group == "seed":
            seeds = sorted(_values(override))
            if any(later - seed < at_once for seed, later in pairwise(seeds)):
                raise UsageError(
                    f"trainer.parallel_seeds={at_once} runs as many seeds from each of "
                    f"{override.input_line} on, some of them twice: give the first alone, "
                    f"seed={seeds[0]}"
                )


def _values(override: Override) -> list[Any]:
    """The values that an override takes; none of a sweep that only Hydra can spell out."""
    spelt = (ValueType.CHOICE_SWEEP, ValueType.SIMPLE_CHOICE_SWEEP, ValueType.RANGE_SWEEP)
    if override.value_type in spelt:
        parse = OverridesParser.create().parse_override
        return [parse(f"key={text}").value() for text in override.sweep_string_iterator()]
    return [] if override.is_sweep_override() else [override.value()]


def choosing(overrides: Iterable[Override], config_dir: Path) -> list[Override]:
    """Those that choose from groups, but for sweeps that only Hydra can spell out."""
    return [o for o in overrides if chooses(o.key_or_group, config_dir) and _values(o)]


def first(override: Override) -> str:
    """The override with the first of its values."""
    return f"{override.key_or_group}={_values(override)[0]}"


def _refuse_sweeps(overrides: Iterable[Override]) -> None:
    for override in overrides:
        line, swept = override.input_line, override.is_sweep_override()
        if swept or override.key_or_group in ("table", "search", "study"):
            what = "asks for several runs" if swept else "is a sweep"
            raise UsageError(f"{line} {what}: add -m, as in {command('train')} -m {line}")


def _refuse_empty_sweeps(overrides: Iterable[Override]) -> None:
    """Refuse sweeps without values, or with more than can be run one after the other."""
    for override in overrides:
        line, key = override.input_line, override.key_or_group
        if override.is_range_sweep() and not _values(override):
            raise UsageError(f"{line} has no value, so that nothing would run: give {key} one")
        if override.is_interval_sweep():
            raise UsageError(
                f"{line} has no end of values: name them, as in {key}=1,2, or search them by "
                f"search=... and {SPACE}.{key}=[1,2]"
            )


def _sweep_of_table(overrides: Sequence[Override], config_dir: Path) -> list[Override]:
    """What a table sweeps beside the command line; it has no address for other cells."""
    tables = [o for o in overrides if o.key_or_group == "table"]
    if not tables:
        return []
    if tables[-1].is_sweep_override():
        raise UsageError(f"{tables[-1].input_line}: run one table after the other")
    name = str(tables[-1].value())
    table = OmegaConf.load(find(config_dir, f"table/{name}.yaml"))
    assert isinstance(table, DictConfig)
    check_words_of_table(overrides, name, table)
    sweep = table.hydra.sweeper.params
    for override in overrides:
        if override.is_sweep_override() and override.key_or_group not in sweep:
            raise UsageError(
                f"table={name} has no place for several values of {override.key_or_group}: it "
                f"sweeps {', '.join(sweep)}; drop table=, or give one value"
            )
    given = {o.key_or_group for o in overrides}
    return [parsed(f"{key}={values}") for key, values in sweep.items() if key not in given]
