"""The arithmetic on a tile of curved spaces in one pass, in C++ (`curvlab.cpp`).

The functions compute the operations of `_Arithmetic` in `curvlab.tasks.pairs.loss` in float32, and
agree with them to rounding. `torch.compile` does not make those operations faster.
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

_FEATURES = [ARRAY, INTEGER, INTEGER]
_PLACE = [INTEGER] * 4
_TILE_ARRAYS = [ARRAY, INTEGER, ARRAY, ARRAY]
_COMPONENTS = [ARRAY, INTEGER]
_OPTIONS = [INTEGER, REAL, REAL]
_MASK = [ARRAY, INTEGER]
_THREADS = [INTEGER]
_POINTS = [ARRAY, ARRAY, INTEGER, INTEGER]
_EDGES = [ARRAY, ARRAY, INTEGER]

LIBRARY = Library(
    Path(__file__).with_suffix(".cpp"),
    {
        "fill": [
            ARRAY,
            *_FEATURES,
            *_PLACE,
            *_TILE_ARRAYS,
            *_COMPONENTS,
            *_OPTIONS,
            *_MASK,
            *_THREADS,
        ],
        "pull": [*_FEATURES, *_PLACE, *[ARRAY] * 4, INTEGER, *_THREADS],
        "edges": [*_POINTS, *_EDGES, *[ARRAY] * 4, *_THREADS],
        "edges_backward": [*_POINTS, *_EDGES, *[ARRAY] * 4, *_THREADS],
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
    padding = [0.0] * (8 - len(series))
    return [kind, 1 / float(magnitude), len(series), *map(float, series), *padding]


def _edge_component(profile: Profile) -> list[float]:
    """Members of `Component` for edges, whose entries have the units of the series."""
    kind, per_magnitude, *_ = _component(profile)
    sign = 1 if kind else -1
    series = kappa_series(sign)
    return [kind, per_magnitude, len(series), *series[::-1]]


class FusedTiles:
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
        """Fill the summands and weights of a tile, and add to the sums.

        Shapes: summands `[1 + components, rows, columns]`, weights `[components, rows, columns]`,
        sums `[1 + components, nodes]`.
        """
        self.functions.fill(
            self.left.data_ptr(),
            self.right.data_ptr(),
            *self.right.shape[1:],
            *tile.place,
            summands.data_ptr(),
            summands.stride(0),
            weights.data_ptr(),
            sums.data_ptr(),
            self.components.data_ptr(),
            len(weights),
            *self.options,
            tile.mask.data_ptr(),
            len(tile.mask),
            torch.get_num_threads(),
        )

    def pull(
        self, tile: Tile, weights: Tensor, workspace: Tensor, grad: Tensor, grad_left: Tensor
    ) -> None:
        """Add the gradients of the features by the pairs of a tile.

        Shapes: weights and workspace `[components, rows, columns]`, gradients `grad` of the sums
        `[nodes]`, `grad_left` `[components, features, nodes]`.
        """
        self.functions.pull(
            self.right.data_ptr(),
            *self.right.shape[1:],
            *tile.place,
            weights.data_ptr(),
            workspace.data_ptr(),
            grad.data_ptr(),
            grad_left.data_ptr(),
            len(weights),
            torch.get_num_threads(),
        )


class EdgeDistances(torch.autograd.Function):
    """Squared distances of edges, as functions of `w_x w_y |x - y|^2` of each component.

    Shapes: x `[nodes, dim]`, w `[nodes, components]`, source and target `[edges]`.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        kappa: Tensor,  # noqa: ARG004
        fused: FusedTiles,
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
        fused.functions.edges(
            *_graph_arguments(x, weight, source, target),
            slopes.data_ptr(),
            entries.data_ptr(),
            components.data_ptr(),
            squared.data_ptr(),
            torch.get_num_threads(),
        )
        return squared

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, source, target, slopes, entries = ctx.saved_tensors
        grad = grad.contiguous()
        grad_x = torch.zeros_like(x)
        grad_weight = torch.zeros_like(weight)
        ctx.fused.functions.edges_backward(
            *_graph_arguments(x, weight, source, target),
            slopes.data_ptr(),
            grad.data_ptr(),
            grad_x.data_ptr(),
            grad_weight.data_ptr(),
            torch.get_num_threads(),
        )
        units = [1 / (4 * profile.kappa**2) for profile in ctx.fused.profiles]
        grad_kappa = entries @ grad * grad.new_tensor(units)
        return grad_x, grad_weight, grad_kappa, None, None, None


def _graph_arguments(x: Tensor, weight: Tensor, source: Tensor, target: Tensor) -> tuple[int, ...]:
    """Points, their factors, number and width of components, and edges, as arguments."""
    components = weight.shape[1]
    return (
        x.data_ptr(),
        weight.data_ptr(),
        components,
        x.shape[1] // components,
        source.data_ptr(),
        target.data_ptr(),
        len(source),
    )
