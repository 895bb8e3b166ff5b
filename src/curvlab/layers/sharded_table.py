"""A table of embeddings whose rows are shared out over the processes of a group."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional

from curvlab.errors import UsageError

# Rows that are drawn from one seed: the table is the same for any number of processes.
DRAWN = 2**16


class ShardedTable(nn.Module):
    """Embeddings `[rows, dim]`, of which each process holds one range of rows.

    All processes look up the same rows and make the same loss of them. The gradient of a lookup is
    sparse: `shard.grad` has the rows of this process that were looked up. Give all processes the
    same seed for everything that is random between.

    Args:
        rows: number of rows of the whole table.
        dim: width of a row.
        seed: of the values, Xavier uniform, which do not depend on the number of processes.
    """

    def __init__(self, rows: int, dim: int, seed: int = 0) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = rows, dim
        rank, processes = 0, 1
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            rank, processes = torch.distributed.get_rank(), torch.distributed.get_world_size()
        size = -(-rows // processes)
        self.first, self.last = min(rank * size, rows), min((rank + 1) * size, rows)
        self.shard = nn.Parameter(torch.empty(self.last - self.first, dim))
        self._draw(seed)

    @torch.no_grad()
    def _draw(self, seed: int) -> None:
        """Fill the shard, a drawn block of the whole table after the other."""
        bound = (6 / (self.num_embeddings + self.embedding_dim)) ** 0.5
        generator = torch.Generator()
        for block in range(self.first // DRAWN * DRAWN, self.last, DRAWN):
            generator.manual_seed(seed * 2**32 + block // DRAWN)
            size = min(DRAWN, self.num_embeddings - block)
            drawn = torch.empty(size, self.embedding_dim).uniform_(
                -bound, bound, generator=generator
            )
            first, last = max(block, self.first), min(block + size, self.last)
            self.shard[first - self.first : last - self.first] = drawn[first - block : last - block]

    @property
    def weight(self) -> Tensor:
        """The whole table.

        Raises:
            UsageError: always: no process holds it.
        """
        raise UsageError(
            "no process has all rows of a ShardedTable: use sharded_loss and sharded_standings of "
            "curvlab.tasks.sharded_entities"
        )

    def here(self, index: Tensor) -> Tensor:
        """Which of the rows this process holds."""
        return (index >= self.first) & (index < self.last)

    def own(self, index: Tensor) -> Tensor:
        """Rows of this process `[n, dim]`, by their numbers in the whole table `[n]`."""
        return functional.embedding(index - self.first, self.shard, sparse=True)

    def forward(self, index: Tensor) -> Tensor:
        """Rows of any process, `[...] -> [..., dim]`."""
        place = self.here(index.flatten()).nonzero().squeeze(1)
        rows = self.own(index.flatten()[place])
        found = rows.new_zeros(index.numel(), self.embedding_dim).index_put((place,), rows)
        total: Tensor = _SumOfParts.apply(found)
        return total.view(*index.shape, self.embedding_dim)


class _SumOfParts(Function):
    """A sum over processes that all make the same loss of it: its gradient is that of each part."""

    @staticmethod
    def forward(_ctx: Any, part: Tensor) -> Tensor:
        """Sum."""
        return reduced(part.detach().clone())

    @staticmethod
    def backward(_ctx: Any, gradient: Tensor) -> Tensor:
        """The gradient as it is."""
        return gradient


def reduced(x: Tensor, largest: bool = False) -> Tensor:
    """The tensor, in place, as its sum or maximum over all processes; itself where there is one."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        kind = torch.distributed.ReduceOp.MAX if largest else torch.distributed.ReduceOp.SUM
        torch.distributed.all_reduce(x, kind)
    return x
