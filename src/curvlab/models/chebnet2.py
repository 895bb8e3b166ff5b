"""ChebNetII, "Convolutional neural networks on graphs with Chebyshev approximation, revisited".

He et al. 2022, arXiv:2202.03580.
"""

from collections.abc import Callable
from typing import Any

from torch import nn

from curvlab.layers.spectral_filters import ChebyshevInterpolation
from curvlab.models.spectral import FilteredPerceptron


class ChebNetII(FilteredPerceptron):
    """A perceptron, then a filter interpolated between Chebyshev nodes.

    Args:
        in_channels: number of input features.
        filter: makes the filter of the perceptron's output, the same for all nodes.
        **options: those of `FilteredPerceptron`.
    """

    def __init__(
        self,
        in_channels: int,
        filter: Callable[[], nn.Module] = ChebyshevInterpolation,
        **options: Any,
    ) -> None:
        super().__init__(in_channels, filter, **options)
