"""The base of networks over the polynomial tokens of each node."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.transforms.graph import GraphTransform
from curvlab.data.transforms.polynomial_tokens import PolynomialTokens
from curvlab.graph.polynomials import polynomials
from curvlab.graph.sparse_graph import SparseGraph
from curvlab.layers.feature_linear import FeatureLinear
from curvlab.models.encoder import FlatEncoder
from curvlab.options import NonNegativeInt, PositiveInt

Basis = Literal["mono", "cheb"]
TokenType = Literal["float32", "float16", "bfloat16"]


class TokenNetwork(FlatEncoder):
    """Embeds each node v by its tokens `h_k = (g_k(A) X)_v`, mapped by `H = W h + b`.

    Nodes do not interact: a step embeds its training nodes only, and mini-batches give the same
    result as the whole graph.

    For a graph with `normalised_adj` instead of `tokens`, features are mapped first and then
    propagated, with the same result: `g_k(A) (X W^T) + b`.

    Shapes: `batch.tokens [nodes, orders + 1, in_channels]`, or `batch.x [nodes, in_channels]` and
    `batch.normalised_adj [nodes, nodes]` (sparse CSR); returns `[nodes, dim]`.

    Args:
        basis: basis of the polynomials: `mono` (powers) or `cheb` (Chebyshev).
        orders: highest order of the tokens.
        dim: width of a token.
        input_bias: add b; set it to False for a pure filter of X, as in Theorem 3.1. Otherwise
            attention can weigh b for each node, and fits a signal without filtering.
        self_loops: Self-loops in the adjacency A; None: for `mono` only, as in PolyFormer's code.
        token_dtype: Type in which tokens are stored.

    Attributes:
        token_features: Attribute of the graph that holds X.
    """

    node_wise = True
    takes_tokens = True
    token_features = "x"

    def __init__(
        self,
        in_channels: int,
        basis: Basis = "mono",
        orders: NonNegativeInt = 10,
        dim: PositiveInt = 64,
        input_bias: bool = True,
        self_loops: bool | None = None,
        token_dtype: TokenType = "float32",
    ) -> None:
        super().__init__()
        self.input = FeatureLinear(in_channels, dim, input_bias)
        self.basis = basis
        self.orders = orders
        self.dim_out = dim
        self.transforms = (polynomial_tokens(basis, orders, dim, self_loops, token_dtype),)

    @classmethod
    def required_transforms(cls, options: Mapping[str, Any]) -> Sequence[GraphTransform]:
        names = ("basis", "orders", "dim", "self_loops", "token_dtype")
        arguments = {name: options[name] for name in names}
        return (polynomial_tokens(**arguments),)

    @abstractmethod
    def forward_tokens(self, tokens: Tensor) -> Tensor:
        """Embeddings of mapped tokens `[orders + 1, nodes, dim]`."""

    def forward(self, batch: Data) -> Tensor:
        return self.forward_tokens(self.project_tokens(batch))

    def forward_nodes(self, batch: Data, nodes: Tensor) -> Tensor:
        return self.forward_tokens(self.project_tokens(batch, nodes))

    def project_tokens(self, batch: Data, nodes: Tensor | None = None) -> Tensor:
        """Mapped tokens `[orders + 1, nodes, dim]` of some nodes, or of all."""
        weight = self.input.weight
        bias = self.input.bias
        if "tokens" in batch:
            tokens = batch.tokens
            if nodes is not None:
                tokens = tokens.index_select(0, nodes.to(tokens.device))
            tokens = tokens.to(weight.device, weight.dtype)
            return F.linear(tokens, weight, bias).transpose(0, 1).contiguous()
        graph = SparseGraph.from_data(batch)
        adjacency = graph.matrix("normalised_adj")
        x = self.input.product(graph.features_of(self.token_features), weight)
        orders = polynomials(self.basis, self.orders, x, adjacency.__matmul__)
        if nodes is not None:
            orders = (x.index_select(0, nodes) for x in orders)
        tokens = torch.stack(list(orders))
        return tokens if bias is None else tokens + bias


def polynomial_tokens(
    basis: Basis,
    orders: int,
    dim: int,
    self_loops: bool | None,
    token_dtype: TokenType,
    features: str = "x",
) -> PolynomialTokens:
    """The transform that computes a network's tokens from an attribute of the graph."""
    if self_loops is None:
        self_loops = basis == "mono"
    return PolynomialTokens(
        basis,
        orders,
        self_loops=self_loops,
        dtype=token_dtype,
        dim=dim,
        project_first=True,
        features=features,
    )
