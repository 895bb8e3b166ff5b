"""PolyAttn alone, the attention of PolyFormer (Ma et al. 2024, arXiv:2407.14459), Section 3.2."""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from curvlab.layers import PolynomialAttention
from curvlab.models.token_network import TokenMixer
from curvlab.options import Dropout, PositiveInt

BARE = partial(PolynomialAttention, pre_norm=False, residual=False)


class PolyAttn(TokenMixer):
    """A filter for each node: attention without norm, residual and feed-forward network.

    Args:
        in_channels: number of input features.
        layer: makes the attention from `orders`, `dim`, `heads` and `dropout`.
        heads: heads of attention, a divisor of `dim`.
        attention_dropout: of the scores and of the output of attention.
        **options: those of `TokenMixer` and `TokenNetwork`.
    """

    def __init__(
        self,
        in_channels: int,
        layer: Callable[..., nn.Module] = BARE,
        heads: PositiveInt = 1,
        attention_dropout: Dropout = 0.0,
        **options: Any,
    ) -> None:
        mixer = partial(layer, heads=heads, dropout=attention_dropout)
        super().__init__(in_channels, mixer, **options)
