"""BernNet, "BernNet: learning arbitrary graph spectral filters via Bernstein approximation".

He et al. 2021, arXiv:2106.10994.
"""

from collections.abc import Callable
from typing import Any

from torch import nn

from curvlab.layers.spectral_filters import BernsteinFilter
from curvlab.models.spectral import FilteredPerceptron


class BernNet(FilteredPerceptron):
    """A perceptron, then a filter of Bernstein polynomials with non-negative coefficients.

    Args:
        in_channels: number of input features.
        filter: makes the filter of the perceptron's output, the same for all nodes.
        **options: those of `FilteredPerceptron`.
    """

    def __init__(
        self, in_channels: int, filter: Callable[[], nn.Module] = BernsteinFilter, **options: Any
    ) -> None:
        super().__init__(in_channels, filter, **options)
