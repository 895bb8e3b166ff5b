"""Mean average precision of a graph's reconstruction from pairwise distances."""

from collections.abc import Callable

import torch
from torch import Tensor

from curvlab.errors import UsageError
from curvlab.process import all_reduce_sum, own_share


def mean_average_precision(
    distance_rows: Callable[[Tensor], Tensor],
    edge_index: Tensor,
    num_nodes: int,
    block: int,
) -> Tensor:
    """Mean over nodes of the average precision with which nearness finds the neighbours.

    For each node u all other nodes are sorted by ascending distance, ties by index; `AP(u) =
    1/deg(u) sum_{v ~ u} (neighbours among the first rank(v)) / rank(v)`, ranks from 1. The node
    itself is left out at any distance. Nodes without neighbours, for which AP is not defined, are
    left out of the mean. Distances that are not finite give NaN. Memory is a few times `block *
    num_nodes`. The processes of a group, which must all call this, share the blocks and get the
    same result as one. Source: FPS-T Sec. 5.1; Gu et al. 2019.

    Args:
        distance_rows: maps node indices `[rows]` to their distances to all nodes
            `[rows, nodes]`; any increasing function of the distance gives the same result.
        edge_index: edges `[2, edges]`, both directions of each, at least one.
        num_nodes: number of nodes.
        block: rows computed at a time, at least 1.
    """
    if edge_index.shape[1] == 0:
        raise UsageError("mean average precision is not defined for a graph without edges.")
    device = edge_index.device
    row, col = edge_index[:, torch.argsort(edge_index[0])]
    starts = torch.arange(0, num_nodes, block, device=device)
    # The one transfer to the host: where each block's edges begin.
    bounds = [*torch.searchsorted(row, starts).tolist(), row.shape[0]]
    sums = torch.zeros(len(starts), 2, dtype=torch.float32, device=device)
    for number in own_share(range(len(starts))):
        start = number * block
        nodes = torch.arange(start, min(start + block, num_nodes), device=device)
        edges = slice(bounds[number], bounds[number + 1])
        neighbour = torch.zeros(len(nodes), num_nodes, dtype=torch.bool, device=device)
        neighbour[row[edges] - start, col[edges]] = True
        values, degrees = _average_precision(distance_rows(nodes), neighbour, nodes)
        sums[number] = torch.stack([values.sum(), (degrees > 0).sum()])
    precision, counted = all_reduce_sum(sums).T.contiguous()
    return precision.sum() / counted.long().sum()


def _average_precision(distance: Tensor, neighbour: Tensor, nodes: Tensor) -> tuple[Tensor, Tensor]:
    """AP of each row and its number of neighbours, `[rows]` both; AP is 0 without neighbours."""
    invalid = ~distance.isfinite().all(dim=1)
    own = nodes[:, None]
    # The node itself goes first, where it is cut off, so that ranks count the others only.
    order = distance.scatter(1, own, -torch.inf).sort(dim=1, stable=True).indices[:, 1:]
    hit = neighbour.scatter(1, own, False).gather(1, order)
    rank = torch.arange(1, hit.shape[1] + 1, device=distance.device, dtype=torch.float32)
    degree = hit.sum(dim=1)
    precision = hit.cumsum(dim=1, dtype=torch.int32) / rank * hit
    average = precision.sum(dim=1) / degree.clamp(min=1)
    return torch.where(invalid, torch.nan, average), degree
