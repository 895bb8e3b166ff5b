"""The arithmetic on a tile of curved spaces in one pass, in C++ (`curvlab.cpp`).

It does what `_Arithmetic` in `curvlab.tasks.pairs.loss` does operation by operation, in
float32, and agrees with it to rounding. `torch.compile` of those operations is no faster than they
are without.
"""

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from curvlab.cpp import ARRAY, INTEGER, REAL, Library
from curvlab.manifolds.pair_form import CurvedProfile, Profile, PseudoProfile, kappa_series
from curvlab.tasks.pairs.tiles import Tile

_PLACE = [INTEGER] * 4
_SIDES = [ARRAY, INTEGER, INTEGER]
_ARRAYS = [ARRAY] * 4
_SUMS = [ARRAY, INTEGER, ARRAY, ARRAY, ARRAY, INTEGER]
_LIMITS = [INTEGER, REAL, REAL]
_GRAPH = [ARRAY, ARRAY, INTEGER, INTEGER, ARRAY, ARRAY, INTEGER]

LIBRARY = Library(
    Path(__file__).with_suffix(".cpp"),
    {
        "fill": [ARRAY, *_SIDES, *_PLACE, *_SUMS, *_LIMITS, ARRAY, INTEGER, INTEGER],
        "pull": [*_SIDES, *_PLACE, *_ARRAYS, INTEGER, INTEGER],
        "edges": [*_GRAPH, *_ARRAYS, INTEGER],
        "edges_backward": [*_GRAPH, *_ARRAYS, INTEGER],
    },
)


def _component(profile: Profile) -> list[float]:
    """Members of `Component` in `fused.cpp`."""
    if isinstance(profile, PseudoProfile):
        kind = 2
        magnitude = profile.magnitude
        series = []
    else:
        assert isinstance(profile, CurvedProfile)
        kind = 0 if profile.hyperbolic else 1
        magnitude = profile.magnitude
        series = profile.series[::-1] if profile.nearly_flat else []
    terms = [*map(float, series), *[0.0] * (8 - len(series))]
    return [kind, 1 / float(magnitude), len(series), *terms]


def _edge_component(profile: Profile) -> list[float]:
    """The same for edges, whose entries are in units of the series for every curvature."""
    kind, per_magnitude, *_ = _component(profile)
    series = kappa_series(1 if kind else -1)
    return [kind, per_magnitude, len(series), *series[::-1]]


class Fused:
    """Sums over tiles and their backward pass, for float32 features of curved components.

    Args:
        functions: functions of `LIBRARY`.
        left: features of rows `[components, features, nodes]`, scaled.
        right: functions of columns.
        profiles: profiles of the components.
        power: power of distances, 1 or 2.
        clamp: smallest value of `exp(-D)`; None for none.
        smallest: squared distance below which a distance is not resolved.
    """

    def __init__(
        self,
        functions: ctypes.CDLL,
        left: Tensor,
        right: Tensor,
        profiles: Sequence[Profile],
        power: int,
        clamp: float | None,
        smallest: float,
    ) -> None:
        self.functions = functions
        self.profiles = profiles
        self.left = left.contiguous()
        self.right = right.contiguous()
        self.components = torch.tensor([*map(_component, profiles)], dtype=torch.float32)
        self.options = power, -1.0 if clamp is None else clamp, smallest

    def fill(self, tile: Tile, summands: Tensor, weights: Tensor, sums: Tensor) -> None:
        """Shapes: summands `[1 + components, rows, columns]`, weights `[components, ...]`."""
        sides = self.left.data_ptr(), self.right.data_ptr(), *self.right.shape[1:], *tile.place
        arrays = summands.data_ptr(), summands.stride(0), weights.data_ptr(), sums.data_ptr()
        masked = tile.masked.data_ptr(), len(tile.masked)
        components = self.components.data_ptr(), len(weights)
        threads = torch.get_num_threads()
        self.functions.fill(*sides, *arrays, *components, *self.options, *masked, threads)

    def pull(
        self, tile: Tile, weights: Tensor, pulls: Tensor, grad: Tensor, grad_left: Tensor
    ) -> None:
        """Add the gradients of the features by the tile's pairs, with an array for their pulls."""
        sides = self.right.data_ptr(), *self.right.shape[1:], *tile.place
        arrays = (array.data_ptr() for array in (weights, pulls, grad, grad_left))
        self.functions.pull(*sides, *arrays, len(weights), torch.get_num_threads())


class EdgeDistances(torch.autograd.Function):
    """Squared distances of edges, functions of `w_x w_y |x - y|^2` of each component.

    Shapes: x `[nodes, dim]`, w `[nodes, components]`, source and target `[edges]`.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        kappa: Tensor,  # noqa: ARG004
        fused: Fused,
        source: Tensor,
        target: Tensor,
    ) -> Tensor:
        x = x.contiguous()
        weight = weight.contiguous()
        slopes, entries = x.new_empty(2, weight.shape[1], len(source))
        squared = x.new_zeros(len(source))
        ctx.save_for_backward(x, weight, source, target, slopes, entries)
        ctx.fused = fused
        components = torch.tensor([*map(_edge_component, fused.profiles)], dtype=torch.float32)
        arrays = (array.data_ptr() for array in (slopes, entries, components, squared))
        fused.functions.edges(*_graph(x, weight, source, target), *arrays, torch.get_num_threads())
        return squared

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        *graph, slopes, entries = ctx.saved_tensors
        grad, by_x, by_weight = grad.contiguous(), *map(torch.zeros_like, graph[:2])
        arrays = (array.data_ptr() for array in (slopes, grad, by_x, by_weight))
        ctx.fused.functions.edges_backward(*_graph(*graph), *arrays, torch.get_num_threads())
        units = [1 / (4 * profile.kappa**2) for profile in ctx.fused.profiles]
        by_kappa = entries @ grad * grad.new_tensor(units)
        return by_x, by_weight, by_kappa, None, None, None


def _graph(x: Tensor, weight: Tensor, source: Tensor, target: Tensor) -> tuple[int, ...]:
    """Points, their factors, components, their width, and the edges, as arguments."""
    points = x.data_ptr(), weight.data_ptr(), weight.shape[1], x.shape[1] // weight.shape[1]
    return *points, source.data_ptr(), target.data_ptr(), len(source)
