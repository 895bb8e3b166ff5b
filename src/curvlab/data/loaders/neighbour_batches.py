"""The data module that trains on sampled neighbourhoods."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.loaders.batches import SubgraphDataModule, random_rounds
from curvlab.errors import UsageError
from curvlab.options import PositiveInt


class NeighbourDataModule(SubgraphDataModule):
    """Batches are training nodes with sampled neighbourhoods.

    A pass takes every training node once. Source: GraphSAGE (Hamilton et al. 2017).

    Args:
        fan_outs: most neighbours drawn of a node, hop by hop, for as many layers.
        size: most training nodes of a batch.
    """

    fan_outs: Sequence[PositiveInt] = (10, 5)
    size: PositiveInt = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.fan_outs:
            raise UsageError("fan_outs=[] must have a number for each layer")
        if self.workers:
            raise UsageError(
                f"batching.workers={self.workers}: the training process draws the neighbours, from "
                "the numbers that dropout is drawn from; leave it out"
            )

    def batch(self, nodes: Tensor) -> Data:
        data = self.subgraphs.sample(nodes, self.fan_outs)
        data.train_nodes = torch.arange(len(nodes))
        return data

    def evaluation_parts(self, nodes: Tensor) -> list[Tensor]:
        """The nodes, `size` at a time; their neighbours are drawn as those of training nodes."""
        return list(nodes.split(self.size))

    def rounds(self, number: int, batches: int) -> list[tuple[Tensor, ...]]:
        train = self.train_mask.nonzero().squeeze(-1)
        rounds = random_rounds(len(train), self.size, batches, self.seed, number)
        return [tuple(train[part.sort().values] for part in parts) for parts in rounds]
