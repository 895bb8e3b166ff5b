"""Shortest paths between all nodes, against networkx."""

import networkx as nx
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import from_networkx

from curvlab.data.transforms import shortest_paths
from curvlab.data.transforms.shortest_paths import ShortestPaths
from curvlab.errors import UsageError


@pytest.mark.parametrize("rows", [7, 1_024])
@pytest.mark.parametrize("directed", [False, True])
def test_lengths_are_those_of_networkx(directed, rows, monkeypatch):
    monkeypatch.setattr(shortest_paths, "ROWS", rows)
    graph = nx.gnp_random_graph(40, 0.04, seed=1, directed=directed)
    data = from_networkx(graph)
    data.edge_index = torch.cat([data.edge_index, data.edge_index[:, :5]], 1)  # some twice
    hops = ShortestPaths(4)(data).hops
    assert hops.dtype == torch.uint8
    expected = torch.full((40, 40), 5)
    for source, lengths in nx.all_pairs_shortest_path_length(graph):
        for target, length in lengths.items():
            expected[source, target] = min(length, 4)
    assert {5, 4} <= set(expected.flatten().tolist())
    assert torch.equal(hops.long(), expected)


def test_a_graph_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(shortest_paths, "MAX_NODES", 3)
    data = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=4)
    with pytest.raises(UsageError, match=r"4 nodes has .* choose a model"):
        ShortestPaths(4)(data)
