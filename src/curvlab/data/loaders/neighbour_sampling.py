"""Sampled neighbourhoods of some nodes: the subgraphs on which their embeddings are estimated."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.loaders.partition import rows_of_nodes
from curvlab.errors import UsageError


class NeighbourSampler:
    """Draws at most `fan_outs[0]` neighbours of each seed, `fan_outs[1]` of each of those, etc.

    The neighbours of a node, the sources of the edges to it, are drawn uniformly without
    replacement, all where there are not more than asked for. The mean over those drawn is an
    unbiased estimate of the mean over all. A node is drawn from once, at the hop at which it is
    first met. The subgraph has the drawn edges, in their direction, renumbered: the seeds first, in
    their order, then the others by the hop at which they are met. A network of as many layers
    as there are fan-outs sees all that matters to the seeds.

    Draws take time in proportion to the nodes met and the fan-outs, not to the degrees, and come
    from torch's global generator. PyTorch Geometric's `NeighborLoader` does the same with a
    compiled package, which this needs not.

    Args:
        graph: The graph, on the processor, with distinct edges; it is not changed.
        fan_outs: Most neighbours of a node, hop by hop, each at least 1.
        without: Attributes that subgraphs do not get.

    Raises:
        UsageError: A fan-out is not a whole number of at least 1, or there is none.

    Source: GraphSAGE (Hamilton et al. 2017), Algorithm 2; Floyd's draw of subsets (Bentley and
    Floyd 1987) for all nodes of a hop at once.
    """

    def __init__(self, graph: Data, fan_outs: Sequence[int], without: Sequence[str] = ()) -> None:
        check_fan_outs(fan_outs)
        self.fan_outs = tuple(fan_outs)
        nodes = int(graph.num_nodes or 0)
        source, target = graph.edge_index
        self._source = source[target.argsort(stable=True)]
        self._first = F.pad(torch.bincount(target, minlength=nodes).cumsum(0), (1, 0))
        self._number = torch.full((nodes,), -1)
        self._of_nodes = rows_of_nodes(graph, without)
        self._nodes = nodes

    def __call__(self, seeds: Tensor) -> Data:
        """The sampled neighbourhood of distinct nodes `[seeds]`, as a graph with `batch_size`.

        Returns:
            `edge_index [2, drawn edges]`; `nodes [sampled nodes]`, their indices in the graph; the
            rows of all that has a row a node (`x`, `y`); `batch_size`, the number of seeds, which
            are its first nodes.

        Raises:
            UsageError: A seed is named twice.
        """
        hops, edges = [seeds], []
        try:
            met = self._meet(seeds, 0)
            if met != int((self._number[seeds] == torch.arange(len(seeds))).sum()):
                raise UsageError("the nodes to sample neighbours of must be distinct")
            for fan_out in self.fan_outs:
                source, target = self._draw(hops[-1], fan_out)
                new = source[self._number[source] < 0].unique()
                met = self._meet(new, met)
                edges.append(torch.stack([self._number[source], self._number[target]]))
                hops.append(new)
        finally:
            self._number[torch.cat(hops)] = -1
        nodes = torch.cat(hops)
        rows = {name: value.index_select(0, nodes) for name, value in self._of_nodes.items()}
        data = Data(edge_index=torch.cat(edges, dim=1), nodes=nodes, **rows)
        data.num_nodes, data.batch_size = len(nodes), len(seeds)
        return data

    def _meet(self, nodes: Tensor, met: int) -> int:
        """Number nodes from `met` on; returns how many are numbered then."""
        self._number[nodes] = torch.arange(met, met + len(nodes))
        return met + len(nodes)

    def _draw(self, targets: Tensor, fan_out: int) -> tuple[Tensor, Tensor]:
        """Sources and targets `[drawn edges]` of edges to the targets."""
        first = self._first[targets]
        degree = self._first[targets + 1] - first
        many = degree > fan_out
        position, owner = _all_places(first[~many], degree[~many], targets[~many])
        drawn = first[many].unsqueeze(1) + distinct_integers(degree[many], fan_out)
        places = torch.cat([position, drawn.flatten()])
        owners = torch.cat([owner, targets[many].repeat_interleave(fan_out)])
        return self._source[places], owners


def check_fan_outs(fan_outs: Sequence[int]) -> None:
    """Refuse what cannot be numbers of neighbours, hop by hop.

    Raises:
        UsageError: One is not a whole number of at least 1, or there is none.
    """
    whole = all(isinstance(k, int) and not isinstance(k, bool) and k >= 1 for k in fan_outs)
    if not (whole and fan_outs):
        raise UsageError(
            f"fan_outs={list(fan_outs)} must be whole numbers of at least 1, one for each layer"
        )


def distinct_integers(below: Tensor, count: int) -> Tensor:
    """A uniform subset of `count` integers from 0 up to each bound, `[bounds, count]`.

    Floyd: for j = bound - count, ..., bound - 1 draw t from 0 to j; take t, or j where t is taken.

    Args:
        below: bounds `[bounds]`, each at least `count`.
        count: size of the subsets.
    """
    chosen = below.new_full((len(below), count), -1)
    for i in range(count):
        j = below - count + i
        t = (torch.rand(len(below), dtype=torch.float64) * (j + 1)).long()
        taken = (chosen[:, :i] == t.unsqueeze(1)).any(1)
        chosen[:, i] = torch.where(taken, j, t)
    return chosen


def _all_places(first: Tensor, count: Tensor, owners: Tensor) -> tuple[Tensor, Tensor]:
    """The places `first, ..., first + count - 1` of each owner, and whose they are."""
    total = int(count.sum())
    shift = first - (count.cumsum(0) - count)
    places = torch.arange(total) + shift.repeat_interleave(count)
    return places, owners.repeat_interleave(count)
