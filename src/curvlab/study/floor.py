"""Scores without learning, and features that may keep a score there."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.loaders.datamodule import GraphDataModule
from curvlab.metrics.average_precision import mean_average_precision
from curvlab.statistics import NORMAL, summarise
from curvlab.tasks.labels import OneOfMany, kind_of_labels
from curvlab.tasks.node_classification import split_parts

DRAWS = 10
"""Of random embeddings."""

ROWS = 1_000
"""Of distances at a time."""

FEW_COLUMNS = 16
LARGE = 10.0
"""Root mean square of a column above which it counts as unscaled."""


@dataclass(frozen=True)
class Floor:
    """A score without learning.

    Attributes:
        score: in percent.
        pm: half of the 95 % interval of one such score.
        what: predicts it.
    """

    score: float
    pm: float
    what: str

    @property
    def limit(self) -> float:
        """The score above which a model is above the floor's noise."""
        return self.score + self.pm

    def __str__(self) -> str:
        return f"{self.score:.2f} ± {self.pm:.2f} ({self.what})"


def floor_of(task: str, metric: str | None, data: GraphDataModule, dim: int) -> Floor | None:
    """The floor of a task on a graph with its split; None for a task without one.

    Args:
        task: its name.
        metric: that classes are scored by.
        data: with the graph.
        dim: width of random embeddings.
    """
    graph = data.graph
    if task == "reconstruction":
        return random_embeddings(graph.edge_index, data.num_nodes, dim)
    if task == "link_prediction":
        return _undecided(graph.test_edges.shape[1], graph.test_non_edges.shape[1])
    if task != "node_classification":
        return None
    parts = split_parts(graph)
    train, test = parts["train"].labels, parts["test"].labels
    if "roc" in str(metric):
        positive = int((test == 1).sum())
        return _undecided(positive, test.numel() - positive)
    labels = kind_of_labels(data.num_classes, data.multi_label, metric)
    if isinstance(labels, OneOfMany):
        logits = torch.eye(labels.logits)[train.mode().values]
    else:  # labels that most nodes have
        logits = train.float().reshape(len(train), -1).mean(0) - 0.5
    name = metric or next(iter(labels.metrics))
    score = float(labels.score(name, logits.expand(len(test), -1), test))
    pm = NORMAL * sqrt(max(score * (100 - score), 0) / len(test))
    return Floor(score, pm, "the most frequent class for every node")


def random_embeddings(edge_index: Tensor, nodes: int, dim: int) -> Floor:
    """Reconstruction by normal random embeddings, or by the means of those of neighbours.

    The better of the two: an untrained graph network takes such means too.
    """
    ends = torch.cat([edge_index, torch.arange(nodes).expand(2, -1)], dim=1)
    degree = torch.bincount(ends[0], minlength=nodes).unsqueeze(1)
    scores: tuple[list[float], list[float]] = [], []
    for seed in range(DRAWS):
        drawn = torch.randn(nodes, dim, generator=torch.Generator().manual_seed(seed))
        means = torch.zeros_like(drawn).index_add_(0, ends[0], drawn[ends[1]]) / degree
        for found, points in zip(scores, (drawn, means), strict=True):

            def distances(rows: Tensor, points: Tensor = points) -> Tensor:
                return torch.cdist(points[rows], points)

            found.append(100 * float(mean_average_precision(distances, edge_index, nodes, ROWS)))
    alone, of_means = map(summarise, scores)
    if alone.mean >= of_means.mean:
        return Floor(alone.mean, alone.next_pm, "random embeddings")
    what = f"means over neighbours of random embeddings, which alone have {alone.mean:.2f}"
    return Floor(of_means.mean, of_means.next_pm, what)


def _undecided(positive: int, negative: int) -> Floor:
    """The area under the ROC curve of one score for all, with the noise of Mann and Whitney."""
    noise = sqrt((positive + negative + 1) / (12 * max(positive, 1) * max(negative, 1)))
    return Floor(50.0, 100 * NORMAL * noise, "one score for all")


def feature_warnings(graph: Data) -> Iterator[str]:
    """Features that may hide the graph's structure: few or unscaled columns, a sentence each."""
    x = graph.x
    if x is None or x.layout != torch.strided:
        return
    if x.shape[1] < FEW_COLUMNS:
        yield (
            f"The nodes have {x.shape[1]} columns of features: models see nothing else of a node, "
            "and may do better without them (of your own graph: dataset.source.ignore=[...])."
        )
    size = x.float().square().mean(0).sqrt()
    if large := int((size > LARGE).sum()):
        yield (
            f"{large} of {len(size)} columns of features are unscaled, of a root mean square up to "
            f"{size.max():,.0f}: scale them (of your own graph: dataset.features.scale=standard)."
        )
