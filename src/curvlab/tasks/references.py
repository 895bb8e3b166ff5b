"""Reference points of a score: what simple methods reach on the same split, metric and nodes.

None of them trains a network. Graphs on which they would take longer than a few seconds have none.
"""

import warnings
from collections.abc import Callable

import networkx as nx
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn.models import LabelPropagation
from torch_geometric.utils import degree

from curvlab.data.loaders.datamodule import GraphDataModule, load_source
from curvlab.metrics.average_precision import mean_average_precision

MOST_NODES = 200_000
MOST_EDGES = 2_000_000
MOST_FEATURES = 50_000_000  # entries of the training nodes' features
MOST_PAIR_NODES = 6_000  # of which all pairs are ranked
MOST_LINKS = 200_000
MOST_SCORES = 700_000_000  # of triples: queries times entities


class TooLargeError(ValueError):
    """A graph is too large for reference points that take a few seconds."""


def check_size(data: GraphDataModule, nodes: int = MOST_NODES, edges: int = MOST_EDGES) -> None:
    """Refuse a graph with more nodes or edges, counted in both directions."""
    if data.num_nodes > nodes or data.graph.num_edges > edges:
        raise TooLargeError(
            f"{data.num_nodes:,} nodes and {data.graph.num_edges:,} edges are too many for seconds"
        )


def plain_graph(data: GraphDataModule) -> Data:
    """The graph as its source and split give it, without the transforms that models ask for."""
    graph = load_source(data.source)
    return graph if data.split is None else data.split(graph, data.seed)


def node_references(
    graph: Data, classes: int, one_of_many: bool, score: Callable[[Tensor], float]
) -> dict[str, float]:
    """Scores of the majority class, the neighbours' vote and a linear model of the features.

    The vote is label propagation (Zhu and Ghahramani 2002) with `alpha = 0.9` and 50 steps; a node
    that no training label reaches has the majority class.

    Args:
        graph: graph with `train_mask`, and `y [nodes]` of classes or `[nodes, classes]` of labels.
        classes: number of classes or labels.
        one_of_many: whether each node has one class.
        score: metric of probabilities `[nodes, classes]`.
    """
    nodes = int(graph.num_nodes or 0)
    train = graph.train_mask
    y = graph.y.clamp(min=0)  # of no use outside of training
    targets = torch.nn.functional.one_hot(y.long(), classes) if one_of_many else y
    targets = targets.float()
    share = targets[train].mean(0).expand(nodes, -1)
    spread = LabelPropagation(num_layers=50, alpha=0.9)
    votes = spread(targets, graph.edge_index, mask=train)
    if one_of_many:
        votes = votes + 1e-6 * share
        votes = votes / votes.sum(1, keepdim=True)
    scores = {"majority": score(share), "neighbours' vote": score(votes)}
    x = graph.get("x")
    if x is not None and one_of_many and int(train.sum()) * x.shape[1] <= MOST_FEATURES:
        scores["linear model"] = score(_linear(x, y, train, classes))
    return scores


def _linear(x: Tensor, y: Tensor, train: Tensor, classes: int) -> Tensor:
    """Probabilities `[nodes, classes]` of a logistic regression on features scaled to [-1, 1]."""
    from scipy.sparse import csr_array
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    rows = x.to_dense() if x.layout != torch.strided else x
    features = csr_array(rows.double().numpy())
    inside = train.numpy()
    model = make_pipeline(MaxAbsScaler(), LogisticRegression(max_iter=200))
    probabilities = torch.zeros(len(rows), classes)
    labels = y[train].unique()
    if len(labels) == 1:
        probabilities[:, labels] = 1.0
        return probabilities
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(features[inside], y[train].numpy())
    probabilities[:, labels] = torch.from_numpy(model.predict_proba(features)).float()
    return probabilities


def link_references(graph: Data, score: Callable[[Tensor, Tensor], float]) -> dict[str, float]:
    """Scores of common neighbours and of Adamic and Adar (2003) in the graph of training edges.

    Args:
        graph: graph of the training edges, with `test_edges` and `test_non_edges` `[2, pairs]`.
        score: metric of the scores `[pairs]` of both.
    """
    network = nx.Graph(graph.edge_index.T.tolist())
    network.add_nodes_from(range(int(graph.num_nodes or 0)))
    parts = [part.T.tolist() for part in (graph.test_edges, graph.test_non_edges)]

    def common(pairs: list[list[int]]) -> Tensor:
        return torch.tensor([float(len(nx.common_neighbors(network, u, v))) for u, v in pairs])

    def adamic_adar(pairs: list[list[int]]) -> Tensor:
        return torch.tensor([value for *_, value in nx.adamic_adar_index(network, pairs)])

    methods = {"common neighbours": common, "Adamic-Adar": adamic_adar}
    return {name: score(*map(method, parts)) for name, method in methods.items()}


def degree_product(graph: Data) -> Tensor:
    """Mean average precision if all nodes rank the others by degree, as the product does."""
    nodes = int(graph.num_nodes or 0)
    distance = -degree(graph.edge_index[0], nodes).double()
    return mean_average_precision(
        lambda rows: distance.expand(len(rows), -1),
        graph.edge_index,
        nodes,
        block=max(1, 2**21 // nodes),
    )
