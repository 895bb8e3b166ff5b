"""MLP: the multi-layer perceptron, which sees features and no edge."""

from typing import Any

from torch import nn

from curvlab.models.graph_network import GraphNetwork


class MLP(GraphNetwork):
    """Multi-layer perceptron of each node's features.

    Args:
        in_channels: number of input features.
        **options: those of `GraphNetwork`.
    """

    def __init__(self, in_channels: int, **options: Any) -> None:
        super().__init__(in_channels, nn.Linear, "none", **options)
