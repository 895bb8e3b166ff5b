"""Splits of edges into training, validation and test."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.checked import CheckedFields
from curvlab.data.files.cleaning import simple_edges
from curvlab.data.splits.nodes import check_fractions, drop_given_splits
from curvlab.errors import UsageError
from curvlab.options import Fraction, NonNegativeInt

OF_EDGES = ("edge_weight", "edge_forward")
"""Attributes of edges that the remaining edges keep."""

HGCN_LOOPS: Mapping[str, tuple[int, ...]] = {"airport": (2349,), "pubmed": (3918, 6992, 8806)}
"""Nodes with a self-loop in the files that HGCN reads; our graphs have none."""


class NonEdges:
    """The pairs i < j of nodes that are not edges, numbered row by row, at least `needed`.

    Pair number r among them is pair number r + (edges before it) among all pairs. The edges are
    distinct and in any order.
    """

    def __init__(self, edges: Tensor, num_nodes: int, needed: int = 1) -> None:
        low, high = edges.aminmax(dim=0)
        rows = torch.arange(num_nodes, device=edges.device)
        self._first = rows * (num_nodes - 1) - rows * (rows - 1) // 2
        number = (self._first[low] + high - low - 1).sort().values
        self._left_before = number - torch.arange(len(number), device=edges.device)
        self.count = num_nodes * (num_nodes - 1) // 2 - len(number)
        if self.count < needed:
            raise UsageError(
                f"the graph has {self.count} pairs of nodes without an edge, but {needed} are "
                "needed to tell links from: lower val and test of task.split, or take another."
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


class LinkSplit(CheckedFields):
    """Holds out edges for validation and test, as HGCN does.

    Of M undirected edges `floor(val M)` and `floor(test M)` are held out, with as many distinct
    pairs that are not edges of the whole graph. Everything derived from the graph afterwards sees
    training edges only.

    Args:
        val: fraction of the edges for validation.
        test: fraction of the edges for the test.
        draw: seed of the random numbers, the same split for all runs; null: the run's seed.

    Source: HGCN (Chami et al. 2019), its code; the pairs are drawn without the dense matrix there.
    """

    val: Fraction = 0.05
    test: Fraction = 0.1
    draw: NonNegativeInt | None = 1234

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fractions("edges to train on", val=self.val, test=self.test)

    def __call__(self, data: Data, seed: int) -> Data:
        """Return the graph of the training edges, with the parts `[2, ...]`, smaller nodes first.

        They are `train_edges`, `val_edges`, `test_edges`, `val_non_edges` and `test_non_edges`.
        """
        nodes = int(data.num_nodes or 0)
        edges = self.edges(data)
        total = edges.shape[1]
        sizes = [int(fraction * total) for fraction in (self.val, self.test)]
        if min(sizes) < 1 or sum(sizes) >= total:
            raise UsageError(
                f"val={self.val} and test={self.test} leave a part of the "
                f"{total} edges empty: choose a larger graph or other fractions."
            )
        draw = seed if self.draw is None else self.draw
        order, pairs = self.draw_parts(edges, nodes, sum(sizes), draw)
        val, test, train = edges[:, order].split([*sizes, total - sum(sizes)], dim=1)
        parts = {
            "train_edges": train[:, train[0] != train[1]],
            "val_edges": val,
            "test_edges": test,
        }
        parts["val_non_edges"], parts["test_non_edges"] = pairs.split(sizes, dim=1)
        full_graph = data
        data = drop_given_splits(data)
        data.edge_index = simple_edges(train, nodes)
        data.num_nodes = nodes
        for name in OF_EDGES:
            if name in data:  # both lists are sorted, and these edges are a subset
                before = _pair_numbers(full_graph.edge_index, nodes)
                now = _pair_numbers(data.edge_index, nodes)
                data[name] = data[name][torch.isin(before, now)]
        data.update({name: part.contiguous() for name, part in parts.items()})
        return data

    def edges(self, data: Data) -> Tensor:
        """The edges to divide `[2, M]`, each once, the smaller node first."""
        edges = data.edge_index
        return edges[:, edges[0] < edges[1]]

    def draw_parts(
        self, edges: Tensor, nodes: int, held_out: int, draw: int
    ) -> tuple[Tensor, Tensor]:
        """The order in which edges are cut into parts `[M]`, and as many pairs as are held out."""
        generator = np.random.default_rng(draw)
        order = torch.from_numpy(generator.permutation(edges.shape[1]))
        non_edges = NonEdges(edges, nodes, held_out)
        numbers = torch.from_numpy(generator.choice(non_edges.count, held_out, replace=False))
        return order, non_edges.pairs(numbers)


def _pair_numbers(edges: Tensor, nodes: int) -> Tensor:
    """A number for each edge `[edges]`, in the order of the rows of the adjacency matrix."""
    return edges[0] * nodes + edges[1]


class HGCNLinkSplit(LinkSplit):
    """HGCN's own split of edges and pairs, exactly; HyboNet and LRN share it.

    It shuffles the entries of the upper triangle of the adjacency matrix, then those of its
    complement, and cuts both from their beginning. The diagonal belongs to both; a self-loop that
    falls to training is left out. Shuffling the complement takes 4 bytes a pair (0.8 GB for
    PubMed).

    Args:
        dataset: name of the data set, for its self-loops (`HGCN_LOOPS`), which the graph lacks.
    """

    published: ClassVar[int | bool] = 1234

    dataset: str = "disease_lp"

    def edges(self, data: Data) -> Tensor:
        """The upper triangle of the adjacency matrix, row by row."""
        nodes = HGCN_LOOPS.get(self.dataset.partition("__")[0], ())
        loops = torch.tensor(nodes, dtype=torch.long).expand(2, -1)
        edges = torch.cat([super().edges(data), loops], dim=1)
        return edges[:, _pair_numbers(edges, int(data.num_nodes or 0)).argsort()]

    def draw_parts(
        self, edges: Tensor, nodes: int, held_out: int, draw: int
    ) -> tuple[Tensor, Tensor]:
        generator = np.random.RandomState(draw)
        order = torch.from_numpy(generator.permutation(edges.shape[1]))
        shift = torch.tensor([[0], [1]])  # i <= j are the pairs i < j + 1 of one node more
        non_edges = NonEdges(edges + shift, nodes + 1, held_out)
        dtype = np.int32 if non_edges.count < 2**31 else np.int64
        numbers = np.arange(non_edges.count, dtype=dtype)
        generator.shuffle(numbers)
        return order, non_edges.pairs(torch.from_numpy(numbers[:held_out]).long()) - shift
