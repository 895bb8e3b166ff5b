"""HAT: Hyperbolic graph attention network (Zhang et al. 2021, arXiv:1912.03046)."""

from typing import Any

from torch import Tensor
from torch_geometric.utils import softmax

from curvlab.layers.sparse_graph import SparseMatrix
from curvlab.layers.stereographic import StereographicLinear
from curvlab.manifolds import Stereographic
from curvlab.manifolds import stereographic as k_space
from curvlab.models.curved_gcn import FIXED_BALL, StereographicGCN
from curvlab.models.widths import check_divides
from curvlab.options import PositiveInt, SpaceMaker


class HAT(StereographicGCN):
    r"""`v_l = act(sum_j alpha_ij log_0 h_j)`, `h = exp_0(W_l v_{l-1})`, embeddings `exp_0(v_L)`.

    `alpha_ij` is the softmax over the neighbours j of i of `-d(h_i, h_j)`. The space of a head is a
    component of a product, so that the heads' sums stand beside each other in the tangent space.

    Args:
        in_channels: number of input features.
        manifold: makes a space of as many components as heads.
        heads: of the attention, which divide `dim`.
        **options: those of `CurvedGCN`.

    Source: the paper's description.
    """

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Stereographic] = FIXED_BALL,
        heads: PositiveInt = 2,
        **options: Any,
    ) -> None:
        super().__init__(manifold(components=heads), **options)
        check_divides("heads", heads, self.dim)
        self.linears = self.of_one_space(in_channels)

    def propagate(self, layer: int, v: Tensor, adjacency: SparseMatrix) -> tuple[Tensor, Tensor]:
        """Logarithms `[nodes, dim]`, and their sums weighted by the attention."""
        target, source = adjacency.ends
        linear = self.linears[layer]
        assert isinstance(linear, StereographicLinear)
        h = linear.from_tangent(v)
        own = self.space.logmap0(h)
        weights = self._attention(h, source, target)
        neighbours = self.space.split(own).index_select(0, source)
        messages = self.space.merge(weights.unsqueeze(-1) * neighbours)
        return own, messages.new_zeros(h.shape).index_add(0, target, messages)

    def _attention(self, h: Tensor, source: Tensor, target: Tensor) -> Tensor:
        """Weights `[edges, heads]`."""
        x, y = (self.space.split(h.index_select(0, nodes)) for nodes in (target, source))
        near = -k_space.dist(x, y, self.space.kappa)
        return softmax(near, target, num_nodes=len(h))
