r"""Layers between hyperboloids (Hypformer, Sections 4.1 and 4.2).

Points are `[..., 1 + features]`, time first; widths count space-like coordinates only. Every layer
computes the space part f of its output, which determines the time. A layer between spaces of
curvatures `kappa_1` and `kappa_2` multiplies the point by `sqrt(kappa_1 / kappa_2)` (`rescale`,
Eq. 9, which keeps the order of distances), or leaves f unchanged (`recalibrate`, Eq. 8).

Under autocast matrix products are in half precision and points in float32.
"""

import math
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from curvlab.errors import UsageError
from curvlab.graph.sparse_graph import Features, as_features
from curvlab.layers.feature_linear import FeatureLinear
from curvlab.layers.spaces import TakesManifold
from curvlab.manifolds import Lorentz, lorentz, lorentz_sums
from curvlab.manifolds._geoopt import geoopt
from curvlab.manifolds.curved_trig import sin_ratio
from curvlab.manifolds.kernels import curvature_like, squared_norm, upcast_half
from curvlab.manifolds.matrix_products import linear
from curvlab.options import PositiveFloat

CurvatureMode = Literal["rescale", "recalibrate"]
InputLift = Literal["exp0", "exp0_ref"]
Inner = Literal["as_released"]

LONGEST_TANGENT = 10.0
"""Length at which tangent vectors at the origin are clipped (code of Hypformer's authors)."""


def from_space_part(space_part: Tensor, space: Lorentz) -> Tensor:
    """The point with a space part, `[..., dim] -> [..., 1 + dim]`, in float32 or better."""
    return lorentz.from_space(upcast_half(space_part), space.kappa)


class LorentzLinear(TakesManifold, FeatureLinear):
    r"""HTC: a linear map of all coordinates of a point, `[..., 1 + in] -> [..., 1 + out]`.

    With `f = W x + b` and `r = kappa_1 / kappa_2`,

        rescale:       (sqrt(r |f|^2 - 1 / kappa_2), sqrt(r) f) = sqrt(r) point_{kappa_1}(f),
        recalibrate:   point_{kappa_2}(f).

    `W` is `[out, 1 + in]`; its first column multiplies time.

    Source: Hypformer, Eq. 9, with the root over `r |f|^2 - 1 / kappa_2` (published over `r` only).
    The initialisation (Xavier-uniform, gain `sqrt 2`, bias 0) is that of the authors' code.
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
        nn.init.xavier_uniform_(self.weight, gain=2**0.5)
        nn.init.zeros_(self.bias)

    def forward(self, x: Any) -> Tensor:
        return from_space_part(self.space_part(x), self.space_out)

    def space_part(self, x: Tensor) -> Tensor:
        """The space part `[..., out_features]` of the result, without its time."""
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
    r"""`LorentzLinear` of Euclidean features, mapped to points by the exponential at the origin.

    `exp_0(x) = (t, c x)` with `c = sinh(sqrt(-kappa) |x|) / (sqrt(-kappa) |x|)` and `|x|` clipped
    at 10 in the sine. So `W exp_0(x) = c (W_s x) + t w_t` with one factor for each row, and
    features that are nearly all 0 go through sparse products, as in `FeatureLinear`.

    `input_lift="exp0_ref"` is the exponential of (1, x), as in the authors' code: the length is
    `sqrt(max(|x|^2 - 1, 0))` instead of `|x|`, so that `c = 1` in the unit ball.

    Shapes: `[nodes, in_features] -> [nodes, 1 + out_features]`, weight `[out, 1 + in]`.
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
        x = as_features(x)
        longest = self.space_in.longest_tangent(LONGEST_TANGENT)
        squared = x.squared_norms()
        time, c = exponential_factors(squared, self.space_in.kappa, longest, self.input_lift)
        out = c * self.product(x, self.weight[:, 1:])
        out = out + F.linear(time, self.weight[:, :1], self.bias)
        factor = self.factor
        return from_space_part(out if factor is None else out * factor, self.space_out)


def exponential_factors(
    squared: Tensor, kappa: Tensor, longest: Tensor, input_lift: str = "exp0"
) -> tuple[Tensor, Tensor]:
    """Time coordinates of exponentials at the origin, and factors of the vectors, `[..., 1]` each.

    Args:
        squared: Squared norms of the vectors, `[..., 1]`.
        kappa: Curvature.
        longest: Length at which vectors are clipped.
        input_lift: Lift of the vectors, see `LorentzFeatureLinear`.
    """
    kappa = curvature_like(kappa, squared.dtype, squared)
    longest = longest.to(squared.dtype)
    tangent = (squared - 1).clamp(min=0) if input_lift == "exp0_ref" else squared
    cut = longest * torch.maximum(tangent, longest.square()).rsqrt()
    factor = sin_ratio(kappa * torch.minimum(tangent, longest.square())) * cut
    return (factor.square() * squared - 1 / kappa).sqrt(), factor


def vectors_to_points(v: Tensor, space: Lorentz, input_lift: str) -> Tensor:
    """Points `[..., 1 + dim]` of vectors `[..., dim]`, as in `LorentzFeatureLinear`."""
    if input_lift == "exp0":
        return space.expmap0_shortened(v, LONGEST_TANGENT)
    v = upcast_half(v)
    longest = space.longest_tangent(LONGEST_TANGENT)
    time, factor = exponential_factors(squared_norm(v), space.kappa, longest, input_lift)
    return torch.cat([time, factor * v], dim=-1)


class LorentzMap(TakesManifold, nn.Module):
    """HRC: any function of the space part, which then determines the time (Hypformer, Eq. 13).

    Layer norm is `LorentzMap(nn.LayerNorm(dim), space)`; batch norm, activation and dropout are
    alike. Several functions are merged into one map, `LorentzMap(nn.Sequential(...), space)`.

    Shapes: `[..., 1 + dim] -> [..., 1 + out]` where the function maps `[..., dim] -> [..., out]`.
    """

    def __init__(self, function: nn.Module, manifold: Lorentz) -> None:
        super().__init__()
        self.function = function
        self.space = manifold

    def forward(self, x: Tensor) -> Tensor:
        return from_space_part(self.function(lorentz.space(x)), self.space)


def rescaling(space_in: Lorentz, space_out: Lorentz) -> Tensor | None:
    """The factor `sqrt(kappa_1 / kappa_2)`, `[]`, of a change of curvature; None for none."""
    return None if space_in is space_out else (space_in.kappa / space_out.kappa).sqrt()


def midpoint(x: Tensor, y: Tensor, space: Lorentz, space_other: Lorentz) -> Tensor:
    r"""Midpoint of points of two hyperboloids, the residual connection of Hypformer (Eq. 4).

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


class LorentzPrototypes(TakesManifold, nn.Module):
    r"""Logits from squared Lorentzian distances to one learned point for each class.

    `logit_c = -(|m - P_c|_L^2 + b_c) = 2 k + 2 <m, P_c>_L - b_c` with `k = -1 / kappa`, which is
    `-b_c` at the prototype and smaller elsewhere. With `inner="as_released"` it is
    `2 k + 2 <m, P_c>_L / k - b_c`, a distance for k = 1 only.

    The prototypes are `geoopt.ManifoldParameter`s, for a Riemannian optimiser. Their time is
    recomputed, since the curvature may be learned. Initially they are at distance 1 from the origin
    in random directions, and the biases are 0.

    Shapes: `[..., 1 + dim] -> [..., logits]`.

    Args:
        dim: number of space-like coordinates of the points.
        logits: number of logits.
        manifold: space of the points.
        inner: product of points: None, or `as_released` for that of Hypformer's code, divided by k.

    Source: Hypformer's decoder `hyp`, whose code divides since its second release; Law et al. 2019.
    """

    def __init__(
        self, dim: int, logits: int, manifold: Lorentz, inner: Inner | None = None
    ) -> None:
        super().__init__()
        self.space = manifold
        self.inner = inner
        with torch.no_grad():
            points = manifold.expmap0(F.normalize(torch.randn(logits, dim), dim=-1))
        self.prototypes = geoopt.ManifoldParameter(points, manifold=manifold)
        self.bias = nn.Parameter(torch.zeros(logits))

    def forward(self, x: Tensor) -> Tensor:
        kappa = self.space.kappa
        prototypes = lorentz.project(self.prototypes, kappa)
        doubled = 2 * inner_factor(self.space, self.inner)
        return linear(x, doubled * lorentz.reflect_time(prototypes), -2 / kappa - self.bias)


Operator = Literal["centroid", "parallel_transport", "tangent_space", "space_addition"]
Weights = Literal["fixed", "learned"]
OPERATORS: tuple[Operator, ...] = get_args(Operator)
FORMS = {"stable": lorentz_sums.STABLE, "maps": lorentz_sums.LITERAL}
UNWEIGHTED = "parallel_transport"


class LorentzResidual(TakesManifold, nn.Module):
    r"""Sum of a point x and a point y = f(x) of one hyperboloid.

    With s = sqrt(-kappa) and `lift` the point with a given space part:

        centroid:            (w_x x + w_y y) / (s sqrt(-<., .>_L)),
        parallel_transport:  exp_x(P_{o -> x}(log_o y)), without weights,
        tangent_space:       exp_o(w_x log_o x + w_y log_o y),
        space_addition:      lift(w_x x_s + w_y y_s).

    The centroid lies on the geodesic from x to y, so that the points of a deep network stay as near
    the origin as its layers' outputs. The other sums move away from the origin, as in flat space.

    Shapes: `[..., 1 + dim]` twice to `[..., 1 + dim]`.

    Args:
        manifold: space of x, y and the sum.
        operator: operator of the sum, see above.
        weights: `learned` for a learned `w_x = exp(log_weight)` and a fixed `w_y`.
        weight_x: weight `w_x` of the layer's input; its initial value if it is learned.
        weight_y: weight `w_y` of the layer's output.
        reverse: compute `y + x`, which is another point by parallel transport.
        form: form of the computation: `stable`, or `maps`, the compositions of maps (for
            comparison).

    Raises:
        UsageError: an option has no meaning for the operator.

    Source: LRN (He et al. 2024), Section 3.
    """

    def __init__(
        self,
        manifold: Lorentz,
        operator: Operator = "centroid",
        weights: Weights = "fixed",
        weight_x: PositiveFloat = 1.0,
        weight_y: PositiveFloat = 1.0,
        reverse: bool = False,
        form: Literal["stable", "maps"] = "stable",
    ) -> None:
        super().__init__()
        if operator == UNWEIGHTED and (weights, weight_x, weight_y) != ("fixed", 1, 1):
            raise UsageError(
                "operator='parallel_transport' has no weights: leave weights='fixed' and both at 1"
            )
        self.space = manifold
        self.operator = operator
        self.form = form
        self.reverse = reverse
        self.weight_y = weight_y
        self._fixed = weight_x
        self.log_weight: nn.Parameter | None = None
        if weights == "learned":
            self.log_weight = nn.Parameter(torch.tensor(math.log(weight_x)))

    @property
    def weight_x(self) -> Tensor | float:
        return self._fixed if self.log_weight is None else self.log_weight.exp()

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        total = FORMS[self.form][self.operator]
        kappa = self.space.kappa
        weights = self.weight_x, self.weight_y
        if self.reverse:
            return total(y, x, kappa, *weights[::-1])
        return total(x, y, kappa, *weights)
