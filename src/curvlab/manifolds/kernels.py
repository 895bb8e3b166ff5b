"""Number types, norms and curvatures of points, for the functions of all models.

Here curvatures are tensors with a last axis for broadcasting, `[..., 1]`.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import isfunction
from typing import Any

import torch
from torch import Tensor

from curvlab.errors import UsageError
from curvlab.manifolds.curved_trig import tolerance


def refuse_other_names(owner: str, options: Iterable[str]) -> None:
    """Refuse the names that other libraries give a curvature."""
    for name in {"k", "c"}.intersection(options):
        raise UsageError(
            f"{owner} takes no {name}=: pass the signed curvature as kappa=, negative for "
            "hyperbolic space (kappa = -c of a ball, and -1 / k of geoopt's Lorentz model)"
        )


def refusing_other_names(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function refuse `k=` and `c=`."""

    @wraps(function)
    def refusing(*args: Any, **options: Any) -> Any:
        refuse_other_names(function.__name__, options)
        return function(*args, **options)

    return refusing


def public_functions(module: Mapping[str, Any], *further: str) -> list[str]:
    """Names of the functions defined in a module, given by its `globals()`, and `further` names."""
    functions = {k: v for k, v in module.items() if isfunction(v) and not k.startswith("_")}
    defined = [k for k, v in functions.items() if v.__module__ == module["__name__"]]
    return sorted([*further, *defined])


def upcast_half(x: Tensor) -> Tensor:
    """Convert half-precision points to float32, the type of their computations."""
    if x.dtype in (torch.float32, torch.float64):
        return x
    _check_floating(x)
    return x.float()


def _check_floating(x: Tensor) -> None:
    # Results have the type of the points: they would be truncated to integers.
    if not x.is_floating_point():
        raise UsageError(f"points are of type {x.dtype}: make them floating-point, as by x.float()")


def shorten(x: Tensor, exponent: float = 1 / 3) -> Tensor:
    """Scale vectors `[..., dim]` with a coordinate above max^exponent down to it.

    Squares of the results do not overflow. Maps of the results are those of infinite vectors,
    unless the space is flat to rounding. Shorter vectors keep all digits.
    """
    limit = torch.finfo(x.dtype).max ** exponent
    longest = x.detach().abs().amax(-1, keepdim=True)
    return x * (limit / longest.clamp(min=limit))


def curvature_like(kappa: Tensor | float, dtype: torch.dtype, x: Tensor) -> Tensor:
    """The curvature as a tensor `[..., 1]` that broadcasts against points."""
    _check_floating(x)
    if isinstance(kappa, Tensor):
        return kappa.to(dtype).unsqueeze(-1)
    return x.new_full((1,), kappa, dtype=dtype)


def dot(x: Tensor, y: Tensor) -> Tensor:
    """Inner product over the last axis, which is kept with length one."""
    return (x * y).sum(-1, keepdim=True)


def squared_norm(x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """|x|^2 over the last axis, which is kept, accumulated and returned in `dtype`."""
    return x.to(dtype or x.dtype).square().sum(-1, keepdim=True)


def one_plus(z: Tensor, dtype: torch.dtype) -> Tensor:
    """1 + z, at least the smallest value for a point of the given dtype inside the ball."""
    return (1 + z).clamp(min=tolerance(dtype).floor)


def conformal_denominator(x: Tensor, kappa: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """1 + kappa |x|^2, kept positive for points that rounding has put on the rim of the ball.

    Near the rim of the ball it loses digits by cancellation: at distance 10 from the origin it is
    2e-4, and one float32 rounding of |x|^2 would be a relative error of 3e-4, which a wider `dtype`
    avoids. For projected points it is at least 8e-3.
    """
    wide = dtype or x.dtype
    return one_plus(kappa.to(wide) * squared_norm(x, wide), x.dtype).to(x.dtype)


def negative_curvature(kappa: Tensor | float, dtype: torch.dtype, x: Tensor) -> Tensor:
    """A negative curvature as a tensor `[..., 1]` that broadcasts against points."""
    if not isinstance(kappa, Tensor) and not kappa < 0:
        raise UsageError(
            f"the Lorentz model has a negative curvature, not kappa={kappa:g}: use a negative "
            "curvature, or the stereographic model, which has any"
        )
    return curvature_like(kappa, dtype, x)


def positive_curvature(kappa: Tensor | float, dtype: torch.dtype, x: Tensor) -> Tensor:
    """A positive curvature as a tensor, as `negative_curvature`."""
    if not isinstance(kappa, Tensor) and not kappa > 0:
        raise UsageError(f"a sphere has a positive curvature, not kappa={kappa:g}")
    return curvature_like(kappa, dtype, x)


def split_time(x: Tensor) -> tuple[Tensor, Tensor]:
    """Time `[..., 1]` and space part `[..., dim]` of `[..., 1 + dim]`, in one operation.

    Its derivative is one concatenation; slices would need an array of zeros each.
    """
    return x.split([1, x.shape[-1] - 1], -1)


def prepend_time(s: Tensor, k: Tensor) -> Tensor:
    """Prepend the time sqrt(|s|^2 - 1 / kappa), kappa `[..., 1]`, to space parts `[..., dim]`."""
    return join_time((squared_norm(s) - 1 / k).sqrt(), s)


def join_time(time: Tensor, s: Tensor) -> Tensor:
    """Times `[..., 1]` before space parts `[..., dim]`, whose leading dimensions broadcast."""
    if time.shape[:-1] != s.shape[:-1]:
        s = s.expand(*time.shape[:-1], s.shape[-1])
    return torch.cat([time, s], -1)
