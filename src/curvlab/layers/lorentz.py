r"""Layers between hyperboloids (Hypformer, Sections 4.1 and 4.2).

Points are `[..., 1 + features]`, time first; widths count the space-like coordinates alone. Every
layer computes the space part f of its output, and the time follows. A layer between spaces of
curvatures `kappa_1` and `kappa_2` multiplies the whole point by `sqrt(kappa_1 / kappa_2)`
(`rescale`, Eq. 9, which keeps the order of distances), or takes f as it is (`recalibrate`, Eq. 8).

Under autocast matrix products are in half precision and points in float32.
"""

from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from curvlab.layers.features import FeatureLinear
from curvlab.layers.spaces import TakesManifold
from curvlab.layers.sparse_graph import Features, as_features
from curvlab.manifolds import Lorentz, lorentz
from curvlab.manifolds.curved_trig import sin_ratio
from curvlab.manifolds.kernels import curvature_like, squared_norm, upcast_half

CurvatureMode = Literal["rescale", "recalibrate"]
InputLift = Literal["exp0", "exp0_ref"]
Inner = Literal["as_released"]

LONGEST_TANGENT = 10.0
"""Length at which tangent vectors at the origin are cut (Hypformer's authors' code)."""


def from_space_part(space_part: Tensor, space: Lorentz) -> Tensor:
    """The point with a space part, `[..., dim] -> [..., 1 + dim]`, in float32 or better."""
    return lorentz.from_space(upcast_half(space_part), space.kappa)


class LorentzLinear(TakesManifold, FeatureLinear):
    r"""HTC: a linear map of all coordinates of a point, `[..., 1 + in] -> [..., 1 + out]`.

    With `f = W x + b` and `r = kappa_1 / kappa_2`,

        rescale:       (sqrt(r |f|^2 - 1 / kappa_2), sqrt(r) f) = sqrt(r) point_{kappa_1}(f),
        recalibrate:   point_{kappa_2}(f).

    `W` is `[out, 1 + in]`; its first column multiplies time.

    Raises:
        UsageError: the curvature mode is neither.

    Source: Hypformer, Eq. 9, with the root over `r |f|^2 - 1 / kappa_2` (the paper prints it over
    `r` alone); the initialisation (Xavier-uniform, gain `sqrt 2`, bias 0) is the authors' code's.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        manifold: Lorentz,
        manifold_out: Lorentz | None = None,
        curvature_mode: CurvatureMode = "rescale",
    ) -> None:
        super().__init__(1 + in_features, out_features)
        self.space_in = manifold
        self.space_out = manifold if manifold_out is None else manifold_out
        self.curvature_mode = curvature_mode

    def reset_parameters(self) -> None:
        """Draw `W` (Xavier-uniform, gain `sqrt 2`) and set the bias to 0."""
        nn.init.xavier_uniform_(self.weight, gain=2**0.5)
        nn.init.zeros_(self.bias)

    def forward(self, x: Any) -> Tensor:
        """Map points `[..., 1 + in_features]` to points `[..., 1 + out_features]`."""
        return from_space_part(self.space_part(x), self.space_out)

    def space_part(self, x: Tensor) -> Tensor:
        """The space part `[..., out_features]` of the result, whose time is not computed."""
        factor = self.factor
        if factor is None:
            return F.linear(x, self.weight, self.bias)
        return F.linear(x, self.weight * factor, self.bias * factor)

    @property
    def factor(self) -> Tensor | None:
        """`sqrt(kappa_1 / kappa_2)`, `[]`; None for 1."""
        if self.curvature_mode == "recalibrate":
            return None
        return rescaling(self.space_in, self.space_out)


class LorentzFeatureLinear(LorentzLinear):
    r"""`LorentzLinear` of Euclidean features, which the exponential at the origin sends to points.

    `exp_0(x) = (t, c x)` with `c = sinh(sqrt(-kappa) |x|) / (sqrt(-kappa) |x|)` and `|x|` cut at 10
    in the sine, so that `W exp_0(x) = c (W_s x) + t w_t`: one factor a row, and features that are
    nearly all 0 go through sparse products, as in `FeatureLinear`.

    `input_lift="exp0_ref"` is what the authors' code does, the exponential of (1, x): the length is
    `sqrt(max(|x|^2 - 1, 0))` instead of `|x|`, so that `c = 1` in the unit ball.

    Shapes: `[nodes, in_features] -> [nodes, 1 + out_features]`, weight `[out, 1 + in]`.

    Raises:
        UsageError: the curvature mode or `input_lift` is unknown.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        manifold: Lorentz,
        manifold_out: Lorentz | None = None,
        curvature_mode: CurvatureMode = "rescale",
        input_lift: InputLift = "exp0",
    ) -> None:
        super().__init__(in_features, out_features, manifold, manifold_out, curvature_mode)
        self.input_lift = input_lift

    def forward(self, x: Tensor | Features) -> Tensor:
        """Map features `[nodes, in_features]` to points `[nodes, 1 + out_features]`."""
        x = as_features(x)
        time, c = _exponential_factors(x.squared_norms(), self.space_in, self.input_lift)
        out = c * self.product(x, self.weight[:, 1:])
        out = out + F.linear(time, self.weight[:, :1], self.bias)
        factor = self.factor
        return from_space_part(out if factor is None else out * factor, self.space_out)


def _exponential_factors(squared: Tensor, space: Lorentz, input_lift: str) -> tuple[Tensor, Tensor]:
    """Time of exponentials at the origin and factor of the vectors, `[..., 1]` each."""
    kappa = curvature_like(space.kappa, squared.dtype, squared)
    tangent = (squared - 1).clamp(min=0) if input_lift == "exp0_ref" else squared
    longest = space.longest_tangent(LONGEST_TANGENT).to(squared.dtype)
    cut = longest * torch.maximum(tangent, longest.square()).rsqrt()
    factor = sin_ratio(kappa * torch.minimum(tangent, longest.square())) * cut
    return (factor.square() * squared - 1 / kappa).sqrt(), factor


def vectors_to_points(v: Tensor, space: Lorentz, input_lift: str) -> Tensor:
    """Points `[..., 1 + dim]` of vectors `[..., dim]`, as in `LorentzFeatureLinear`."""
    if input_lift == "exp0":
        return space.expmap0_shortened(v, LONGEST_TANGENT)
    v = upcast_half(v)
    time, factor = _exponential_factors(squared_norm(v), space, input_lift)
    return torch.cat([time, factor * v], dim=-1)


class LorentzMap(TakesManifold, nn.Module):
    """HRC: any function of the space part, after which the time follows (Hypformer, Eq. 13).

    Layer norm, batch norm, activation and dropout are `LorentzMap(nn.LayerNorm(dim), space)` and so
    on; several in a row are merged, `LorentzMap(nn.Sequential(...), space)`.

    Shapes: `[..., 1 + dim] -> [..., 1 + out]` where the function maps `[..., dim] -> [..., out]`.
    """

    def __init__(self, function: nn.Module, manifold: Lorentz) -> None:
        super().__init__()
        self.function, self.space = function, manifold

    def forward(self, x: Tensor) -> Tensor:
        """Map points `[..., 1 + dim]` to points `[..., 1 + out]`."""
        return from_space_part(self.function(lorentz.space(x)), self.space)


def rescaling(space_in: Lorentz, space_out: Lorentz) -> Tensor | None:
    """The factor `sqrt(kappa_1 / kappa_2)`, `[]`, of a change of curvature; None for none."""
    return None if space_in is space_out else (space_in.kappa / space_out.kappa).sqrt()


def midpoint(x: Tensor, y: Tensor, space: Lorentz, space_other: Lorentz) -> Tensor:
    r"""Midpoint of points of two hyperboloids as they are, the residual of Hypformer (Eq. 4).

    `s / (sqrt(-kappa) sqrt(-<s, s>_L))`, `s = x + y`, on the hyperboloid of x.

    Shapes: `[..., 1 + dim]` twice to `[..., 1 + dim]`.
    """
    factor = rescaling(space_other, space)
    if factor is None:
        return lorentz.midpoint(x, y, space.kappa, 0.5)
    # y is 1 / factor times a point of the space.
    return lorentz.midpoint(x, y * factor, space.kappa, 1 / (1 + factor))


def inner_factor(space: Lorentz, inner: Inner | None) -> Tensor | float:
    """Factor of the Lorentzian product: 1, or 1 / k = -kappa, as in Hypformer's code."""
    return 1.0 if inner is None else -space.kappa
