"""Mini-batches of one graph: random partitions of its nodes, and the subgraphs of their parts."""

import copy
from collections.abc import Collection, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.transforms.graph import GraphTransform
from curvlab.errors import UsageError
from curvlab.layers.sparse_graph import SparseGraph

ALL = slice(None)


class RandomPartition:
    """Random partitions of all nodes, a fresh one in each pass, for the batches of its steps.

    A pass permutes the nodes and cuts the permutation into parts of at most `size` nodes, as few
    as can be shared out evenly: `batches * ceil(nodes / (size * batches))`, whose sizes differ by
    one node at most. A round is a part for each batch of a step, in whichever process. The parts of
    a pass are disjoint and their union is all nodes. The permutation depends on seed and pass
    alone, so that every process makes the same one.

    Args:
        nodes: Number of nodes.
        size: Most nodes of a part, at least 1.
        batches: Number of batches of a step, at least 1.
        seed: Seed of the permutations.

    Raises:
        UsageError: There are fewer nodes than parts.

    Source: the code of Hypformer for large graphs, after SGFormer; both cut off parts of
    exactly `size` nodes and a smaller last one.
    """

    def __init__(self, nodes: int, size: int, batches: int, seed: int) -> None:
        self.nodes = nodes
        self.parts = batches * -(-nodes // (size * batches))
        if self.parts > nodes:
            raise UsageError(
                f"{nodes} nodes cannot be shared out to {batches} batches a step in parts of "
                f"batching.size={size}: use larger parts, fewer processes or a smaller "
                "batching.accumulate."
            )
        self.batches = batches
        self.seed = seed

    def rounds(
        self, number: int, own: slice = ALL, wanted: Tensor | None = None
    ) -> list[list[Tensor]]:
        """The parts of pass `number`, `[rounds][batches]` of node indices in ascending order.

        Args:
            number: Of the pass.
            own: Which of the batches of a step are wanted: those of one process. The others are
                neither sorted nor kept.
            wanted: `[nodes]`, of which every round shall have one in some part; None: any.
        """
        # A spawned sequence is none that a split drew with the same seed.
        sequence = np.random.SeedSequence(self.seed, spawn_key=(number,))
        order = np.random.default_rng(sequence).permutation(self.nodes)
        parts = np.array_split(order, self.parts)
        rounds = [parts[i : i + self.batches] for i in range(0, self.parts, self.batches)]
        if wanted is not None:
            found = wanted.numpy()
            rounds = [parts for parts in rounds if any(found[part].any() for part in parts)]
        return [[torch.from_numpy(np.sort(part)) for part in parts[own]] for parts in rounds]


class InducedSubgraphs:
    """The subgraphs that sets of nodes induce in one graph, looked up in its edges by source.

    The subgraph of `nodes` has the edges between them, renumbered so that node i is `nodes[i]`,
    and row i of everything that has a row a node is that of `nodes[i]`, in any order. What
    is a matrix of nodes by nodes (an adjacency, normalised or not) is made anew from the
    subgraph's own edges, and degrees with it, by the transform that made the graph's. A look-up
    takes time in proportion to the degrees of `nodes`, not to the graph.

    Args:
        graph: The prepared graph, on the processor; it is not changed.
        transforms: All that were applied to it.
        without: Attributes that subgraphs do not get.

    Raises:
        UsageError: The graph has a sparse matrix that none of the transforms makes.
    """

    def __init__(
        self, graph: Data, transforms: Sequence[GraphTransform], without: Sequence[str] = ()
    ) -> None:
        self.nodes, edges = int(graph.num_nodes or 0), graph.num_edges
        source, target = graph.edge_index
        self._by_source: Tensor | None = None
        if bool((source[1:] < source[:-1]).any()):
            self._by_source = source.argsort(stable=True)
            target = target[self._by_source]
        self._target = target
        self._first = F.pad(torch.bincount(source, minlength=self.nodes).cumsum(0), (1, 0))
        self._number = torch.full((self.nodes,), -1)

        tensors = {
            name: value
            for name, value in graph
            if isinstance(value, Tensor) and name not in ("edge_index", *without)
        }
        dense = {name for t in transforms if t.of_pairs for name in t.writes}
        sparse = {name for name, value in tensors.items() if value.layout != torch.strided}
        matrices = sparse | dense.intersection(tensors)
        self._transforms = [t for t in transforms if matrices.intersection(t.writes)]
        unknown = matrices.difference(*(t.writes for t in self._transforms))
        if unknown:
            raise UsageError(
                f"mini-batches cannot make {', '.join(sorted(unknown))} anew for a subgraph: let a "
                "transform of the model make it from the edges, or use batching=full."
            )
        self._of_nodes = rows_of_nodes(graph, (*without, *matrices))
        self._of_edges = {
            n: v for n, v in tensors.items() if n not in matrices and _of_edges(n, v, edges)
        }
        self._others = copy.copy(graph)
        SparseGraph.forget(self._others)
        for name in ("edge_index", *without, *matrices, *self._of_edges, *self._of_nodes):
            if name in self._others:
                del self._others[name]

    def __call__(self, nodes: Tensor) -> Data:
        """The subgraph of distinct nodes, indices `[batch]` in any order.

        Raises:
            UsageError: A node is named twice.
        """
        numbers = torch.arange(len(nodes))
        self._number[nodes] = numbers
        twice = not torch.equal(self._number.index_select(0, nodes), numbers)
        first = self._first.index_select(0, nodes)
        degrees = self._first.index_select(0, nodes + 1) - first
        # Positions first[i] ... last[i] - 1 of the edge list, one node after the other.
        skipped = first - (degrees.cumsum(0) - degrees)
        position = torch.arange(int(degrees.sum())) + skipped.repeat_interleave(degrees)
        target = self._number.index_select(0, self._target.index_select(0, position))
        self._number[nodes] = -1
        if twice:
            raise UsageError("the nodes of a subgraph must be distinct.")
        inside = target >= 0
        source = numbers.repeat_interleave(degrees)[inside]

        data = copy.copy(self._others)
        data.num_nodes = len(nodes)
        data.edge_index = torch.stack([source, target[inside]])
        for name, value in self._of_nodes.items():
            data[name] = value.index_select(0, nodes)
        if self._of_edges:
            position = position[inside]
            edges = position if self._by_source is None else self._by_source[position]
            for name, value in self._of_edges.items():
                data[name] = value.index_select(0, edges)
        for transform in self._transforms:
            data = transform(data)
        return data


def rows_of_nodes(graph: Data, without: Collection[str] = ()) -> dict[str, Tensor]:
    """The dense tensors of a graph that have a row a node, by name.

    Args:
        graph: any.
        without: names that are left out.
    """
    return {
        name: value
        for name, value in graph
        if isinstance(value, Tensor)
        and value.layout == torch.strided
        and value.dim() > 0
        and len(value) == graph.num_nodes
        and name not in ("edge_index", *without)
        and not _of_edges(name, value, graph.num_edges)
    }


def _of_edges(name: str, value: Tensor, edges: int) -> bool:
    """Whether a tensor has a row an edge, as its name says too."""
    return name.startswith("edge_") and value.dim() > 0 and len(value) == edges
