"""GPR-GNN, "Adaptive universal generalized PageRank graph neural network".

Chien et al. 2021, arXiv:2006.07988.
"""

from collections.abc import Callable
from typing import Any

from torch import nn

from curvlab.layers.spectral_filters import GPRFilter
from curvlab.models.spectral import FilteredPerceptron


class GPRGNN(FilteredPerceptron):
    """Generalised PageRank of a perceptron.

    Args:
        in_channels: number of input features.
        filter: makes the filter of the perceptron's output, the same for all nodes.
        **options: those of `FilteredPerceptron`.
    """

    self_loops = True
    directed = True  # powers of a random walk; filters of a spectrum need a symmetric matrix

    def __init__(
        self, in_channels: int, filter: Callable[[], nn.Module] = GPRFilter, **options: Any
    ) -> None:
        super().__init__(in_channels, filter, **options)
