"""Graph convolutions between tangent spaces at the origin: HGCN, HGAT, HAT, HGNN, kappa-GCN, Q-GCN.

Layers return logarithms at the origin: the exponential at the end of a layer and the logarithm at
the beginning of the next cancel, except for points at the rim of the ball.

Neighbourhoods are `batch.adj_t [nodes, nodes]`, sparse CSR of ones with self-loops, rows targets.
"""

from functools import partial
from typing import Any, TypedDict, Unpack

import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import softmax

from curvlab.data.transforms.graph import SparseAdjacency
from curvlab.errors import UsageError
from curvlab.graph.sparse_graph import SparseGraph
from curvlab.graph.sparse_matrix import SparseMatrix, as_matrix, neighbourhood_mean
from curvlab.layers.elementwise import activation_function, dropout
from curvlab.layers.feature_linear import FeatureLinear
from curvlab.layers.points import Points
from curvlab.layers.stereographic import Midpoint, StereographicLinear, choose_midpoint
from curvlab.manifolds import Manifold, PoincareBall, PseudoHyperboloid, Stereographic
from curvlab.manifolds import stereographic as k_space
from curvlab.models.encoder import Encoder, check_divides, make_space
from curvlab.options import Activation, Dropout, PositiveInt, SpaceMaker


class StackOptions(TypedDict, total=False):
    """Options of all networks of this file, see `CurvedGCN`."""

    layers: int
    activation: Activation
    dropout: float
    skip_average: bool


class CurvedGCN(Encoder):
    """`v_l = act(aggregate(map_l(v_{l-1})))` from the features `v_0`, embeddings `exp_0(v_L)`.

    With `skip_average` the last vectors are the mean of `v_L` and `map_L(v_{L-1})`, as in the code
    of Q-GCN (Xiong et al. 2022).

    Shapes: `batch.x [nodes, in_channels]`, `batch.adj_t [nodes, nodes]`; returns points
    `[nodes, dim + space.codimension]`.

    Args:
        space: Space of the embeddings.
        dim: width of layers and of the embeddings' tangent vectors.
        activation: activation of the tangent vectors.
        dropout: dropout of the entries of the weights.
        skip_average: average the last layer without and with the graph (for reconstruction).
    """

    revision = 3  # 2: as `Encoder`; 3: skip_average is off by default
    linears: nn.ModuleList
    transforms = (SparseAdjacency(self_loops=True),)

    def __init__(
        self,
        space: Manifold,
        dim: PositiveInt = 16,
        layers: PositiveInt = 1,
        activation: Activation = "relu",
        dropout: Dropout = 0.0,
        skip_average: bool = False,
    ) -> None:
        super().__init__()
        self.space = space
        self.dim = dim
        self.depth = layers
        self.dropout = dropout
        self.dim_out = dim + space.codimension
        self.activation = activation_function(activation)
        self.skip_average = skip_average

    def forward(self, batch: Data) -> Tensor:
        v = batch.x
        adjacency = SparseGraph.from_data(batch).matrix("adj_t")
        for layer in self.linears:
            mapped, aggregated = self.propagate(layer, v, adjacency)
            v = self.activation(aggregated)
        if self.skip_average:
            v = (self.tangent(mapped) + v) / 2
        return self.space.expmap0(v)

    def propagate(self, layer: Any, v: Tensor, adjacency: SparseMatrix) -> tuple[Tensor, Tensor]:
        """Map tangent vectors by a layer; return the mapped and the aggregated vectors."""
        mapped = layer(Points(layer.space, log=v)).log
        return mapped, self.aggregate(layer, adjacency, mapped)

    def aggregate(self, layer: Any, adjacency: SparseMatrix, u: Tensor) -> Tensor:  # noqa: ARG002
        """Means of the neighbours' logarithms `[nodes, dim]`."""
        return neighbourhood_mean(adjacency, u)

    def tangent(self, mapped: Tensor) -> Tensor:
        return mapped

    def linear_maps_from(self, in_channels: int) -> nn.ModuleList:
        """Linear maps without bias from the features on, into the space of the embeddings."""
        return nn.ModuleList(
            StereographicLinear(width, self.dim, self.space, False, self.dropout)
            for width in self.widths(in_channels)
        )

    def widths(self, in_channels: int) -> list[int]:
        return [in_channels] + [self.dim] * (self.depth - 1)


class HGCN(CurvedGCN):
    r"""`v_l = act(mean_N(log_0(exp_0(W_l v_{l-1}) (+) exp_0(b_l))))`, embeddings `exp_0(v_L)`.

    Each layer and the embeddings have separate curvatures.

    Args:
        manifold: factory of the space of a layer.

    Paper: HGCN: Hyperbolic graph convolutional neural networks (Chami et al. 2019,
    arXiv:1910.12933).

    Source: Section 4 and the authors' code: its initialisation and means at the origin.
    """

    attends = False

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Manifold] = partial(PoincareBall, learnable=True),
        dim: PositiveInt = 16,
        **stack: Unpack[StackOptions],
    ) -> None:
        super().__init__(manifold(), dim, **stack)
        self.linears = nn.ModuleList(
            StereographicLinear(width, dim, manifold(), weight_dropout=self.dropout)
            for width in self.widths(in_channels)
        )
        for linear in self.linears:
            nn.init.xavier_uniform_(linear.get_parameter("weight"), gain=2**0.5)
        if self.attends:
            for linear in self.linears:
                linear.attention = nn.Linear(2 * dim, 1)


class HGAT(HGCN):
    r"""HGCN with weighted neighbours: `mean_N(sigmoid(a^T [u_i ; u_j] + b) u_j)`.

    `u` are the logarithms that HGCN averages. The weights do not add up to 1.

    Paper: HGAT: HGCN with the attention of its released code (Chami et al. 2019, arXiv:1910.12933),
    as in Hypformer's Table 2.
    """

    attends = True

    def aggregate(self, layer: Any, adjacency: SparseMatrix, u: Tensor) -> Tensor:
        """The weighted mean; a score is a sum of two numbers, the target's and the source's."""
        target, source = adjacency.ends
        target_score, source_score = F.linear(u, layer.attention.weight.view(2, -1)).unbind(-1)
        scores = target_score.index_select(0, target) + source_score.index_select(0, source)
        weights = (scores + layer.attention.bias).sigmoid()
        messages = weights.unsqueeze(-1) * u.index_select(0, source)
        sums = messages.new_zeros(u.shape).index_add(0, target, messages)
        return sums / adjacency.degrees.clamp(min=1).unsqueeze(-1)


class HAT(CurvedGCN):
    r"""`v_l = act(sum_j alpha_ij log_0 h_j)`, `h = exp_0(W_l v_{l-1})`, embeddings `exp_0(v_L)`.

    `alpha_ij` is the softmax of `-d(h_i, h_j)` over the neighbours j of i. The space of a head is a
    component of a product, so that the heads' sums are concatenated in the tangent space.

    Args:
        manifold: factory of a space of as many components as heads.
        heads: number of attention heads, a divisor of `dim`.

    Paper: HAT: Hyperbolic graph attention network (Zhang et al. 2021, arXiv:1912.03046).
    """

    space: Stereographic

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Stereographic] = PoincareBall,
        heads: PositiveInt = 2,
        dim: PositiveInt = 16,
        **stack: Unpack[StackOptions],
    ) -> None:
        check_divides("heads", heads, dim)
        space = manifold(components=heads)
        super().__init__(space, dim, **stack)
        self.linears = self.linear_maps_from(in_channels)

    def propagate(self, layer: Any, v: Tensor, adjacency: SparseMatrix) -> tuple[Tensor, Tensor]:
        target, source = adjacency.ends
        h = layer(Points(layer.space, log=v)).x
        mapped = self.space.logmap0(h)
        x, y = (self.space.split(h.index_select(0, nodes)) for nodes in (target, source))
        weights = softmax(-k_space.dist(x, y, self.space.kappa), target, num_nodes=len(h))
        neighbours = self.space.split(mapped).index_select(0, source)
        messages = self.space.merge(weights.unsqueeze(-1) * neighbours)
        return mapped, messages.new_zeros(h.shape).index_add(0, target, messages)


class HGNN(CurvedGCN):
    r"""`h_l = act(exp_0(drop(mean_N(W_l log_0 h_{l-1}))))`, with `log_0 h_0 = act(W_0 x + b_0)`.

    The activation acts on the coordinates of points, which relu, elu and tanh do not lengthen.

    Args:
        layers: number of layers after the map of the features.
        dropout: dropout of the means over neighbours.

    Paper: HGNN: Hyperbolic graph neural networks (Liu et al. 2019, arXiv:1910.12892).

    Source: the paper; its code divides by artanh in the logarithm, where one multiplies.
    """

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Stereographic] = PoincareBall,
        dim: PositiveInt = 16,
        **stack: Unpack[StackOptions],
    ) -> None:
        super().__init__(manifold(), dim, **stack)
        self.features = FeatureLinear(in_channels, dim)
        self.linears = nn.ModuleList(nn.Linear(dim, dim, bias=False) for _ in range(self.depth))
        for linear in (self.features, *self.linears):
            nn.init.xavier_uniform_(linear.weight)
        # Features are small: with random biases nodes would be nearly equal, and relu often 0.
        nn.init.zeros_(self.features.bias)

    def forward(self, batch: Data) -> Tensor:
        graph = SparseGraph.from_data(batch)
        v = self.activation(self.features(graph.features))
        for layer in self.linears:
            mapped, v = self.propagate(layer, v, graph.matrix("adj_t"))
            h = self.space.project(self.activation(self.space.expmap0(v)))
            v = self.space.logmap0(h)
        if self.skip_average:
            return self.space.expmap0((mapped + v) / 2)
        return h

    def propagate(self, layer: Any, v: Tensor, adjacency: SparseMatrix) -> tuple[Tensor, Tensor]:
        mapped = layer(v)
        return mapped, dropout(neighbourhood_mean(adjacency, mapped), self.dropout, self.training)


class KappaGCN(CurvedGCN):
    r"""`v_l = act(log_0(midpoint_N(exp_0(W_l v_{l-1}))))`, embeddings `exp_0(v_L)`.

    The weighted mean (the gyro-midpoint on stereographic spaces) averages neighbours in each
    component of a product space. The curvatures have any sign, and all layers share them.

    Args:
        manifold: factory of a space with the number of `components`.
        components: number of the product's components, a divisor of `dim`.
        midpoint: midpoint of neighbours; null: on their side of a sphere; `paper`: the published
            quotient.

    Paper: kappa-GCN: Constant curvature graph convolutional networks. Bachmann et al. 2020,
    arXiv:1911.05076, Section 3.
    """

    # 2: midpoints stay on their neighbours' side of a sphere; 3: as `Encoder`; 4: as `CurvedGCN`
    revision = 4

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Manifold] = partial(Stereographic, learnable=True),
        components: PositiveInt = 2,
        midpoint: Midpoint | None = None,
        dim: PositiveInt = 16,
        **stack: Unpack[StackOptions],
    ) -> None:
        space = make_space(manifold, "components", components, dim)
        super().__init__(space, dim, **stack)
        choose_midpoint(space, midpoint)
        self.linears = self.linear_maps_from(in_channels)

    def propagate(self, layer: Any, v: Tensor, adjacency: SparseMatrix) -> tuple[Tensor, Tensor]:
        mapped = layer(Points(layer.space, log=v)).x
        return mapped, self.space.logmap0(self.midpoints(adjacency, mapped))

    def tangent(self, mapped: Tensor) -> Tensor:
        return self.space.logmap0(mapped)

    def midpoints(self, adjacency: Tensor | SparseMatrix, x: Tensor) -> Tensor:
        """Weighted means of the points of each neighbourhood, by one sparse product."""

        def average(vectors: Tensor) -> Tensor:
            blocks = vectors.movedim(0, 1)
            sums = as_matrix(adjacency) @ blocks.flatten(1)
            return sums.unflatten(1, blocks.shape[1:]).movedim(1, 0)

        return self.space.project(self.space.weighted_mean(x, average))


class PseudoLinear(StereographicLinear):
    """`StereographicLinear` that starts as in the authors' code of Q-GCN."""

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.weight, gain=2**0.5)
        nn.init.zeros_(self.bias)


class QGCN(CurvedGCN):
    r"""`v_l = act(mean_N(log_0(exp_0(W_l v_{l-1}) moved by b_l)))`, embeddings `exp_0(v_L)`.

    The spaces are pseudo-hyperboloids. Each layer and the embeddings have separate curvatures.

    Args:
        manifold: factory of the space of a layer.
        dim: number of coordinates of the embeddings, including the times.

    Paper: Q-GCN: Pseudo-Riemannian graph convolutional networks (Xiong et al. 2022,
    arXiv:2106.03134).

    Source: Section 4, with means at the origin, and the authors' code.
    """

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[PseudoHyperboloid] = partial(PseudoHyperboloid, learnable=True),
        dim: PositiveInt = 16,
        **stack: Unpack[StackOptions],
    ) -> None:
        space = manifold()
        if space.time_dims > dim:
            raise UsageError(
                f"time_dims={space.time_dims} are more axes than the coordinates, dim={dim}"
            )
        tangent = dim - space.codimension
        super().__init__(space, tangent, **stack)
        self.linears = nn.ModuleList(
            PseudoLinear(width, tangent, manifold(), weight_dropout=self.dropout)
            for width in self.widths(in_channels)
        )
