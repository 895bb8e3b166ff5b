"""Overrides `key=value` of the command line, checked before anything runs."""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from hydra import initialize_config_dir
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, Override, ValueType
from hydra.errors import HydraException
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from curvlab.cli.aliases import resolve_aliases
from curvlab.cli.help import page, screen
from curvlab.config.compose import compose, origins, show_origins
from curvlab.config.folder import CONFIGS, add, choices, find, is_group
from curvlab.config.options import check_machine, check_options, keys_of
from curvlab.config.schema import options_of, signature_of
from curvlab.errors import UsageError, omegaconf_message, refuse, shown
from curvlab.program import expand_home
from curvlab.run.command import Command, complete
from curvlab.search.space import SPACE, check_search
from curvlab.study.flat_counterpart import check_study

# Flags of Hydra that only show something.
INFORMATION = {"--hydra-help", "--info", "-i", "--version", "--cfg", "-c", "-sc"}
MULTIRUN = ("-m", "--multirun")

Complete = Callable[[Sequence[str]], Command]
"""Completes the overrides of one run: `complete`, or `Command.of`, which reads no graph."""

SCORING = ("task", "task.metric", "dataset.metric")  # keys that decide what the score of a run is
ADDED = {"trainer", "paths", "search", ""}
"""Parts whose keys only a class reads; others pass theirs to a class."""


def complain(message: str) -> NoReturn:
    """Print an error and leave with exit code 2."""
    text = shown(f"curvlab train: {message}").rstrip(".")
    print(text if text.endswith("?") else f"{text}.", file=sys.stderr)
    sys.exit(2)


def read_overrides(arguments: Sequence[str]) -> list[str]:
    """Expand `~/`, add folders of configurations, and replace aliases and paths of graphs."""
    return resolve_aliases(take_folders(expand_home(arguments)))


def show_help(arguments: Sequence[str]) -> bool:
    """Print the help that is asked for, if any."""
    topics = [word.partition("=")[2] for word in arguments if word.startswith("help=")]
    if not topics and not {"--help", "-h"}.intersection(arguments):
        return False
    print("\n\n".join(map(page, topics)) or screen().rstrip())
    return True


def check_flags(arguments: Sequence[str]) -> None:
    """Refuse words that are neither overrides nor flags."""
    for word in arguments:
        if word.startswith("-") and word not in MULTIRUN:
            key = word.lstrip("-").partition("=")[0]
            instead = f"say {key}=..., or " if is_group(CONFIGS, key) or "." in key else ""
            raise UsageError(f"there is no {word} here; {instead}see curvlab train --help")


def take_folders(arguments: Sequence[str]) -> list[str]:
    """Add the folders of `--config-dir` and `hydra.searchpath`; return the other arguments."""
    words, kept = iter(arguments), []
    for word in words:
        flag, _, place = word.partition("=")
        if flag in ("--config-dir", "-cd"):
            add(place or next(words, ""))
        elif flag == "hydra.searchpath":
            named = parse(word).value()
            for each in named if isinstance(named, list) else [named]:
                add(str(each))
        else:
            kept.append(word)
    return kept


def mark_cell_keys(overrides: Sequence[str]) -> list[str]:
    """Mark keys that only a sweep's cells have: Hydra first composes without them."""
    fixed = {w: o for w in overrides if not (o := parse(w)).is_sweep_override()}
    known = keys_of(compose([w for w, o in fixed.items() if chooses(o.key_or_group)]))
    only_there = {
        word
        for word, o in fixed.items()
        if "." in (key := o.key_or_group)
        and not (o.is_add() or key.startswith("hydra") or key in known)
    }
    return [f"++{word}" if word in only_there else word for word in overrides]


def check_overrides(words: Sequence[str], multirun: bool, complete: Complete = complete) -> Command:
    """Check that overrides parse, exist and fit together in at least one cell of a sweep.

    Returns the first run, completed.
    """
    overrides = [parse(word) for word in words]
    for override in overrides:
        _check_override(override, multirun)
    if {"table", "search"} <= {o.key_or_group for o in overrides}:
        raise UsageError(
            "table= and search= are two sweeps: search first, adopt the winner by curvlab adopt, "
            "then fill the table"
        )
    variants = variations([*swept_by_table(overrides), *overrides])
    try:
        first, *_ = [_check_run(complete(variant), overrides) for variant in variants]
        config = first.config
        if multirun:  # a cell that is wrong ends by itself
            check_machine(config)
        else:
            first.check()
        remote = any(re.match("hydra/launcher=(?!basic|joblib)", word) for word in words)
        if config.trainer.accelerator in ("gpu", "cuda", "mps") and not remote:
            from curvlab.run.hardware import choose_device  # which imports torch

            choose_device(config.trainer.accelerator)
        if "search" in config:
            set_here = [o for o in overrides if not chooses(o.key_or_group)]
            check_search(config, {o.key_or_group: str(o.input_line) for o in set_here})
        if "study" in config:
            check_study(config, words, choices(CONFIGS, "model"))
    except OmegaConfBaseException as error:
        raise UsageError(omegaconf_message(error)) from None
    return first


def _check_run(run: Command, overrides: Sequence[Override]) -> Command:
    """Check the values of a run; refuse overrides that have no effect in it."""
    config = run.config
    check_options(config)
    own = config.task.get("split")
    for override in overrides:
        key, line = override.key_or_group, override.input_line
        if own and key.partition(".")[0] == "split":
            keys = [f"task.split.{name}" for name in own if not str(name).startswith("_")]
            raise UsageError(
                f"{line} would be ignored, since task={config.task.name} of "
                f"dataset={config.dataset.name} has its own split: set {', '.join(keys)} instead"
            )
        if key == "batching" and f"{key}={config.batching.name}" not in run.overrides:
            raise UsageError(
                f"{line}: model={config.model.name} brings batching={config.batching.name} of its "
                "own; drop the word, or take another model"
            )
        if override.is_add() or override.is_force_add():
            path, _, name = key.rpartition(".")
            node = OmegaConf.select(config, path) if path else config
            target = str(node.get("_target_", "")) if isinstance(node, DictConfig) else ""
            taken = options_of(target)
            unknown = bool(taken) and name not in taken and not signature_of(target).passes_on
            if unknown or (path in ADDED and not taken):
                refuse(f"key {key}", key, [*keys_of(config), *(f"{path}.{o}" for o in taken)])
    return run


def parse(word: str) -> Override:
    """Parse an override as Hydra does."""
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


def chooses(key: str) -> bool:
    """Whether a key is a configuration group."""
    return "." not in key and not key.startswith("hydra") and is_group(CONFIGS, key)


def spelt_out(override: Override) -> list[Any]:
    """The values of an override; of a pattern, the choices that it matches."""
    if isinstance(pattern := override.value(), Glob):
        return pattern.filter(choices(CONFIGS, override.key_or_group))
    if override.is_sweep_override():
        return list(override.sweep_iterator(Override._convert_value))
    return [pattern]


def variations(overrides: Sequence[Override]) -> Iterator[list[str]]:
    """Overrides to compose: the first values of all, then the others of one override at a time."""
    kept, every = [], []
    for override in overrides:
        key, line = override.key_or_group, str(override.input_line)
        if key.startswith("hydra") or override.value_type is ValueType.GLOB_CHOICE_SWEEP:
            continue  # of patterns, cells say so themselves
        if key.startswith(f"{SPACE}."):
            kept.append(line)
        elif override.is_sweep_override():
            start = f"{override.get_key_element()}="
            every.append([f"{start}{value}" for value in override.sweep_string_iterator()])
        else:
            every.append([line])
    firsts = [words[0] for words in every]
    yield [*firsts, *kept]
    for i, words in enumerate(every):
        for word in words[1:]:
            yield [*firsts[:i], word, *firsts[i + 1 :], *kept]


def _check_override(override: Override, multirun: bool) -> None:
    """Check what needs no composition: sweeps, choices and names."""
    key, line, swept = override.key_or_group, override.input_line, override.is_sweep_override()
    if not multirun and (swept or key in ("table", "search", "study")):
        what = "asks for several runs" if swept else "is a sweep"
        raise UsageError(f"{line} {what}: add -m, as in curvlab train -m {line}")
    if override.is_range_sweep() and not spelt_out(override):
        raise UsageError(f"{line} has no value, so that nothing would run: give {key} one")
    if override.is_interval_sweep():
        raise UsageError(
            f"{line} has infinitely many values: list them, as in {key}=1,2, or search them by "
            f"search=... and {SPACE}.{key}=[1,2]"
        )
    if named := re.fullmatch(r"(model|dataset|task|manifold|batching|split)\.name", key):
        raise UsageError(
            f"{line}: the results of one would have the name of another: choose by "
            f"{named[1]}=..., see --help"
        )
    for choice in spelt_out(override) if chooses(key) else ():
        if key == "recipe" and choice != "none":
            raise UsageError(
                f"{line}: a run takes the recipe of its task, model, data set and split; "
                "recipe=none leaves it out"
            )
        if choice not in (names := choices(CONFIGS, key)):
            refuse(f"{key}={'null' if choice is None else choice}", str(choice), names)


def swept_by_table(overrides: Sequence[Override]) -> list[Override]:
    """Overrides that a table sweeps in addition to the command line."""
    tables = [o for o in overrides if o.key_or_group == "table"]
    if not tables:
        return []
    if tables[-1].is_sweep_override():
        raise UsageError(f"{tables[-1].input_line}: run one table after the other")
    name = str(tables[-1].value())
    table = OmegaConf.load(find(CONFIGS, f"table/{name}.yaml"))
    swept = OmegaConf.select(table, "hydra.sweeper.params") or {}
    report = OmegaConf.select(table, "report") or {}
    blocks = report if isinstance(report, ListConfig) else [report]
    by_score = any(block.get("metric", "score") == "score" for block in blocks)
    for override in overrides:
        key, line = override.key_or_group, override.input_line
        if key == "experiment":
            raise UsageError(
                f"{line}: the cells of table={name} are kept under its name: drop experiment="
            )
        if by_score and key in SCORING and key not in swept:
            raise UsageError(
                f"{line}: table={name} compares the score of each run with the published numbers, "
                f"and it would be another one: drop {key}= or table="
            )
        if override.is_sweep_override() and key not in swept:
            raise UsageError(
                f"table={name} has no place for several values of {key}: it sweeps "
                f"{', '.join(swept)}; drop table=, or give one value"
            )
    given = {o.key_or_group for o in overrides}
    return [parse(f"{key}={values}") for key, values in swept.items() if key not in given]


def cells_of(words: Sequence[str]) -> list[list[str]]:
    """The overrides of each run of a command, those of a table's sweep included."""
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        parser = OverridesParser.create(GlobalHydra.instance().config_loader())
        own = [word for word in words if not word.startswith("hydra")]
        overrides = parser.parse_overrides(own)
        cells = BasicSweeper.split_arguments([*swept_by_table(overrides), *overrides], None)[0]
    return [list(cell) for cell in cells]


def show_configurations(words: Sequence[str], complete: Complete) -> None:
    """Print the configuration of each run, its values with their origins."""
    cells = cells_of(words)
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        for cell in cells:
            run = complete(cell)
            run.check()
            print(show_origins(run.config, origins(run.overrides)), end="", flush=True)
