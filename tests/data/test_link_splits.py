"""Edges held out: their sizes, what may be known of them, the pairs that stand against them."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.stats import chisquare

from composing import composed
from curvlab.data.loaders.datamodule import GraphDataModule
from curvlab.data.splits.links import HGCN_LOOPS, HGCNLinkSplit, LinkSplit, NonEdges
from curvlab.data.transforms.features import DegreeFeatures, HopFeatures
from curvlab.data.transforms.graph import (
    LaplacianEigenvectors,
    NormalisedAdjacency,
    SparseAdjacency,
)
from curvlab.data.transforms.relations import NeighbourRelations
from curvlab.errors import UsageError
from curvlab.run.parts import build_data
from graphs import Given, graph_of

PARTS = ("train_edges", "val_edges", "test_edges")
APART = ("val_non_edges", "test_non_edges")


def random_graph():
    data = graph_of(nx.gnm_random_graph(60, 200, seed=0))
    data.x, data.y = torch.linspace(0.1, 1, 180).reshape(60, 3), torch.arange(60) % 2
    return data


def pairs_of(edges):
    return {(int(i), int(j)) for i, j in edges.T}


def split(data, seed=0, val=0.05, test=0.10, draw=None):
    return LinkSplit(val, test, draw)(data, seed)


@pytest.mark.parametrize(
    "network", [nx.path_graph(5), nx.star_graph(4), nx.gnm_random_graph(9, 20)]
)
def test_numbers_of_non_edges_are_all_pairs_without_an_edge_each_once(network):
    edges = torch.tensor(list(network.edges)).T
    apart = NonEdges(edges, network.number_of_nodes())
    found = [tuple(pair) for pair in apart.pairs(torch.arange(apart.count)).T.tolist()]
    expected = [
        pair for pair in combinations(range(len(network)), 2) if not network.has_edge(*pair)
    ]
    assert found == expected
    assert NonEdges(edges.flip(0).flip(1), len(network)).count == len(expected)


def test_non_edges_are_drawn_uniformly():
    network = nx.gnm_random_graph(12, 30, seed=1)
    apart = NonEdges(torch.tensor(list(network.edges)).T, 12)
    drawn = apart.sample(20_000)
    numbers = drawn[0] * 12 + drawn[1]
    counts = numbers.unique(return_counts=True)[1]
    assert len(counts) == apart.count == 36
    assert chisquare(counts.numpy()).pvalue > 1e-3


def test_a_large_graph_has_non_edges_beyond_32_bits():
    apart = NonEdges(torch.tensor([[0, 5], [1, 7]]), 10**6)
    assert apart.count == 10**6 * (10**6 - 1) // 2 - 2
    last = apart.pairs(torch.tensor([0, apart.count - 1])).T.tolist()
    assert last == [[0, 2], [10**6 - 2, 10**6 - 1]]


def test_parts_have_hgcns_sizes_and_share_no_edge():
    data = random_graph()
    parts = split(data)
    assert [parts[name].shape[1] for name in PARTS] == [170, 10, 20]
    sets = [pairs_of(parts[name]) for name in PARTS]
    assert all(i < j for part in sets for i, j in part)
    assert set.union(*sets) == {(i, j) for i, j in pairs_of(data.edge_index) if i < j}
    assert sum(map(len, sets)) == 200
    tree = split(graph_of(nx.random_labeled_tree(2665, seed=0)))
    assert [tree[name].shape[1] for name in PARTS] == [2265, 133, 266]


TRANSFORMS = [
    LaplacianEigenvectors(4),
    NormalisedAdjacency(self_loops=True),
    SparseAdjacency(self_loops=False),
    NeighbourRelations(2),
    DegreeFeatures(max_degree=5, row_normalise=False),
    HopFeatures(2),
]


def test_nothing_that_is_made_of_the_graph_knows_the_held_out_edges(tmp_path):
    """Two graphs that differ in their held-out edges alone are the same to every transform."""
    whole = random_graph()
    parts = split(whole)
    train_only = whole.clone()
    train_only.edge_index = parts.edge_index

    def prepared(data, splitter):
        module = GraphDataModule(Given(data), TRANSFORMS, 1, 0, tmp_path, splitter)
        return module.graph

    found = prepared(whole, LinkSplit(0.05, 0.10, None))
    expected = prepared(train_only, None)
    # The eigenvectors of the whole graph, say, are others.
    assert not torch.allclose(prepared(whole, None).eigenvectors, expected.eigenvectors)
    held_out = {name for name in (*PARTS, *APART) if name in found}
    assert len(held_out) == 5
    names = set(found.keys()) - held_out
    assert names == set(expected.keys())
    for name in names - {"num_nodes"}:
        one, other = (
            value.to_dense() if value.layout != torch.strided else value
            for value in (found[name], expected[name])
        )
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_the_split_follows_the_runs_seed_unless_it_is_fixed():
    data = random_graph()
    free = [split(data, seed).test_edges for seed in (0, 0, 1)]
    assert torch.equal(free[0], free[1])
    assert not torch.equal(free[0], free[2])
    fixed = [split(data, seed, draw=1234).test_edges for seed in (0, 1)]
    assert torch.equal(*fixed)


def dense_split(network, seed, val=0.05, test=0.10):
    """HGCN's division as its code states it: entries of dense triangles, shuffled row by row."""
    generator = np.random.RandomState(seed)
    adjacency = nx.to_numpy_array(network, nodelist=range(len(network)))
    found = []
    for matrix in (adjacency, 1 - adjacency):
        pairs = np.stack(sp.triu(matrix).nonzero(), axis=1)
        generator.shuffle(pairs)
        found.append(pairs)
    edges, others = found
    ends = np.cumsum([int(val * len(edges)), int(test * len(edges))])
    cut = [*np.split(edges, ends), *np.split(others, ends)[:2]]
    return dict(zip(("val_edges", "test_edges", "train_edges", *APART), cut, strict=True))


@pytest.mark.parametrize("seed", [1234, 7])
@pytest.mark.parametrize("loops", [(), (3, 11)])
def test_hgcns_split_pair_by_pair(seed, loops, monkeypatch):
    network = nx.gnm_random_graph(40, 180, seed=2)
    data = graph_of(network)
    network.add_edges_from((node, node) for node in loops)
    monkeypatch.setitem(HGCN_LOOPS, "toy", loops)
    parts = HGCNLinkSplit(dataset="toy__lp", draw=seed)(data, 0)
    for name, expected in dense_split(network, seed).items():
        if name == "train_edges":
            expected = expected[expected[:, 0] != expected[:, 1]]
        assert parts[name].T.tolist() == expected.tolist()
    train = pairs_of(parts.train_edges)
    assert pairs_of(parts.edge_index) == train | {(j, i) for i, j in train}


@pytest.mark.parametrize(
    ("name", "edge", "pair", "own"),
    [
        ("disease_lp", [351, 2162], [1493, 2404], [1, 0]),
        ("airport__lp", [1749, 2150], [525, 2771], [2, 1]),
        ("cora__lp", [173, 687], [1397, 2091], [0, 0]),
    ],
)
def test_links_of_the_papers_are_hgcns_own(name, edge, pair, own, mirror, tmp_path):
    """The last test edge and pair, and how many pairs are of a node with itself: by its code."""
    places = (f"paths.data_dir={tmp_path}", f"paths.mirror={mirror}")
    graph = build_data(composed("model=mlp", f"dataset={name}", *places)).graph
    assert graph.test_edges.T[-1].tolist() == edge
    assert graph.test_non_edges.T[-1].tolist() == pair
    assert [int((graph[part][0] == graph[part][1]).sum()) for part in APART] == own


@pytest.mark.parametrize(
    ("options", "network", "said"),
    [
        ({"val": 0.5, "test": 0.5}, nx.path_graph(9), "their sum must be below 1"),
        ({}, nx.path_graph(9), "leave a part of the 8 edges empty"),
        ({"val": 0.3, "test": 0.3}, nx.complete_graph(5), "has 0 pairs"),
        (
            {"val": 0.3, "test": 0.3},
            nx.complement(nx.path_graph(7)),
            "has 6 pairs of nodes without an edge, but 8 are needed",
        ),
    ],
)
def test_what_cannot_be_split_is_refused_in_a_sentence(options, network, said):
    with pytest.raises(UsageError, match=said):
        split(graph_of(network), **options)
