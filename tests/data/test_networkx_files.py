"""Files that networkx writes read back equal: twelve graphs in six formats."""

import warnings
from collections import Counter

import networkx as nx
import pytest
import torch

from curvlab.data.datasets.networkx_graph import NetworkXGraph
from curvlab.data.datasets.reading import read_graph
from curvlab.errors import UsageError

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


VERTICES = '*Vertices 4\n1 "ann b"\n2 bob\n3 cem\n4 dan\n'
PAJEK = {
    "*Arcs\n1 2 2\n*Edges\n2 3 5\n": {"1>2": 2, "2-3": 5},
    "*Edges\n2 3 5\n*Arcs\n1 2 2\n2 1 7\n": {"1>2": 2, "2>1": 7, "2-3": 5},
    "*Arcslist\n1 2 3 4\n3 2\n": {"1>2": 1, "1>3": 1, "1>4": 1, "3>2": 1},
    "*Arcs\n4 1 3\n*Edgeslist\n1 2 3\n": {"4>1": 3, "1-2": 1, "1-3": 1},
    "*Edgeslist\n1 2 3\n4 1\n": {"1-2": 1, "1-3": 1, "4-1": 1},
    "*Matrix\n0 2 0 0\n0 0 3 0\n0 0 0 0\n1 0 0 0\n": {"1>2": 2, "2>3": 3, "4>1": 1},
    '*Arcs :1 "likes"\n1 2 1\n*Arcs :2 "knows"\n1 2 4\n3 4\n': {"1>2": 5, "3>4": 1},
    '% a note\n*Arcs\n% one\n1 2 2 l "a b"\n*Partition team\n1\n2\n1\n2\n': {"1>2": 2},
}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("text", PAJEK)
def test_all_lists_of_edges_in_a_pajek_file_are_read(tmp_path, text, directed):
    """Arcs go one way, edges both ways."""
    (tmp_path / "g.net").write_text(VERTICES + text)
    directed &= any(">" in edge for edge in PAJEK[text])
    weighted = {*PAJEK[text].values()} != {1}
    data, names = read_graph(tmp_path / "g.net", directed=directed, weighted=weighted)
    assert names.nodes == ("ann b", "bob", "cem", "dan")
    expected = Counter()
    for (one, kind, two), weight in PAJEK[text].items():
        expected[int(one) - 1, int(two) - 1] += weight
        if kind == "-" or not directed:
            expected[int(two) - 1, int(one) - 1] += weight
    forward = data.edge_forward if directed else torch.ones(data.num_edges).bool()
    weights = data.edge_weight if weighted else torch.ones(data.num_edges)
    arcs = map(tuple, data.edge_index.T[forward].tolist())
    assert dict(zip(arcs, weights[forward].tolist(), strict=True)) == dict(expected)


def test_vertices_of_a_pajek_file_may_lack_lines_and_share_labels(tmp_path):
    (tmp_path / "g.net").write_text('*Vertices 4\n1 "ann"\n3 ann 0.1 0.2 0.5\n*Edges\n1 2\n3 4\n')
    source = NetworkXGraph(str(tmp_path / "g.net"))
    data = source.load()
    assert data.vocabulary.nodes == ("1", "2", "3", "4")
    assert data.edge_index.T.tolist() == [[0, 1], [1, 0], [2, 3], [3, 2]]
    assert "vertices are called by their number, since labels are repeated" in source.remarks


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("*Vertices 2\n1 a\n2 b\n*Edges\n1 3\n", "the vertex '3', and .vertices has 1 to 2"),
        ("*Vertices 2\n1 a\n1 b\n*Edges\n1 2\n", "number them from 1 to 2"),
        ("*Vertices 2\n1 a\n2 b\n*Edges\n1\n", "an edge has one vertex, '1'"),
    ],
)
def test_what_is_wrong_with_a_pajek_file_is_one_sentence(tmp_path, text, answer):
    (tmp_path / "g.net").write_text(text)
    with pytest.raises(UsageError, match=answer) as refused:
        read_graph(tmp_path / "g.net")
    assert len(str(refused.value).splitlines()) == 1
