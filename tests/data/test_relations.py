"""Relations of neighbours against dense powers."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from curvlab.data.transforms.relations import NeighbourRelations


def ring(nodes, alone=0):
    ids = torch.arange(nodes)
    edges = to_undirected(torch.stack([ids, (ids + 1) % nodes]))
    return Data(edge_index=edges, num_nodes=nodes + alone)


@pytest.mark.parametrize("orders", [1, 2, 4])
def test_blocks_are_the_normalised_supports_of_powers(orders):
    generator = torch.Generator().manual_seed(0)
    edges = to_undirected(torch.randint(30, (2, 40), generator=generator))
    data = Data(edge_index=edges, num_nodes=33)
    adjacency = np.eye(33)
    adjacency[tuple(edges.numpy())] = 1
    found = NeighbourRelations(orders)(data).relations
    assert (found.layout, found.dtype) == (torch.sparse_csr, torch.float32)
    blocks = found.to_dense().view(orders, 33, 33)
    for r, block in enumerate(blocks, start=1):
        support = np.linalg.matrix_power(adjacency, r) > 0
        scale = support.sum(1) ** -0.5
        np.testing.assert_allclose(block, scale[:, None] * support * scale, rtol=1e-6)


def test_directions_and_self_loops_do_not_matter():
    edges = torch.tensor([[0, 1, 2, 2], [1, 2, 2, 3]])
    one_way = NeighbourRelations(2)(Data(edge_index=edges, num_nodes=4)).relations
    both = NeighbourRelations(2)(Data(edge_index=to_undirected(edges), num_nodes=4)).relations
    assert torch.equal(one_way.to_dense(), both.to_dense())


def test_no_orders_add_nothing():
    assert "relations" not in NeighbourRelations(0)(ring(4))
