"""The numerical thresholds of the geometry, one row a dtype, each with its reason."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Tolerance:
    """Thresholds of one floating-point type.

    Attributes:
        boundary: relative width of the rim that `project` keeps free inside the ball. Distances
            grow like the logarithm of the gap to the rim, so a wider rim costs little reach
            (6.2 / sqrt|kappa| in float32, 12.2 in float64) and saves the digits of 1 - |x|^2.
            Half-precision points are computed in float32; rounding them back moves a coordinate
            by at most 2^-9 of itself, which the float32 rim still contains.
        floor: smallest value of 1 + kappa |x|^2 that is divided by, the spacing of the type below
            one: no representable point inside the ball comes closer to the rim.
        series_degree: terms kept of the power series in z = kappa |x|^2 for |z| < `SERIES_RADIUS`;
            the first neglected term is below the rounding error of the type.
        tan: smallest z, and levels there, of the continued fraction of tan_k: beyond, tanh is 1.
        tan_rim: the same when the result is stopped at the rim that `boundary` keeps free.
        artan: halvings of the angle, and levels of the continued fraction after them, of artan_k
            for all points inside the ball (1 + z >= `floor`).
        artan_projected: the same for points that `project` has seen.
    """

    boundary: float
    floor: float
    series_degree: int
    tan: tuple[float, int]
    tan_rim: tuple[float, int]
    artan: tuple[int, int]
    artan_projected: tuple[int, int]


SERIES_RADIUS = 0.05
"""Below this |z| the power series is used. The closed forms of the derivatives lose a factor of
1 / |z| to cancellation, 20 roundings at this radius, and the series needs few terms."""

# The levels are the fewest with which the error of the fraction is below the rounding error.
_TABLE = {
    torch.float32: Tolerance(
        boundary=4e-3,
        floor=2.0**-24,
        series_degree=5,
        tan=(-81.0, 12),
        tan_rim=(-9.8, 7),
        artan=(4, 5),
        artan_projected=(2, 7),
    ),
    torch.float64: Tolerance(
        boundary=1e-5,
        floor=2.0**-53,
        series_degree=11,
        tan=(-360.0, 26),
        tan_rim=(-37.5, 16),
        artan=(6, 8),
        artan_projected=(4, 10),
    ),
}


def tolerance(dtype: torch.dtype) -> Tolerance:
    """Return the thresholds for computing in `dtype` (half precision computes in float32)."""
    return _TABLE[torch.float64 if dtype == torch.float64 else torch.float32]
