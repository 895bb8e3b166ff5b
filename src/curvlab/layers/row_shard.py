"""Rows of a graph's sparse matrix in one process; products fetch what other processes hold."""

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from curvlab.layers.neighbour_sums import sparse_rows
from curvlab.process import in_group


class RowShard:
    """The rows of a sparse matrix `[nodes, nodes]` that belong to this process's nodes.

    A product with it needs a vector of each column that has an entry: of own nodes, and of the
    halo, the nodes of other processes that these rows read. `block @ extended(x)` is the own rows
    of `A X`, for x the own rows of X; the gradient of `extended` sends what belongs to the halo
    back to its owners and adds it up there. All processes must call `extended`, and backward,
    equally often and in the same order.

    Args:
        block: the rows, `[own, own + halo]` (sparse CSR); own nodes are the first columns, the halo
            follows, process by process.
        sent: own nodes that others read, `[sent]`, process by process.
        sends: how many go to each process.
        receives: how many nodes of the halo come from each process.

    Source: the distributed product of full-graph training, as in CAGNET (Tripathy et al. 2020,
    arXiv:2005.03300), with the exchange of halos of numerical simulations.
    """

    def __init__(self, block: Tensor, sent: Tensor, sends: list[int], receives: list[int]) -> None:
        self.block = block
        self.sent, self.sends, self.receives = sent, sends, receives

    @classmethod
    def of(cls, matrix: Tensor, part: Tensor, rank: int, processes: int) -> "RowShard":
        """The shard of a process, from the whole matrix.

        Args:
            matrix: `[nodes, nodes]` (sparse CSR), the same in every process.
            part: the process of each node, `[nodes]`.
            rank: this process.
            processes: how many there are.
        """
        nodes, column = len(part), matrix.col_indices()
        row = torch.arange(nodes).repeat_interleave(matrix.crow_indices().diff())
        reader, owner = part[row], part[column]
        cut = reader != owner
        pairs = (reader[cut] * nodes + column[cut]).unique()  # of reader and node that it reads
        reads, node = pairs // nodes, pairs % nodes
        halo = node[reads == rank]
        halo = halo[part[halo].argsort(stable=True)]
        own = (part == rank).nonzero().squeeze(-1)
        number = torch.full((nodes,), -1)
        number[torch.cat([own, halo])] = torch.arange(len(own) + len(halo))
        mine = reader == rank
        block = sparse_rows(
            number[row[mine]],
            number[column[mine]],
            matrix.values()[mine],
            (len(own), len(own) + len(halo)),
        )
        given = part[node] == rank
        sends = torch.bincount(reads[given], minlength=processes).tolist()
        receives = torch.bincount(part[halo], minlength=processes).tolist()
        return cls(block, number[node[given]], sends, receives)

    def crow_indices(self) -> Tensor:
        """Where each own row's entries begin, `[own + 1]`."""
        return self.block.crow_indices()

    def to(self, device: torch.device | str, non_blocking: bool = False) -> "RowShard":
        """The same on a device."""
        block = self.block.to(device, non_blocking=non_blocking)
        sent = self.sent.to(device, non_blocking=non_blocking)
        return RowShard(block, sent, self.sends, self.receives)

    def extended(self, x: Tensor) -> Tensor:
        """Vectors of own nodes and of the halo, `[own + halo, ...]`, from `x [own, ...]`."""
        if not in_group():
            return x
        halo = _Exchange.apply(x, self.sent, self.sends, self.receives)
        return torch.cat([x, halo])

    @cached_property
    def normalised(self) -> "RowShard":
        """`D^{-1/2} (A + I) D^{-1/2}` of a matrix of ones, one self-loop a node, as GCN has it.

        It exchanges degrees when first asked for.
        """
        own, width = self.block.shape
        row, column = self.block.to_sparse_coo().indices()
        loops = torch.arange(own, device=row.device)
        row, column = (torch.cat([end[row != column], loops]) for end in (row, column))
        degree = torch.bincount(row, minlength=own).to(self.block.dtype)
        scale = self.extended(degree.rsqrt())
        block = sparse_rows(row, column, scale[row] * scale[column], (own, width))
        return RowShard(block, self.sent, self.sends, self.receives)


def with_halo(_layer: Any, inputs: tuple[Any, Any, dict[str, Any]]) -> Any:
    """Let a layer of PyTorch Geometric propagate by a `RowShard`: a pre-hook of `propagate`."""
    matrix, size, options = inputs
    if not isinstance(matrix, RowShard):
        return None
    return matrix.block, size, {**options, "x": matrix.extended(options["x"])}


class _Exchange(torch.autograd.Function):
    """Vectors of the halo, from those of own nodes; gradients go the other way."""

    @staticmethod
    def forward(x: Tensor, sent: Tensor, sends: list[int], receives: list[int]) -> Tensor:
        """`[halo, ...]`."""
        return _exchanged(x.index_select(0, sent), sends, receives)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG004
        """Keep who gets what."""
        x, ctx.sent, ctx.sends, ctx.receives = inputs
        ctx.shape = x.shape

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        """Sums over the processes that have read a node."""
        returned = _exchanged(grad.contiguous(), ctx.receives, ctx.sends)
        return grad.new_zeros(ctx.shape).index_add(0, ctx.sent, returned), None, None, None


def _exchanged(rows: Tensor, sends: list[int], receives: list[int]) -> Tensor:
    """Rows that other processes send, for rows that go to them, process by process."""
    received = rows.new_empty(sum(receives), *rows.shape[1:])
    torch.distributed.all_to_all_single(received, rows, receives, sends)
    return received
