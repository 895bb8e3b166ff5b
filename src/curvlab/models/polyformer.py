"""PolyFormer, "PolyFormer: scalable node-wise filters via polynomial graph transformer".

Ma et al. 2024, arXiv:2407.14459. A transformer over the polynomial tokens of each node alone.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from curvlab.layers import PolynomialAttention
from curvlab.layers.dropout import dropout
from curvlab.models.token_network import TokenMixer
from curvlab.options import Dropout, PositiveInt


class TokenFeedForward(nn.Module):
    """`H + drop(W_b gelu(W_a LN(H) + b_a) + b_b)`, the same map for every token.

    Shapes: `[..., dim] -> [..., dim]`.

    Args:
        dim: width of a token.
        hidden: width between the two maps; None: `dim`.
        dropout: of the output.
    """

    def __init__(self, dim: int, hidden: int | None, dropout: float) -> None:
        super().__init__()
        hidden = hidden or dim
        self.norm = nn.LayerNorm(dim)
        self.inner = nn.Linear(dim, hidden)
        self.outer = nn.Linear(hidden, dim)
        self.dropout = dropout

    def forward(self, tokens: Tensor) -> Tensor:
        """Map tokens."""
        mapped = self.outer(F.gelu(self.inner(self.norm(tokens))))
        return tokens + dropout(mapped, self.dropout, self.training)


class PolyFormer(TokenMixer):
    """Layers of PolyAttn and a feed-forward network over the tokens of each node.

    Args:
        in_channels: number of input features.
        layer: makes the attention from `orders`, `dim`, `heads` and `dropout`.
        heads: heads of attention, a divisor of `dim`.
        ffn_dim: inner width of the feed-forward networks; None: `dim`.
        attention_dropout: of the scores and of the outputs of attention and feed-forward networks.
        **options: those of `TokenMixer` and `TokenNetwork`.

    Source: PolyFormer, Section 3.3, with the differences of `PolynomialAttention`.
    """

    def __init__(
        self,
        in_channels: int,
        layer: Callable[..., nn.Module] = PolynomialAttention,
        heads: PositiveInt = 1,
        ffn_dim: PositiveInt | None = None,
        attention_dropout: Dropout = 0.0,
        **options: Any,
    ) -> None:
        mixer = partial(layer, heads=heads, dropout=attention_dropout)
        feed_forward = partial(TokenFeedForward, hidden=ffn_dim, dropout=attention_dropout)
        super().__init__(in_channels, mixer, feed_forward, **options)
