"""Neural network layers, by geometry; none knows a graph, a dataset or a configuration."""

from curvlab.layers.hybonet import (
    CentroidAggregation,
    CentroidAttention,
    HyboNetFeatureLinear,
    HyboNetLinear,
)
from curvlab.layers.lorentz import (
    LorentzFeatureLinear,
    LorentzLinear,
    LorentzMap,
    LorentzMidpoint,
)
from curvlab.layers.lorentz_attention import (
    LorentzLinearAttention,
    LorentzSoftmaxAttention,
    focused_attention,
    focused_features,
)
from curvlab.layers.lorentz_distance_attention import (
    PoincareDistanceAttention,
    PoincareLinear,
    TangentDistanceAttention,
)
from curvlab.layers.lorentz_logits import LorentzPrototypes
from curvlab.layers.lorentz_residual import LorentzResidual
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
    "CentroidAggregation",
    "CentroidAttention",
    "HyboNetFeatureLinear",
    "HyboNetLinear",
    "LorentzFeatureLinear",
    "LorentzLinear",
    "LorentzLinearAttention",
    "LorentzMap",
    "LorentzMidpoint",
    "LorentzPrototypes",
    "LorentzResidual",
    "LorentzSoftmaxAttention",
    "PoincareDistanceAttention",
    "PoincareLinear",
    "PolynomialAttention",
    "SharedCoefficients",
    "StereographicActivation",
    "StereographicAttention",
    "StereographicFeedForward",
    "StereographicLayerNorm",
    "StereographicLinear",
    "StereographicLogits",
    "TangentDistanceAttention",
    "focused_attention",
    "focused_features",
]
