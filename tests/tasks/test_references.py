"""Reference points: by definition, by scikit-learn, and by the models that they are."""

from itertools import combinations
from math import log

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score
from torch_geometric.data import Data
from torch_geometric.utils import from_networkx, to_undirected

from curvlab.data.splits.links import LinkSplit
from curvlab.tasks.labels import make_labels
from curvlab.tasks.link_prediction import link_scores
from curvlab.tasks.references import degree_product, link_references, node_references


def accuracy(graph, classes):
    labels = make_labels(classes, multi_label=False)

    def score(probabilities):
        test = graph.test_mask
        return float(labels.score("accuracy", probabilities[test], graph.y[test]))

    return score


def cliques():
    """Three cliques of 5, 5 and 10 nodes, a class each; two nodes of each are trained on."""
    network = nx.disjoint_union_all([nx.complete_graph(n) for n in (5, 5, 10)])
    graph = from_networkx(network)
    graph.y = torch.tensor([0] * 5 + [1] * 5 + [2] * 10)
    graph.train_mask = torch.zeros(20, dtype=torch.bool)
    graph.train_mask[[0, 1, 5, 6, 10, 11, 12]] = True
    graph.test_mask = ~graph.train_mask
    return graph


def test_a_class_of_its_own_for_each_component_is_found_by_its_neighbours():
    graph = cliques()
    found = node_references(graph, 3, exclusive=True, score=accuracy(graph, 3))
    assert found["neighbours' vote"] == 100
    assert found["majority"] == pytest.approx(100 * 7 / 13)  # the third class, 7 of 13 test nodes
    assert "linear model" not in found  # there are no features


def test_a_linear_model_reads_the_features_of_training_nodes_alone():
    graph = cliques()
    graph.x = torch.nn.functional.one_hot(graph.y).double() * 1e6
    graph.edge_index = torch.tensor([[0], [19]])
    found = node_references(graph, 3, exclusive=True, score=accuracy(graph, 3))
    assert found["linear model"] == 100
    graph.y[graph.test_mask] = -1  # of no use in training
    before = node_references(graph, 3, True, lambda p: float(p[:, 0].sum()))
    graph.y[graph.test_mask] = 2
    assert node_references(graph, 3, True, lambda p: float(p[:, 0].sum())) == before


def test_a_node_that_no_label_reaches_has_the_majority_class():
    graph = cliques()
    graph.train_mask[:10] = False
    graph.test_mask = torch.arange(20) == 0
    found = node_references(graph, 3, exclusive=True, score=lambda p: int(p[0].argmax()))
    assert found["neighbours' vote"] == 2


def test_several_labels_are_voted_for_each():
    graph = cliques()
    graph.y = torch.nn.functional.one_hot(graph.y).float()
    labels = make_labels(3, multi_label=True)
    test = graph.test_mask
    found = node_references(
        graph, 3, False, lambda p: float(labels.score("roc_auc", p[test], graph.y[test]))
    )
    assert found == {"majority": 50, "neighbours' vote": 100}


def test_link_scores_are_those_of_the_definitions():
    network = nx.gnm_random_graph(40, 160, seed=0)
    graph = LinkSplit(val=0.1, test=0.2)(from_networkx(network), seed=0)
    train = {node: set() for node in network}
    for a, b in graph.edge_index.T.tolist():
        train[a].add(b)
    held_out = torch.cat([graph.test_edges, graph.test_non_edges], dim=1).T.tolist()
    common = [train[a] & train[b] for a, b in held_out]
    truth = [1] * graph.test_edges.shape[1] + [0] * graph.test_non_edges.shape[1]
    found = link_references(graph, lambda *pair: float(link_scores(*pair)["roc_auc"]))
    weights = [sum(1 / log(len(train[c])) for c in nodes) for nodes in common]
    assert found == pytest.approx(
        {
            "common neighbours": 100 * roc_auc_score(truth, [len(nodes) for nodes in common]),
            "Adamic-Adar": 100 * roc_auc_score(truth, weights),
        }
    )


def test_the_degree_product_ranks_by_degree():
    """On a threshold graph all degrees but two differ, and those two have the same neighbours."""
    nodes = 9
    edges = [(i, j) for i, j in combinations(range(nodes), 2) if i + j >= nodes]
    graph = Data(edge_index=to_undirected(torch.tensor(edges).T), num_nodes=nodes)
    degrees = np.bincount(graph.edge_index[0].numpy(), minlength=nodes)
    jitter = degrees + 1e-3 * np.arange(nodes)  # breaks the one tie, which changes no order
    precisions = []
    for node in range(nodes):
        others = np.arange(nodes) != node
        near = np.isin(np.arange(nodes), graph.edge_index[1, graph.edge_index[0] == node])
        if near.any():
            precisions.append(average_precision_score(near[others], jitter[others]))
    assert float(degree_product(graph)) == pytest.approx(np.mean(precisions), rel=1e-5)
