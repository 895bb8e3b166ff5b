"""The runs that a table's sweep would start now: its cells without a result."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from curvlab.config.resolvers import register_resolvers
from curvlab.errors import UsageError
from curvlab.program import command
from curvlab.results.folder import RunDirectory
from curvlab.results.identity import identity_hash, stored


@dataclass(frozen=True)
class PlannedCell:
    """What a sweep still has to run of one cell.

    Attributes:
        words: the choices that make the cell, for instance `model=gcn`, `dataset=cora`.
        seeds: those without a finished or diverged result of the same configuration.
        config: the composed configuration, of the first of these seeds.
        fixed: what else its command says, as do those of all other cells.
        done: how many seeds have such a result.
        copies: those of `seeds` that another table has already, so that they only are copied.
    """

    words: tuple[str, ...]
    seeds: tuple[int, ...]
    config: DictConfig
    fixed: tuple[str, ...] = ()
    done: int = 0
    copies: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """How lists call it: `gcn, cora`."""
        return ", ".join(word.partition("=")[2] for word in self.words)

    def command(self, table: str, seeds: Iterable[int]) -> str:
        """The command that runs these seeds of it."""
        numbers = ",".join(map(str, seeds))
        words = (f"table={table}", *self.words, *self.fixed, f"seed={numbers}")
        return " ".join([f"{command('train')} -m", *words])


@dataclass(frozen=True)
class PlannedRun:
    """One run of a table's sweep.

    Attributes:
        name: how lists call it: `gcn, cora, seed 0`.
        folder: its own, below that of all tables.
        config_hash: of its configuration.
    """

    name: str
    folder: Path
    config_hash: str


def planned_cells(
    configs: Path, table: str, results: Path, words: Sequence[str] = ()
) -> list[PlannedCell]:
    """The cells of a table's sweep that are not finished.

    Args:
        configs: the folder of configurations.
        table: for instance `fpst/fig3`.
        results: the folder of all tables' runs.
        words: what else is said on the command line: some of the cells, `model=gcn`, or another
            protocol, `trainer.max_steps=100`.
    """
    register_resolvers()
    with initialize_config_dir(str(configs.resolve()), version_base="1.3"):
        chosen, fixed, seeds = _chosen(table, words)
        cells = (_cell(table, results, own, fixed, seeds) for own in chosen)
        return [cell for cell in cells if cell is not None]


def planned_runs(configs: Path, table: str, words: Sequence[str] = ()) -> list[PlannedRun]:
    """All runs of a table's sweep, whether they are finished or not.

    Args:
        configs: as of `planned_cells`.
        table: as of `planned_cells`.
        words: as of `planned_cells`.
    """
    register_resolvers()
    with initialize_config_dir(str(configs.resolve()), version_base="1.3"):
        chosen, fixed, seeds = _chosen(table, words)
        runs = []
        for own in chosen:
            for seed, folder, config in _seeds_of(table, own, fixed, seeds):
                name = ", ".join([*(word.partition("=")[2] for word in own), f"seed {seed}"])
                runs.append(PlannedRun(name, folder, identity_hash(stored(config))))
        return runs


def _chosen(
    table: str, words: Sequence[str]
) -> tuple[list[tuple[str, ...]], tuple[str, ...], list[int]]:
    """The choices that make each cell, what else is said of all, and the seeds."""
    sweep = _sweep(table)
    fixed = tuple(word for word in words if word.partition("=")[0] not in sweep)
    sweep |= {key: word for key, _, word in (w.partition("=") for w in words) if key in sweep}
    values = {key: _values(key, choices) for key, choices in sweep.items()}
    seeds = [int(seed) for seed in values.pop("seed", ["0"])]
    cells = [
        tuple(f"{key}={value}" for key, value in zip(values, chosen, strict=True))
        for chosen in itertools.product(*values.values())
    ]
    return cells, fixed, seeds


def _seeds_of(
    table: str, words: tuple[str, ...], fixed: tuple[str, ...], seeds: Iterable[int]
) -> Iterator[tuple[int, Path, DictConfig]]:
    """The runs of a cell: seed, folder below that of all tables, and the configuration."""
    composed = compose("train", [f"table={table}", *words, *fixed], return_hydra_config=True)
    config = OmegaConf.masked_copy(composed, [str(key) for key in composed if key != "hydra"])
    for seed in seeds:
        composed.seed = config.seed = seed
        yield seed, Path(table, composed.hydra.sweep.subdir), config


def check_cells(configs: Path, table: str, words: Sequence[str]) -> None:
    """Look whether words choose cells that a table's sweep has; its seeds may be others.

    Args:
        configs: the folder of configurations.
        table: for instance `fpst/fig3`.
        words: as of `planned_cells`.

    Raises:
        UsageError: a word names no cell.
    """
    register_resolvers()
    with initialize_config_dir(str(configs.resolve()), version_base="1.3"):
        sweep = _sweep(table)
    for word in words:
        key, _, choices = word.partition("=")
        if key in sweep and key != "seed":
            planned = _values(key, sweep[key])
            unknown = [value for value in _values(key, choices) if value not in planned]
            if unknown:
                raise UsageError(
                    f"{key}={unknown[0]} is in no cell of {table}: its {key} must be of "
                    f"{', '.join(planned)}"
                )


def sweep_choices(configs: Path, table: str) -> list[tuple[str, ...]]:
    """The choices that make each cell of a table's sweep, in its order, finished or not."""
    register_resolvers()
    with initialize_config_dir(str(configs.resolve()), version_base="1.3"):
        return _chosen(table, ())[0]


def planned_seeds(configs: Path, table: str) -> list[int]:
    """The seeds of a table's sweep, in their order; 0 alone where it sweeps none."""
    register_resolvers()
    with initialize_config_dir(str(configs.resolve()), version_base="1.3"):
        return [int(seed) for seed in _values("seed", _sweep(table).get("seed", "0"))]


def _sweep(table: str) -> dict[str, Any]:
    """What a table sweeps; Hydra must be initialised."""
    plan = compose("train", [f"table={table}"], return_hydra_config=True)
    return dict(OmegaConf.select(plan, "hydra.sweeper.params") or {})


def _cell(
    table: str, results: Path, words: tuple[str, ...], fixed: tuple[str, ...], seeds: list[int]
) -> PlannedCell | None:
    """What is left of one cell; None for nothing."""
    left, copies = [], []
    for seed, place, config in _seeds_of(table, words, fixed, seeds):
        folder = RunDirectory(results / place)
        own = identity_hash(stored(config))
        if folder.conclusion(own) is None:
            left.append(seed)
            if folder.twin(results, own) is not None:
                copies.append(seed)
    if not left:
        return None
    config.seed = left[0]
    done = len(seeds) - len(left)
    return PlannedCell(words, tuple(left), config, fixed, done, tuple(copies))


def _values(key: str, choices: Any) -> list[str]:
    """The values of a sweep's key, as words."""
    override = OverridesParser.create().parse_override(f"{key}={choices}")
    if not override.is_sweep_override():
        return [str(override.value())]
    return [str(value) for value in override.sweep_iterator()]
