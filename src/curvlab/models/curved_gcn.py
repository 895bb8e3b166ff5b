r"""Graph convolutions in spaces of constant curvature: HGCN, HGAT, HGNN, HAT, kappa-GCN.

Layers hand on logarithms at the origin: the exponential at the end of one and the logarithm at the
beginning of the next cancel, but for points at the very rim of the ball. So an activation between
two curvatures, `exp_0'(act(log_0 x))`, is one of tangent vectors.

With `skip_average`, for reconstruction, the last layer's logarithms are the mean of the activated
ones and of those that a node by itself would hear, as in the code of Q-GCN (Xiong et al. 2022):
the tangent space's form of what `GraphNetwork` does.

Neighbourhoods are `batch.adj_t [nodes, nodes]`, sparse CSR of ones with self-loops, rows targets.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import softmax

from curvlab.layers.activations import activation_function
from curvlab.layers.dropout import dropout
from curvlab.layers.features import FeatureLinear
from curvlab.layers.graph_propagation import NeighbourhoodMean, SparsePropagation
from curvlab.layers.stereographic import StereographicLinear, printed_midpoint
from curvlab.manifolds import Stereographic
from curvlab.manifolds import stereographic as k_space
from curvlab.manifolds.kernels import working
from curvlab.models.encoder import Encoder
from curvlab.options import SpaceMaker


class CurvedGCN(Encoder):
    """What they share: points of one space, and an activation.

    Args:
        space: where the embeddings lie.
        dim: their width.
        activation: `relu`, `elu`, `tanh` or `sigmoid`.
        skip_average: see above.
    """

    linears: nn.ModuleList

    def __init__(self, space: Stereographic, dim: int, activation: str, skip_average: bool) -> None:
        super().__init__()
        self.space, self.dim = space, dim
        self.activation = activation_function(activation)
        self.skip_average = skip_average

    @property
    def manifold_out(self) -> Stereographic:
        """The space of the embeddings."""
        return self.space

    @property
    def dim_out(self) -> int:
        """Width of the embeddings."""
        return self.dim

    def averages(self, layer: int) -> bool:
        """Whether a layer's output is the mean with what its nodes hear alone."""
        return self.skip_average and layer == len(self.linears) - 1

    def of_one_space(self, in_channels: int, layers: int, dropout: float) -> nn.ModuleList:
        """Linear maps from the features on, without a bias, into the space of the embeddings."""
        return nn.ModuleList(
            StereographicLinear(width, self.dim, self.space, bias=False, weight_dropout=dropout)
            for width in [in_channels] + [self.dim] * (layers - 1)
        )


class HGCN(CurvedGCN):
    r"""`v_l = act(mean_N(log_0(exp_0(W_l v_{l-1}) (+) exp_0(b_l))))`, embeddings `exp_0(v_L)`.

    `v_0` are the features. Every layer has a curvature of its own, and so have the embeddings.

    Args:
        in_channels: number of input features.
        manifold: makes a space.
        dim: width of layers and embeddings.
        layers: L.
        activation: of the logarithms.
        dropout: of the entries of the weights.
        skip_average: see above.

    Source: HGCN (Chami et al. 2019), Section 4, and its code, with its initialisation (Xavier, gain
    `sqrt 2`) and its means at the origin, without attention.
    """

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Stereographic],
        dim: int,
        layers: int,
        activation: str,
        dropout: float,
        skip_average: bool,
    ) -> None:
        super().__init__(manifold(), dim, activation, skip_average)
        self.mean = NeighbourhoodMean()
        linears = [
            StereographicLinear(width, dim, manifold(), weight_dropout=dropout)
            for width in [in_channels] + [dim] * (layers - 1)
        ]
        for linear in linears:
            nn.init.xavier_uniform_(linear.weight, gain=2**0.5)
        self.linears = nn.ModuleList(linears)

    def forward(self, batch: Data) -> Tensor:
        """Embeddings `[nodes, dim]`."""
        v = batch.x
        for layer, linear in enumerate(self.linears):
            assert isinstance(linear, StereographicLinear)
            moved = linear.space.logmap0(linear.from_tangent(v))
            v = self.activation(self.heard(layer, batch.adj_t, moved))
            if self.averages(layer):
                v = (moved + v) / 2
        return self.space.expmap0_projected(v)

    def heard(self, layer: int, adjacency: Tensor, moved: Tensor) -> Tensor:  # noqa: ARG002
        """What nodes hear in a layer of the logarithms `[nodes, dim]` of their neighbours."""
        return self.mean(adjacency, moved)


class HGAT(HGCN):
    r"""HGCN whose neighbours are weighed: `mean_N(sigmoid(a^T [u_i ; u_j] + b) u_j)`.

    `u` are the logarithms that HGCN takes the mean of; the weights do not add up to 1.

    Args:
        in_channels: number of input features.
        manifold: makes a space.
        dim: width of layers and embeddings.
        layers: L.
        activation: of the logarithms.
        dropout: of the entries of the weights.
        skip_average: see above.

    Source: HGCN's code with attention, which is what Hypformer's Table 2 calls HGAT.
    """

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Stereographic],
        dim: int,
        layers: int,
        activation: str,
        dropout: float,
        skip_average: bool,
    ) -> None:
        super().__init__(in_channels, manifold, dim, layers, activation, dropout, skip_average)
        self.attentions = nn.ModuleList(nn.Linear(2 * dim, 1) for _ in range(layers))

    def heard(self, layer: int, adjacency: Tensor, moved: Tensor) -> Tensor:
        """The weighed mean; a score is a sum of two numbers, the target's and the source's."""
        start, source = adjacency.crow_indices(), adjacency.col_indices()
        degree = start.diff()
        target = torch.repeat_interleave(degree, output_size=len(source))
        attention = self.attentions[layer]
        assert isinstance(attention, nn.Linear)
        of_target, of_source = F.linear(moved, attention.weight.view(2, -1)).unbind(-1)
        scores = of_target.index_select(0, target) + of_source.index_select(0, source)
        scores = scores + attention.bias
        messages = scores.sigmoid().unsqueeze(-1) * moved.index_select(0, source)
        sums = messages.new_zeros(moved.shape).index_add(0, target, messages)
        return sums / degree.clamp(min=1).unsqueeze(-1)


class HGNN(CurvedGCN):
    r"""`h_l = act(exp_0(drop(mean_N(W_l log_0 h_{l-1}))))`, with `log_0 h_0 = act(W_0 x + b_0)`.

    The activation is of the coordinates of points, which relu, elu and tanh do not lengthen.

    Args:
        in_channels: number of input features.
        manifold: makes the space.
        dim: width of layers and embeddings.
        layers: number of layers behind the features' map.
        activation: of the points' coordinates.
        dropout: of the means.
        skip_average: see above.

    Source: HGNN (Liu et al. 2019). Its code divides by artanh in the logarithm, where one
    multiplies.
    """

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Stereographic],
        dim: int,
        layers: int,
        activation: str,
        dropout: float,
        skip_average: bool,
    ) -> None:
        super().__init__(manifold(), dim, activation, skip_average)
        self.mean = NeighbourhoodMean()
        self.features = FeatureLinear(in_channels, dim)
        self.linears = nn.ModuleList(nn.Linear(dim, dim, bias=False) for _ in range(layers))
        self.dropout = dropout
        for linear in (self.features, *self.linears):
            nn.init.xavier_uniform_(linear.weight)
        # Beside random ones all nodes look the same, and relu goes silent: features are small.
        nn.init.zeros_(self.features.bias)

    def forward(self, batch: Data) -> Tensor:
        """Embeddings `[nodes, dim]`."""
        v = self.activation(self.features(batch.x))
        for layer, linear in enumerate(self.linears):
            alone = linear(v)
            v = dropout(self.mean(batch.adj_t, alone), self.dropout, self.training)
            h = self.space.project(self.activation(self.space.expmap0_projected(v)))
            v = self.space.logmap0(h)
            if self.averages(layer):
                h = self.space.expmap0_projected((alone + v) / 2)
        return h


class HAT(CurvedGCN):
    r"""`v_l = act(sum_j alpha_ij log_0 h_j)`, `h = exp_0(W_l v_{l-1})`, embeddings `exp_0(v_L)`.

    `alpha_ij` is the softmax over the neighbours j of i of `-d(h_i, h_j)`. The space of a head is a
    component of a product, so that the heads' sums stand beside each other in the tangent space.

    Args:
        in_channels: number of input features.
        manifold: makes a space of so many `components`.
        dim: width of layers and embeddings, a multiple of `heads`.
        heads: of the attention.
        layers: L.
        activation: of the logarithms.
        dropout: of the entries of the weights.
        skip_average: see above.

    Source: Zhang et al. 2021, "Hyperbolic graph attention network", from its description.
    """

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Stereographic],
        dim: int,
        heads: int,
        layers: int,
        activation: str,
        dropout: float,
        skip_average: bool,
    ) -> None:
        super().__init__(manifold(components=heads), dim, activation, skip_average)
        self.linears = self.of_one_space(in_channels, layers, dropout)

    def forward(self, batch: Data) -> Tensor:
        """Embeddings `[nodes, dim]`."""
        start, source = batch.adj_t.crow_indices(), batch.adj_t.col_indices()
        target = torch.repeat_interleave(start.diff(), output_size=len(source))
        v = batch.x
        for layer, linear in enumerate(self.linears):
            assert isinstance(linear, StereographicLinear)
            h = linear.from_tangent(v)
            alone = self.space.logmap0(h)
            weights = self._attention(h, source, target)
            heard = self.space.split(alone).index_select(0, source)
            messages = self.space.merge(weights.unsqueeze(-1) * heard)
            v = self.activation(messages.new_zeros(h.shape).index_add(0, target, messages))
            if self.averages(layer):
                v = (alone + v) / 2
        return self.space.expmap0_projected(v)

    def _attention(self, h: Tensor, source: Tensor, target: Tensor) -> Tensor:
        """Weights `[edges, heads]`."""
        x, y = (self.space.split(h.index_select(0, nodes)) for nodes in (target, source))
        near = -k_space.dist(x, y, self.space.kappa)
        return softmax(near, target, num_nodes=len(h))


class KappaGCN(CurvedGCN):
    r"""`v_l = act(log_0(midpoint_N(exp_0(W_l v_{l-1}))))`, embeddings `exp_0(v_L)`.

    Neighbours are averaged by the gyro-midpoint of each component of a product space, whose
    curvatures have any sign and are those of all layers.

    Args:
        in_channels: number of input features.
        manifold: makes a space of so many `components`.
        dim: width of layers and embeddings, a multiple of `components`.
        components: of the product.
        layers: L.
        activation: of the logarithms.
        dropout: of the entries of the weights.
        skip_average: see above.
        midpoint: None, or `paper` for the quotient as printed, which jumps to the antipode beyond
            the equator (see `stereographic.midpoint_from_sums`).

    Source: Bachmann et al. 2020, "Constant curvature graph convolutional networks", Section 3.
    """

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Stereographic],
        dim: int,
        components: int,
        layers: int,
        activation: str,
        dropout: float,
        skip_average: bool,
        midpoint: str | None = None,
    ) -> None:
        super().__init__(manifold(components=components), dim, activation, skip_average)
        self.printed = printed_midpoint(midpoint)
        self.propagation = SparsePropagation()
        self.linears = self.of_one_space(in_channels, layers, dropout)

    def forward(self, batch: Data) -> Tensor:
        """Embeddings `[nodes, dim]`."""
        v = batch.x
        for layer, linear in enumerate(self.linears):
            assert isinstance(linear, StereographicLinear)
            alone = linear.from_tangent(v)
            v = self.activation(self.space.logmap0(self.midpoints(batch.adj_t, alone)))
            if self.averages(layer):
                v = (self.space.logmap0(alone) + v) / 2
        return self.space.expmap0_projected(v)

    def midpoints(self, adjacency: Tensor, x: Tensor) -> Tensor:
        """Gyro-midpoints of the points of each neighbourhood, by one sparse product."""
        factor = self.space.conformal_factor(x)
        weighted = self.space.merge(factor.unsqueeze(-1) * self.space.split(working(x)))
        sums = self.propagation(adjacency, torch.cat([weighted, factor - 1], -1))
        numerator, denominator = sums.split([self.dim, self.space.components], -1)
        middle = k_space.midpoint_from_sums(
            self.space.split(numerator), denominator, self.space.kappa, self.printed
        )
        return self.space.project(self.space.merge(middle))
