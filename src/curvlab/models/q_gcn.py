"""Q-GCN: Pseudo-Riemannian graph convolutional networks (Xiong et al. 2022, arXiv:2106.03134)."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from curvlab.errors import UsageError
from curvlab.layers.sparse_graph import SparseMatrix, neighbourhood_mean
from curvlab.manifolds import PseudoHyperboloid
from curvlab.models.curved_gcn import CurvedGCN
from curvlab.options import PositiveInt, SpaceMaker


class PseudoLinear(nn.Linear):
    """`log_0` of the point `exp_0(W v)`, moved by b: between tangent vectors at the origin.

    Args:
        in_features: width of the vectors.
        out_features: width of the space's tangent vectors.
        space: where the bias moves.
        weight_dropout: probability of zeroing an entry of `W` in training (DropConnect).
    """

    def __init__(
        self, in_features: int, out_features: int, space: PseudoHyperboloid, weight_dropout: float
    ) -> None:
        super().__init__(in_features, out_features)
        self.space, self.weight_dropout = space, weight_dropout

    def reset_parameters(self) -> None:
        """Draw `W` (Xavier-uniform, gain `sqrt 2`, as the authors' code) and set the bias to 0."""
        nn.init.xavier_uniform_(self.weight, gain=2**0.5)
        nn.init.zeros_(self.bias)

    def forward(self, v: Tensor) -> Tensor:
        """Map `[nodes, in_features]` to `[nodes, out_features]`."""
        weight = F.dropout(self.weight, self.weight_dropout, self.training)
        x = self.space.expmap0(F.linear(v, weight))
        return self.space.logmap0(self.space.move(x, self.bias))


class QGCN(CurvedGCN[PseudoHyperboloid]):
    r"""`v_l = act(mean_N(log_0(exp_0(W_l v_{l-1}) moved by b_l)))`, embeddings `exp_0(v_L)`.

    On pseudo-hyperboloids. Every layer has a curvature of its own, and so have the embeddings.

    Args:
        in_channels: number of input features.
        manifold: makes the space of a layer.
        dim: coordinates of the embeddings, times among them.
        **options: those of `CurvedGCN`.

    Raises:
        UsageError: The space has more axes of time than there are coordinates.

    Source: Section 4, with means at the origin, and the authors' code.
    """

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[PseudoHyperboloid] = PseudoHyperboloid,
        dim: PositiveInt = 16,
        **options: Any,
    ) -> None:
        super().__init__(manifold(), dim, **options)
        if self.space.time_dims > dim:
            raise UsageError(
                f"time_dims={self.space.time_dims} are more axes than the coordinates, dim={dim}"
            )
        self.linears = nn.ModuleList(
            PseudoLinear(width, dim - 1, manifold(), self.dropout)
            for width in [in_channels] + [dim - 1] * (self.depth - 1)
        )

    def propagate(self, layer: int, v: Tensor, adjacency: SparseMatrix) -> tuple[Tensor, Tensor]:
        """Tangent vectors `[nodes, dim - 1]` and their means."""
        own = self.linears[layer](v)
        return own, neighbourhood_mean(adjacency, own)

    def embed(self, v: Tensor) -> Tensor:
        """Points `[nodes, dim]` of tangent vectors."""
        return self.space.expmap0(v)
