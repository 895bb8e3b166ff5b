"""What networks over a node's polynomial tokens have in common."""

from abc import abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from curvlab.layers.features import FeatureLinear
from curvlab.layers.graph_propagation import SparsePropagation
from curvlab.layers.polynomials import check_basis, polynomials
from curvlab.models.encoder import FlatEncoder


class TokenNetwork(FlatEncoder):
    """Maps the tokens `h_k = (g_k(A) X)_v` of each node v, `H = W h + b`, and reads what they say.

    Nodes never see each other, so that a step makes the embeddings of its training nodes only, and
    mini-batches change nothing.

    Where the graph has `normalised_adj` instead of `tokens`, features are mapped first and then
    propagated, which is the same: `g_k(A) (X W^T) + b`.

    Shapes: `batch.tokens [nodes, orders + 1, in_channels]`, or `batch.x [nodes, in_channels]` and
    `batch.normalised_adj [nodes, nodes]` (sparse CSR); returns `[nodes, dim]`.

    Args:
        in_channels: number of input features.
        basis: of the polynomials, see `curvlab.layers.polynomials`.
        orders: highest order of the tokens.
        dim: width of a token.
    """

    def __init__(self, in_channels: int, basis: str, orders: int, dim: int) -> None:
        super().__init__()
        check_basis(basis)
        self.input = FeatureLinear(in_channels, dim)
        self.propagation = SparsePropagation()
        self.basis = basis
        self.orders = orders
        self.dim = dim

    @property
    def node_wise(self) -> bool:
        """Nodes never see each other."""
        return True

    @abstractmethod
    def read(self, tokens: Tensor) -> Tensor:
        """Embeddings of mapped tokens `[orders + 1, nodes, dim]`."""

    def forward(self, batch: Data) -> Tensor:
        """Embeddings of all nodes."""
        return self.read(self.projected(batch))

    def of_nodes(self, batch: Data, nodes: Tensor) -> Tensor:
        """Embeddings of some nodes, without making those of the others."""
        return self.read(self.projected(batch, nodes))

    @torch.no_grad()
    def encode_in_chunks(self, batch: Data, chunk: int) -> Tensor:
        """What `forward` returns in evaluation, so many nodes at a time."""
        parts = torch.arange(batch.num_nodes, device=self.input.weight.device).split(chunk)
        return torch.cat([self.of_nodes(batch, nodes) for nodes in parts])

    def projected(self, batch: Data, nodes: Tensor | None = None) -> Tensor:
        """Mapped tokens `[orders + 1, nodes, dim]` of some nodes, or of all."""
        weight, bias = self.input.weight, self.input.bias
        if "tokens" in batch:
            tokens = batch.tokens
            if nodes is not None:
                tokens = tokens.index_select(0, nodes.to(tokens.device))
            tokens = tokens.to(weight.device, weight.dtype)
            return F.linear(tokens, weight, bias).transpose(0, 1).contiguous()
        x = self.input.product(batch.x, weight)
        orders = polynomials(
            self.basis, self.orders, x, lambda x: self.propagation(batch.normalised_adj, x)
        )
        rows = (x if nodes is None else x.index_select(0, nodes) for x in orders)
        return torch.stack(list(rows)) + bias
