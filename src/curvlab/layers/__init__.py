"""Neural network layers, by geometry; none knows a graph, a dataset or a configuration."""

from curvlab.layers.stereographic import (
    StereographicActivation,
    StereographicAttention,
    StereographicFeedForward,
    StereographicLayerNorm,
    StereographicLinear,
)

__all__ = [
    "StereographicActivation",
    "StereographicAttention",
    "StereographicFeedForward",
    "StereographicLayerNorm",
    "StereographicLinear",
]
