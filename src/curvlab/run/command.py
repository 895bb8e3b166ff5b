"""The command of one run: its overrides, completed, with the configuration and its hash."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hydra import initialize_config_dir
from hydra._internal.callbacks import Callbacks
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import run_job
from hydra.types import HydraContext
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from curvlab.config.building import build, name_keys_in_errors
from curvlab.config.compose import JOB, compose, compose_with_hydra
from curvlab.config.folder import CONFIGS
from curvlab.config.options import check_options
from curvlab.config.schema import is_subclass
from curvlab.results.folder import RunDirectory
from curvlab.results.identity import identity_hash, stored_config

OWN = "curvlab.data.datasets.own_graph.OwnGraph"
LABELLED = "node_classification"
ELSEWHERE = ("table", "help")  # keys with which no graph's labels choose the task

_LABELS: dict[str, bool] = {}  # whether the nodes of a graph have labels, by the graph's content


@dataclass(frozen=True)
class Command:
    """The overrides of one run, and the configuration that they make.

    Args:
        overrides: all of them, the task that labels imply included.
        config: with every option, without Hydra's part.
    """

    overrides: tuple[str, ...]
    config: DictConfig

    @classmethod
    def of(cls, overrides: Sequence[str]) -> "Command":
        """Compose overrides as they are."""
        return cls(tuple(overrides), compose(overrides))

    @cached_property
    def stored(self) -> dict[str, Any]:
        """The configuration as a result stores it."""
        return stored_config(self.config)

    @cached_property
    def config_hash(self) -> str:
        """The identity of the run."""
        return identity_hash(self.stored)

    def call(self, work: Callable[[DictConfig], Any], logs: bool, others: Sequence[str]) -> Any:
        """Call `work` as a job of Hydra's, with other overrides, which are of Hydra's keys."""
        config = compose_with_hydra([*self.overrides, *others])
        with initialize_config_dir(str(CONFIGS), JOB, version_base="1.3"):
            loader = GlobalHydra.instance().config_loader()
            context = HydraContext(loader, Callbacks(config))
            job = run_job(work, config, "hydra.run.dir", None, context, configure_logging=logs)
        return job.return_value

    def folder(self, multirun: bool, others: Sequence[str] = ()) -> Path:
        """The folder of the run, alone or as a cell of a sweep."""
        before = HydraConfig.instance().cfg
        config = compose_with_hydra([*self.overrides, *others])
        try:
            HydraConfig.instance().set_config(config)
            if not multirun:
                return Path(config.hydra.run.dir)
            with read_write(config.hydra), open_dict(config):
                config.hydra.job.num = config.hydra.job.id = 0
            return Path(config.hydra.sweep.dir, config.hydra.sweep.subdir)
        finally:
            HydraConfig.instance().cfg = before


def outputs_of(config: DictConfig) -> Path | None:
    """Where a run's result may be besides its own folder; None if that alone counts.

    A logger is to see each cell of a table, so that none is copied.
    """
    alone = config.logger or "search" in config or "study" in config
    return None if alone else Path(config.paths.output_dir)


def finished(
    run: Command, folder: Path, known: Mapping[str, list[Path]] | None = None
) -> RunDirectory | None:
    """Where a run has ended: in its folder, set aside in it, or elsewhere below its outputs.

    It is the same run if its identity is the same. `known` is of `folders_by_hash`.
    """
    place = RunDirectory(folder)
    for here in (place, place.aside(run.config_hash)):
        if here.conclusion(run.config_hash):
            return here
    if (outputs := outputs_of(run.config)) is None:
        return None
    other = place.elsewhere(outputs, run.config_hash, known)
    return other if other and other.conclusion(run.config_hash) else None


def complete(
    overrides: Sequence[str], say: Callable[[str], None] = print, keep: bool = True
) -> Command:
    """Complete the overrides of one run: a user's labelled graph is classified.

    Args:
        overrides: of the run, without a sweep.
        say: reports the content of a user's graph, and the task, once for each graph.
        keep: whether the graph that was read is kept below `paths.data_dir`.

    Raises:
        UsageError: an override is wrong, or the graph is malformed.
    """
    keys = {word: word.lstrip("+").partition("=")[0] for word in overrides}
    if set(ELSEWHERE).intersection(keys.values()):
        return Command.of(overrides)
    # Other words may name keys that only the completed command has.
    graph = compose([word for word, key in keys.items() if _is_of_graph(key)])
    if not _is_own(graph):
        return Command.of(overrides)
    check_options(graph)
    labelled = _has_labels(graph, "task" in keys.values(), say, keep)
    if "task" in keys.values():
        return Command.of(overrides)
    return Command.of([*overrides, f"task={LABELLED if labelled else graph.task.name}"])


def _is_of_graph(key: str) -> bool:
    return "." not in key or key.startswith(("dataset.", "paths."))


def _is_own(config: DictConfig) -> bool:
    target = OmegaConf.select(config, "dataset.source._target_")
    return is_subclass(str(target), OWN)


def _has_labels(config: DictConfig, has_task: bool, say: Callable[[str], None], keep: bool) -> bool:
    """Whether a user's graph has labels; it is read, and reported, once."""
    # These need torch, as `--help` does not.
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
