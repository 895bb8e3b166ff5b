"""The command of one run: its completed overrides, its configuration and its hash."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from curvlab.config.building import build, name_keys_in_errors
from curvlab.config.compose import (
    compose,
    compose_with_hydra,
    drop_replaced_options,
    relabel,
    without_hydra,
)
from curvlab.config.resolvers import data_name, splits_with_recipe
from curvlab.config.schema import is_subclass
from curvlab.config.trust import trust
from curvlab.config.validation import check_options, decides, validate
from curvlab.errors import UsageError
from curvlab.results.folder import RunDirectory
from curvlab.results.identity import identity_hash, revisions_of, stored_config
from curvlab.results.result import Result

USER_GRAPH = "curvlab.data.datasets.own_graph.OwnGraph"
USER_TRIPLES = "curvlab.data.datasets.triple_folder.TripleFolder"
LABELLED = "node_classification"
FIXED_TASK = ("table", "help")  # keys with which labels do not choose the task

_LABELS: dict[str, bool] = {}  # whether the nodes of a graph have labels, by the graph's content

_PRINTED: set[str] = set()  # lines on replaced classes that this process has printed


def _say_once(say: Callable[[str], None], line: str) -> None:
    if line not in _PRINTED:
        _PRINTED.add(line)
        say(line)


@dataclass
class Command:
    """One run: its overrides, the configuration that they make, and its identity.

    A command is composed, checked and hashed once, and handed on.

    Args:
        overrides: all overrides, including the task that labels imply.
        config: configuration with every option, without Hydra's part.
        full: configuration with Hydra's part, which names the folder; None in a job of Hydra's.
    """

    overrides: tuple[str, ...]
    config: DictConfig
    full: DictConfig | None = None
    checked: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        trust(self.config)  # the user has written it

    @classmethod
    def from_overrides(
        cls,
        overrides: Sequence[str],
        hydra: Sequence[str] = (),
        say: Callable[[str], None] = lambda _: None,
    ) -> "Command":
        """Compose overrides as they are, and those of Hydra's keys.

        `say` gets a line for each class that an override replaces, and one if the recipe of the
        data set is for another split than the given one, once.

        Raises:
            UsageError: a file of the user's makes Hydra change the folder.
        """
        full = compose_with_hydra([*overrides, *hydra], say=partial(_say_once, say))
        if full.hydra.job.chdir:
            raise UsageError(
                "a file of configurations sets hydra.job.chdir=true: take it out there, since "
                "paths are relative to the folder where a command starts"
            )
        if any(override.lstrip("+").startswith("split=") for override in overrides):
            _report_recipe(full.hydra.runtime.choices, partial(_say_once, say))
        return cls(tuple(overrides), without_hydra(full), full)

    @classmethod
    def from_hydra(cls, config: DictConfig) -> "Command":
        """The run that Hydra has started in this process with a configuration."""
        overrides = tuple(map(str, HydraConfig.get().overrides.task))
        trust(config)
        drop_replaced_options(config, overrides)
        relabel(config, overrides)
        return cls(overrides, config)

    @cached_property
    def stored(self) -> dict[str, Any]:
        """The configuration as a result stores it."""
        return stored_config(self.config)

    @cached_property
    def config_hash(self) -> str:
        """The identity of the run."""
        return identity_hash(self.stored)

    @property
    def outputs(self) -> Path | None:
        """The folder below which the same run may have ended; None: only its own folder counts.

        With a logger only its own folder counts, so that each cell of a table is logged.
        """
        config = self.config
        if config.logger or "search" in config or "study" in config:
            return None
        return Path(config.paths.output_dir)

    def check(self) -> None:
        """Check values and combinations, once.

        Raises:
            UsageError: a value or a combination is wrong; the first one is named.
        """
        if not self.checked:
            validate(self.config)
            self.checked = True

    def initial_result(self) -> Result:
        """The result of the run before it has started."""
        config = self.config
        return Result(
            status="failed",
            model=config.model.name,
            dataset=data_name(_root_=config),
            task=config.task.name,
            manifold=config.manifold.name,
            seed=config.seed,
            experiment=config.experiment,
            config_hash=self.config_hash,
            config=self.stored,
            changed=self.deviations(),
            revisions=revisions_of(self.stored),
        )

    def deviations(self) -> list[str]:
        """Overrides that change the settings of the command's table; choices of cells do not."""
        by_key = {each.lstrip("+").partition("=")[0]: each for each in self.overrides}
        if "table" not in by_key:
            return []
        hydra = HydraConfig.get() if self.full is None else self.full.hydra
        swept = hydra.sweeper.params or {}
        return sorted(
            override.lstrip("+")
            for key, override in by_key.items()
            if key not in swept and decides(key, self.stored)
        )

    def folder(self, multirun: bool) -> Path:
        """The folder of the run, by itself or as a cell of a sweep."""
        assert self.full is not None
        config, current = self.full, HydraConfig.instance()
        before = current.cfg
        try:
            current.set_config(config)
            if not multirun:
                return Path(config.hydra.run.dir)
            with read_write(config.hydra), open_dict(config):
                config.hydra.job.num = config.hydra.job.id = 0
            return Path(config.hydra.sweep.dir, config.hydra.sweep.subdir)
        finally:
            current.cfg = before


def spare_read_only(config: DictConfig, folder: Path) -> None:
    """Keep Hydra from writing its files into a read-only folder."""
    if folder.exists() and not os.access(folder, os.W_OK):
        with read_write(config.hydra):
            config.hydra.output_subdir = None


class Identified(Protocol):
    """A run whose identity is known."""

    @property
    def config_hash(self) -> str:
        """The identity."""

    @property
    def outputs(self) -> Path | None:
        """See `Command.outputs`."""


def finished(
    run: Identified, folder: Path, known: Mapping[str, list[Path]] | None = None
) -> RunDirectory | None:
    """Find where a run has ended: in its folder, set aside there, or elsewhere in its outputs.

    A run is found by its identity. `known` is a result of `folders_by_hash`.
    """
    place = RunDirectory(folder)
    for candidate in (place, place.aside(run.config_hash)):
        if candidate.conclusion(run.config_hash):
            return candidate
    if run.outputs is None:
        return None
    other = place.elsewhere(run.outputs, run.config_hash, known)
    return other if other and other.conclusion(run.config_hash) else None


def complete(
    overrides: Sequence[str],
    say: Callable[[str], None] = print,
    keep: bool = True,
    hydra: Sequence[str] = (),
) -> Command:
    """Complete the overrides of one run: a user's labelled graph is classified.

    Args:
        overrides: overrides of the run, without a sweep.
        hydra: overrides of Hydra's keys.
        say: function that prints the content of a user's graph, and the task, once per graph.
        keep: whether to keep the graph below `paths.data_dir`.

    Raises:
        UsageError: an override is wrong, or the graph is malformed.
    """
    keys = {override: override.lstrip("+").partition("=")[0] for override in overrides}
    if set(FIXED_TASK).intersection(keys.values()):
        return Command.from_overrides(overrides, hydra, say)
    # Other overrides may set keys that only the completed command has.
    graph_overrides = [
        override
        for override, key in keys.items()
        if "." not in key or key.startswith(("dataset.", "paths."))
    ]
    graph = compose(graph_overrides)
    target = OmegaConf.select(graph, "dataset.source._target_")
    if is_subclass(str(target), USER_TRIPLES):
        _report_triples(graph, say)
    if not is_subclass(str(target), USER_GRAPH):
        return Command.from_overrides(overrides, hydra, say)
    check_options(graph)
    labelled = _has_labels(graph, "task" in keys.values(), say, keep)
    if "task" in keys.values():
        return Command.from_overrides(overrides, hydra, say)
    task = LABELLED if labelled else graph.task.name
    return Command.from_overrides([*overrides, f"task={task}"], hydra, say)


def _report_recipe(choices: Mapping[str, Any], say: Callable[[str], None]) -> None:
    """Say that a split has no recipe although another split of the data set has one."""
    recipe = choices.get("recipe")
    splits = splits_with_recipe(recipe) if recipe and recipe != "none" else []
    if splits:
        chosen = " ".join(f"{group}={choices[group]}" for group in ("model", "dataset", "split"))
        others = ", ".join(f"split={split}" for split in splits)
        say(f"{chosen} has no recipe, only {others} has: the model's general values are used")


def _report_triples(config: DictConfig, say: Callable[[str], None]) -> None:
    """Print how a user's triples were read, once."""
    # Imported here since they need torch.
    from curvlab.data.datasets.own_graph import say_once
    from curvlab.run.parts import build_source

    source: Any = build_source(config.dataset, config.paths)
    with name_keys_in_errors(config.dataset.source):
        say_once(source.report(source.read()), say)


def _has_labels(config: DictConfig, has_task: bool, say: Callable[[str], None], keep: bool) -> bool:
    """Whether a user's graph has labels; reads and reports it once."""
    # Imported here since it needs torch.
    from curvlab.run.parts import build_source

    paths = config.paths if keep else {**config.paths, "data_dir": None}
    source: Any = build_source(config.dataset, paths)
    with name_keys_in_errors(config.dataset.source):
        content = source.disk_key
        if content in _LABELS:
            return _LABELS[content]
        data = source.load(say=say)
    labelled = data.y is not None
    if config.dataset.features and not str(config.batching.name).startswith("tokens"):
        for remark in getattr(build(config.dataset.features), "remarks", lambda _: ())(data):
            say(f"  {remark}")
    if not has_task:
        task = LABELLED if labelled else config.task.name
        say(f"task={task}, since its nodes have {'' if labelled else 'no '}labels")
    _LABELS[content] = labelled
    return labelled
