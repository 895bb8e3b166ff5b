"""SGFormer: Simplifying and empowering transformers for large-graph representations.

Wu et al. 2023, arXiv:2306.10759. LRN's SGFormer adds the two branches on the hyperboloid.
"""

from collections.abc import Callable
from functools import partial
from typing import TypedDict, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.checked import Checked
from curvlab.data.transforms.graph import NormalisedAdjacency
from curvlab.graph.sparse_graph import Features, SparseGraph
from curvlab.graph.sparse_matrix import SparseMatrix, as_matrix
from curvlab.layers.elementwise import dropout
from curvlab.layers.feature_linear import FeatureLinear
from curvlab.layers.lorentz import UNWEIGHTED, LorentzResidual, Operator, Weights
from curvlab.manifolds import Lorentz
from curvlab.models.encoder import Encoder, FlatEncoder
from curvlab.options import Dropout, Fraction, NonNegativeFloat, PositiveInt, Share, SpaceMaker

IN_TANGENT_SPACE = (UNWEIGHTED, "tangent_space")
"""Operators whose weights scale tangent vectors instead of points."""


def simple_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    r"""All-pair attention `(N v + q (k^T v)) / (N + q (k^T 1))` of each head, in linear time.

    q and k are divided by their Frobenius norms over nodes and heads, so that every denominator is
    positive: a node's own value has the weight N, and all others together a weight of order 1.

    Shapes: q and k `[nodes, heads, width]`, v `[nodes, heads, dim]` or `[nodes, 1, dim]` for all
    heads; returns `[nodes, heads, dim]`.

    Source: SGFormer (Wu et al. 2023); the released code for the norms over all heads.
    """
    nodes, heads = q.shape[:2]
    tiny = torch.finfo(q.dtype).tiny  # 0 stays 0
    q = q / torch.linalg.vector_norm(q).clamp_min(tiny)
    k = k / torch.linalg.vector_norm(k).clamp_min(tiny)
    q = q.transpose(0, 1)
    k = k.transpose(0, 1)
    v = v.transpose(0, 1).expand(heads, -1, -1)
    normaliser = nodes + q @ k.sum(1).unsqueeze(-1)
    sums = nodes * v + q @ (k.transpose(1, 2) @ v)
    return (sums / normaliser).transpose(0, 1)


class _SimpleAttention(nn.Module):
    """`simple_attention` of linear maps of nodes `[nodes, dim]`, averaged over heads."""

    def __init__(self, dim: int, heads: int, value_map: bool) -> None:
        super().__init__()
        self.heads = heads
        self.queries = nn.Linear(dim, heads * dim)
        self.keys = nn.Linear(dim, heads * dim)
        self.values = nn.Linear(dim, heads * dim) if value_map else None

    def forward(self, x: Tensor) -> Tensor:
        q = self.queries(x).unflatten(-1, (self.heads, -1))
        k = self.keys(x).unflatten(-1, (self.heads, -1))
        v = x.unsqueeze(1)
        if self.values is not None:
            v = self.values(x).unflatten(-1, (self.heads, -1))
        return simple_attention(q, k, v).mean(1)


class SimpleTransformer(nn.Module):
    """The attention branch of `TwoBranches`: features `[nodes, in]` to `[nodes, dim]`."""

    def __init__(
        self,
        in_channels: int,
        dim: int,
        layers: int,
        heads: int,
        dropout: float,
        averages: bool,
        value_map: bool,
        layer_norm: bool,
        weight_decay: float | None,
    ) -> None:
        super().__init__()
        norm = nn.LayerNorm if layer_norm else nn.Identity
        self.features = FeatureLinear(in_channels, dim)
        self.feature_norm = norm(dim)
        self.layers = nn.ModuleList(_SimpleAttention(dim, heads, value_map) for _ in range(layers))
        self.norms = nn.ModuleList(norm(dim) for _ in range(layers))
        self.dropout = dropout
        self.averages = averages
        self.weight_decay = weight_decay  # read by `parameter_groups`

    def forward(self, features: Tensor | Features) -> Tensor:
        x = F.relu(self.feature_norm(self.features(features)))
        x = dropout(x, self.dropout, self.training)
        for attention, norm in zip(self.layers, self.norms, strict=True):
            mixed = attention(x)
            if self.averages:
                mixed = (mixed + x) / 2
            x = dropout(norm(mixed), self.dropout, self.training)
        return x


class GCNBranch(Checked, nn.Module):
    """The graph branch for small graphs, a GCN: `x <- drop(relu(A x W + b))`.

    The last layer has neither activation nor dropout. Unlike in `GraphNetwork`, dropout acts on
    hidden features only.

    Shapes: features `[nodes, in_channels]` (dense or sparse), adjacency A `[nodes, nodes]` (sparse
    CSR, normalised, with self-loops); returns `[nodes, dim]`.

    Args:
        dim: width.
        layers: number of layers.
        dropout: dropout of hidden features.
    """

    def __init__(
        self, in_channels: int, dim: int, layers: PositiveInt = 2, dropout: Dropout = 0.0
    ) -> None:
        super().__init__()
        maps: list[nn.Linear] = [FeatureLinear(in_channels, dim, bias=False)]
        maps += [nn.Linear(dim, dim, bias=False) for _ in range(layers - 1)]
        for linear in maps:
            nn.init.xavier_uniform_(linear.weight)
        self.maps = nn.ModuleList(maps)
        self.biases = nn.ParameterList(torch.zeros(dim) for _ in range(layers))
        self.dropout = dropout

    def forward(self, features: Tensor | Features, adjacency: Tensor | SparseMatrix) -> Tensor:
        adjacency = as_matrix(adjacency)
        x = adjacency @ self.maps[0](features) + self.biases[0]
        for linear, bias in zip(self.maps[1:], self.biases[1:], strict=True):
            x = adjacency @ linear(dropout(F.relu(x), self.dropout, self.training)) + bias
        return x


class BranchOptions(TypedDict, total=False):
    """Options of both branches, see `TwoBranches`."""

    graph_branch: Callable[[int, int], nn.Module]
    graph_weight: float
    layers: int
    heads: int
    dropout: float
    value_map: bool
    layer_norm: bool
    transformer_weight_decay: float | None


class TwoBranches(Encoder):
    """SGFormer's attention and a graph network in parallel; a subclass adds them.

    The attention branch is `x <- drop(relu([LN](W x + b)))`, followed by layers of attention
    without activation or feed-forward network: `x <- drop([LN]((attention(x) + x) / 2))` if it
    `averages`, else `x <- drop([LN](attention(x)))`.

    Shapes: `batch.x [nodes, in_channels]`, `batch.normalised_adj [nodes, nodes]`, with self-loops.

    Args:
        averages: Average a layer's output with its input.
        graph_branch: factory of the graph branch: `GCNBranch` or, for large graphs,
            `GraphConvolutionBranch`.
        dim: width of both branches and of every head.
        graph_weight: weight of the graph branch in the sum.
        layers: number of attention layers.
        heads: number of attention heads, each as wide as the model, whose outputs are averaged.
        dropout: dropout of the attention branch.
        value_map: apply a linear map to the values; false: the values are the layer's input.
        layer_norm: normalise the attention branch.
        transformer_weight_decay: weight decay of the attention branch; null:
            `optimizer.weight_decay`.
    """

    directed = True
    transforms = (NormalisedAdjacency(),)

    def __init__(
        self,
        in_channels: int,
        averages: bool,
        dim: PositiveInt = 16,
        graph_branch: Callable[[int, int], nn.Module] = GCNBranch,
        graph_weight: Share = 0.5,
        layers: PositiveInt = 1,
        heads: PositiveInt = 1,
        dropout: Dropout = 0.0,
        value_map: bool = False,
        layer_norm: bool = False,
        transformer_weight_decay: NonNegativeFloat | None = None,
    ) -> None:
        super().__init__()
        self.transformer = SimpleTransformer(
            in_channels,
            dim,
            layers,
            heads,
            dropout,
            averages=averages,
            value_map=value_map,
            layer_norm=layer_norm,
            weight_decay=transformer_weight_decay,
        )
        self.graph_branch = graph_branch(in_channels, dim)
        self.graph_weight = graph_weight
        self.dim_out = dim

    def attend(self, batch: Data) -> Tensor:
        return self.transformer(SparseGraph.from_data(batch).features)

    def convolve(self, batch: Data) -> Tensor:
        graph = SparseGraph.from_data(batch)
        return self.graph_branch(graph.features, graph.matrix("normalised_adj"))


class SGFormer(TwoBranches, FlatEncoder):
    r"""Simplified graph transformer: `alpha x_graph + (1 - alpha) x_attention`.

    PyTorch Geometric's `nn.models.SGFormer` (2.8) differs: it normalises each row of q and k,
    always maps the values, and has an activation after attention.

    Args:
        residual: average a layer's output with its input.

    Source: the paper. For Cora, Citeseer and Pubmed, the released code uses the layer's input as
    values, without norms and residual connections; these are the defaults here. The paper's text
    has them all: `value_map`, `layer_norm`, `residual`.
    """

    def __init__(
        self,
        in_channels: int,
        residual: bool = False,
        dim: PositiveInt = 16,
        **branches: Unpack[BranchOptions],
    ) -> None:
        super().__init__(in_channels, residual, dim, **branches)

    def forward(self, batch: Data) -> Tensor:
        convolved = self.convolve(batch)
        return torch.lerp(self.attend(batch).to(convolved.dtype), convolved, self.graph_weight)


class BranchSum(LorentzResidual):
    r"""Sum of two flat branches on the hyperboloid: attention Z and graph network G.

    With g the weight of the graph branch,

        centroid, space_addition:           (1 - g) exp_o(Z) (+) g exp_o(G), weights inside (+),
        parallel_transport, tangent_space:  exp_o((1 - g) Z) (+) exp_o(g G).

    Shapes: `[nodes, dim]` twice to `[nodes, 1 + dim]`.

    Args:
        operator: operator of the sum, see above.
        weights: `learned` for a learned weight of the attention branch, initially 1 - g.
    """

    def __init__(
        self,
        manifold: Lorentz,
        graph_weight: Fraction,
        operator: Operator = "centroid",
        weights: Weights = "learned",
    ) -> None:
        shares = (1 - graph_weight, graph_weight)
        ones = (1.0, 1.0)
        if operator in IN_TANGENT_SPACE:
            tangent_weights = shares
            point_weights = ones
        else:
            tangent_weights = ones
            point_weights = shares
        super().__init__(manifold, operator, weights, *point_weights)
        self.tangent_weights = tangent_weights

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        weight_x, weight_y = self.tangent_weights
        return super().forward(self._lift(x, weight_x), self._lift(y, weight_y))

    def _lift(self, branch: Tensor, weight: float) -> Tensor:
        vectors = branch if weight == 1 else weight * branch
        return self.space.expmap0_shortened(vectors)


class LRNSGFormer(TwoBranches):
    r"""Hyperbolic SGFormer: flat attention and a flat graph network, added on the hyperboloid.

    Prototypes decode the points `[nodes, 1 + dim]`.

    Args:
        residual: factory of the sum, from `manifold` and `graph_weight`.

    Paper: LRN's SGFormer, whose two branches are added on the hyperboloid (He et al. 2024,
    arXiv:2412.14695).

    Source: Section 4.2 and Equations 5 and 6, with the weights inside the operator, since a scaled
    point is not a point; SGFormer (Wu et al. 2023). Differences from the code: vectors have no time
    coordinate before they are lifted, and only one of the centroid's two weights is learned, since
    only their ratio matters.
    """

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Lorentz] = partial(Lorentz, learnable=True),
        residual: Callable[..., BranchSum] = BranchSum,
        dim: PositiveInt = 16,
        **branches: Unpack[BranchOptions],
    ) -> None:
        super().__init__(in_channels, True, dim, **branches)
        self.space = manifold()
        self.dim_out = 1 + dim
        self.residual = residual(manifold=self.space, graph_weight=self.graph_weight)

    def forward(self, batch: Data) -> Tensor:
        return self.residual(self.attend(batch), self.convolve(batch))
