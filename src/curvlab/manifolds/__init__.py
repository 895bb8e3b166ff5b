"""Spaces of constant curvature: pure functions, and classes that geoopt's optimisers take."""

from curvlab.manifolds import charts, kernels, lorentz, stereographic
from curvlab.manifolds.base import Manifold
from curvlab.manifolds.curvature import Curvature
from curvlab.manifolds.distributions import WrappedNormal, frechet_mean, frechet_variance
from curvlab.manifolds.euclidean_space import Euclidean
from curvlab.manifolds.lorentz_space import Lorentz
from curvlab.manifolds.product_space import Product
from curvlab.manifolds.pseudo_hyperboloid_space import PseudoHyperboloid
from curvlab.manifolds.stereographic_space import PoincareBall, Sphere, Stereographic

__all__ = [
    "Curvature",
    "Euclidean",
    "Lorentz",
    "Manifold",
    "PoincareBall",
    "Product",
    "PseudoHyperboloid",
    "Sphere",
    "Stereographic",
    "WrappedNormal",
    "charts",
    "frechet_mean",
    "frechet_variance",
    "lorentz",
    "stereographic",
]

for _module in (charts, lorentz, stereographic):
    for _name in _module.__all__:
        setattr(_module, _name, kernels.refusing_other_names(getattr(_module, _name)))


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
