"""Files that networkx writes read back equal: twelve graphs in six formats."""

import warnings
from collections import Counter

import networkx as nx
import pytest
import torch

from curvlab.data.datasets.reading import read_graph

WRITERS = {
    "edgelist": nx.write_edgelist,
    "adjlist": nx.write_adjlist,
    "gml": nx.write_gml,
    "graphml": nx.write_graphml,
    "gexf": nx.write_gexf,
    "net": nx.write_pajek,
}
WITH_ATTRIBUTES = ("gml", "graphml", "gexf", "net")


def weighted(graph, weights):
    for edge, weight in zip(graph.edges, weights, strict=True):
        graph.edges[edge]["weight"] = weight
    return graph


def people():
    graph = nx.path_graph(8)
    for node in graph:
        graph.nodes[node].update(age=1.5 * node, size=node, team="ab"[node % 2], old=node > 3)
    del graph.nodes[3]["age"]
    return graph


def flights():
    """Edges with attributes that are called as columns are."""
    graph = nx.gnm_random_graph(12, 20, seed=1)
    for a, b, facts in graph.edges(data=True):
        facts.update(label=f"{a}-{b}", kind="x y", since=2000 + a, weight=a + b + 0.5)
    return graph


NAMES = ("Zoë", "O'Neil", "red,blue", "a;b", "x & y", "#tag", "tab|bar")
GRAPHS = {
    "karate": nx.karate_club_graph(),
    "blanks": nx.Graph(nx.davis_southern_women_graph().edges),
    "weights": nx.les_miserables_graph(),
    "directed": nx.gn_graph(20, seed=0),
    "arcs": weighted(
        nx.DiGraph((f"n{i}", f"n{(7 * i + 3) % 11}") for i in range(11)), range(1, 12)
    ),
    "multigraph": weighted(nx.MultiGraph([(0, 1), (0, 1), (1, 2), (2, 0)]), [1.5, 2.0, 3.0, 4.0]),
    "multidigraph": nx.MultiDiGraph(["ab", "ab", "ba", "bc", "cd"]),
    "loops": nx.Graph([*nx.path_graph(6).edges, (2, 2), (17, 17)]),
    "signs": nx.cycle_graph(NAMES, create_using=nx.Graph),
    "people": people(),
    "zeros": nx.Graph([("01", "1"), ("1", "1e5"), ("1e5", "100000"), ("007", "01")]),
    "flights": flights(),
}


def edges_of(graph, with_weights):
    """Weights, or 1, by the edges' ends; those of repeated edges are added, loops left out."""
    found = Counter()
    for a, b, weight in graph.edges(data="weight", default=1):
        ends = (str(a), str(b)) if graph.is_directed() else tuple(sorted((str(a), str(b))))
        found[ends] += weight if with_weights else 0
    return {ends: weight for ends, weight in found.items() if ends[0] != ends[1]}


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("name", GRAPHS)
def test_a_file_of_networkx_reads_back_equal(tmp_path, name, ending):
    graph, path = GRAPHS[name], tmp_path / f"graph.{ending}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pajek leaves out attributes that are no texts
        WRITERS[ending](graph, path)
    weights = ending != "adjlist" and nx.is_weighted(graph)
    data, names = read_graph(path, directed=graph.is_directed(), weighted=weights)
    assert {*names.nodes} == {str(node) for node in graph}
    arcs = data.edge_index.T[data.edge_forward if graph.is_directed() else ...]
    values = data.edge_weight[data.edge_weight > 0] if weights else torch.zeros(len(arcs))
    found = {}
    for (a, b), weight in zip(arcs.tolist(), values.tolist(), strict=True):
        ends = names.nodes[a], names.nodes[b]
        found[ends if graph.is_directed() else tuple(sorted(ends))] = weight
    assert found == pytest.approx(edges_of(graph, weights))


@pytest.mark.parametrize("ending", WITH_ATTRIBUTES)
def test_attributes_of_nodes_read_back(tmp_path, ending):
    graph, path = people(), tmp_path / f"graph.{ending}"
    if ending == "net":  # which has texts alone
        for node, facts in graph.nodes(data=True):
            graph.nodes[node].update({key: str(value) for key, value in facts.items()})
    WRITERS[ending](graph, path)
    data, names = read_graph(path, label="team")
    assert [names.classes[y] for y in data.y] == [graph.nodes[int(n)]["team"] for n in names.nodes]
    for column in ("size", "old"):
        expected = [float(node) if column == "size" else float(node > 3) for node in range(8)]
        assert data.x[:, names.features.index(column)].tolist() == expected
    mean = sum(1.5 * node for node in range(8) if node != 3) / 7
    ages = [mean if node == 3 else 1.5 * node for node in range(8)]
    assert data.x[:, names.features.index("age")].tolist() == pytest.approx(ages)
