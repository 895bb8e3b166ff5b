"""Subgraphs of one graph: those that sets of nodes induce, and sampled neighbourhoods."""

import copy
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader.utils import filter_data

from curvlab.data.transforms.graph import GraphTransform
from curvlab.errors import UsageError
from curvlab.graph.sparse_graph import SparseGraph


class Subgraphs:
    """Subgraphs of one graph on CPU, in time proportional to the degrees of their nodes.

    Row i of everything that has a row per node is the i-th of its nodes. Matrices of nodes by nodes
    are rebuilt from the subgraph's own edges. Subgraphs lack the attributes `without`.
    """

    def __init__(
        self, graph: Data, transforms: Sequence[GraphTransform] = (), without: Sequence[str] = ()
    ) -> None:
        tensors = {name: value for name, value in graph if isinstance(value, Tensor)}
        dense = set[str]()
        for transform in transforms:
            if transform.of_pairs:
                dense.update(transform.writes)
        sparse = {name for name, value in tensors.items() if value.layout != torch.strided}
        matrices = sparse | dense.intersection(tensors)
        self._transforms = [t for t in transforms if matrices.intersection(t.writes)]
        unknown = matrices.difference(*(t.writes for t in self._transforms))
        if unknown:
            raise UsageError(
                f"mini-batches cannot rebuild {', '.join(sorted(unknown))} for a subgraph: let a "
                "transform of the model make it from the edges, or use batching=full."
            )
        self._graph = copy.copy(graph)
        SparseGraph.forget(self._graph)
        for name in matrices.union(without).intersection(graph.keys()):
            del self._graph[name]
        self._nodes = int(graph.num_nodes or 0)
        self._number = torch.full((self._nodes,), -1)
        self._lookups: dict[int, tuple[Tensor, Tensor, Tensor]] = {}

    def induced_edges(self, nodes: Tensor) -> Data:
        """The edges between distinct nodes `[batch]`, in the order of the graph's."""
        number, first, targets = self._lookup(0)
        self._number[nodes] = torch.arange(len(nodes))
        places, owner = _all_places(first[nodes], first[nodes + 1] - first[nodes])
        target = self._number[targets[places]]
        self._number[nodes] = -1
        inside = target >= 0
        return self._select(nodes, owner[inside], target[inside], number[places[inside]])

    def sample(self, seeds: Tensor, fan_outs: Sequence[int]) -> Data:
        """Draw at most `fan_outs[0]` neighbours of each seed, `fan_outs[1]` of each of those, etc.

        The neighbours of a node, the sources of the edges to it, are drawn uniformly without
        replacement from torch's global generator, once, at the hop at which it is first met
        (GraphSAGE, Hamilton et al. 2017; PyTorch Geometric's `NeighborLoader` needs a compiled
        package for this).

        Returns:
            The drawn edges between the seeds, in their order, and then the other nodes by hop;
            `nodes`, their indices in the graph, and `batch_size`, the number of seeds.

        Source: GraphSAGE (Hamilton et al. 2017), Algorithm 2.
        """
        number, first, sources = self._lookup(1)
        hops = [seeds]
        edge_places = []
        owners = []
        total = len(seeds)
        self._number[seeds] = torch.arange(total)
        for fan_out in fan_outs:
            targets = hops[-1]
            degree = first[targets + 1] - first[targets]
            is_large = degree > fan_out
            places, owner = _all_places(first[targets[~is_large]], degree[~is_large])
            subsets = first[targets[is_large]].unsqueeze(1) + distinct_integers(
                degree[is_large], fan_out
            )
            edge_places.append(torch.cat([places, subsets.flatten()]))
            repeated = targets[is_large].repeat_interleave(fan_out)
            owners.append(torch.cat([targets[~is_large][owner], repeated]))
            source = sources[edge_places[-1]]
            hops.append(source[self._number[source] < 0].unique())
            first_new = total
            total += len(hops[-1])
            self._number[hops[-1]] = torch.arange(first_new, total)
        nodes = torch.cat(hops)
        places = torch.cat(edge_places)
        source = self._number[sources[places]]
        target = self._number[torch.cat(owners)]
        self._number[nodes] = -1
        data = self._select(nodes, source, target, number[places])
        data.nodes = nodes
        data.batch_size = len(seeds)
        return data

    def _lookup(self, end: int) -> tuple[Tensor, Tensor, Tensor]:
        """The edges by their source (0) or target (1).

        Returns:
            Numbers of the edges, the place at which each node's begin, and their other ends.
        """
        if end not in self._lookups:
            ends = self._graph.edge_index
            order = ends[end].argsort(stable=True)
            counts = torch.bincount(ends[end], minlength=self._nodes)
            first = F.pad(counts.cumsum(0), (1, 0))
            self._lookups[end] = (order, first, ends[1 - end][order])
        return self._lookups[end]

    def _select(self, nodes: Tensor, source: Tensor, target: Tensor, edges: Tensor) -> Data:
        """Take rows of nodes and edges, and rebuild the matrices of these edges."""
        data = filter_data(self._graph, nodes, source, target, edges)
        data.num_nodes = len(nodes)
        for transform in self._transforms:
            data = transform(data)
        return data


def distinct_integers(below: Tensor, count: int) -> Tensor:
    """A uniform subset of `count` integers from 0 up to each bound, `[bounds, count]`.

    For j = bound - count, ..., bound - 1 draw t from 0 to j; take t, or j where t is taken (Bentley
    and Floyd 1987).
    """
    integers = below.new_full((len(below), count), -1)
    for i in range(count):
        j = below - count + i
        t = (torch.rand(len(below), dtype=torch.float64) * (j + 1)).long()
        is_repeated = (integers[:, :i] == t.unsqueeze(1)).any(1)
        integers[:, i] = torch.where(is_repeated, j, t)
    return integers


def _all_places(first: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """The places `first, ..., first + count - 1` of each owner, and the owners' positions."""
    skipped = first - (count.cumsum(0) - count)
    owner = torch.arange(len(count)).repeat_interleave(count)
    return torch.arange(len(owner)) + skipped[owner], owner
