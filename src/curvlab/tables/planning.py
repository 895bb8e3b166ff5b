"""The runs that a table's sweep would start now: its cells without a result."""

import itertools
from collections.abc import Iterable, Sequence
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
        sweep = _sweep(table)
        fixed = tuple(word for word in words if word.partition("=")[0] not in sweep)
        sweep |= {key: word for key, _, word in (w.partition("=") for w in words) if key in sweep}
        values = {key: _values(key, choices) for key, choices in sweep.items()}
        seeds = [int(seed) for seed in values.pop("seed", ["0"])]
        cells = []
        for chosen in itertools.product(*values.values()):
            own = tuple(f"{key}={value}" for key, value in zip(values, chosen, strict=True))
            cell = _cell(table, results, own, fixed, seeds)
            if cell is not None:
                cells.append(cell)
        return cells


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
    composed = compose("train", [f"table={table}", *words, *fixed], return_hydra_config=True)
    config = OmegaConf.masked_copy(composed, [str(key) for key in composed if key != "hydra"])
    left, copies = [], []
    for seed in seeds:
        composed.seed = config.seed = seed
        folder = RunDirectory(results / table / composed.hydra.sweep.subdir)
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
