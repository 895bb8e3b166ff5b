"""The base of networks over the polynomial tokens of each node."""

from abc import abstractmethod
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.transforms.polynomial_tokens import PolynomialTokens
from curvlab.graph.polynomials import polynomials
from curvlab.graph.sparse_graph import SparseGraph
from curvlab.layers.feature_linear import FeatureLinear
from curvlab.models.encoder import FlatEncoder
from curvlab.options import NonNegativeInt, PositiveInt

Basis = Literal["mono", "cheb"]


class TokenNetwork(FlatEncoder):
    """Embeds each node v by its tokens `h_k = (g_k(A) X)_v`, mapped by `H = W h + b`.

    Nodes never see each other, so that a step makes the embeddings of its training nodes only, and
    mini-batches change nothing.

    Where the graph has `normalised_adj` instead of `tokens`, features are mapped first and then
    propagated, which is the same: `g_k(A) (X W^T) + b`.

    Shapes: `batch.tokens [nodes, orders + 1, in_channels]`, or `batch.x [nodes, in_channels]` and
    `batch.normalised_adj [nodes, nodes]` (sparse CSR); returns `[nodes, dim]`.

    Args:
        basis: of the polynomials: `mono` (powers) or `cheb` (Chebyshev).
        orders: highest order of the tokens.
        dim: width of a token.
        input_bias: add b; False where the whole is to be a filter of X and nothing else, as in
            Theorem 3.1: attention can weigh b by the node, and fits a signal without filtering.
    """

    node_wise = True

    def __init__(
        self,
        in_channels: int,
        basis: Basis = "mono",
        orders: NonNegativeInt = 10,
        dim: PositiveInt = 64,
        input_bias: bool = True,
    ) -> None:
        super().__init__()
        self.input = FeatureLinear(in_channels, dim, input_bias)
        self.basis, self.orders, self.dim_out = basis, orders, dim
        # Self-loops are in the tokens of powers only, as in PolyFormer's code.
        self.transforms = (PolynomialTokens(basis, orders, self_loops=basis == "mono"),)

    @abstractmethod
    def forward_tokens(self, tokens: Tensor) -> Tensor:
        """Embeddings of mapped tokens `[orders + 1, nodes, dim]`."""

    def forward(self, batch: Data) -> Tensor:
        return self.forward_tokens(self.project_tokens(batch))

    def forward_nodes(self, batch: Data, nodes: Tensor) -> Tensor:
        return self.forward_tokens(self.project_tokens(batch, nodes))

    def project_tokens(self, batch: Data, nodes: Tensor | None = None) -> Tensor:
        """Mapped tokens `[orders + 1, nodes, dim]` of some nodes, or of all."""
        weight, bias = self.input.weight, self.input.bias
        if "tokens" in batch:
            tokens = batch.tokens
            if nodes is not None:
                tokens = tokens.index_select(0, nodes.to(tokens.device))
            tokens = tokens.to(weight.device, weight.dtype)
            return F.linear(tokens, weight, bias).transpose(0, 1).contiguous()
        graph = SparseGraph.from_data(batch)
        adjacency = graph.matrix("normalised_adj")
        x = self.input.product(graph.features, weight)
        orders = polynomials(self.basis, self.orders, x, adjacency.__matmul__)
        rows = (x if nodes is None else x.index_select(0, nodes) for x in orders)
        tokens = torch.stack(list(rows))
        return tokens if bias is None else tokens + bias
