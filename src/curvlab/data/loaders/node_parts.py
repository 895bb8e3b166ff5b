"""Partitions of a graph's nodes into parts of nearly equal size."""

import torch
from torch import Tensor

from curvlab.layers.neighbour_sums import neighbour_sums

PASSES = 7
"""Over all nodes; on graphs with communities later ones move few nodes."""

BLOCKS = 200
"""Of nodes that move at a time."""

SLACK = 1.03
"""Most nodes of a part, over the mean."""


def random_parts(nodes: int, parts: int, seed: int) -> Tensor:
    """The part of each node, `[nodes]`, drawn without regard to edges; sizes differ by one."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randperm(nodes, generator=generator) % parts


def greedy_parts(offsets: Tensor, neighbours: Tensor, parts: int, seed: int) -> Tensor:
    """The part of each node, `[nodes]`, near its neighbours: linear deterministic greedy, LDG.

    Blocks of nodes come one after another, and a node goes to the part q with the largest
    `|N(v) in q| (1 - |q| / C)`, for the capacity C of a part. Further passes repeat this with the
    neighbours' parts of the pass before. Ties are drawn; nodes beyond a part's capacity go to where
    there is room.

    Source: Stanton and Kliot 2012, "Streaming graph partitioning for large distributed graphs";
    Nishimura and Ugander 2013 for further passes.

    Args:
        offsets: where each node's neighbours begin, `[nodes + 1]`.
        neighbours: `[entries]`.
        parts: number of parts.
        seed: of ties.
    """
    nodes = len(offsets) - 1
    generator = torch.Generator().manual_seed(seed)
    capacity = max(-(-nodes // parts), int(SLACK * nodes / parts))
    part = torch.full((nodes,), parts, dtype=torch.int32)  # none yet
    sizes = torch.zeros(parts + 1, dtype=torch.int64)
    seen = torch.eye(parts + 1)[:, :parts].contiguous()
    step = max(1, nodes // BLOCKS)
    for start in list(range(0, nodes, step)) * PASSES:
        block = slice(start, start + step)
        sizes -= torch.bincount(part[block], minlength=parts + 1)
        begin = offsets[start : start + step + 1]
        near = part[neighbours[begin[0] : begin[-1]]]
        counts = neighbour_sums(seen, near, (begin - begin[0]).int())
        counts += 1e-3 * torch.rand(counts.shape, generator=generator)
        room = (capacity - sizes[:parts]).clamp(min=0)
        part[block] = _within(room, (counts * (room / capacity)).argmax(1), generator).int()
        sizes += torch.bincount(part[block], minlength=parts + 1)
    return part.long()


def _within(room: Tensor, chosen: Tensor, generator: torch.Generator) -> Tensor:
    """Chosen parts `[block]`, others for nodes beyond the room of a part."""
    order = chosen.argsort(stable=True)
    first = torch.searchsorted(chosen[order], torch.arange(len(room)))
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order)) - first[chosen[order]]
    beyond = (place >= room[chosen]).nonzero().squeeze(-1)
    if not len(beyond):
        return chosen
    taken = torch.bincount(chosen, minlength=len(room)).minimum(room)
    free = torch.arange(len(room)).repeat_interleave(room - taken)
    drawn = torch.randperm(len(free), generator=generator)[: len(beyond)]
    return chosen.index_put((beyond,), free[drawn])
