"""Identities of a sweep's cells: those that differ in their seed alone are composed once."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from curvlab.config.cache import CompositionCache
from curvlab.results.identity import SeedlessIdentity
from curvlab.run.command import Command

SEED = re.compile(r"seed=(\d+)")
QUESTION = "cell"  # of the cache
PATH_FIELDS = ("folder", "outputs", "output_dir")
SMALLEST_FAMILY = 3
"""Cells from which a family of seeds is composed twice instead of cell by cell."""

Cell = tuple[str, ...]


@dataclass(frozen=True)
class CellIdentity:
    """What decides whether a cell has ended.

    Args:
        overrides: all overrides, completed.
        config: configuration as a result stores it; a cell that was not composed has the
            configuration of another seed.
        config_hash: identity of the run.
        folder: folder of the run.
        outputs: folder of other runs that may be the same, see `Command.outputs`.
        output_dir: folder of all outputs.
        experiment: table that the cell belongs to.
        rerun: whether the cell runs again although it has a result.
        several: whether the cell is a search or a study, which looks for its finished runs itself.
    """

    overrides: Cell
    config: Mapping[str, Any]
    config_hash: str
    folder: Path
    outputs: Path | None
    output_dir: Path
    experiment: str | None
    rerun: bool
    several: bool


def identify(
    cell: Sequence[str],
    complete: Callable[[Sequence[str]], Command],
    folder_of: Callable[[Command], Path],
    cache: CompositionCache | None = None,
) -> CellIdentity:
    """Compose a cell, or find it in a cache; errors are those of `complete`."""
    stored = cache.get(QUESTION, *cell) if cache is not None else None
    if stored is not None:
        paths = {name: stored[name] and Path(stored[name]) for name in PATH_FIELDS}
        overrides = tuple(stored["overrides"])
        return CellIdentity(**{**stored, **paths, "overrides": overrides})
    run = complete(cell)
    config = run.config
    identity = CellIdentity(
        overrides=run.overrides,
        config=run.stored,
        config_hash=run.config_hash,
        folder=folder_of(run),
        outputs=run.outputs,
        output_dir=Path(config.paths.output_dir),
        experiment=config.experiment,
        rerun=config.rerun,
        several="search" in config or "study" in config,
    )
    if cache is not None:
        answer = dict(vars(identity))
        answer["overrides"] = list(run.overrides)
        for name in PATH_FIELDS:
            answer[name] = answer[name] and str(answer[name])
        cache.put(answer, run.stored, QUESTION, *cell)
    return identity


class Cells:
    """Identities of cells. A cell is composed when its identity is first asked for.

    Of a family of cells that differ in their seed, the first and the last cell are composed. If
    the identity and the folder of the last follow from those of the first, no further cell is
    composed.

    Args:
        cells: overrides of all cells.
        identify: composes a cell.
    """

    def __init__(self, cells: Iterable[Cell], identify: Callable[[Cell], CellIdentity]) -> None:
        self._identify = identify
        self._members: dict[Cell, list[Cell]] = {}
        for cell in cells:
            self._members.setdefault(_without_seed(cell), []).append(cell)
        self._families: dict[Cell, _Family | None] = {}

    def identity(self, cell: Cell) -> CellIdentity:
        """The identity of a cell; errors are those of `identify`."""
        key = _without_seed(cell)
        seed = _seed_of(cell)
        members = self._members.get(key, [])
        if seed is None or len(members) < SMALLEST_FAMILY:
            return self._identify(cell)
        if key not in self._families:
            self._families[key] = self._family(members[0], members[-1])
        family = self._families[key]
        return self._identify(cell) if family is None else family.member(seed)

    def representative(self, cell: Cell) -> CellIdentity:
        """The identity of the first cell that differs from a cell in its seed alone."""
        members = self._members.get(_without_seed(cell), [cell])
        return self._identify(members[0])

    def _family(self, first: Cell, last: Cell) -> "_Family | None":
        identity = self._identify(first)
        family = _Family(identity, SeedlessIdentity(identity.config))
        seed = _seed_of(last)
        assert seed is not None
        composed = replace(self._identify(last), config=identity.config)
        return family if family.member(seed) == composed else None


@dataclass(frozen=True)
class _Family:
    first: CellIdentity
    seedless: SeedlessIdentity

    def member(self, seed: int) -> CellIdentity:
        """The identity of the cell with a seed."""
        overrides = [f"seed={seed}" if SEED.fullmatch(o) else o for o in self.first.overrides]
        return replace(
            self.first,
            overrides=tuple(overrides),
            config_hash=self.seedless.hash(seed),
            folder=self.first.folder.with_name(f"seed{seed}"),
        )


def _seed_of(cell: Cell) -> int | None:
    """The seed that a cell's overrides name once, as a number."""
    seeds = [override for override in cell if override.lstrip("+").startswith("seed=")]
    match = SEED.fullmatch(seeds[0]) if len(seeds) == 1 else None
    return int(match[1]) if match else None


def _without_seed(cell: Cell) -> Cell:
    return tuple("seed" if SEED.fullmatch(override) else override for override in cell)
