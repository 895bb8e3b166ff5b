"""Scores without learning, against closed forms and simulation."""

from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score
from torch_geometric.data import Data

from curvlab.study.floor import feature_warnings, floor_of, random_embeddings


def data_of(**tensors):
    y = tensors.get("y")
    graph = Data(**{"num_nodes": 0 if y is None else len(y)} | tensors)
    many = y is not None and y.dim() == 2
    classes = 0 if y is None else y.shape[1] if many else int(y.max()) + 1
    nodes = int(graph.num_nodes)
    return SimpleNamespace(graph=graph, num_nodes=nodes, num_classes=classes, multi_label=many)


def edges_of(graph):
    ends = torch.tensor(list(graph.edges)).T
    return torch.cat([ends, ends.flip(0)], 1)


def masks(nodes, train):
    parts = torch.arange(nodes) < train, torch.arange(nodes) >= train
    return {"train_mask": parts[0], "val_mask": parts[1], "test_mask": parts[1]}


def test_the_most_frequent_training_class_is_scored_on_the_test_nodes():
    y = torch.tensor([2, 2, 0, 1, 2, 1, 1, 1])
    found = floor_of("node_classification", "accuracy", data_of(y=y, **masks(8, 4)), 4)
    assert found.score == 25.0  # of the last four one is of class 2
    assert found.pm == pytest.approx(100 * 1.96 * np.sqrt(0.25 * 0.75 / 4))
    labels = torch.tensor([[1, 0, 1], [1, 0, 0], [1, 1, 0], [0, 1, 1]])
    several = floor_of("node_classification", "f1_micro", data_of(y=labels, **masks(4, 2)), 4)
    assert several.score == pytest.approx(100 * 2 * 1 / (2 + 4))  # one right of two and four


@pytest.mark.parametrize("task", ["link_prediction", "node_classification"])
def test_a_roc_curve_of_noise_is_within_the_floors_noise(task):
    if task == "link_prediction":
        edges = {"test_edges": torch.zeros(2, 30), "test_non_edges": torch.zeros(2, 50)}
        found = floor_of(task, "auc_ap", data_of(num_nodes=9, **edges), 4)
    else:
        y = torch.tensor([0, 1] + [1] * 30 + [0] * 50)
        found = floor_of(task, "roc_auc", data_of(y=y, **masks(82, 2)), 4)
    assert found.score == 50
    drawn = np.random.default_rng(0).random((2000, 80))
    above = drawn[:, :30, None] > drawn[:, None, 30:]  # the area is the share of these pairs
    assert np.mean(np.abs(100 * above.mean((1, 2)) - 50) < found.pm) == pytest.approx(
        0.95, abs=0.02
    )


def test_embeddings_of_noise_are_at_the_floor_and_those_of_the_graph_above_it():
    graph = nx.complete_bipartite_graph(20, 20)
    assert random_embeddings(edges_of(graph), 40, 4).what == "random embeddings"
    tree = nx.full_rary_tree(3, 240)
    found = random_embeddings(edges_of(tree), 240, 16)
    assert found.what.startswith("means over neighbours of random embeddings, which alone have ")
    alone, drawn = float(found.what.split()[-1]), np.random.default_rng(0).normal(size=(240, 16))
    distance = ((drawn[:, None] - drawn) ** 2).sum(-1) + 1e9 * np.eye(240)
    adjacency = nx.to_numpy_array(tree) > 0
    precision = [average_precision_score(*pair) for pair in zip(adjacency, -distance, strict=True)]
    assert alone == pytest.approx(100 * np.mean(precision), abs=1.5)
    assert 10 * alone < found.score < found.limit < 75
    assert (
        floor_of("reconstruction", None, data_of(edge_index=edges_of(tree), num_nodes=240), 16)
        == found
    )
    assert floor_of("filter_regression", None, data_of(num_nodes=3), 16) is None


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (None, []),
        (torch.eye(20), []),
        (torch.ones(20, 5), ["5 columns"]),
        (torch.cat([torch.ones(9, 20), torch.full((9, 1), 4000.0)], 1), ["1 of 21", "4,000"]),
    ],
)
def test_features_that_may_keep_a_score_low_are_said(x, said):
    sentences = " ".join(feature_warnings(Data(x=x, num_nodes=20)))
    assert all(part in sentences for part in said)
    assert bool(sentences) == bool(said)
