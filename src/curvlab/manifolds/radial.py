"""Maps that move a point along its ray from the origin: x times a ratio of kappa |x|^2.

Curvatures are tensors `[..., 1]`, as in `curvlab.manifolds.kernels`; the ratios are those of
`curvlab.manifolds.curved_trig`.
"""

from collections.abc import Callable

from torch import Tensor

from curvlab.manifolds import curved_trig
from curvlab.manifolds.kernels import gap_arguments, squared_norm

RadialProfile = Callable[[Tensor, Tensor | None], curved_trig.Profile]


def _scale(x: Tensor, kappa: Tensor, profile: RadialProfile, near_rim: bool = False) -> Tensor:
    """Points times a ratio of kappa |x|^2; `near_rim`: with all digits of 1 + kappa |x|^2."""
    z, gap = gap_arguments(x, kappa) if near_rim else (kappa * squared_norm(x), None)
    return x * profile(z, gap)[0]


def scale_tan(x: Tensor, kappa: Tensor) -> Tensor:
    """tan_k(|x|) x / |x|."""
    return _scale(x, kappa, curved_trig.tangent)


def scale_tan_rim(x: Tensor, kappa: Tensor) -> Tensor:
    """tan_k(|x|) x / |x|, stopped at the rim of the ball."""
    return _scale(x, kappa, curved_trig.tangent_rim)


def scale_clip(x: Tensor, kappa: Tensor) -> Tensor:
    """The logarithm of `scale_tan_rim`: the same vector but where it leads beyond the rim."""
    return _scale(x, kappa, curved_trig.clip)


def scale_artan(x: Tensor, kappa: Tensor, projected: bool = False) -> Tensor:
    """artan_k(|x|) x / |x|, at less cost for points that are known to be projected."""
    if projected:
        return _scale(x, kappa, curved_trig.artan_projected)
    return _scale(x, kappa, curved_trig.artan, near_rim=True)


def scale_half(x: Tensor, kappa: Tensor) -> Tensor:
    """The point half as far from the origin."""
    return _scale(x, kappa, curved_trig.half_tan, near_rim=True)


def scale_rim(x: Tensor, kappa: Tensor) -> Tensor:
    """The point, moved back to the rim of the ball if it lies outside."""
    return _scale(x, kappa, curved_trig.rim)
