"""Nodes whose embeddings coincide, and pairs of them."""

import logging

import torch
from torch import Tensor

log = logging.getLogger(__name__)

ROUNDING = 64
"""Roundings of a coordinate, relative to the point's norm, that successive points may differ by."""

DIRECTIONS = 4


def coincident_nodes(points: Tensor) -> Tensor:
    """For each node one node at its point, the same for all nodes there, `[nodes]`.

    Points `[nodes, dim]` coincide if they are equal but for the rounding in the model that made
    them. Layers sum in the order of the nodes, so that equal nodes get points that differ in their
    last digits; which of them is nearer is chance. Norms and projections on a few directions,
    relative to the norm, are compared: sorted, successive ones differ by at most `ROUNDING` units
    in the last place of the points' type, and all by at most four times as much. A point whose norm
    is below a thousandth of the largest is compared by that.

    The result depends on the order of the nodes only in which of identical points it names.
    """
    wide = points.detach().double()
    unit = ROUNDING * torch.finfo(points.dtype).eps
    unit = min(unit, ROUNDING * torch.finfo(torch.float32).eps)  # half precision has larger steps
    size = wide.norm(dim=1, keepdim=True)
    scale = size.maximum(size.max() / 1000).clamp(min=torch.finfo(torch.float32).tiny)
    generator = torch.Generator().manual_seed(0)
    directions = torch.randn(wide.shape[1], DIRECTIONS, generator=generator, dtype=wide.dtype)
    directions = directions / directions.norm(dim=0)
    keys = torch.cat([scale.log(), wide / scale @ directions.to(wide.device)], dim=1)
    group = torch.zeros(len(points), dtype=torch.long, device=points.device)
    same = position = torch.arange(len(points), device=points.device)
    for key in keys.unbind(1):
        order = key.argsort(stable=True)
        order = order[group[order].argsort(stable=True)]
        values = key[order]
        differs = _starts(group[order], 0) | _starts(values, unit)
        start = torch.where(differs, position, 0).cummax(0).values
        differs = differs | _starts(((values - values[start]) / (4 * unit)).floor(), 0)
        start = torch.where(differs, position, 0).cummax(0).values
        group[order] = differs.cumsum(0)
        same = torch.empty_like(order).scatter(0, order, order[start])
    return same


def coincident_pairs(same: Tensor, pairs: Tensor) -> Tensor:
    """For each pair of nodes `[2, pairs]` one of the same two points, the same for all, `[pairs]`.

    `same` `[nodes]` is that of `coincident_nodes`. The order of a pair's ends does not matter. All
    pairs whose ends coincide count as the same: their distance is 0.
    """
    ends = same[pairs]
    low = ends.amin(0)
    high = ends.amax(0)
    number = torch.where(low == high, -1, low * len(same) + high)
    order = number.argsort(stable=True)
    position = torch.arange(len(number), device=number.device)
    start = torch.where(_starts(number[order], 0), position, 0).cummax(0).values
    return torch.empty_like(order).scatter(0, order, order[start])


def warn_of_coincidence(points: Tensor, effect: str) -> None:
    """Warn if nodes have the same embedding, points `[nodes, dim]`, and say what comes of it."""
    if not points.isfinite().all():
        return
    sizes = coincident_nodes(points).unique(return_counts=True)[1]
    if len(sizes) == 1 < len(points):
        log.warning("the model has collapsed: all nodes have the same embedding")
    elif shared := int(sizes[sizes > 1].sum()):
        log.warning(
            "%d of %d nodes share their embedding with another node, and %s; features that differ "
            "distinguish them (dataset.features)",
            shared,
            len(points),
            effect,
        )


def _starts(values: Tensor, reach: float) -> Tensor:
    """Whether a value is the first or further than `reach` from the one before; NaN always is."""
    near = values.diff().abs() <= reach
    return torch.cat([near.new_ones(min(1, len(values))), ~near])
