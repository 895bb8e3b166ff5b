"""Neural network layers, by geometry; none knows a graph, a dataset or a configuration."""

from curvlab.layers.lorentz import (
    LorentzFeatureLinear,
    LorentzLinear,
    LorentzMap,
    LorentzResidual,
)
from curvlab.layers.lorentz_attention import (
    LorentzLinearAttention,
    LorentzSoftmaxAttention,
    focused_attention,
    focused_features,
)
from curvlab.layers.lorentz_logits import LorentzPrototypes
from curvlab.layers.polynomial_attention import PolynomialAttention, SharedCoefficients
from curvlab.layers.stereographic import (
    StereographicActivation,
    StereographicAttention,
    StereographicFeedForward,
    StereographicLayerNorm,
    StereographicLinear,
)
from curvlab.layers.stereographic_logits import StereographicLogits

__all__ = [
    "LorentzFeatureLinear",
    "LorentzLinear",
    "LorentzLinearAttention",
    "LorentzMap",
    "LorentzPrototypes",
    "LorentzResidual",
    "LorentzSoftmaxAttention",
    "PolynomialAttention",
    "SharedCoefficients",
    "StereographicActivation",
    "StereographicAttention",
    "StereographicFeedForward",
    "StereographicLayerNorm",
    "StereographicLinear",
    "StereographicLogits",
    "focused_attention",
    "focused_features",
]
