"""Mean average precision of a graph's reconstruction from pairwise distances."""

from collections.abc import Callable

import torch
from torch import Tensor

from curvlab.errors import UsageError
from curvlab.process import all_reduce_sum, local_shard

TIE = 2.0**-40
"""Relative difference up to which two distances are tied."""


def mean_average_precision(
    distance_rows: Callable[[Tensor], Tensor],
    edge_index: Tensor,
    num_nodes: int,
    block: int,
) -> Tensor:
    """Mean over nodes of the average precision (AP) of ranking their neighbours by distance.

    For each node u all other nodes are sorted by ascending distance. With ranks from 1,

        AP(u) = 1/deg(u) sum_{v ~ u} (neighbours of u with rank <= rank(v)) / rank(v).

    AP does not depend on the order of the nodes: it is the mean over all orders of tied nodes, in
    closed form. Let t nodes be tied, h of them neighbours, behind b nearer nodes, a of them
    neighbours. The mean of the sum over the h neighbours is

        h/t ((a + 1 - q (b + 1)) (H(b + t) - H(b)) + q t),   q = (h - 1) / (t - 1),

    with harmonic numbers H, and q = 0 if t = 1. Distances are tied if they are equal up to the
    rounding of double precision: successive distances differ by at most `TIE` of the larger. The
    caller must give nodes whose embeddings coincide up to rounding equal distances
    (`coincident_nodes`).

    The ranking of a node leaves out the node itself. The mean leaves out nodes without neighbours,
    whose AP is not defined. Distances that are not finite give NaN. Memory is a few times
    `block * num_nodes`. The processes of a group share the blocks: all of them must call this
    function, and they get the same result as one process.

    Source: FPS-T, Section 5.1; Gu et al. 2019. Ties: McSherry and Najork 2008, "Computing
    information retrieval performance measures efficiently in the presence of tied scores".

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
    row, column = edge_index[:, torch.argsort(edge_index[0])]
    starts = torch.arange(0, num_nodes, block, device=device)
    # The one transfer to the host: the first edge of each block.
    bounds = torch.searchsorted(row, starts).tolist()
    bounds.append(row.shape[0])
    sums = torch.zeros(len(starts), 2, dtype=torch.float32, device=device)
    for i in local_shard(range(len(starts))):
        start = i * block
        stop = min(start + block, num_nodes)
        nodes = torch.arange(start, stop, device=device)
        edges = slice(bounds[i], bounds[i + 1])
        neighbour = torch.zeros(len(nodes), num_nodes, dtype=torch.bool, device=device)
        neighbour[row[edges] - start, column[edges]] = True
        precision, degree = _average_precision(distance_rows(nodes), neighbour, nodes)
        sums[i, 0] = precision.sum()
        sums[i, 1] = (degree > 0).sum()
    precision, num_rows = all_reduce_sum(sums).T.contiguous()
    return precision.sum() / num_rows.long().sum()


def _average_precision(distance: Tensor, neighbour: Tensor, nodes: Tensor) -> tuple[Tensor, Tensor]:
    """AP of each row and its number of neighbours, `[rows]` both; AP is 0 without neighbours."""
    invalid = ~distance.isfinite().all(dim=1)
    row_nodes = nodes[:, None]
    # The node itself is moved to the first place, which is cut off.
    distance, order = distance.scatter(1, row_nodes, -torch.inf).sort(dim=1)
    distance = distance[:, 1:]
    order = order[:, 1:]
    hit = neighbour.scatter(1, row_nodes, False).gather(1, order)
    rank = torch.arange(1, hit.shape[1] + 1, device=distance.device, dtype=torch.float32)
    hits = hit.cumsum(dim=1, dtype=torch.int32)
    tie = distance.diff(dim=1) <= TIE * distance[:, 1:].abs()
    if distance.device.type == "cpu":
        precision = hits / rank * hit
        # The order of ties matters only where neighbours are tied with other nodes.
        is_mixed = (tie & (hit[:, 1:] != hit[:, :-1])).any(dim=1)
        precision[is_mixed] = _mean_over_ties(hits[is_mixed], hit[is_mixed], tie[is_mixed])
    else:  # selecting rows would synchronise a GPU
        precision = _mean_over_ties(hits, hit, tie)
    degree = hit.sum(dim=1)
    average = precision.sum(dim=1) / degree.clamp(min=1)
    return torch.where(invalid, torch.nan, average), degree


def _mean_over_ties(hits_so_far: Tensor, hit: Tensor, tie: Tensor) -> Tensor:
    """Sum of the precisions of each group of ties, at the group's last place, `[rows, places]`.

    Args:
        hits_so_far: number of neighbours up to each place `[rows, places]`.
        hit: whether the node at a place is a neighbour.
        tie: whether the nodes at a place and at the next are tied `[rows, places - 1]`.
    """
    places = hit.shape[1]
    place = torch.arange(places, device=hit.device, dtype=torch.int32)
    edge = tie.new_zeros(len(tie), 1)
    is_first = ~torch.cat([edge, tie], dim=1)
    is_last = ~torch.cat([tie, edge], dim=1)
    nearer = torch.where(is_first, place, 0).cummax(dim=1).values
    previous_hits = hits_so_far - hit.int()
    nearer_hits = torch.where(is_first, previous_hits, 0).cummax(dim=1).values
    size = (place + 1 - nearer).double()
    hits = (hits_so_far - nearer_hits).double()
    reciprocals = 1 / (place + 1).double()
    harmonic = torch.cat([place.new_zeros(1), reciprocals]).cumsum(0)
    difference = harmonic[1:] - harmonic[nearer]
    share = (hits - 1) / (size - 1).clamp(min=1)
    total = (nearer_hits + 1 - share * (nearer + 1)) * difference + share * size
    single = hits_so_far / (place + 1).float() * hit
    group = (hits / size * total).float()
    return torch.where(size == 1, single, group) * is_last
