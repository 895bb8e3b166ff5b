"""The signed curvature of a space as a module: fixed or learnable, with optional bounds."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from curvlab.errors import UsageError


def not_positive(bound: float | None) -> float:
    """Refuse an upper bound above 0 for a space of negative curvature; return the bound."""
    if bound is None or not bound <= 0:
        raise UsageError(
            f"The curvature's upper bound max={bound} must be at most 0: the curvature of this "
            "space is negative."
        )
    return bound


class Curvature(nn.Module):
    """Signed curvature kappa, one value or one for each component; calling it returns the tensor.

    A learnable curvature is an unconstrained parameter `raw` and a map onto the allowed interval:
    kappa = raw without bounds, min + softplus(raw) or max - softplus(raw) with one bound, and
    min + (max - min) sigmoid(raw) with two. Its initial value is `kappa`.

    Args:
        kappa: initial value for all components, or one for each.
        components: length of the curvature vector; None for a single value of shape ().
        learnable: whether the curvature is a parameter; otherwise it is a buffer.
        min: open lower bound, None for none.
        max: open upper bound, None for none.

    Raises:
        UsageError: if the interval is empty, or a value lies outside or on its bounds.
    """

    def __init__(
        self,
        kappa: float | Sequence[float] = 0.0,
        components: int | None = None,
        learnable: bool = True,
        min: float | None = None,
        max: float | None = None,
    ) -> None:
        super().__init__()
        self.learnable = learnable
        self.min = min
        self.max = max
        if min is not None and max is not None and min >= max:
            raise UsageError(
                f"The curvature's lower bound min={min:g} must be below "
                f"its upper bound max={max:g}."
            )
        values = [float(kappa)] if isinstance(kappa, int | float) else [float(k) for k in kappa]
        if len(values) not in (1, components or 1):
            raise UsageError(
                f"{len(values)} curvatures are given for {components or 1} components: "
                "give one for all or one for each."
            )
        raw = [self._inverse(value) for value in values]
        start = torch.tensor(raw, dtype=torch.get_default_dtype()).expand(components or 1).clone()
        start = start[0] if components is None else start
        self.raw = nn.Parameter(start) if learnable else nn.Buffer(start)

    def _inverse(self, kappa: float) -> float:
        low = -math.inf if self.min is None else self.min
        high = math.inf if self.max is None else self.max
        if not low < kappa < high:
            raise UsageError(
                f"The initial curvature kappa={kappa:g} must lie strictly between "
                f"min={self.min} and max={self.max}: move the value or the bound."
            )
        if not self.learnable or (math.isinf(low) and math.isinf(high)):
            return kappa
        if math.isinf(low) or math.isinf(high):
            gap = min(kappa - low, high - kappa)
            return gap + math.log(-math.expm1(-gap))
        return math.log((kappa - low) / (high - kappa))

    def forward(self) -> Tensor:
        if not self.learnable:
            return self.raw
        if self.min is not None and self.max is not None:
            return self.min + (self.max - self.min) * torch.sigmoid(self.raw)
        if self.min is not None:
            return self.min + functional.softplus(self.raw)
        if self.max is not None:
            return self.max - functional.softplus(self.raw)
        return self.raw

    def extra_repr(self) -> str:
        values = ", ".join(f"{k:.4g}" for k in self().detach().reshape(-1).tolist())
        kind = "learnable" if self.learnable else "fixed"
        bounds = "" if self.min is None and self.max is None else f", in ({self.min}, {self.max})"
        return f"kappa=[{values}], {kind}{bounds}"
