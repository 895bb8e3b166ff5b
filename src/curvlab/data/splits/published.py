"""Published splits: their procedures, seeds and faults."""

import logging
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.splits.nodes import NumberedSplit, Split, check_fractions
from curvlab.errors import UsageError
from curvlab.options import Fraction, Incidental, NonNegativeInt, PositiveInt, Seed

log = logging.getLogger(__name__)

HGCN_FRACTIONS: Mapping[str, tuple[float, float]] = {
    "airport": (0.15, 0.15),
    "airport_hgcn": (0.15, 0.15),
    "disease": (0.10, 0.60),
    "disease_synthetic": (0.10, 0.60),
}
"""Shares of validation and test nodes in the shorter of two lists, by HGCN's data sets."""

PUBLISHED_SEEDS = (
    1941488137, 4198936517, 983997847, 4023022221, 4019585660,
    2108550661, 1648766618, 629014539, 3212139042, 2424918363,
)  # fmt: skip
"""Seeds of BernNet's ten splits."""


class RandomPerClass(Split):
    """The same number of training nodes from every class, and fixed sizes of the other parts.

    With a torch generator seeded by `draw`: for each class a permutation of its nodes, then one of
    all others. Source: Hypformer's scripts, whose nodes are those of draw 123.

    Args:
        train_per_class: number of training nodes of each class.
        val: number of validation nodes.
        test: number of test nodes.
    """

    published: ClassVar[int | bool] = 123

    name: Incidental[str] = "random_per_class"
    train_per_class: PositiveInt = 20
    val: PositiveInt = 500
    test: PositiveInt = 1000
    draw: NonNegativeInt | None = 123

    def parts(self, data: Data, draw: int) -> Sequence[Tensor]:
        y = self.single_labels(data)
        generator = torch.Generator().manual_seed(draw)
        train = []
        rest = []
        for c, count in zip(*y.unique(return_counts=True), strict=True):
            if count < self.train_per_class:
                raise UsageError(
                    f"split={self.name} wants {self.train_per_class} training nodes of each class, "
                    f"but class {c} has only {count}: lower split.train_per_class."
                )
            nodes = (y == c).nonzero().flatten()[torch.randperm(int(count), generator=generator)]
            train.append(nodes[: self.train_per_class])
            rest.append(nodes[self.train_per_class :])
        candidates = torch.cat(rest)
        if len(candidates) < self.val + self.test:
            raise UsageError(
                f"split={self.name} wants {self.val} validation and {self.test} test nodes, but "
                f"only {len(candidates)} nodes are not trained on: lower split.val or split.test."
            )
        candidates = candidates[torch.randperm(len(candidates), generator=generator)]
        return [torch.cat(train), *candidates[: self.val + self.test].split([self.val, self.test])]


class QuotaSplit(NumberedSplit):
    """The split called "60/20/20": a quota of training nodes from every class.

    `q = round(train * nodes / classes)` nodes of each class are trained on, all of a class that has
    fewer; `round(val * nodes)` of the others are for validation, the rest for the test. Source:
    BernNet's code, PolyFormer's.

    Args:
        train: fraction of the nodes that the quotas would add up to.
        val: fraction of the nodes for validation; the rest is the test.
        seeds: seeds of numpy's legacy generator; `draw` is the number of one of them.
    """

    published: ClassVar[int | bool] = True

    name: Incidental[str] = "quota"
    train: Fraction = 0.6
    val: Fraction = 0.2
    seeds: Sequence[Seed] = PUBLISHED_SEEDS

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fractions("something to test on", train=self.train, val=self.val)

    def parts(self, data: Data, draw: int) -> Sequence[Tensor]:
        number = len(self.seeds)
        if draw >= number:
            raise UsageError(
                f"split={self.name} has {number} published seeds, numbers 0 to {number - 1}, not "
                f"{draw}: {self.remedy(number)}, or add to split.seeds."
            )
        y = self.single_labels(data).numpy()
        generator = np.random.RandomState(self.seeds[draw])
        classes = int(y.max()) + 1
        quota = round(self.train * len(y) / classes)
        size = round(self.val * len(y))
        members = [np.flatnonzero(y == c) for c in range(classes)]
        samples = []
        for nodes in members:
            if len(nodes) >= quota:
                nodes = generator.choice(nodes, quota, replace=False)
            samples.append(nodes)
        train = np.concatenate(samples)
        rest = np.setdiff1d(np.arange(len(y)), train)
        val = generator.choice(rest, size, replace=False)
        test = np.setdiff1d(rest, val)
        return [*map(torch.from_numpy, (train, val, test))]


class HGCNSplit(Split):
    """HGCN's split for two classes, which leaks with four.

    Nodes whose class is not 0, and those whose class is not 1, are shuffled; of each list
    `round(val * m)` and `round(test * m)` nodes, m the length of the shorter one, are for
    validation and test. With more than two classes nodes of the others are in both lists: the test
    nodes leak, as a warning says.

    Args:
        dataset: name of the data set, a key of `HGCN_FRACTIONS`.
    """

    published: ClassVar[int | bool] = 1234

    dataset: str = "airport"
    name: Incidental[str] = "hgcn"
    draw: NonNegativeInt | None = 1234

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dataset not in HGCN_FRACTIONS:
            raise UsageError(
                f"split={self.name} is for {', '.join(HGCN_FRACTIONS)}, not for {self.dataset}: "
                "choose another split."
            )

    def parts(self, data: Data, draw: int) -> Sequence[Tensor]:
        y = self.single_labels(data).numpy()
        generator = np.random.RandomState(draw)
        lists = [np.flatnonzero(y != 0), np.flatnonzero(y != 1)]
        for nodes in lists:
            generator.shuffle(nodes)
        shorter = min(map(len, lists))
        val, test = (round(share * shorter) for share in HGCN_FRACTIONS[self.dataset])
        pieces = [np.split(nodes, [val, val + test]) for nodes in lists]
        parts = zip(*pieces, strict=True)
        val_nodes, test_nodes, train_nodes = (np.unique(np.concatenate(part)) for part in parts)
        leaked = [int(np.isin(part, train_nodes).sum()) for part in (test_nodes, val_nodes)]
        if leaked[0]:
            log.warning(
                "split=%s leaks: %d of %d test nodes and %d of %d validation nodes are also "
                "training nodes, so that scores come out too high; it is here to reproduce "
                "published numbers, split=random_70_15_15 is the honest one.",
                *(self.name, leaked[0], len(test_nodes), leaked[1], len(val_nodes)),
            )
        return [*map(torch.from_numpy, (train_nodes, val_nodes, test_nodes))]
