"""IDGL: Iterative deep graph learning for graph neural networks.

Chen, Wu and Zaki 2020, arXiv:2006.13009. The first learned graph compares features. Each later
graph compares the embeddings on the previous graph, until the graph no longer changes.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.data.transforms.graph import NormalisedAdjacency, complete
from curvlab.graph.sparse_graph import SparseGraph
from curvlab.layers.elementwise import dropout
from curvlab.manifolds.matrix_products import product
from curvlab.models.encoder import FlatEncoder
from curvlab.options import Dropout, FromData, PositiveInt

TINY = 1e-12


class WeightedCosine(nn.Module):
    r"""Similarities of nodes to anchors: means of weighted cosines, with small values set to 0.

    `s_ij = 1/m sum_p cos(w_p * x_i, w_p * x_j)`, or 0 if that is not above `threshold`.

    Shapes: `[nodes, dim] -> [nodes, anchors]`.

    Source: Chen, Wu and Zaki 2020 (IDGL).
    """

    def __init__(self, dim: int, heads: int, threshold: float = 0.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(heads, dim)))
        self.threshold = threshold

    def forward(self, x: Tensor, anchors: Tensor | None) -> Tensor:
        compared = x if anchors is None else x[anchors]
        similarity = self._directions(x) @ self._directions(compared).T / len(self.weight)
        return torch.where(similarity > self.threshold, similarity, 0)

    def _directions(self, x: Tensor) -> Tensor:
        """Unit vectors of all heads side by side, `[nodes, heads * dim]`."""
        weighted = x.unsqueeze(1) * self.weight
        return nn.functional.normalize(weighted, dim=-1, eps=TINY).flatten(1)


def step_to_neighbours(similarity: Tensor, x: Tensor) -> Tensor:
    """Means over neighbours `D^{-1} A x`, `[nodes, dim]`, with D the sums of rows."""
    return (similarity @ x) / similarity.sum(1, keepdim=True).clamp(min=TINY)


def step_over_anchors(similarity: Tensor, x: Tensor) -> Tensor:
    """A step to anchors and back, `D^{-1} R E^{-1} R^T x`; D, E are sums of R's rows, columns."""
    anchor_means = (similarity.T @ x) / similarity.sum(0).clamp(min=TINY).unsqueeze(1)
    return step_to_neighbours(similarity, anchor_means)


def graph_between_anchors(similarity: Tensor) -> Tensor:
    """`R^T D^{-1} R`, `[anchors, anchors]`: two steps between anchors over the nodes."""
    return similarity.T @ (similarity / similarity.sum(1, keepdim=True).clamp(min=TINY))


def half_squared_distances(x: Tensor) -> Tensor:
    """`|x_i - x_j|^2 / 2` of all pairs of vectors `[nodes, dim]`, `[nodes, nodes]`."""
    squares = x.square().sum(1) / 2
    return (squares[:, None] + squares - product(x, x.T)).clamp(min=0)


def graph_cost(
    graph: Tensor, distances: Tensor, smoothness: float, connectivity: float, sparsity: float
) -> Tensor:
    r"""`alpha/n^2 tr(X^T L X) - beta/n 1^T log(A 1) + gamma/n^2 ||A||_F^2` with `L = D - A`.

    The trace is `sum_ij a_ij |x_i - x_j|^2 / 2`, so that all graphs use one product of the vectors.

    Args:
        graph: Symmetric adjacency A `[nodes, nodes]`.
        distances: `half_squared_distances` of the vectors, `[nodes, nodes]`.
        smoothness: Weight alpha.
        connectivity: Weight beta.
        sparsity: Weight gamma.

    Source: IDGL.
    """
    smooth = smoothness * (graph * distances).mean() + sparsity * graph.square().mean()
    return smooth - connectivity * torch.log(graph.sum(1) + TINY).mean()


class IDGL(FlatEncoder):
    r"""Iterative deep graph learning, two layers of graph convolution on learned graphs.

    With `P_t = l A_0 + (1 - l) (e f(S_t) + (1 - e) f(S_1))`, where `A_0` is the given normalised
    graph, f steps along similarities and `P_1 = l A_0 + (1 - l) f(S_1)`:

        S_1 = cosines(X),  S_t = cosines(Z_(t-1)),  Z_t = drop(relu(P_t X W_1)),  logits P_t Z_t W_2

    until `||S_t - S_(t-1)||^2 <= tolerance ||S_1||^2` or t exceeds `iterations`. Evaluation returns
    the last logits. The loss of a training step is the loss of the first graph plus the mean loss
    of the later graphs, each with its `graph_cost`; `forward` then returns the first logits.

    On graphs of more than `all_pairs_up_to` nodes, similarities are to `anchors`, f steps over the
    anchors, and the cost is that of the graph between them. Training draws anchors in each step.

    Shapes: `batch.x [nodes, in_channels]`, `batch.normalised_adj [nodes, nodes]` (sparse CSR);
    returns `[nodes, num_classes]`.

    Args:
        heads: number of weight vectors of each of the two similarities.
        dropout: dropout of the first embeddings.

    Source: the paper, and the settings of its code for Cora; the first epochs iterate too.
    """

    tasks = ("node_classification",)
    gives_logits = True
    whole_graph = True  # similarities are of all nodes
    transforms = (NormalisedAdjacency(),)
    # l and e
    given_share = 0.8
    later_share = 0.1
    # of `graph_cost`
    smoothness = 0.2
    connectivity = 0.0
    sparsity = 0.0
    iterations = 10
    tolerance = 4e-5
    input_dropout = 0.5  # of the features and of the first similarities
    later_dropout = 0.5  # of the embeddings on later graphs
    all_pairs_up_to = 5000
    anchors = 1500

    def __init__(
        self,
        in_channels: int,
        num_classes: FromData[int],
        dim: PositiveInt = 16,
        heads: PositiveInt = 4,
        dropout: Dropout = 0.5,
    ) -> None:
        super().__init__()
        self.first = nn.Linear(in_channels, dim, bias=False)
        self.second = nn.Linear(dim, num_classes, bias=False)
        self.of_features = WeightedCosine(in_channels, heads)
        self.of_embeddings = WeightedCosine(dim, heads)
        self.dropout = dropout
        self.dim_out = num_classes

    def training_loss(
        self, batch: Data, loss: Callable[[Tensor], Tensor], nodes: Tensor | None = None
    ) -> Tensor:
        """The task's loss on the first graph, its mean loss on later graphs, and their costs."""
        complete(batch, self.transforms)
        logits, similarities, features, anchors = self._every_graph(batch)
        distances = half_squared_distances(features if anchors is None else features[anchors])
        graphs = similarities if anchors is None else map(graph_between_anchors, similarities)
        weights = self.smoothness, self.connectivity, self.sparsity
        cost, *later_costs = (graph_cost(graph, distances, *weights) for graph in graphs)
        if later_costs:
            cost = cost + torch.stack(later_costs).mean()
        if nodes is not None:
            logits = [rows.index_select(0, nodes) for rows in logits]
        total, *later_losses = map(loss, logits)
        if later_losses:
            total = total + torch.stack(later_losses).mean()
        return total + cost

    def forward(self, batch: Data) -> Tensor:
        logits = self._every_graph(batch)[0]
        return logits[0 if self.training else -1]

    def _every_graph(self, batch: Data) -> tuple[list[Tensor], list[Tensor], Tensor, Tensor | None]:
        """Logits and similarities of all graphs, the features after dropout, and the anchors."""
        anchors = self._anchors(batch.x)
        adjacency = SparseGraph.from_data(batch).matrix("normalised_adj")
        step = step_to_neighbours if anchors is None else step_over_anchors
        features = dropout(batch.x, self.input_dropout, self.training)
        first = self.of_features(features, anchors)
        first = dropout(first, self.input_dropout, self.training)
        x = self.first(features)
        along_given = adjacency @ x
        along_first = step(first, x)
        u = self._mix(along_given, along_first)
        similarities = [first]
        logits: list[Tensor] = []
        while True:
            rate = self.later_dropout if logits else self.dropout
            z = dropout(F.relu(u), rate, self.training)
            y = self.second(z)
            along_later = step(similarities[-1], y) if logits else None
            logits.append(self._mix(adjacency @ y, step(first, y), along_later))
            if len(similarities) > 1:  # stop once the graph no longer changes
                change = similarities[-1] - similarities[-2]
                size = first.detach().square().sum()
                if bool(change.detach().square().sum() <= self.tolerance * size):
                    break
            if len(logits) > self.iterations:
                break
            similarities.append(self.of_embeddings(z, anchors))
            u = self._mix(along_given, along_first, step(similarities[-1], x))
        return logits, similarities, features, anchors

    def _anchors(self, x: Tensor) -> Tensor | None:
        """Anchor nodes; None for graphs small enough to compare all pairs."""
        if len(x) <= self.all_pairs_up_to:
            return None
        if self.training:
            return torch.randperm(len(x), device=x.device)[: self.anchors]
        always = torch.Generator().manual_seed(0)
        return torch.randperm(len(x), generator=always)[: self.anchors].to(x.device)

    def _mix(
        self, along_given: Tensor, along_first: Tensor, along_later: Tensor | None = None
    ) -> Tensor:
        """`P_t` of signals from their steps along the given, the first and a later graph."""
        learned = along_first
        if along_later is not None:
            learned = torch.lerp(along_first, along_later, self.later_share)
        return torch.lerp(learned.to(along_given.dtype), along_given, self.given_share)
