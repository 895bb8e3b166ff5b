"""PolyFormer, "PolyFormer: scalable node-wise filters via polynomial graph transformer".

Ma et al. 2024, arXiv:2407.14459. PolyFormer is a transformer over the polynomial tokens of each
node. PolyAttn is its attention alone, and UniFilter is a control without attention.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypedDict, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.layers import PolynomialAttention, SharedCoefficients
from curvlab.layers.elementwise import dropout
from curvlab.models.token_network import Basis, TokenNetwork, TokenType
from curvlab.options import (
    Dropout,
    NonNegativeFloat,
    NonNegativeInt,
    Passed,
    PositiveFloat,
    PositiveInt,
)

FILTERED_NODES = 10_000
"""Number of nodes whose coefficients are computed at a time."""

ATTENTION_FILTER = partial(PolynomialAttention, pre_norm=False, residual=False)


class MixerOptions(TypedDict, total=False):
    """Options of all networks that mix tokens, see `TokenMixer` and `TokenNetwork`."""

    layers: int
    hidden: bool
    dropout: float
    attention_lr: float | None
    attention_weight_decay: float | None
    basis: Basis
    orders: int
    dim: int
    input_bias: bool
    self_loops: bool | None
    token_dtype: TokenType


class TokenMixer(TokenNetwork):
    r"""Layers that mix a node's tokens.

    With the tokens `h_k = (g_k(A) X)_v` of a node v,

        H = W_1 h + b_1,   in each layer  H <- Mix(H),  H <- FFN(H),
        z = sum_k H_k,     z <- drop(relu(W_2 drop(z) + b_2)),

    and a linear decoder maps z to logits.

    Args:
        mixer: factory of the network that mixes a node's tokens, from `orders` and `dim`; None:
            `SharedCoefficients`.
        feed_forward: factory of the network after the mixer, from `dim`; null: none.
        hidden: add the layer `W_2`; False: the sum over orders is the embedding.
        dropout: dropout of the layer `W_2`.
        attention_lr: learning rate of the mixers; None: `optimizer.lr`.
        attention_weight_decay: weight decay of the mixers; None: `optimizer.weight_decay`.

    Source: PolyFormer, Section 3.3. The layer `W_2` has biases and a ReLU.
    """

    def __init__(
        self,
        in_channels: int,
        mixer: Passed[Callable[..., nn.Module] | None] = None,
        feed_forward: Passed[Callable[..., nn.Module]] = nn.Identity,
        layers: PositiveInt = 1,
        hidden: bool = True,
        dropout: Dropout = 0.0,
        attention_lr: PositiveFloat | None = None,
        attention_weight_decay: NonNegativeFloat | None = None,
        basis: Basis = "mono",
        orders: NonNegativeInt = 10,
        dim: PositiveInt = 64,
        input_bias: bool = True,
        self_loops: bool | None = None,
        token_dtype: TokenType = "float32",
    ) -> None:
        super().__init__(in_channels, basis, orders, dim, input_bias, self_loops, token_dtype)
        mixer = mixer or partial(SharedCoefficients, basis=basis)
        self.mixers = nn.ModuleList(mixer(orders=orders, dim=dim) for _ in range(layers))
        for part in self.mixers:  # read by `parameter_groups`
            vars(part).update(lr=attention_lr, weight_decay=attention_weight_decay)
        self.feed_forwards = nn.ModuleList(feed_forward(dim=dim) for _ in range(layers))
        self.hidden = nn.Linear(dim, dim) if hidden else None
        self.dropout = dropout

    def forward_tokens(self, tokens: Tensor) -> Tensor:
        for mixer, feed_forward in zip(self.mixers, self.feed_forwards, strict=True):
            tokens = feed_forward(mixer(tokens))
        z = tokens.sum(0)
        if self.hidden is None:
            return z
        z = F.relu(self.hidden(dropout(z, self.dropout, self.training)))
        return dropout(z, self.dropout, self.training)

    @property
    def filters_nodes(self) -> bool:
        """Whether the network is a linear filter of each node's tokens, as PolyAttn is."""
        has_one_mixer = len(self.mixers) == 1 and isinstance(self.feed_forwards[0], nn.Identity)
        return has_one_mixer and bool(self.mixers[0].is_filter)

    @torch.no_grad()
    def node_filters(self, batch: Data, read_out: Tensor | None = None) -> Tensor:
        """Coefficients of the polynomials `[nodes, orders + 1]` (Theorem 3.1).

        A head h has the filter `alpha^(h)` of its part of the width. The result is the mean over
        heads, or `sum_h (r_h . w_h) alpha^(h)` with `read_out` r.

        Args:
            batch: The graph.
            read_out: Weights r `[dim]` of the embedding `x w` of a signal x.
        """
        mixer: Any = self.mixers[0]
        nodes = torch.arange(batch.num_nodes, device=self.input.weight.device)
        coefficients = []
        for part in nodes.split(FILTERED_NODES):
            tokens = self.project_tokens(batch, part)
            coefficients.append(mixer.coefficients(tokens))
        alpha = torch.cat(coefficients)
        if read_out is None:
            return alpha.mean(1)
        gains = (read_out * self.input.weight.squeeze(1)).view(alpha.shape[1], -1).sum(1)
        return torch.einsum("h,nhk->nk", gains, alpha)


class TokenFeedForward(nn.Module):
    """The map `H + drop(W_b gelu(W_a LN(H) + b_a) + b_b)` of each token.

    Shapes: `[..., dim] -> [..., dim]`.
    """

    def __init__(self, dim: int, hidden: int | None, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.inner = nn.Linear(dim, hidden or dim)
        self.outer = nn.Linear(hidden or dim, dim)
        self.dropout = dropout

    def forward(self, tokens: Tensor) -> Tensor:
        mapped = self.outer(F.gelu(self.inner(self.norm(tokens))))
        return tokens + dropout(mapped, self.dropout, self.training)


class PolyFormer(TokenMixer):
    """Layers of PolyAttn and a feed-forward network over the tokens of each node.

    Args:
        layer: factory of the attention from `orders`, `dim`, `heads` and `dropout`.
        ffn_dim: inner width of the feed-forward networks; None: `dim`.
        attention_dropout: dropout of the scores and of the outputs of attention and feed-forward
            networks.

    Source: PolyFormer, Section 3.3, with the differences of `PolynomialAttention`.
    """

    def __init__(
        self,
        in_channels: int,
        layer: Callable[..., nn.Module] = PolynomialAttention,
        heads: PositiveInt = 1,
        ffn_dim: PositiveInt | None = None,
        attention_dropout: Dropout = 0.0,
        **mixing: Unpack[MixerOptions],
    ) -> None:
        mixer = partial(layer, heads=heads, dropout=attention_dropout)
        feed_forward = partial(TokenFeedForward, hidden=ffn_dim, dropout=attention_dropout)
        super().__init__(in_channels, mixer, feed_forward, **mixing)


class PolyAttn(TokenMixer):
    """A filter for each node: attention without norm, residual and feed-forward network.

    Args:
        layer: factory of the attention from `orders`, `dim`, `heads` and `dropout`.
        attention_dropout: dropout of the scores and of the output of attention.

    Paper: PolyAttn alone, the attention of PolyFormer (Ma et al. 2024, arXiv:2407.14459), Section
    3.2.
    """

    def __init__(
        self,
        in_channels: int,
        layer: Callable[..., nn.Module] = ATTENTION_FILTER,
        heads: PositiveInt = 1,
        attention_dropout: Dropout = 0.0,
        **mixing: Unpack[MixerOptions],
    ) -> None:
        mixer = partial(layer, heads=heads, dropout=attention_dropout)
        super().__init__(in_channels, mixer, **mixing)


class UniFilter(TokenMixer):
    """One polynomial filter for all nodes, in place of PolyAttn.

    Paper: UniFilter, PolyAttn's control in PolyFormer (Ma et al. 2024, arXiv:2407.14459), Table 3.
    """
