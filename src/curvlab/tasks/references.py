"""References of a score: scores of simple methods on the same split, metric and nodes.

These methods train no network. Graphs that would take longer than a few seconds have no references.
"""

import warnings
from collections.abc import Callable

import networkx as nx
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn.models import LabelPropagation
from torch_geometric.utils import degree

from curvlab.data.loaders.datamodule import GraphDataModule, load_source
from curvlab.metrics.average_precision import mean_average_precision

MOST_NODES = 200_000
MOST_EDGES = 2_000_000
MOST_FEATURES = 50_000_000  # entries of the training nodes' features
MOST_PAIR_NODES = 6_000  # nodes of a graph whose pairs are all ranked
MOST_LINKS = 200_000
MOST_SCORES = 700_000_000  # queries times entities of a knowledge graph


class TooLargeError(ValueError):
    """A graph is too large for references that take a few seconds."""


def check_size(data: GraphDataModule, nodes: int = MOST_NODES, edges: int = MOST_EDGES) -> None:
    """Refuse a graph with more nodes or edges, counted in both directions."""
    if data.num_nodes > nodes or data.graph.num_edges > edges:
        raise TooLargeError(
            f"{data.num_nodes:,} nodes and {data.graph.num_edges:,} edges are too many for seconds"
        )


def plain_graph(data: GraphDataModule) -> Data:
    """The graph of the source with its split, without the transforms of models."""
    graph = load_source(data.source)
    return graph if data.split is None else data.split(graph, data.seed)


def node_references(
    graph: Data, classes: int, exclusive: bool, score: Callable[[Tensor], float]
) -> dict[str, float]:
    """Scores of the majority class, the neighbours' vote and a linear model of the features.

    The vote is label propagation (Zhu and Ghahramani 2002) with `alpha = 0.9` and 50 steps; a node
    that no training label reaches has the majority class.

    Args:
        graph: graph with `train_mask`, and `y [nodes]` of classes or `[nodes, classes]` of labels.
        classes: number of classes or labels.
        exclusive: whether each node has one class.
        score: metric of probabilities `[nodes, classes]`.
    """
    nodes = int(graph.num_nodes or 0)
    train = graph.train_mask
    y = graph.y.clamp(min=0)  # a node without a label has -1
    targets = y
    if exclusive:
        targets = F.one_hot(y.long(), classes)
    targets = targets.float()
    share = targets[train].mean(0).expand(nodes, -1)
    propagation = LabelPropagation(num_layers=50, alpha=0.9)
    votes = propagation(targets, graph.edge_index, mask=train)
    if exclusive:
        votes = votes + 1e-6 * share
        votes = votes / votes.sum(1, keepdim=True)
    scores = {"majority": score(share), "neighbours' vote": score(votes)}
    x = graph.get("x")
    if x is None or not exclusive:
        return scores
    if int(train.sum()) * x.shape[1] <= MOST_FEATURES:
        scores["linear model"] = score(_linear(x, y, train, classes))
    return scores


def _linear(x: Tensor, y: Tensor, train: Tensor, classes: int) -> Tensor:
    """Probabilities `[nodes, classes]` of a logistic regression on features scaled to [-1, 1]."""
    from scipy.sparse import csr_array
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    if x.layout != torch.strided:
        x = x.to_dense()
    probabilities = torch.zeros(len(x), classes)
    labels = y[train].unique()
    if len(labels) == 1:
        probabilities[:, labels] = 1.0
        return probabilities
    features = csr_array(x.double().numpy())
    model = make_pipeline(MaxAbsScaler(), LogisticRegression(max_iter=200))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(features[train.numpy()], y[train].numpy())
    predictions = torch.from_numpy(model.predict_proba(features))
    probabilities[:, labels] = predictions.float()
    return probabilities


def link_references(graph: Data, score: Callable[[Tensor, Tensor], float]) -> dict[str, float]:
    """Scores of common neighbours and of Adamic and Adar (2003) in the graph of training edges.

    Args:
        graph: graph of the training edges, with `test_edges` and `test_non_edges` `[2, pairs]`.
        score: metric of the scores `[pairs]` of edges and of non-edges.
    """
    network = nx.Graph(graph.edge_index.T.tolist())
    network.add_nodes_from(range(int(graph.num_nodes or 0)))
    edges = graph.test_edges.T.tolist()
    non_edges = graph.test_non_edges.T.tolist()

    def common_neighbours(pairs: list[list[int]]) -> Tensor:
        counts = [len(nx.common_neighbors(network, u, v)) for u, v in pairs]
        return torch.tensor(counts).float()

    def adamic_adar(pairs: list[list[int]]) -> Tensor:
        indices = nx.adamic_adar_index(network, pairs)
        return torch.tensor([value for _, _, value in indices])

    return {
        "common neighbours": score(common_neighbours(edges), common_neighbours(non_edges)),
        "Adamic-Adar": score(adamic_adar(edges), adamic_adar(non_edges)),
    }


def degree_product(graph: Data) -> Tensor:
    """Mean average precision of ranking pairs by the product of their degrees.

    For each node this is the order of all other nodes by their degrees.
    """
    nodes = int(graph.num_nodes or 0)
    distance = -degree(graph.edge_index[0], nodes).double()
    return mean_average_precision(
        lambda rows: distance.expand(len(rows), -1),
        graph.edge_index,
        nodes,
        block=max(1, 2**21 // nodes),
    )
