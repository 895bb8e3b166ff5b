"""Features, eigenvectors, relations and shortest paths against their definitions."""

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh, subspace_angles
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import from_networkx, to_undirected

from curvlab.data.datasets.synthetic import SyntheticWeb
from curvlab.data.transforms import shortest_paths
from curvlab.data.transforms.eigenvectors import largest_eigenpairs
from curvlab.data.transforms.features import DegreeFeatures, HopFeatures, RowNormalise, StackedHops
from curvlab.data.transforms.graph import (
    IdentityFeatures,
    LaplacianEigenvectors,
    NormalisedAdjacency,
    SparseAdjacency,
    apply_transform,
    normalised_adjacency_matrix,
)
from curvlab.data.transforms.relations import NeighbourRelations
from curvlab.data.transforms.shortest_paths import ShortestPaths
from curvlab.errors import UsageError
from graphs import graph_of, ring, symmetric


def laplacian(data):
    """The definition, written out: degrees clipped at 1, no self-loops."""
    adjacency = np.zeros((data.num_nodes, data.num_nodes))
    adjacency[tuple(data.edge_index.numpy())] = 1
    np.fill_diagonal(adjacency, 0)
    scale = 1 / np.sqrt(np.maximum(adjacency.sum(axis=1), 1))
    return np.eye(data.num_nodes) - scale[:, None] * adjacency * scale[None, :]


def eigenvectors(data, k):
    return LaplacianEigenvectors(k)(data.clone()).eigenvectors.double().numpy()


def assert_smallest_eigenvectors(data, k, tolerance=1e-5):
    vectors = eigenvectors(data, k)
    matrix = laplacian(data)
    expected = eigh(matrix, eigvals_only=True)[:k]
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=tolerance)
    np.testing.assert_allclose(matrix @ vectors, vectors * expected, atol=tolerance)


GRAPHS = {
    "path": nx.path_graph(12),
    "star, one eigenvalue repeated": nx.star_graph(9),
    "complete": nx.complete_graph(6),
    "cycle, eigenvalues in pairs": nx.cycle_graph(10),
    "two components": nx.disjoint_union(nx.path_graph(5), nx.cycle_graph(4)),
    "equal components": nx.disjoint_union_all([nx.path_graph(3)] * 4),
    "isolated nodes": nx.disjoint_union(nx.path_graph(4), nx.empty_graph(3)),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_eigenvectors_of_small_graphs_up_to_all_of_them(name):
    data = graph_of(GRAPHS[name])
    for k in range(1, data.num_nodes + 1):
        assert_smallest_eigenvectors(data, k)


def test_sparse_solver_finds_the_same_space_as_the_dense_one():
    data = SyntheticWeb(900, 0.5, seed=0).load()
    assert_smallest_eigenvectors(data, 16)
    values, reference = eigh(laplacian(data))
    gaps = np.flatnonzero(np.diff(values[:17]) > 1e-4) + 1  # a space ends where a gap follows
    angles = subspace_angles(eigenvectors(data, 16)[:, : gaps[-1]], reference[:, : gaps[-1]])
    assert angles.max() < 1e-3


def test_sparse_solver_on_several_large_components_finds_every_zero():
    one = nx.random_regular_graph(3, 600, seed=0)
    data = graph_of(nx.disjoint_union_all([one, one, nx.path_graph(3), nx.empty_graph(2)]))
    assert_smallest_eigenvectors(data, 5)


@pytest.mark.parametrize("nodes", [40, 700])
def test_same_result_twice_and_largest_entry_positive(nodes):
    data = SyntheticWeb(nodes, 0.3, seed=1).load()
    first = eigenvectors(data, 8)
    assert np.array_equal(first, eigenvectors(data, 8))
    leading = np.take_along_axis(first, np.abs(first).argmax(axis=0)[None], axis=0)
    assert (leading > 0).all()


def test_directed_edges_and_self_loops_are_read_as_the_simple_undirected_graph():
    directed = Data(edge_index=torch.tensor([[0, 1, 2, 2], [1, 2, 2, 1]]), num_nodes=3)
    undirected = graph_of(nx.path_graph(3))
    np.testing.assert_allclose(eigenvectors(directed, 3), eigenvectors(undirected, 3), atol=1e-6)


def test_eigenvectors_that_a_small_graph_lacks_are_zeros(caplog):
    data = graph_of(nx.path_graph(3))
    found = eigenvectors(data, 5)
    np.testing.assert_array_equal(found, np.pad(eigenvectors(data, 3), ((0, 0), (0, 2))))
    assert "the graph has 3 Laplacian eigenvectors: the other 2 of k=5 columns are 0" in caplog.text


@pytest.mark.parametrize("k", [5, 12, 20])
@pytest.mark.parametrize(
    "network", [nx.balanced_tree(2, 7), nx.grid_2d_graph(15, 15), nx.star_graph(99)]
)
def test_where_eigenvalues_repeat_no_solver_decides_the_basis(network, k):
    """Nor which of them are found: Lanczos iterations miss copies, of the tree already for k=5."""
    data = graph_of(network)
    matrix = normalised_adjacency_matrix(data.edge_index, data.num_nodes)
    (values, vectors), (other_values, other_vectors) = (
        largest_eigenpairs(matrix, k, dense) for dense in (True, False)
    )
    np.testing.assert_allclose(other_values, values, atol=1e-12)
    np.testing.assert_allclose(other_vectors, vectors, atol=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-12)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-12)


def test_eigenvectors_of_a_large_component_have_the_basis_that_no_solver_decides():
    data = graph_of(nx.grid_2d_graph(24, 24))
    matrix = normalised_adjacency_matrix(data.edge_index, data.num_nodes)
    values, vectors = largest_eigenpairs(matrix, 16, dense=True)
    assert (-np.diff(values) < 1e-12).any()
    np.testing.assert_allclose(eigenvectors(data, 16), vectors, atol=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 30), st.floats(0, 0.5))
def test_identity_features_are_the_identity_within_the_noise(nodes, noise):
    x = IdentityFeatures(noise)(Data(num_nodes=nodes)).x
    assert x.dtype == torch.float32
    assert (x - torch.eye(nodes)).abs().max() <= noise + 1e-6


def test_features_that_would_not_fit_are_refused_before_memory_is():
    with pytest.raises(UsageError, match=r"10,000,000 nodes .* GB"):
        IdentityFeatures(0.02)(Data(num_nodes=10_000_000))


def test_the_cache_is_hit_across_features_and_missed_across_graphs_and_options(tmp_path):
    data = graph_of(nx.path_graph(6))
    plain = apply_transform(LaplacianEigenvectors(2), data, tmp_path)
    assert "eigenvectors" not in data
    with_features = data.clone()
    with_features.x = torch.rand(6, 2)
    again = apply_transform(LaplacianEigenvectors(2), with_features, tmp_path)
    assert torch.equal(plain.eigenvectors, again.eigenvectors)
    assert torch.equal(again.x, with_features.x)
    assert len(list(tmp_path.iterdir())) == 1
    apply_transform(LaplacianEigenvectors(3), data, tmp_path)
    apply_transform(LaplacianEigenvectors(2), graph_of(nx.cycle_graph(6)), tmp_path)
    assert len(list(tmp_path.iterdir())) == 3


def test_sparse_adjacency_sums_over_the_sources_of_the_edges_into_a_node():
    # A directed graph, so that a transposed matrix would show: 0 -> 1, 0 -> 2, 2 -> 1; 3 alone.
    edges = torch.tensor([[0, 0, 2], [1, 2, 1]])
    data = SparseAdjacency(self_loops=False)(Data(edge_index=edges, num_nodes=4))
    assert data.adj_t.layout == torch.sparse_csr
    assert data.adj_t.dtype == torch.float32
    x = torch.tensor([[1.0], [10.0], [100.0], [1000.0]])
    torch.testing.assert_close(data.adj_t @ x, torch.tensor([[0.0], [101.0], [1.0], [0.0]]))


def test_normalised_adjacency_with_self_loops_is_gcns():
    data = SyntheticWeb(num_nodes=50, cycle_fraction=0.5, seed=0).load()
    data.x = torch.randn(50, 5)
    layer = GCNConv(5, 3)
    matrix = NormalisedAdjacency(True)(data.clone()).normalised_adj
    expected = layer(data.x, data.edge_index)
    torch.testing.assert_close(matrix @ layer.lin(data.x) + layer.bias, expected)
    data.edge_index = torch.cat([data.edge_index, torch.tensor([[3], [3]])], dim=1)
    again = NormalisedAdjacency(True)(data).normalised_adj  # a loop that is there counts once
    torch.testing.assert_close(again.to_dense(), matrix.to_dense())


@pytest.mark.parametrize("orders", [1, 2, 4])
def test_blocks_are_the_normalised_supports_of_powers(orders):
    edges = to_undirected(torch.randint(30, (2, 40)))
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
    assert "relations" not in NeighbourRelations(0)(Data(edge_index=ring(4), num_nodes=4))


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


@pytest.fixture
def graph():
    """Forty nodes and two without neighbours."""
    data = SyntheticWeb(40, 0.5, seed=0).load()
    data.num_nodes = 42
    data.x = torch.randn(42, 5)
    return data


def test_rows_sum_to_one_and_empty_rows_stay_empty():
    data = Data(x=torch.tensor([[1.0, 3.0], [0.0, 0.0], [-2.0, 1.0], [1.0, -1.0]]))
    expected = [[0.25, 0.75], [0.0, 0.0], [2.0, -1.0], [0.0, 0.0]]
    before = data.x.tolist()
    assert RowNormalise(enabled=False)(data).x.tolist() == before
    assert RowNormalise(enabled=True)(data).x.tolist() == expected


def test_missing_features_stay_missing():
    assert RowNormalise(enabled=True)(Data(x=torch.tensor([[torch.nan, 1.0]]))).x.isnan().all()


def test_degrees_are_appended_one_hot_and_clipped():
    # A star of four leaves and one node alone.
    edges = torch.tensor([[0, 0, 0, 0, 1, 2, 3, 4], [1, 2, 3, 4, 0, 0, 0, 0]])
    data = Data(x=2 * torch.ones(6, 2), edge_index=edges, num_nodes=6)
    x = DegreeFeatures(max_degree=3, row_normalise=False)(data).x
    leaf, hub, alone = [2, 2, 0, 1, 0, 0, 1], [2, 2, 0, 0, 0, 1, 1], [2, 2, 1, 0, 0, 0, 1]
    assert x.tolist() == [hub, leaf, leaf, leaf, leaf, alone]
    scaled = DegreeFeatures(max_degree=3, row_normalise=True)(data).x
    assert scaled[:, :2].eq(0.5).all()
    assert torch.equal(scaled[:, 2:], x[:, 2:])


@pytest.mark.parametrize("hops", [1, 3, 10])
def test_hops_are_powers_of_the_normalised_adjacency(hops, graph):
    adjacency = symmetric(graph).double().numpy()
    powers = [np.linalg.matrix_power(adjacency, r) for r in range(hops + 1)]
    blocks = [power @ graph.x.double().numpy() for power in powers]
    last, every = HopFeatures(hops)(graph.clone()).inputs, StackedHops(hops)(graph.clone()).inputs
    assert (last.dtype, every.shape) == (torch.float32, (42, 5 * (hops + 1)))
    np.testing.assert_allclose(last.numpy(), blocks[-1], atol=1e-5)
    np.testing.assert_allclose(every.numpy(), np.concatenate(blocks, axis=1), atol=1e-5)
    assert torch.equal(last[40:], graph.x[40:])  # nodes without neighbours keep theirs
