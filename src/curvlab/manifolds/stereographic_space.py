"""Products of stereographic spaces with curvatures of any sign."""

from collections.abc import Callable, Sequence
from ctypes import CDLL
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from curvlab.manifolds import curved_trig as trig
from curvlab.manifolds import gyro, kernels
from curvlab.manifolds import stereographic as k_space
from curvlab.manifolds import stereographic_maps as maps
from curvlab.manifolds.base import GeooptManifold
from curvlab.manifolds.curvature import Curvature
from curvlab.manifolds.pair_form import PairForm, weighted_form
from curvlab.options import Learnable, Passed, PositiveInt


def _blockwise(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Make a method that applies a function of points to each component."""

    def method(self: "Stereographic", *points: Tensor) -> Tensor:
        return self.merge(function(*map(self.split, points), self.kappa))

    method.__doc__ = function.__doc__
    return method


class Stereographic(GeooptManifold):
    """Product of `components` kappa-stereographic models, each with a signed curvature.

    Points are `[..., dim]`, split into `components` blocks of dim / components coordinates.

    Args:
        components: number of blocks, one for each attention head.
        kappa: initial curvature of every component, or one value for each.
        learnable: whether the curvatures are parameters.
        min: open lower bound of the curvatures, None for none.
        max: open upper bound of the curvatures, None for none.

    Attributes:
        published_midpoint: Whether weighted means are the published quotient, which jumps to the
            antipode beyond the equator (see `stereographic.midpoint_from_sums`).

    Source: FPS-T (Curve Your Attention), sections 3.1 and 4.
    """

    name = "Stereographic"
    decoders: ClassVar[tuple[str, ...]] = ("stereographic", "linear")
    published_midpoint = False

    def __init__(
        self,
        components: Passed[PositiveInt] = 1,
        kappa: float | Sequence[float] = 0.0,
        learnable: Learnable = False,
        min: float | None = None,
        max: float | None = None,
    ) -> None:
        super().__init__()
        self.components = components
        self.curvature = Curvature(kappa, components, learnable, min, max)

    @property
    def kappa(self) -> Tensor:
        return self.curvature()

    def _blocks(self, x: Tensor) -> Tensor:
        """Coordinates `[..., dim]` as `[components, ..., block]`, a view.

        With the components first, the points of one component stay contiguous in memory if their
        coordinates are (the layout of `curvlab.layers.stereographic`). Half precision, the type of
        linear maps under autocast, is converted to float32.
        """
        return self.split(kernels.upcast_half(x)).movedim(-2, 0)

    def _join(self, blocks: Tensor) -> Tensor:
        return self.merge(blocks.movedim(0, -2))

    def _kappa(self, x: Tensor) -> Tensor:
        """Curvatures in a shape that broadcasts against the blocks of `x`, `[components, ..., 1]`.

        A model's points are projected, so that maps can use the precision of the points.
        """
        dtype = torch.promote_types(x.dtype, torch.float32)
        return self.kappa.to(dtype).view(-1, *[1] * x.dim())

    def _cpp(self, *tokens: Tensor) -> tuple[CDLL, Tensor] | None:
        """C++ forms of the maps and the curvatures, for tokens `[tokens, dim]` in training."""
        kappa = self.kappa
        functions = maps.LIBRARY.functions(*tokens, kappa)
        if functions is None or not all(maps.applies(x, kappa) for x in tokens):
            return None
        return functions, kappa

    def _scaled(
        self, x: Tensor, ratio: Callable[[Tensor], Tensor], overflows: bool = False
    ) -> Tensor:
        """Blocks times a ratio of kappa |block|^2; squares of the blocks may overflow."""
        blocks = self._blocks(x)
        if overflows:
            blocks = kernels.shorten(blocks)
        z = self._kappa(x) * kernels.squared_norm(blocks)
        return self._join(blocks * ratio(z))

    def expmap0(self, v: Tensor) -> Tensor:
        cpp = self._cpp(v)
        if cpp:
            functions, kappa = cpp
            return maps.radial(functions, v, kappa, maps.EXP)[0]
        return self._scaled(v, trig.tan_rim_ratio, overflows=True)

    def expmap0_unprojected(self, v: Tensor) -> Tensor:
        return self._scaled(v, trig.tan_ratio, overflows=True)

    def logmap0(self, x: Tensor) -> Tensor:
        cpp = self._cpp(x)
        if cpp:
            functions, kappa = cpp
            return maps.radial(functions, x, kappa, maps.LOG)[0]
        return self._scaled(x, partial(trig.artan_ratio, projected=True))

    def expmap0_and_log(self, v: Tensor) -> tuple[Tensor, Tensor]:
        cpp = self._cpp(v)
        if cpp:
            functions, kappa = cpp
            point, log = maps.radial(functions, v, kappa, maps.EXP_AND_LOG)
            return point, log
        blocks = kernels.shorten(self._blocks(v))
        point, log = trig.tan_and_log_ratio(self._kappa(v) * kernels.squared_norm(blocks))
        return self._join(blocks * point), self._join(blocks * log)

    def clamp_tangent(self, v: Tensor) -> Tensor:
        cpp = self._cpp(v)
        if cpp:
            functions, kappa = cpp
            return maps.radial(functions, v, kappa, maps.CLAMP)[0]
        return self._scaled(v, trig.log_rim_ratio, overflows=True)

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        cpp = self._cpp(x, y) if x.shape == y.shape else None
        if cpp:
            functions, kappa = cpp
            return maps.mobius_add(functions, x, y, kappa)
        axes = max(x.dim(), y.dim())
        x = x.view(*[1] * (axes - x.dim()), *x.shape)
        y = y.view(*[1] * (axes - y.dim()), *y.shape)
        blocks = (self._blocks(x), self._blocks(y), self._kappa(x))
        return self._join(gyro.mobius_add(*blocks, projected=True))

    def expmap0_sum(self, u: Tensor, v: Tensor) -> Tensor:
        if u.dim() == 1:
            return self.expmap0_sum(u.unsqueeze(0), v).squeeze(0)
        cpp = self._cpp(u) if v.dim() == 1 and v.dtype == u.dtype else None
        if cpp:
            functions, kappa = cpp
            return maps.exp_sum(functions, u, v, kappa)
        v = v.view(1, -1).expand(*u.shape[:-2], 1, -1)
        return self._join(gyro.exp_sum(self._blocks(u), self._blocks(v), self._kappa(u)))

    def expmap0_sum_means(self, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor | None]:
        cpp = self._cpp(u) if u.dim() == 2 and v.dtype == u.dtype else None
        if cpp:
            functions, kappa = cpp
            return maps.exp_sum_means(functions, u, v, kappa)
        return super().expmap0_sum_means(u, v)

    def tangent_scale(self, x: Tensor) -> Tensor:
        """lambda_x / lambda_0 = 1 / (1 + kappa |x|^2), `[components, ..., 1]`."""
        return 1 / kernels.conformal_denominator(self._blocks(x), self._kappa(x))

    def mean_vectors(self, x: Tensor, scale: Tensor | None = None) -> Tensor:
        """Numerator and denominator of the gyro-midpoint, `[lambda_x x, lambda_x - 1]`."""
        scale = self.tangent_scale(x) if scale is None else scale
        parts = 2 * scale * self._blocks(x), 2 * scale - 1
        return torch.cat([part.mT for part in parts], dim=-2).mT

    def mean_point(self, sums: Tensor) -> Tensor:
        functions = maps.LIBRARY.functions(sums, self.kappa)
        if functions is not None and sums.dim() == 3 and sums.shape[1] > 0:
            short = gyro.limit_sums(sums)
            return maps.half_quotient(functions, short, self.kappa, self.published_midpoint)
        kappa = self.kappa.to(sums.dtype).view(-1, *[1] * (sums.dim() - 1))
        return self._join(gyro.half_quotient(sums, kappa, self.published_midpoint))

    def scale_coordinates(self, x: Tensor, factor: Tensor) -> Tensor:
        return x * factor

    def project(self, x: Tensor) -> Tensor:
        return self._scaled(x, trig.rim_ratio, overflows=True)

    @torch.no_grad()
    def shares(self, x: Tensor) -> dict[str, Tensor]:
        """Shares of points `[..., dim]` at the limits of their coordinates, 0 to 1, on the device.

        Components of points count separately. `beyond_equator` is the share with kappa |x|^2 > 1,
        nearer to the antipode of the origin than to the origin. `at_rim` is the share that
        `project` has stopped at the rim of a ball, in the precision of x, or that is beyond it.
        """
        z = self._kappa(x) * kernels.squared_norm(self._blocks(x))
        return {
            "beyond_equator": (z > 1).to(z.dtype).mean(),
            "at_rim": trig.at_rim(z).to(z.dtype).mean(),
        }

    def conformal_factor(self, x: Tensor) -> Tensor:
        gap = kernels.conformal_denominator(self._blocks(x), self._kappa(x))
        return (2 / gap).squeeze(-1).movedim(0, -1)

    transport0 = _blockwise(k_space.transport0)
    logmap = _blockwise(k_space.logmap)
    transp = _blockwise(k_space.transport)

    def sqdist(self, x: Tensor, y: Tensor) -> Tensor:
        return k_space.sqdist(self.split(x), self.split(y), self.kappa).sum(-1)

    def pairwise_sqdist(self, x: Tensor, y: Tensor) -> Tensor:
        x = self.split(x).transpose(-2, -3)
        y = self.split(y).transpose(-2, -3)
        return k_space.pairwise_sqdist(x, y, self.kappa).sum(-3)

    def chord_weight(self, x: Tensor) -> Tensor:
        wide = kernels.conformal_denominator(self.split(x), self.kappa[:, None], torch.float64)
        return (1 / wide).squeeze(-1)

    def pair_form(self, x: Tensor) -> PairForm:
        """`|x - y|^2 / ((1 + kappa |x|^2) (1 + kappa |y|^2))` of each component."""
        blocks = self.split(x)
        kappa = self.kappa
        weight = 1 / (1 + kappa[:, None] * blocks.square().sum(-1, keepdim=True))
        return weighted_form(blocks, weight, kappa)

    def picture(self, x: Tensor) -> tuple[Tensor, "Stereographic"]:
        return x, self

    def arrays(self) -> dict[str, Any]:
        return {"kappa": self.kappa.detach().cpu().numpy()}

    def describe(self, dim: int) -> str:
        curvatures = ", ".join(f"{kappa:.2f}" for kappa in self.kappa.tolist())
        width = dim // self.components
        return f"log map at the midpoint; {width} dimensions a head, κ = {curvatures}"

    def expmap(self, x: Tensor, u: Tensor) -> Tensor:
        moved = k_space.expmap(self.split(x), self.split(u), self.kappa)
        return self.merge(k_space.project(moved, self.kappa))

    def _component_inner(self, x: Tensor, u: Tensor, v: Tensor | None) -> Tensor:
        """Metric product of each component, `[..., components, 1]`."""
        u = self.split(u)
        v = u if v is None else self.split(v)
        factor = self.conformal_factor(x).unsqueeze(-1)
        return factor.square() * torch.linalg.vecdot(u, v).unsqueeze(-1)

    def inner(
        self, x: Tensor, u: Tensor, v: Tensor | None = None, *, keepdim: bool = False
    ) -> Tensor:
        product = self._component_inner(x, u, v).sum(-2)
        return product if keepdim else product.squeeze(-1)

    def component_inner(self, x: Tensor, u: Tensor, v: Tensor | None = None) -> Tensor:
        blocks = self._component_inner(x, u, v)
        return self.merge(blocks.expand_as(self.split(u)))

    def egrad2rgrad(self, x: Tensor, u: Tensor) -> Tensor:
        return self.merge(self.split(u) / self.conformal_factor(x).unsqueeze(-1).square())


class PoincareBall(Stereographic):
    """Product of Poincare balls: stereographic models whose curvatures stay negative.

    Source: HGCN (Chami et al. 2019), Section 2.
    """

    name = "PoincareBall"

    def __init__(
        self,
        components: Passed[PositiveInt] = 1,
        kappa: float | Sequence[float] = -1.0,
        learnable: Learnable = False,
        min: float | None = None,
        max: float | None = 0.0,
    ) -> None:
        super().__init__(components, kappa, learnable, min, max)


class Sphere(Stereographic):
    """Product of spheres in stereographic projection: the curvatures stay positive."""

    name = "Sphere"

    def __init__(
        self,
        components: Passed[PositiveInt] = 1,
        kappa: float | Sequence[float] = 1.0,
        learnable: Learnable = False,
        min: float | None = 0.0,
        max: float | None = None,
    ) -> None:
        super().__init__(components, kappa, learnable, min, max)
