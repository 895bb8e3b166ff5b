"""What networks over a node's polynomial tokens have in common."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.data.transforms.graph import GraphTransform
from curvlab.data.transforms.polynomial_tokens import PolynomialTokens
from curvlab.layers import PolynomialAttention, SharedCoefficients
from curvlab.layers.dropout import dropout
from curvlab.layers.features import FeatureLinear
from curvlab.layers.polynomials import polynomials
from curvlab.layers.sparse_graph import SparseGraph
from curvlab.models.encoder import FlatEncoder
from curvlab.options import (
    Dropout,
    NonNegativeFloat,
    NonNegativeInt,
    Passed,
    PositiveFloat,
    PositiveInt,
)

FILTERED_NODES = 10_000
"""Nodes whose coefficients are taken at a time."""


class TokenNetwork(FlatEncoder):
    """Maps the tokens `h_k = (g_k(A) X)_v` of each node v, `H = W h + b`, and reads them.

    Nodes never see each other, so that a step makes the embeddings of its training nodes only, and
    mini-batches change nothing.

    Where the graph has `normalised_adj` instead of `tokens`, features are mapped first and then
    propagated, which is the same: `g_k(A) (X W^T) + b`.

    Shapes: `batch.tokens [nodes, orders + 1, in_channels]`, or `batch.x [nodes, in_channels]` and
    `batch.normalised_adj [nodes, nodes]` (sparse CSR); returns `[nodes, dim]`.

    Args:
        in_channels: number of input features.
        basis: of the polynomials: `mono` (powers) or `cheb` (Chebyshev).
        orders: highest order of the tokens.
        dim: width of a token.
        input_bias: add b; False where the whole is to be a filter of X and nothing else, as in
            Theorem 3.1: attention can weigh b by the node, and fits a signal without filtering.
    """

    def __init__(
        self,
        in_channels: int,
        basis: Literal["mono", "cheb"] = "mono",
        orders: NonNegativeInt = 10,
        dim: PositiveInt = 64,
        input_bias: bool = True,
    ) -> None:
        super().__init__()
        self.input = FeatureLinear(in_channels, dim, input_bias)
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

    def transforms(self) -> Sequence[GraphTransform]:
        """The tokens; self-loops are in those of powers only, as in PolyFormer's code."""
        return (PolynomialTokens(self.basis, self.orders, self_loops=self.basis == "mono"),)

    def forward(self, batch: Data) -> Tensor:
        """Embeddings of all nodes."""
        return self.read(self.projected(batch))

    def of_nodes(self, batch: Data, nodes: Tensor) -> Tensor:
        """Embeddings of some nodes, without making those of the others."""
        return self.read(self.projected(batch, nodes))

    @torch.no_grad()
    def encode_in_chunks(self, batch: Data, chunk: int) -> Tensor:
        """What `forward` returns in evaluation, `chunk` nodes at a time."""
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
        graph = SparseGraph.of(batch)
        adjacency = graph.matrix("normalised_adj")
        x = self.input.product(graph.features, weight)
        orders = polynomials(self.basis, self.orders, x, adjacency.__matmul__)
        rows = (x if nodes is None else x.index_select(0, nodes) for x in orders)
        tokens = torch.stack(list(rows))
        return tokens if bias is None else tokens + bias


class TokenMixer(TokenNetwork):
    r"""What PolyFormer, PolyAttn and UniFilter have in common: layers that mix a node's tokens.

    With the tokens `h_k = (g_k(A) X)_v` of a node v,

        H = W_1 h + b_1,   in each layer  H <- Mix(H),  H <- FFN(H),
        z = sum_k H_k,     z <- drop(relu(W_2 drop(z) + b_2)),

    after which a linear decoder makes the logits.

    Shapes: see `TokenNetwork`.

    Args:
        in_channels: number of input features.
        mixer: makes what mixes a node's tokens from `orders` and `dim`.
        feed_forward: makes the network after it from `dim`.
        layers: number of layers.
        hidden: add `W_2`; False: the sum over orders is the embedding.
        dropout: of the head.
        attention_lr: learning rate of the mixers; None: `optimizer.lr`.
        attention_weight_decay: weight decay of the mixers; None: `optimizer.weight_decay`.
        **options: those of `TokenNetwork`.

    Source: PolyFormer, Section 3.3; the head has biases and ReLU.
    """

    def __init__(
        self,
        in_channels: int,
        mixer: Callable[..., nn.Module],
        feed_forward: Passed[Callable[..., nn.Module]] = nn.Identity,
        layers: PositiveInt = 1,
        hidden: bool = True,
        dropout: Dropout = 0.0,
        attention_lr: PositiveFloat | None = None,
        attention_weight_decay: NonNegativeFloat | None = None,
        **options: Any,
    ) -> None:
        super().__init__(in_channels, **options)
        dim = self.dim
        self.mixers = nn.ModuleList(mixer(orders=self.orders, dim=dim) for _ in range(layers))
        for part in self.mixers:  # read by `parameter_groups`
            vars(part).update(lr=attention_lr, weight_decay=attention_weight_decay)
        self.feed_forwards = nn.ModuleList(feed_forward(dim=dim) for _ in range(layers))
        self.hidden = nn.Linear(dim, dim) if hidden else None
        self.dropout = dropout

    def read(self, tokens: Tensor) -> Tensor:
        """Embeddings `[nodes, dim]` of mapped tokens."""
        for mixer, feed_forward in zip(self.mixers, self.feed_forwards, strict=True):
            tokens = feed_forward(mixer(tokens))
        z = tokens.sum(0)
        if self.hidden is None:
            return z
        return self._drop(F.relu(self.hidden(self._drop(z))))

    @property
    def filters_nodes(self) -> bool:
        """Whether it is one linear filter of each node's tokens, as PolyAttn and UniFilter are."""
        bare = isinstance(self.feed_forwards[0], nn.Identity) and len(self.mixers) == 1
        return bare and bool(self.mixers[0].is_filter)

    @torch.no_grad()
    def node_filters(self, batch: Data, read_out: Tensor | None = None) -> Tensor:
        """Coefficients of the polynomials `[nodes, orders + 1]` (Theorem 3.1).

        A head h has the filter `alpha^(h)` of its own, of its part of the width.

        Args:
            batch: see `TokenNetwork`.
            read_out: weights r `[dim]` that map the embedding of a signal x, `x w`, to a number:
                the coefficients of the whole map, `sum_h (r_h . w_h) alpha^(h)`; None for the mean
                over heads.
        """
        mixer = self.mixers[0]
        assert isinstance(mixer, PolynomialAttention | SharedCoefficients)
        nodes = torch.arange(batch.num_nodes, device=self.input.weight.device)
        return torch.cat(
            [
                self._over_heads(mixer.coefficients(self.projected(batch, part)), read_out)
                for part in nodes.split(FILTERED_NODES)
            ]
        )

    def _over_heads(self, alpha: Tensor, read_out: Tensor | None) -> Tensor:
        """Of coefficients `[nodes, heads, orders + 1]` what `node_filters` returns."""
        if read_out is None:
            return alpha.mean(1)
        gains = (read_out * self.input.weight.squeeze(1)).view(alpha.shape[1], -1).sum(1)
        return torch.einsum("h,nhk->nk", gains, alpha)

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)
