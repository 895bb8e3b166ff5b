"""Splits of edges into training, validation and test."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.checked import Checked
from curvlab.data.datasets.labelled import GIVEN
from curvlab.data.files.cleaning import simple_edges
from curvlab.errors import UsageError
from curvlab.options import Fraction, NonNegativeInt

OF_EDGES = ("edge_weight", "edge_forward")
"""Attributes of edges that stay with those that are left."""


class NonEdges:
    """The pairs i < j of nodes that are not edges, each with a number: sampled without rejection.

    All pairs are numbered row by row. The pair number r among those that are left when the edges
    are taken out is number r + (edges before it), which a search in the sorted numbers of the edges
    finds: exact, without a loop, and without waiting for a device.

    Args:
        edges: `[2, edges]`, both in any order, none twice; not changed.
        num_nodes: number of nodes.

    Raises:
        UsageError: every pair is an edge.
    """

    def __init__(self, edges: Tensor, num_nodes: int) -> None:
        low, high = edges.aminmax(dim=0)
        rows = torch.arange(num_nodes, device=edges.device)
        self._first = rows * (num_nodes - 1) - rows * (rows - 1) // 2
        number = (self._first[low] + high - low - 1).sort().values
        self._left_before = number - torch.arange(len(number), device=edges.device)
        self.count = num_nodes * (num_nodes - 1) // 2 - len(number)
        if self.count < 1:
            raise UsageError(
                f"all pairs of the graph's {num_nodes} nodes are joined by an edge: there is "
                "nothing that a link could be told from."
            )

    def pairs(self, number: Tensor) -> Tensor:
        """The pairs of given numbers `[n]` from 0 to `count` - 1, `[2, n]`, the smaller first."""
        of_all = number + torch.searchsorted(self._left_before, number, right=True)
        low = torch.searchsorted(self._first, of_all, right=True) - 1
        return torch.stack([low, of_all - self._first[low] + low + 1])

    def sample(self, size: int) -> Tensor:
        """Pairs drawn uniformly with replacement, `[2, size]`, from torch's global generator."""
        device = self._first.device
        return self.pairs(torch.randint(self.count, (size,), device=device))


class LinkSplit(Checked):
    """Takes a part of the edges out of the graph, for validation and test, as HGCN does.

    Of M undirected edges `floor(val M)` and `floor(test M)` are held out, drawn at random, with as
    many pairs that are no edge of the whole graph, all of them distinct. What is left is the graph:
    all that is made of it later (degrees, eigenvectors, adjacencies) sees edges of training only.

    Args:
        val: fraction of the edges for validation.
        test: fraction of the edges for the test.
        draw: seed of the random numbers, the same split for all runs; null: the run's seed.

    Raises:
        UsageError: Nothing is left to train on.

    Source: HGCN (Chami et al. 2019), its code; the pairs are drawn without the dense matrix there.
    """

    def __init__(
        self, val: Fraction = 0.05, test: Fraction = 0.1, draw: NonNegativeInt | None = 1234
    ) -> None:
        if not val + test < 1:
            raise UsageError(
                f"val={val} and test={test} must leave edges to train on: "
                "their sum must be below 1."
            )
        self.val, self.test, self.draw = val, test, draw

    def __call__(self, data: Data, seed: int) -> Data:
        """Return the graph of the training edges.

        It has `train_edges`, `val_edges`, `test_edges`, `val_non_edges` and `test_non_edges`
        `[2, ...]`, the smaller node first.

        Raises:
            UsageError: the graph is too small for its parts, or has too few pairs without an edge.
        """
        nodes, edges = int(data.num_nodes or 0), data.edge_index
        edges = edges[:, edges[0] < edges[1]]
        total = edges.shape[1]
        sizes = [int(fraction * total) for fraction in (self.val, self.test)]
        if min(sizes) < 1 or sum(sizes) >= total:
            raise UsageError(
                f"val={self.val} and test={self.test} leave a part of the "
                f"{total} edges empty: choose a larger graph or other fractions."
            )
        generator = np.random.default_rng(seed if self.draw is None else self.draw)
        order = torch.from_numpy(generator.permutation(total))
        val, test, train = edges[:, order].split([*sizes, total - sum(sizes)], dim=1)
        apart = NonEdges(edges, nodes)
        if apart.count < sum(sizes):
            raise UsageError(
                f"the graph has {apart.count} pairs of nodes without an edge, but validation and "
                f"test need {sum(sizes)}: lower task.split.val and task.split.test."
            )
        numbers = torch.from_numpy(generator.choice(apart.count, sum(sizes), replace=False))
        val_apart, test_apart = apart.pairs(numbers).split(sizes, dim=1)
        parts: dict[str, Any] = {
            "train_edges": train,
            "val_edges": val,
            "test_edges": test,
            "val_non_edges": val_apart,
            "test_non_edges": test_apart,
        }
        data = data.clone()
        kept = simple_edges(train, nodes)
        for name in OF_EDGES:
            if name in data:
                data[name] = data[name][_places(kept, data.edge_index, nodes)]
        data.edge_index = kept
        data.num_nodes = nodes
        for name, value in parts.items():
            data[name] = value.contiguous()
        for name in (*GIVEN, "given"):
            if name in data:
                del data[name]
        return data


def _places(edges: Tensor, among: Tensor, nodes: int) -> Tensor:
    """Where edges `[2, edges]` stand among others, which have them all."""
    numbers, sought = (ends[0] * nodes + ends[1] for ends in (among, edges))
    order = numbers.argsort()
    return order[torch.searchsorted(numbers[order], sought)]
