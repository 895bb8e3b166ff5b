"""Mean average precision of a graph's reconstruction from pairwise distances."""

from collections.abc import Callable

import torch
from torch import Tensor

from curvlab.errors import UsageError
from curvlab.process import all_reduce_sum, local_shard

TIE = 2.0**-40
"""Distances are tied if they differ by at most this share of the larger."""


def mean_average_precision(
    distance_rows: Callable[[Tensor], Tensor],
    edge_index: Tensor,
    num_nodes: int,
    block: int,
) -> Tensor:
    """Mean over nodes of the average precision with which nearness finds the neighbours.

    For each node u all other nodes are sorted by ascending distance; `AP(u) = 1/deg(u) sum_{v ~ u}
    (neighbours among the first rank(v)) / rank(v)`, ranks from 1. AP is the mean over all orders
    of tied nodes, in closed form: of t tied nodes, h of them neighbours, after b nearer nodes, a of
    them neighbours, the sum over the h neighbours has the mean

        h/t ((a + 1 - q (b + 1)) (H(b + t) - H(b)) + q t),   q = (h - 1) / (t - 1),

    with harmonic numbers H, and q = 0 if t = 1. So it does not depend on the order of the nodes.
    Distances are tied if they are equal but for the rounding of double precision: successive
    distances differ by at most `TIE` of the larger. Nodes whose embeddings coincide but for the
    rounding of their coordinates must be given equal distances (`coincident_nodes`).

    The node itself is left out at any distance. Nodes without neighbours, for which AP is not
    defined, are left out of the mean. Distances that are not finite give NaN. Memory is a few times
    `block * num_nodes`. The processes of a group, which must all call this, share the blocks and
    get the same result as one. Source: FPS-T Sec. 5.1; Gu et al. 2019. Ties: McSherry and Najork
    2008, "Computing information retrieval performance measures efficiently in the presence of tied
    scores".

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
    for number in local_shard(range(len(starts))):
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
    row_nodes = nodes[:, None]
    # The node itself goes first, where it is cut off, so that ranks count the others only.
    ordered = distance.scatter(1, row_nodes, -torch.inf).sort(dim=1)
    distance = ordered.values[:, 1:]
    order = ordered.indices[:, 1:]
    hit = neighbour.scatter(1, row_nodes, False).gather(1, order)
    rank = torch.arange(1, hit.shape[1] + 1, device=distance.device, dtype=torch.float32)
    hits = hit.cumsum(dim=1, dtype=torch.int32)
    tied = distance.diff(dim=1) <= TIE * distance[:, 1:].abs()
    mixed = (tied & (hit[:, 1:] != hit[:, :-1])).any(dim=1)  # else the order of ties is the same
    if distance.device.type == "cpu":
        precision = hits / rank * hit
        precision[mixed] = _mean_over_ties(hits[mixed], hit[mixed], tied[mixed])
    else:  # a GPU would wait for the number of such rows
        precision = _mean_over_ties(hits, hit, tied)
    degree = hit.sum(dim=1)
    average = precision.sum(dim=1) / degree.clamp(min=1)
    return torch.where(invalid, torch.nan, average), degree


def _mean_over_ties(hits_so_far: Tensor, hit: Tensor, tied: Tensor) -> Tensor:
    """Sum of the precisions of each group of ties, at its last place, `[rows, others]`.

    Args:
        hits_so_far: neighbours among the nodes up to each place `[rows, others]`.
        hit: whether the node at a place is a neighbour.
        tied: whether the node at a place is tied with the next `[rows, others - 1]`.
    """
    places = hit.shape[1]
    place = torch.arange(places, device=hit.device, dtype=torch.int32)
    edge = tied.new_zeros(len(tied), 1)
    starts = ~torch.cat([edge, tied], dim=1)
    ends = ~torch.cat([tied, edge], dim=1)
    nearer = torch.where(starts, place, 0).cummax(dim=1).values
    nearer_hits = torch.where(starts, hits_so_far - hit.int(), 0).cummax(dim=1).values
    size = (place + 1 - nearer).double()
    hits = (hits_so_far - nearer_hits).double()
    harmonic = torch.cat([place.new_zeros(1), 1 / (place + 1).double()]).cumsum(0)
    between = harmonic[1:] - harmonic[nearer]
    share = (hits - 1) / (size - 1).clamp(min=1)
    total = (nearer_hits + 1 - share * (nearer + 1)) * between + share * size
    untied = hits_so_far / (place + 1).float() * hit
    return torch.where(size == 1, untied, (hits / size * total).float()) * ends
