"""SGFormer: Simplifying and empowering transformers for large-graph representations.

Wu et al. 2023, arXiv:2306.10759. LRN's form merges its two branches on the hyperboloid.
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
"""Operators of a sum whose operands are scaled before they are points."""


def simple_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    r"""All-pair attention `(N v + q (k^T v)) / (N + q (k^T 1))` of each head, in linear time.

    q and k are divided by their Frobenius norms, over nodes and heads, so that every denominator is
    positive: a node's own value weighs N, all others a number of size 1 together.

    Shapes: `[nodes, heads, width]` twice, values `[nodes, heads, dim]` or, the same for all heads,
    `[nodes, 1, dim]`; returns `[nodes, heads, dim]`.

    Source: SGFormer (Wu et al. 2023); the released code for the norms over all heads.
    """
    nodes, heads = q.shape[:2]
    tiny = torch.finfo(q.dtype).tiny  # 0 stays 0
    q, k = (part / torch.linalg.vector_norm(part).clamp_min(tiny) for part in (q, k))
    q, k = q.transpose(0, 1), k.transpose(0, 1)
    v = v.transpose(0, 1).expand(heads, -1, -1)
    normaliser = nodes + q @ k.sum(1).unsqueeze(-1)
    return ((nodes * v + q @ (k.transpose(1, 2) @ v)) / normaliser).transpose(0, 1)


class _SimpleAttention(nn.Module):
    """`simple_attention` of linear maps of the nodes `[nodes, dim]`, mean over heads."""

    def __init__(self, dim: int, heads: int, value_map: bool) -> None:
        super().__init__()
        self.heads = heads
        self.queries = nn.Linear(dim, heads * dim)
        self.keys = nn.Linear(dim, heads * dim)
        self.values = nn.Linear(dim, heads * dim) if value_map else None

    def forward(self, x: Tensor) -> Tensor:
        q, k = (part(x).unflatten(-1, (self.heads, -1)) for part in (self.queries, self.keys))
        v = x.unsqueeze(1)
        if self.values is not None:
            v = self.values(x).unflatten(-1, (self.heads, -1))
        return simple_attention(q, k, v).mean(1)


class SimpleTransformer(nn.Module):
    """The attention's branch, see `TwoBranches`: features `[nodes, in]` to `[nodes, dim]`."""

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
        self.dropout, self.averages = dropout, averages
        self.weight_decay = weight_decay  # read by `parameter_groups`

    def forward(self, features: Tensor | Features) -> Tensor:
        x = F.relu(self.feature_norm(self.features(features)))
        x = dropout(x, self.dropout, self.training)
        for attention, norm in zip(self.layers, self.norms, strict=True):
            mixed = attention(x)
            mixed = norm((mixed + x) / 2 if self.averages else mixed)
            x = dropout(mixed, self.dropout, self.training)
        return x


class GCNBranch(Checked, nn.Module):
    """The graph's branch on small graphs, a GCN: `x <- drop(relu(A x W + b))`, the last layer bare.

    Unlike `GraphNetwork` it drops hidden features only.

    Shapes: features `[nodes, in_channels]`, also sparse ones, adjacency A `[nodes, nodes]` (sparse
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
    """SGFormer's attention and a graph network side by side; a subclass merges them.

    The attention's branch is `x <- drop(relu([LN](W x + b)))`, then a few layers of attention,
    `x <- drop([LN]((attention(x) + x) / 2))` if it `averages`, else without the residual connection
    `x <- drop([LN](attention(x)))`; neither activation nor feed-forward follows.

    Shapes: `batch.x [nodes, in_channels]`, `batch.normalised_adj [nodes, nodes]`, with self-loops.

    Args:
        averages: Average a layer's output with its input.
        graph_branch: factory of the graph's branch: `GCNBranch` or, on large graphs,
            `GraphConvolutionBranch`.
        dim: width of both branches and of every head.
        graph_weight: weight of the graph's branch in the sum of the two.
        layers: number of attention layers.
        heads: number of attention heads, each as wide as the model; their mean is taken.
        dropout: dropout of the attention's branch.
        value_map: map the values that attention mixes; false: attention mixes its inputs.
        layer_norm: normalise the attention's branch.
        transformer_weight_decay: weight decay of the attention's branch; null:
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
        self.graph_weight, self.dim_out = graph_weight, dim

    def attend(self, batch: Data) -> Tensor:
        return self.transformer(SparseGraph.from_data(batch).features)

    def convolve(self, batch: Data) -> Tensor:
        graph = SparseGraph.from_data(batch)
        return self.graph_branch(graph.features, graph.matrix("normalised_adj"))


class SGFormer(TwoBranches, FlatEncoder):
    r"""Simplified graph transformer: `alpha x_graph + (1 - alpha) x_attention`.

    PyTorch Geometric's `nn.models.SGFormer` (2.8) differs: it divides each row of q and k by its
    own norm, always maps the values, and activates after attention.

    Args:
        residual: average a layer's output with its input.

    Source: the paper. For Cora, Citeseer and Pubmed the released code takes the layer's input for
    values, and neither norms nor residual connections, as the defaults here do. The paper's text
    has them: `value_map`, `layer_norm`, `residual`.
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
    r"""Sum on the hyperboloid of two flat branches, attention Z and graph network G.

    With g the graph's weight,

        centroid, space_addition:           (1 - g) exp_o(Z) (+) g exp_o(G), weights inside (+),
        parallel_transport, tangent_space:  exp_o((1 - g) Z) (+) exp_o(g G).

    Shapes: `[nodes, dim]` twice to `[nodes, 1 + dim]`.

    Args:
        operator: operator of the sum, see above.
        weights: `learned`: learn the weight of the attention's branch, starting at 1 - g.
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
        before, inside = ones, shares
        if operator in IN_TANGENT_SPACE:
            before, inside = shares, ones
        super().__init__(manifold, operator, weights, *inside)
        self.before = before

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        z, g = (
            self.space.expmap0_shortened(branch if weight == 1 else weight * branch)
            for weight, branch in zip(self.before, (x, y), strict=True)
        )
        return super().forward(z, g)


class LRNSGFormer(TwoBranches):
    r"""Hyperbolic SGFormer: attention and graph network, both flat, merged on the hyperboloid.

    Prototypes decode the points `[nodes, 1 + dim]`.

    Args:
        residual: factory of the sum, from `manifold` and `graph_weight`.

    Paper: LRN's SGFormer, whose two branches meet on the hyperboloid (He et al. 2024,
    arXiv:2412.14695).

    Source: Section 4.2 and Equations 5 and 6, the weights inside the operator (a scaled point is
    none); SGFormer (Wu et al. 2023). Differences from the code: vectors have no time coordinate
    before they are lifted, and of the two weights of the centroid, whose ratio counts, one is
    learned.
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
