"""Nodes whose embeddings coincide, and pairs of them."""

import logging

import torch
from torch import Tensor

log = logging.getLogger(__name__)

ROUNDING = 64
"""Largest difference of successive coincident points, in units of rounding of their norm."""

DIRECTIONS = 4
"""Number of directions on which points are projected."""


def coincident_nodes(points: Tensor) -> Tensor:
    """One node of each node's group of coincident nodes, `[nodes]`.

    Points `[nodes, dim]` coincide if they are equal up to the rounding in the model that computed
    them. Layers sum in the order of the nodes, so the points of equal nodes differ in their last
    digits, and rounding alone decides which of them is nearer to a third point.

    The function sorts the points' norms, and then their projections on a few directions relative to
    the norm. In a group, successive values differ by at most `ROUNDING` units in the last place of
    the points' type, and all values by at most four times as much. Norms below a thousandth of the
    largest norm count as that thousandth.

    The order of the nodes decides only which node of a group is returned.
    """
    wide = points.detach().double()
    eps = torch.finfo(points.dtype).eps
    eps = min(eps, torch.finfo(torch.float32).eps)  # half precision has larger steps
    unit = ROUNDING * eps
    norm = wide.norm(dim=1, keepdim=True)
    scale = norm.maximum(norm.max() / 1000)
    scale = scale.clamp(min=torch.finfo(torch.float32).tiny)
    generator = torch.Generator().manual_seed(0)
    directions = torch.randn(wide.shape[1], DIRECTIONS, generator=generator, dtype=wide.dtype)
    directions = directions / directions.norm(dim=0)
    projections = wide / scale @ directions.to(wide.device)
    keys = torch.cat([scale.log(), projections], dim=1)
    group = torch.zeros(len(points), dtype=torch.long, device=points.device)
    representative = torch.arange(len(points), device=points.device)
    for key in keys.unbind(1):
        order = key.argsort(stable=True)
        order = order[group[order].argsort(stable=True)]
        values = key[order]
        is_first = _is_first(group[order], 0) | _is_first(values, unit)
        distance = values - values[_starts(is_first)]
        is_first = is_first | _is_first((distance / (4 * unit)).floor(), 0)
        group[order] = is_first.cumsum(0)
        representative = _representatives(order, is_first)
    return representative


def coincident_pairs(representative: Tensor, pairs: Tensor) -> Tensor:
    """One pair of each pair's group of coincident pairs, `[pairs]`.

    Two pairs coincide if they join the same two points, in either order. All pairs whose two ends
    coincide are one group: their distance is 0.

    Args:
        representative: result of `coincident_nodes`, `[nodes]`.
        pairs: pairs of nodes `[2, pairs]`.
    """
    points = representative[pairs]
    low = points.amin(0)
    high = points.amax(0)
    key = torch.where(low == high, -1, low * len(representative) + high)
    order = key.argsort(stable=True)
    return _representatives(order, _is_first(key[order], 0))


def warn_of_coincidence(points: Tensor, effect: str) -> None:
    """Warn if nodes share an embedding; the message ends with the effect on scores.

    Args:
        points: embeddings `[nodes, dim]`.
        effect: clause about the effect.
    """
    if not points.isfinite().all():
        return
    _, sizes = coincident_nodes(points).unique(return_counts=True)
    if len(points) > 1 and len(sizes) == 1:
        log.warning("the model has collapsed: all nodes have the same embedding")
        return
    count = int(sizes[sizes > 1].sum())
    if count:
        log.warning(
            "%d of %d nodes share their embedding with another node, and %s; features that differ "
            "distinguish them (dataset.features)",
            count,
            len(points),
            effect,
        )


def _is_first(values: Tensor, tolerance: float) -> Tensor:
    """Whether a sorted value begins a group: it exceeds the value before it by > `tolerance`.

    The first value and NaN always begin one.
    """
    continues = values.diff().abs() <= tolerance
    first = continues.new_ones(min(1, len(values)))
    return torch.cat([first, ~continues])


def _starts(is_first: Tensor) -> Tensor:
    """Position of the first member of each value's group."""
    position = torch.arange(len(is_first), device=is_first.device)
    return torch.where(is_first, position, 0).cummax(0).values


def _representatives(order: Tensor, is_first: Tensor) -> Tensor:
    """First member of each index's group, for indices that `order` sorts into groups."""
    return torch.empty_like(order).scatter(0, order, order[_starts(is_first)])
