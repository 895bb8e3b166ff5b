"""Identities of a sweep's cells: those that differ in their seed alone are composed once."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from curvlab.results.identity import SeedlessIdentity
from curvlab.run.command import Command

SEED = re.compile(r"seed=(\d+)")
FEWEST = 3
"""Cells from which a family of seeds is composed twice instead of cell by cell."""

Cell = tuple[str, ...]


@dataclass(frozen=True)
class CellIdentity:
    """What decides whether a cell has ended.

    Args:
        overrides: all of them, completed.
        config_hash: the identity of its run.
        folder: folder of the run.
        outputs: other folders that may have its result, see `Command.outputs`.
        repeats: whether it runs again in any case, or asks for its finished runs itself.
    """

    overrides: Cell
    config_hash: str
    folder: Path
    outputs: Path | None
    repeats: bool


class Cells:
    """Identities of cells, which are composed when they are first asked for.

    A family of cells that differ in their seed is composed for its first and its last cell. If
    the identity and the folder of the last follow from those of the first, so do all others.

    Args:
        cells: overrides of all cells.
        complete: completes the overrides of a cell.
        folder_of: the folder of a completed run.
    """

    def __init__(
        self,
        cells: Iterable[Cell],
        complete: Callable[[Sequence[str]], Command],
        folder_of: Callable[[Command], Path],
    ) -> None:
        self._complete = complete
        self._folder_of = folder_of
        self._members: dict[Cell, list[Cell]] = {}
        for cell in cells:
            self._members.setdefault(_without_seed(cell), []).append(cell)
        self._families: dict[Cell, _Family | None] = {}

    def identity(self, cell: Cell) -> CellIdentity:
        """The identity of a cell; errors are those of `complete`."""
        key, seed = _without_seed(cell), _seed_of(cell)
        members = self._members.get(key, [])
        if seed is None or len(members) < FEWEST:
            return self._compose(cell)[0]
        if key not in self._families:
            self._families[key] = self._family(members[0], members[-1])
        family = self._families[key]
        return self._compose(cell)[0] if family is None else family.member(seed)

    def _family(self, first: Cell, last: Cell) -> "_Family | None":
        identity, run = self._compose(first)
        family = _Family(identity, SeedlessIdentity(run.stored))
        seed = _seed_of(last)
        assert seed is not None
        return family if family.member(seed) == self._compose(last)[0] else None

    def _compose(self, cell: Cell) -> tuple[CellIdentity, Command]:
        run = self._complete(cell)
        config: Any = run.config
        repeats = config.rerun or "search" in config or "study" in config
        folder = self._folder_of(run)
        return CellIdentity(run.overrides, run.config_hash, folder, run.outputs, repeats), run


@dataclass(frozen=True)
class _Family:
    first: CellIdentity
    seedless: SeedlessIdentity

    def member(self, seed: int) -> CellIdentity:
        """The identity of the cell with a seed."""
        words = (f"seed={seed}" if SEED.fullmatch(o) else o for o in self.first.overrides)
        return replace(
            self.first,
            overrides=tuple(words),
            config_hash=self.seedless.hash(seed),
            folder=self.first.folder.with_name(f"seed{seed}"),
        )


def _seed_of(cell: Cell) -> int | None:
    """The seed that a cell's overrides name once, as a number."""
    seeds = [override for override in cell if override.lstrip("+").startswith("seed=")]
    found = SEED.fullmatch(seeds[0]) if len(seeds) == 1 else None
    return int(found[1]) if found else None


def _without_seed(cell: Cell) -> Cell:
    return tuple("seed" if SEED.fullmatch(override) else override for override in cell)
