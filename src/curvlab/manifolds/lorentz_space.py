"""The Lorentz model as a space of one component."""

import math
from typing import ClassVar

import torch
from torch import Tensor

from curvlab.manifolds import lorentz, lorentz_sums
from curvlab.manifolds.base import GeooptManifold, method_from_function
from curvlab.manifolds.curvature import Curvature, not_positive
from curvlab.manifolds.kernels import squared_norm, upcast_half
from curvlab.manifolds.pair_form import PairForm, weighted_form
from curvlab.manifolds.stereographic_space import Stereographic
from curvlab.options import Learnable, NegativeFloat

_LARGEST_WEIGHT = 32.0
"""Largest weight of points of a pair form in float32 (error 1e-4), at distance 4.8."""

LARGEST_RADIUS = 20.0
"""Largest distance of lifted vectors in units of the curvature, so that squares are float32."""


class Lorentz(GeooptManifold):
    """Hyperboloid of signed curvature kappa < 0; points are `[..., 1 + dim]`, time first.

    Tangent vectors at the origin are `[..., dim]` in `expmap0` and `logmap0`, and `[..., 1 + dim]`
    everywhere else.

    Args:
        kappa: initial curvature.
        learnable: whether the curvature is a parameter.
        min: open lower bound of the curvature, None for none.
        max: open upper bound of the curvature, at most 0.

    Raises:
        UsageError: if the initial curvature is not between the bounds, or may become positive.
    """

    name = "Lorentz"
    codimension = 1
    decoders: ClassVar[tuple[str, ...]] = ("prototype", "linear")
    link_decoders: ClassVar[tuple[str, ...]] = ("lorentzian", "fermi_dirac")

    def __init__(
        self,
        kappa: NegativeFloat = -1.0,
        learnable: Learnable = False,
        min: float | None = None,
        max: float = 0.0,
    ) -> None:
        super().__init__()
        self.curvature = Curvature(kappa, None, learnable, min, not_positive(max))

    @property
    def kappa(self) -> Tensor:
        return self.curvature()

    expmap0 = method_from_function(lorentz.expmap0)
    logmap0 = method_from_function(lorentz.logmap0)
    from_space = method_from_function(lorentz.from_space)
    project = method_from_function(lorentz.project)
    sqdist = method_from_function(lorentz.sqdist)
    pairwise_sqdist = method_from_function(lorentz.pairwise_sqdist)
    expmap = method_from_function(lorentz.expmap)
    logmap = method_from_function(lorentz.logmap)
    transp = method_from_function(lorentz.transport)
    transport0 = method_from_function(lorentz.transport0)
    add = method_from_function(lorentz_sums.parallel_transport)

    def expmap0_shortened(self, v: Tensor, longest: float = math.inf) -> Tensor:
        """`expmap0(v)` of vectors `[..., dim]` that are shortened so that it does not overflow."""
        v = upcast_half(v)
        limit = self.longest_tangent(longest).double()
        squared = torch.maximum(squared_norm(v, torch.float64), limit.square())
        factor = limit * squared.rsqrt()
        return self.expmap0(v * factor.to(v.dtype))

    def longest_tangent(self, longest: float = math.inf) -> Tensor:
        """The smaller of `longest` and the length of vectors to `LARGEST_RADIUS`, `[]`."""
        return (LARGEST_RADIUS * (-self.kappa).rsqrt()).clamp(max=longest)

    def pair_form(self, x: Tensor) -> PairForm:
        """Return the form of the images `s / (1 + sqrt(1 - kappa |s|^2))`, without differences.

        The weight `1 / (1 + kappa |.|^2)` of an image is `(1 + sqrt(1 - kappa |s|^2)) / 2`, with s
        the space part. Weights are not bounded, and the form cancels by the product of two weights.
        The features are float64 unless all weights are small, which is checked on CPU only, since
        the check would synchronise an accelerator.
        """
        kappa = self.kappa.reshape(1)
        s = lorentz.space(x).unsqueeze(1)
        weight = self._weight(s, kappa)
        if weight.device.type != "cpu" or not bool((weight < _LARGEST_WEIGHT).all()):
            s = s.double()
            weight = self._weight(s, kappa.double())
        return weighted_form(s / (2 * weight), weight, kappa)

    @staticmethod
    def _weight(s: Tensor, kappa: Tensor) -> Tensor:
        return (1 + (1 - kappa * s.square().sum(-1, keepdim=True)).sqrt()) / 2

    def picture(self, x: Tensor) -> tuple[Tensor, Stereographic]:
        """Stereographic images in float64, since points near the rim need its digits."""
        kappa = self.kappa.double()
        return lorentz.to_stereographic(x.double(), kappa), Stereographic(1, float(kappa), False)

    def mean_vectors(self, x: Tensor, scale: Tensor | None = None) -> Tensor:  # noqa: ARG002
        return x.unsqueeze(0)

    def mean_point(self, sums: Tensor) -> Tensor:
        return lorentz.normalise(sums[0], self.kappa)

    def proju(self, x: Tensor, u: Tensor) -> Tensor:
        return u - self.kappa * lorentz.inner(x, u).unsqueeze(-1) * x

    def egrad2rgrad(self, x: Tensor, u: Tensor) -> Tensor:
        return self.proju(x, torch.cat([-u[..., :1], u[..., 1:]], -1))

    def inner(
        self, x: Tensor, u: Tensor, v: Tensor | None = None, *, keepdim: bool = False
    ) -> Tensor:
        del x
        product = lorentz.inner(u, u if v is None else v)
        return product.unsqueeze(-1) if keepdim else product

    def component_inner(self, x: Tensor, u: Tensor, v: Tensor | None = None) -> Tensor:
        s = lorentz.space(x)
        u = lorentz.space(u)
        v_s = u if v is None else lorentz.space(v)
        along = (s * u).sum(-1, keepdim=True) * (s * v_s).sum(-1, keepdim=True)
        time = s.square().sum(-1, keepdim=True) - 1 / self.kappa
        product = (u * v_s).sum(-1, keepdim=True) - along / time
        return product.clamp(min=0) if v is None else product
