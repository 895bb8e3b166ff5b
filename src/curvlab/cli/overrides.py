"""Check the overrides `key=value` of the command line before anything runs."""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
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
from curvlab.config.cache import CompositionCache
from curvlab.config.compose import compose, origins, show_origins
from curvlab.config.folder import CONFIGS, add, choices, find, is_group
from curvlab.config.schema import GROUPS, options_of, signature_of
from curvlab.config.validation import check_machine, check_options, keys_of
from curvlab.errors import UsageError, configuration_message, format_error, refuse
from curvlab.program import expand_home
from curvlab.run.cells import SEED
from curvlab.run.command import Command, complete
from curvlab.search.space import SPACE, check_search
from curvlab.study.flat_counterpart import check_study

INFORMATION = {"--hydra-help", "--info", "-i", "--version", "--cfg", "-c", "-sc"}
"""Flags of Hydra that only print something."""

MULTIRUN = ("-m", "--multirun")
QUESTION = "check"  # of the cache
OF_MACHINE = ("trainer", "batching", "task", "logger")
"""Parts of a configuration that are checked on each machine."""

Complete = Callable[[Sequence[str]], Command]
"""Makes the command of overrides: `complete`, or `Command.from_overrides`, which reads no graph."""

SCORING = ("task", "task.metric", "dataset.metric")  # keys that decide the score of a run


def complain(message: str) -> NoReturn:
    """Print an error and leave with exit code 2."""
    text = format_error(f"curvlab train: {message}").rstrip(".")
    print(text if text.endswith("?") else f"{text}.", file=sys.stderr)
    sys.exit(2)


def read_overrides(arguments: Sequence[str]) -> list[str]:
    """Expand `~/`, add folders of configurations, and resolve aliases and paths of graphs.

    A space of a study may be a new one, which Hydra's `++` allows.
    """
    overrides = resolve_aliases(add_folders(expand_home(arguments)))
    return [re.sub(r"^(?=study\.spaces\.\w+=)", "++", override) for override in overrides]


def keep_folder(arguments: Sequence[str]) -> list[str]:
    """Leave `hydra.job.chdir` out, and say so: paths are relative to the folder of the command."""
    key = "hydra.job.chdir="
    overrides = [word for word in arguments if not word.lstrip("+").startswith(key)]
    if len(overrides) < len(arguments):
        print(
            "hydra.job.chdir is left out: paths are relative to the folder where a command starts, "
            "and the files of a run are in its own folder",
            file=sys.stderr,
        )
    return overrides


def show_help(arguments: Sequence[str]) -> bool:
    """Print the help that the arguments ask for; return whether there is any."""
    topics = [word.partition("=")[2] for word in arguments if word.startswith("help=")]
    if not topics and not {"--help", "-h"}.intersection(arguments):
        return False
    others = [w for w in arguments if not w.startswith(("help=", "-"))]
    pages = [page(topic, others) for topic in topics]
    print("\n\n".join(pages) or screen().rstrip())
    return True


def check_flags(arguments: Sequence[str]) -> None:
    """Refuse flags of another command."""
    for argument in arguments:
        if argument.startswith("-"):
            key = argument.lstrip("-").partition("=")[0]
            is_key = is_group(CONFIGS, key) or "." in key
            instead = f"write {key}=..., or " if is_key else ""
            raise UsageError(f"there is no {argument} here; {instead}see curvlab train --help")


def add_folders(arguments: Sequence[str]) -> list[str]:
    """Add the folders of `--config-dir` and `hydra.searchpath`; return the other arguments."""
    words = iter(arguments)
    overrides = []
    for argument in words:
        flag, _, place = argument.partition("=")
        if flag in ("--config-dir", "-cd"):
            add(place or next(words, ""))
        elif flag == "hydra.searchpath":
            places = parse(argument).value()
            if not isinstance(places, list):
                places = [places]
            for folder in places:
                add(str(folder))
        else:
            overrides.append(argument)
    return overrides


def mark_cell_keys(overrides: Sequence[str]) -> list[str]:
    """Mark keys that only a sweep's cells have: Hydra first composes without them."""
    parsed = [parse(override) for override in overrides]
    choices = [o for o in parsed if chooses(o.key_or_group) and not o.is_sweep_override()]
    existing = keys_of(compose([str(choice.input_line) for choice in choices]))

    def is_of_cells(override: Override) -> bool:
        key = override.key_or_group
        if override.is_sweep_override() or override.is_add() or key.startswith("hydra"):
            return False
        return "." in key and key not in existing

    return [f"++{o.input_line}" if is_of_cells(o) else str(o.input_line) for o in parsed]


def check_overrides(
    arguments: Sequence[str], multirun: bool, complete: Complete = complete
) -> Command:
    """Check that overrides parse, exist and fit together in at least one cell of a sweep.

    Returns the first run, completed.
    """
    overrides = _parse_all(arguments, multirun)
    runs: list[Command] = []
    with _refuse_in_one_sentence():
        for variant in variations([*swept_by_table(overrides), *overrides]):
            run = complete(variant)
            runs.append(run)
            if multirun:  # a cell with a wrong combination ends by itself
                check_options(run.config)
            else:
                run.check()
            _refuse_ignored(overrides, run)
        _check_command(arguments, overrides, runs[0].config, multirun)
        if multirun:
            _refuse_shared_folders(arguments, runs[0].config, complete)
    return runs[0]


def check_sweep(
    arguments: Sequence[str], cache: CompositionCache, complete: Complete = complete
) -> None:
    """Check the overrides of a sweep; cells that are right by the cache are not composed."""
    overrides = _parse_all(arguments, multirun=True)
    configs: list[DictConfig] = []
    with _refuse_in_one_sentence():
        for variant in variations([*swept_by_table(overrides), *overrides]):
            question = (QUESTION, *arguments, "--", *variant)
            parts = cache.get(*question)
            if parts is None:
                run = complete(variant)
                check_options(run.config)
                _refuse_ignored(overrides, run)
                container: Any = OmegaConf.to_container(run.config, resolve=True)
                parts = {key: container[key] for key in OF_MACHINE if key in container}
                if not {"search", "study"}.intersection(container):
                    cache.put(parts, container, *question)
                configs.append(run.config)
            elif not configs:
                configs.append(OmegaConf.create(parts))
        _check_command(arguments, overrides, configs[0], multirun=True)
        _refuse_shared_folders(arguments, configs[0], complete)


def _parse_all(arguments: Sequence[str], multirun: bool) -> list[Override]:
    overrides = [parse(argument) for argument in arguments]
    for override in overrides:
        _check_override(override, multirun)
    if {"table", "search"} <= {o.key_or_group for o in overrides}:
        raise UsageError(
            "table= and search= are two sweeps: search first, adopt the winner by curvlab adopt, "
            "then fill the table"
        )
    return overrides


@contextmanager
def _refuse_in_one_sentence() -> Iterator[None]:
    try:
        yield
    except OmegaConfBaseException as error:
        raise UsageError(configuration_message(error)) from None


def _check_command(
    arguments: Sequence[str], overrides: Sequence[Override], config: DictConfig, multirun: bool
) -> None:
    """Check what depends on this machine, and the values of a search or a study."""
    if multirun:
        check_machine(config)
    remote = any(re.match("hydra/launcher=(?!basic|joblib)", argument) for argument in arguments)
    if config.trainer.accelerator in ("gpu", "cuda", "mps") and not remote:
        from curvlab.run.hardware import choose_device  # which imports torch

        choose_device(config.trainer.accelerator, config.trainer.precision)
    if "search" in config:
        values = [o for o in overrides if not chooses(o.key_or_group)]
        check_search(config, {o.key_or_group: str(o.input_line) for o in values})
    if "study" in config:
        check_study(config, arguments, choices(CONFIGS, "model"))


def _refuse_shared_folders(
    arguments: Sequence[str], config: DictConfig, complete: Complete
) -> None:
    """Refuse a sweep in which two searches, or two studies, have one folder."""
    if not {"search", "study"}.intersection(config):
        return
    cells: dict[Path, list[str]] = {}
    for cell in cells_of(arguments):
        folder = complete(cell).folder(multirun=True)
        earlier = cells.setdefault(folder, cell)
        if earlier is not cell:
            own = [word for word in earlier if word not in cell]
            others = [word for word in cell if word not in earlier]
            raise UsageError(
                f"{' '.join(own)} and {' '.join(others)} would have one folder, {folder}, where "
                "the second answer replaces the first: run a command for each, with another "
                "paths.output_dir"
            )


def _refuse_ignored(overrides: Sequence[Override], run: Command) -> None:
    """Refuse overrides that have no effect in a run."""
    config = run.config
    task_split = config.task.get("split")
    for override in overrides:
        key = override.key_or_group
        line = override.input_line
        if task_split and key.partition(".")[0] == "split":
            keys = [f"task.split.{name}" for name in task_split if not str(name).startswith("_")]
            raise UsageError(
                f"{line} would be ignored, since task={config.task.name} of "
                f"dataset={config.dataset.name} has its own split: set {', '.join(keys)} instead"
            )
        if key == "batching" and f"{key}={config.batching.name}" not in run.overrides:
            raise UsageError(
                f"{line}: model={config.model.name} sets batching={config.batching.name}; omit "
                "batching=, or choose another model"
            )
        if override.is_add() or override.is_force_add():
            _check_added(key, config)


def _check_added(key: str, config: DictConfig) -> None:
    """Refuse an added key that its class does not take."""
    names = key.split(".")
    for i, name in enumerate(names):
        path = ".".join(names[:i])
        node = OmegaConf.select(config, path) if path else config
        if not isinstance(node, DictConfig):
            return
        target = str(node.get("_target_", GROUPS.get(path, "")))
        options = options_of(target)
        is_open = not options or signature_of(target).passes_on
        if name in options or is_open or (not path and len(names) > 1):
            continue
        full = f"{path}.{name}".lstrip(".")
        existing = [k for k in keys_of(config) if k != full and not k.startswith(f"{full}.")]
        settable = [f"{path}.{option}" for option in options]
        refuse(f"key {full}", full, [*existing, *settable])


def parse(override: str) -> Override:
    """Parse an override as Hydra does."""
    if override.startswith("~"):
        raise UsageError(f"{override} would remove what a run needs: give it a value instead")
    if not re.fullmatch(r"[^=]+=.*", override, re.DOTALL):
        raise UsageError(f"{override!r} is not of the form key=value, for instance model=fpst")
    try:
        return OverridesParser.create().parse_override(override)
    except (HydraException, ValueError, RecursionError):  # ValueError: numbers of 5,000 digits
        hint = "put values with commas, spaces or brackets in quotes"
        if re.search(r"\[.*=", override):
            hint += ", and each KEY=VALUE in brackets, too: \"KEY=[['manifold=poincare']]\""
        raise UsageError(f"{override!r} cannot be read; {hint}") from None


def chooses(key: str) -> bool:
    """Whether a key is a configuration group."""
    return "." not in key and not key.startswith("hydra") and is_group(CONFIGS, key)


def values_of(override: Override) -> list[Any]:
    """The values of an override; of a pattern, the choices that it matches."""
    value = override.value()
    if isinstance(value, Glob):
        return value.filter(choices(CONFIGS, override.key_or_group))
    if override.is_sweep_override():
        return list(override.sweep_iterator(Override._convert_value))
    return [value]


def variations(overrides: Sequence[Override]) -> Iterator[list[str]]:
    """Overrides to compose: all first values, then each further value with first ones elsewhere."""
    spaces = []
    alternatives = []
    for override in overrides:
        key = override.key_or_group
        line = str(override.input_line)
        if key.startswith("hydra") or override.value_type is ValueType.GLOB_CHOICE_SWEEP:
            continue  # the cells of a pattern are checked when they run
        if key.startswith(f"{SPACE}."):
            spaces.append(line)
        elif override.is_sweep_override():
            start = f"{override.get_key_element()}="
            lines = [f"{start}{value}" for value in override.sweep_string_iterator()]
            if all(map(SEED.fullmatch, lines)):  # if one is out of bounds, the least or largest is
                seeds = sorted(lines, key=lambda line: int(line.partition("=")[2]))
                lines = list(dict.fromkeys([lines[0], seeds[0], seeds[-1]]))
            alternatives.append(lines)
        else:
            alternatives.append([line])
    firsts = [lines[0] for lines in alternatives]
    yield [*firsts, *spaces]
    for i, lines in enumerate(alternatives):
        for line in lines[1:]:
            yield [*firsts[:i], line, *firsts[i + 1 :], *spaces]


def _check_override(override: Override, multirun: bool) -> None:
    """Check what needs no composition: sweeps, choices and names."""
    key = override.key_or_group
    line = override.input_line
    swept = override.is_sweep_override()
    if not multirun and (swept or key in ("table", "search", "study")):
        problem = "asks for several runs" if swept else "is a sweep"
        raise UsageError(f"{line} {problem}: add -m, as in curvlab train -m {line}")
    if override.is_range_sweep() and not values_of(override):
        raise UsageError(f"{line} has no value, so that nothing would run: give {key} one")
    if override.is_interval_sweep():
        raise UsageError(
            f"{line} has infinitely many values: list them, as in {key}=1,2, or search them by "
            f"search=... and {SPACE}.{key}=[1,2]"
        )
    name = re.fullmatch(r"(model|dataset|task|manifold|batching|split)\.name", key)
    if name:
        raise UsageError(
            f"{line}: the results would have the name of another choice: choose by "
            f"{name[1]}=..., see --help"
        )
    if not chooses(key):
        return
    names = choices(CONFIGS, key)
    for choice in values_of(override):
        if key == "recipe" and choice != "none":
            raise UsageError(
                f"{line}: a run takes the recipe of its task, model, data set and split; "
                "recipe=none disables it"
            )
        if choice not in names:
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
        key = override.key_or_group
        line = override.input_line
        if key == "experiment":
            raise UsageError(
                f"{line}: the cells of table={name} are stored under its name: omit experiment="
            )
        if by_score and key in SCORING and key not in swept:
            raise UsageError(
                f"{line}: table={name} compares the score of each run with the published numbers, "
                f"and {key}= changes that score: omit {key}= or table="
            )
        if override.is_sweep_override() and key not in swept:
            raise UsageError(
                f"table={name} has no place for several values of {key}: it sweeps "
                f"{', '.join(swept)}; omit table=, or give one value"
            )
    keys = {o.key_or_group for o in overrides}
    return [parse(f"{key}={values}") for key, values in swept.items() if key not in keys]


def cells_of(arguments: Sequence[str]) -> list[list[str]]:
    """The overrides of each run of a command, including those of a table's sweep."""
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        parser = OverridesParser.create(GlobalHydra.instance().config_loader())
        of_runs = [argument for argument in arguments if not argument.startswith("hydra")]
        overrides = parser.parse_overrides(of_runs)
        cells = BasicSweeper.split_arguments([*swept_by_table(overrides), *overrides], None)[0]
    return [list(cell) for cell in cells]


def show_configurations(arguments: Sequence[str], complete: Complete) -> None:
    """Print the configuration of each run, each value with its origin."""
    cells = cells_of(arguments)
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        for cell in cells:
            run = complete(cell)
            run.check()
            print(show_origins(run.config, origins(run.overrides)), end="", flush=True)
