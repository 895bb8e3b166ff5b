"""Neural network layers by geometry, independent of datasets and configurations."""

from curvlab.layers.hybonet import CentroidAggregation, HyboNetFeatureLinear, HyboNetLinear
from curvlab.layers.lorentz import (
    LorentzFeatureLinear,
    LorentzLinear,
    LorentzMap,
    LorentzPrototypes,
    LorentzResidual,
)
from curvlab.layers.lorentz_attention import (
    LorentzLinearAttention,
    LorentzSoftmaxAttention,
    PoincareDistanceAttention,
    PoincareLinear,
    TangentDistanceAttention,
    focused_attention,
    focused_features,
)
from curvlab.layers.polynomial_attention import PolynomialAttention, SharedCoefficients
from curvlab.layers.stereographic import (
    StereographicAttention,
    StereographicFeedForward,
    StereographicLayerNorm,
    StereographicLinear,
    StereographicLogits,
)

__all__ = [
    "CentroidAggregation",
    "HyboNetFeatureLinear",
    "HyboNetLinear",
    "LorentzFeatureLinear",
    "LorentzLinear",
    "LorentzLinearAttention",
    "LorentzMap",
    "LorentzPrototypes",
    "LorentzResidual",
    "LorentzSoftmaxAttention",
    "PoincareDistanceAttention",
    "PoincareLinear",
    "PolynomialAttention",
    "SharedCoefficients",
    "StereographicAttention",
    "StereographicFeedForward",
    "StereographicLayerNorm",
    "StereographicLinear",
    "StereographicLogits",
    "TangentDistanceAttention",
    "focused_attention",
    "focused_features",
]


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
