"""Splits of nodes into training, validation and test."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import index_to_mask

from curvlab.checked import CheckedFields
from curvlab.data.datasets.labelled import GIVEN_MASKS
from curvlab.data.datasets.own_graph import say_once
from curvlab.data.files.cleaning import check_labels
from curvlab.errors import UsageError
from curvlab.options import Fraction, Incidental, NonNegativeInt, PositiveInt

log = logging.getLogger(__name__)

PARTS = ("train_mask", "val_mask", "test_mask")


class Split(CheckedFields, ABC):
    """Adds `train_mask`, `val_mask` and `test_mask` `[nodes]` and drops the given splits.

    Where some nodes have no label (`labelled [nodes]`), it divides the others.

    Attributes:
        name: name of the split in messages.
        draw: seed of the random numbers, the same split for all runs; null: the run's seed.
        published: whether its draws are papers' own, node by node: all, none, or the one number.
        if_needed: whether tasks that use all nodes leave it out, instead of refusing it.
    """

    name: str
    draw: int | None
    published: ClassVar[int | bool] = False
    if_needed: ClassVar[bool] = False

    @abstractmethod
    def parts(self, data: Data, draw: int) -> Sequence[Tensor]:
        """Return the training, validation and test nodes of the split number `draw`."""

    def __call__(self, data: Data, seed: int) -> Data:
        """Return the graph with masks; `seed`, the run's, is used where `draw` is None."""
        check_labels(data)
        nodes = int(data.num_nodes or 0)
        divided = data
        candidates = torch.arange(nodes)
        if "labelled" in data:
            candidates = candidates[data.labelled]
            names = [name for name in ("y", *GIVEN_MASKS) if name in data]
            rows = {name: data[name][candidates] for name in names}
            divided = Data(num_nodes=len(candidates), given=data.get("given"), **rows)
        parts = self.parts(divided, self.number(seed))
        data = drop_given_splits(data)
        for part, positions in zip(PARTS, parts, strict=True):
            if len(positions) == 0:
                raise UsageError(
                    f"split={self.name} leaves {part.removesuffix('_mask')} without a node in a "
                    f"graph of {nodes}: choose other sizes or another split."
                )
            data[part] = index_to_mask(candidates[positions], nodes)
        return data

    def number(self, seed: int) -> int:
        """Number of the split of a run with this seed."""
        return seed if self.draw is None else self.draw

    def single_labels(self, data: Data) -> Tensor:
        """The classes `[nodes]`; several labels of a node are refused."""
        if data.y.dim() != 1:
            raise UsageError(f"split={self.name} needs one class a node, not several labels.")
        return data.y


def drop_given_splits(data: Data) -> Data:
    """Copy a graph without its own splits."""
    data = data.clone()
    for name in {*GIVEN_MASKS, "given"}.intersection(data.keys()):
        del data[name]
    return data


def check_fractions(remainder: str, **fractions: float) -> None:
    """Refuse fractions whose sum leaves nothing."""
    if not sum(fractions.values()) < 1:
        fractions_text = " and ".join(f"{name}={value}" for name, value in fractions.items())
        raise UsageError(f"{fractions_text} must leave {remainder}: their sum must be below 1.")


class NumberedSplit(Split):
    """A split out of a few.

    Args:
        draw: number of the split, from 0; null: the run's seed, so that seed=0,1,...,9 are the ten.
        cycle: number of splits after which the seeds begin again with the first: with 10, seed 23
            is split 3 with another initialisation. null: there is no run beyond the last split.
    """

    draw: NonNegativeInt | None = None
    cycle: PositiveInt | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.draw is not None and self.cycle is not None:
            raise UsageError(
                f"split.draw={self.draw} fixes the split, so that split.cycle={self.cycle} has no "
                "effect: leave out one of them."
            )

    def number(self, seed: int) -> int:
        return super().number(seed if self.cycle is None else seed % self.cycle)

    def remedy(self, count: int) -> str:
        """What to do about a number beyond the `count` splits."""
        remedy = "choose one of them by split.draw"
        if self.draw is None:
            remedy += f", or begin again with the first after the last by split.cycle={count}"
        return remedy


class GivenSplit(NumberedSplit):
    """One of the dataset's own splits; `draw` is its number.

    Args:
        kind: name that the dataset must give its splits; null: any.
    """

    published: ClassVar[int | bool] = True

    name: Incidental[str] = "given"
    kind: Incidental[str | None] = None

    def parts(self, data: Data, draw: int) -> Sequence[Tensor]:
        kind = data.get("given")
        if kind is None or self.kind not in (None, kind):
            has = f"its own are split={kind}" if kind else "it comes with none"
            raise UsageError(
                f"the dataset has no splits of the kind split={self.name}: {has}; "
                "split=random_60_20_20 can be drawn of any graph."
            )
        number = data[GIVEN_MASKS[0]].shape[1]
        if draw >= number:
            origin = "the run's seed" if self.draw is None else "split.draw"
            raise UsageError(
                f"the dataset comes with splits number 0 to {number - 1}, and {origin} asks for "
                f"number {draw}: {self.remedy(number)}."
            )
        return [data[name][:, draw].nonzero().flatten() for name in GIVEN_MASKS]


class FitSplit(CheckedFields):
    """Training, validation and test on all scored nodes, without held-out nodes.

    It measures how well a model can express a target.

    Args:
        name: name of the split in messages.
    """

    published: ClassVar[int | bool] = True

    name: Incidental[str] = "fit"

    def __call__(self, data: Data, seed: int) -> Data:  # noqa: ARG002
        """Return the graph with masks that are `data.scored` for any seed."""
        if "scored" not in data:
            raise UsageError(f"split={self.name} is of dataset=filter_images alone")
        data = data.clone()
        data.update(dict.fromkeys(PARTS, data.scored))
        return data


class RandomSplit(Split):
    """A random division of all nodes.

    Validation and test get `round(fraction * nodes)` nodes, training the rest. A stratified split
    divides each class in proportion, to within one node. Where a class has fewer nodes than there
    are parts, nothing is stratified.

    Args:
        val: fraction of the nodes for validation.
        test: fraction of the nodes for the test.
        stratified: divide each class in proportion, where the smallest has three nodes.
    """

    name: Incidental[str] = "random"
    val: Fraction = 0.2
    test: Fraction = 0.2
    stratified: bool = True
    draw: NonNegativeInt | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fractions("something to train on", val=self.val, test=self.test)

    def parts(self, data: Data, draw: int) -> Sequence[Tensor]:
        order = torch.from_numpy(np.random.default_rng(draw).permutation(int(data.num_nodes or 0)))
        groups = [order]
        if self.stratified:
            y = self.single_labels(data)
            classes, counts = y.unique(return_counts=True)
            smallest = int(counts.argmin())
            if counts[smallest] >= len(PARTS):
                groups = [order[y[order] == c] for c in classes]
            else:
                log.info(
                    "split=%s is not stratified: class %d has only %d nodes",
                    *(self.name, int(classes[smallest]), int(counts[smallest])),
                )
        # Rounding the running totals gives each group its share and all of them the exact sum.
        sizes = np.array([*map(len, groups)])
        fractions = np.array([[self.val], [self.test]])
        held_out = np.diff(np.round(fractions * np.cumsum([0, *sizes])).astype(int))
        # Rounded up twice, a small class lacks a node: one that has too few gives it.
        lacking = held_out.sum(0) > sizes
        while lacking.any():
            excess = held_out - fractions * sizes
            short = excess.sum(0).argmin()
            part = excess[:, short].argmin()
            held_out[part, lacking.argmax()] -= 1
            held_out[part, short] += 1
            lacking = held_out.sum(0) > sizes
        pieces = []
        for group, (val, test) in zip(groups, held_out.T.tolist(), strict=True):
            pieces.append(group.split([len(group) - val - test, val, test]))
        return [torch.cat(part) for part in zip(*pieces, strict=True)]


class OwnSplit(RandomSplit):
    """The split that a graph brings, number `draw` of several, else a random one.

    Tasks that use all nodes, or split the edges, leave it out.
    """

    if_needed: ClassVar[bool] = True

    name: Incidental[str] = "own"

    def parts(self, data: Data, draw: int) -> Sequence[Tensor]:
        if data.get("given") is None:
            sizes = f"{100 * self.val:.0f} % for validation, {100 * self.test:.0f} % for the test"
            say_once(f"split drawn: {sizes} (split.val, split.test)", log.info)
            return super().parts(data, draw)
        single = data[GIVEN_MASKS[0]].shape[1] == 1
        return GivenSplit(self.name).parts(data, 0 if single else draw)
