"""The arithmetic on a tile of curved spaces in one pass, for processors with a C++ compiler.

It does what `_Arithmetic` in `curvlab.manifolds.pairs.loss` does operation by operation, in
float32, and agrees with it to rounding. `torch.compile` of those operations is no faster, since
it does not vectorise their logarithm, arcsine and exponential as cheaply.
"""

import ctypes
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from curvlab.manifolds.pairs.form import CurvedProfile, Profile, PseudoProfile
from curvlab.manifolds.pairs.tiles import Tile

_ARRAY: Any = ctypes.c_void_p
_NUMBER: Any = ctypes.c_int64
_VECTORISED = (
    "-ftree-loop-vectorize",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
)


@cache
def _library() -> ctypes.CDLL:
    """`fused.cpp`, compiled by torch's own cache of C++ libraries for this processor."""
    from torch._inductor.codecache import CppCodeCache

    source = Path(__file__).with_suffix(".cpp").read_text(encoding="utf-8")
    library: ctypes.CDLL = CppCodeCache.load(source, "cpu", extra_flags=_VECTORISED)
    sides, place, arrays = [_ARRAY, _NUMBER, _NUMBER], [_NUMBER] * 4, [_ARRAY] * 4
    limits = [_NUMBER, ctypes.c_float, ctypes.c_float]
    tile = [_ARRAY, _NUMBER, _ARRAY, _ARRAY, _ARRAY, _NUMBER, *limits, _ARRAY, _NUMBER]
    library.fill.argtypes = [_ARRAY, *sides, *place, *tile, _NUMBER]
    library.pull.argtypes = [*sides, *place, *arrays, _NUMBER, _NUMBER]
    return library


def _component(profile: Profile) -> list[float]:
    """Members of `Component` in `fused.cpp`."""
    if isinstance(profile, PseudoProfile):
        kind, magnitude, series = 2, profile.magnitude, []
    else:
        assert isinstance(profile, CurvedProfile)
        kind, magnitude = 0 if profile.hyperbolic else 1, profile.magnitude
        series = profile.series[::-1] if profile.nearly_flat else []
    terms = [*map(float, series), *[0.0] * (8 - len(series))]
    return [kind, 1 / float(magnitude), len(series), *terms]


class Fused:
    """Sums over tiles and their backward pass, for float32 features of curved components.

    Args:
        left: features of rows `[components, features, nodes]`, scaled.
        right: those of columns.
        profiles: of the components.
        power: of distances, 1 or 2.
        clamp: smallest value of `exp(-D)`; None for none.
        smallest: squared distance below which a distance is not resolved.
    """

    def __init__(
        self,
        left: Tensor,
        right: Tensor,
        profiles: Sequence[Profile],
        power: int,
        clamp: float | None,
        smallest: float,
    ) -> None:
        self.library = _library()
        self.left, self.right = left.contiguous(), right.contiguous()
        self.components = torch.tensor([*map(_component, profiles)], dtype=torch.float32)
        self.options = power, -1.0 if clamp is None else clamp, smallest

    def fill(self, tile: Tile, summands: Tensor, weights: Tensor, sums: Tensor) -> None:
        """Shapes: summands `[1 + components, rows, columns]`, weights `[components, ...]`."""
        sides = self.left.data_ptr(), self.right.data_ptr(), *self.right.shape[1:], *tile.place
        arrays = summands.data_ptr(), summands.stride(0), weights.data_ptr(), sums.data_ptr()
        masked = tile.masked.data_ptr(), len(tile.masked)
        components = self.components.data_ptr(), len(weights)
        threads = torch.get_num_threads()
        self.library.fill(*sides, *arrays, *components, *self.options, *masked, threads)

    def pull(
        self, tile: Tile, weights: Tensor, pulls: Tensor, grad: Tensor, grad_left: Tensor
    ) -> None:
        """Add the gradients of the features by the tile's pairs, with an array for their pulls."""
        sides = self.right.data_ptr(), *self.right.shape[1:], *tile.place
        arrays = (array.data_ptr() for array in (weights, pulls, grad, grad_left))
        self.library.pull(*sides, *arrays, len(weights), torch.get_num_threads())
