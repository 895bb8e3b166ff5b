"""Q-GCN, the pseudo-Riemannian graph convolutional network."""

import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.errors import UsageError
from curvlab.layers.activations import activation_function
from curvlab.layers.graph_propagation import NeighbourhoodMean
from curvlab.manifolds import PseudoHyperboloid
from curvlab.models.encoder import Encoder
from curvlab.options import SpaceMaker


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
        """Draw `W` (Xavier-uniform, gain `sqrt 2`, as Q-GCN's code) and set the bias to 0."""
        nn.init.xavier_uniform_(self.weight, gain=2**0.5)
        nn.init.zeros_(self.bias)

    def forward(self, v: Tensor) -> Tensor:
        """Map `[nodes, in_features]` to `[nodes, out_features]`."""
        weight = F.dropout(self.weight, self.weight_dropout, self.training)
        x = self.space.expmap0(F.linear(v, weight))
        return self.space.logmap0(self.space.move(x, self.bias))


class QGCN(Encoder):
    r"""`v_l = act(mean_N(log_0(exp_0(W_l v_{l-1}) moved by b_l)))`, embeddings `exp_0(v_L)`.

    On pseudo-hyperboloids; `v_0` are the features. Every layer has a curvature of its own, and so
    have the embeddings. Neighbourhoods are `batch.adj_t [nodes, nodes]`, sparse CSR of ones with
    self-loops, rows targets.

    Args:
        in_channels: number of input features.
        manifold: makes a space.
        dim: coordinates of the embeddings, times among them.
        layers: L.
        activation: of the tangent vectors.
        dropout: of the entries of the weights.
        skip_average: the last logarithms are the mean of the activated ones and of a node's own.

    Raises:
        UsageError: The space has more axes of time than there are coordinates.

    Source: Q-GCN (Xiong et al. 2022), Section 4, with means at the origin, and its code.
    """

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[PseudoHyperboloid],
        dim: int,
        layers: int,
        activation: str,
        dropout: float,
        skip_average: bool,
    ) -> None:
        super().__init__()
        self.space, self.dim = manifold(), dim
        if self.space.time_dims > dim:
            raise UsageError(
                f"manifold.time_dims={self.space.time_dims} are more axes than the coordinates, "
                f"model.dim={dim}"
            )
        self.activation = activation_function(activation)
        self.mean = NeighbourhoodMean()
        self.skip_average = skip_average
        self.linears = nn.ModuleList(
            PseudoLinear(width, dim - 1, manifold(), dropout)
            for width in [in_channels] + [dim - 1] * (layers - 1)
        )

    @property
    def manifold_out(self) -> PseudoHyperboloid:
        """The space of the embeddings."""
        return self.space

    @property
    def dim_out(self) -> int:
        """Width of the embeddings."""
        return self.dim

    def forward(self, batch: Data) -> Tensor:
        """Embeddings `[nodes, dim]`."""
        v = batch.x
        for linear in self.linears:
            alone = linear(v)
            v = self.activation(self.mean(batch.adj_t, alone))
        if self.skip_average:
            v = (alone + v) / 2
        return self.space.expmap0(v)
