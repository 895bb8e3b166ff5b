"""The data module that trains on sampled neighbourhoods."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.loaders.batches import MiniBatchDataModule
from curvlab.data.loaders.neighbour_sampling import NeighbourSampler, check_fan_outs
from curvlab.data.loaders.partition import ALL, RandomPartition
from curvlab.data.splits.nodes import PARTS
from curvlab.data.transforms.graph import GraphTransform
from curvlab.errors import UsageError
from curvlab.options import PositiveInt


class NeighbourDataModule(MiniBatchDataModule):
    """Batches are training nodes with sampled neighbourhoods; evaluation is on the whole graph.

    A pass takes every training node once, in random order; the loss of a step is the mean over its
    training nodes. Matrices of nodes by nodes are made anew from the drawn edges.
    Source: GraphSAGE (Hamilton et al. 2017).

    Args:
        fan_outs: most neighbours drawn of a node, hop by hop, for as many layers.
        size: most training nodes of a batch.
        **options: of `MiniBatchDataModule`.

    Raises:
        UsageError: A fan-out cannot be one, there are workers, or the graph has no split (when it
            is prepared).
    """

    def __init__(
        self, fan_outs: Sequence[PositiveInt] = (10, 5), size: PositiveInt = 1000, **options: Any
    ) -> None:
        super().__init__(size, **options)
        check_fan_outs(fan_outs)
        if self.workers:
            raise UsageError(
                f"batching.workers={self.workers}: the training process draws the neighbours, from "
                "the numbers that dropout is drawn from; leave it out"
            )
        self.fan_outs = fan_outs
        self._sampler: NeighbourSampler | None = None
        self._matrices: list[GraphTransform] = []

    def batch(self, nodes: Tensor) -> Data:
        """The neighbourhood of training nodes `[batch]`, which are its first nodes."""
        if self._sampler is None:
            self._matrices = [t for t in self.transforms if self._makes_matrix(t)]
            made = (name for t in self._matrices for name in t.writes)
            self._sampler = NeighbourSampler(self.graph, self.fan_outs, without=(*PARTS, *made))
        data = self._sampler(nodes)
        for transform in self._matrices:
            data = transform(data)
        data.train_nodes = torch.arange(len(nodes))
        return data

    def rounds(self, number: int, batches: int, own: slice = ALL) -> list[list[Tensor]]:
        """See `RandomPartition`, of the training nodes."""
        mask = self.graph.get("train_mask")
        if mask is None:
            raise UsageError("the graph has no split: choose one of split=..., see --help")
        train = mask.nonzero().squeeze(-1)
        partition = RandomPartition(len(train), self.size, batches, self.seed)
        return [[train[part] for part in parts] for parts in partition.rounds(number, own)]

    def _makes_matrix(self, transform: GraphTransform) -> bool:
        made = (self.graph.get(name) for name in transform.writes)
        return transform.of_pairs or any(
            part is not None and part.layout != torch.strided for part in made
        )
