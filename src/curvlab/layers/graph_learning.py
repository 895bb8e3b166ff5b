"""Graphs that are learned from vectors: weighted similarities, steps along them, what they cost."""

import torch
from torch import Tensor, nn

from curvlab.manifolds.products import product

TINY = 1e-12


class WeightedCosine(nn.Module):
    r"""Similarities of nodes to anchors by several weighted cosines, small ones cut to 0.

    `s_ij = 1/m sum_p cos(w_p * x_i, w_p * x_j)`, 0 where not above `threshold`.

    Shapes: `[nodes, dim], [anchors, dim] -> [nodes, anchors]`.

    Args:
        dim: width of the vectors.
        heads: number m of weight vectors.
        threshold: at least 0.

    Source: Chen, Wu and Zaki 2020 (IDGL).
    """

    def __init__(self, dim: int, heads: int, threshold: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(heads, dim)))
        self.threshold = threshold

    def forward(self, x: Tensor, anchors: Tensor) -> Tensor:
        """Compare each node with each anchor."""
        similarity = self._directions(x) @ self._directions(anchors).T / len(self.weight)
        return torch.where(similarity > self.threshold, similarity, 0)

    def _directions(self, x: Tensor) -> Tensor:
        """Of length 1 for each head, one after the other, `[nodes, heads * dim]`."""
        weighted = x.unsqueeze(1) * self.weight
        return nn.functional.normalize(weighted, dim=-1, eps=TINY).flatten(1)


def step_to_neighbours(similarity: Tensor, x: Tensor) -> Tensor:
    """Means over neighbours, `D^{-1} A x` with D the sums of rows; 0 where there are none.

    Shapes: `[nodes, nodes], [nodes, dim] -> [nodes, dim]`. Source: IDGL.
    """
    return (similarity @ x) / similarity.sum(1, keepdim=True).clamp(min=TINY)


def step_over_anchors(similarity: Tensor, x: Tensor) -> Tensor:
    """To anchors and back, `D^{-1} R E^{-1} R^T x` with D and E the sums of R's rows and columns.

    Shapes: `[nodes, anchors], [nodes, dim] -> [nodes, dim]`. Source: IDGL.
    """
    of_anchors = (similarity.T @ x) / similarity.sum(0).clamp(min=TINY).unsqueeze(1)
    return step_to_neighbours(similarity, of_anchors)


def graph_between_anchors(similarity: Tensor) -> Tensor:
    """`R^T D^{-1} R`, `[anchors, anchors]`, symmetric: two steps between anchors over the nodes."""
    return similarity.T @ (similarity / similarity.sum(1, keepdim=True).clamp(min=TINY))


def half_squared_distances(x: Tensor) -> Tensor:
    """`|x_i - x_j|^2 / 2` of all pairs of vectors `[nodes, dim]`, `[nodes, nodes]`."""
    squares = x.square().sum(1) / 2
    return (squares[:, None] + squares - product(x, x.T)).clamp(min=0)


def graph_cost(
    graph: Tensor, apart: Tensor, smoothness: float, connectivity: float, sparsity: float
) -> Tensor:
    r"""`alpha/n^2 tr(X^T L X) - beta/n 1^T log(A 1) + gamma/n^2 ||A||_F^2` with `L = D - A`.

    The trace is `sum_ij a_ij |x_i - x_j|^2 / 2`, so that the vectors are multiplied but once for
    all graphs.

    Args:
        graph: symmetric weights A `[nodes, nodes]`, none below 0.
        apart: `half_squared_distances` of the vectors that neighbours should share.
        smoothness: alpha.
        connectivity: beta, against nodes without neighbours.
        sparsity: gamma, against heavy weights.

    Source: IDGL.
    """
    smooth = smoothness * (graph * apart).mean() + sparsity * graph.square().mean()
    return smooth - connectivity * torch.log(graph.sum(1) + TINY).mean()
