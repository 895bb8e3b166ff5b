"""Neural network layers, by geometry; none knows a graph, a dataset or a configuration."""

from curvlab.layers.stereographic import (
    StereographicActivation,
    StereographicAttention,
    StereographicFeedForward,
    StereographicLayerNorm,
    StereographicLinear,
)
from curvlab.layers.stereographic_logits import StereographicLogits

__all__ = [
    "StereographicActivation",
    "StereographicAttention",
    "StereographicFeedForward",
    "StereographicLayerNorm",
    "StereographicLinear",
    "StereographicLogits",
]
