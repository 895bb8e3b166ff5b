"""SGFormer: Simplifying and empowering transformers for large-graph representations.

Wu et al. 2023, arXiv:2306.10759: one layer of all-pair attention without a softmax, beside a graph
network.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.checked import Checked
from curvlab.data.transforms.graph import GraphTransform, NormalisedAdjacency
from curvlab.layers.dropout import dropout
from curvlab.layers.features import FeatureLinear
from curvlab.layers.sparse_graph import Features, SparseGraph, SparseMatrix, as_matrix
from curvlab.models.encoder import Encoder, FlatEncoder
from curvlab.options import Dropout, NonNegativeFloat, PositiveInt, Share


def simple_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    r"""All-pair attention `(N v + q (k^T v)) / (N + q (k^T 1))` of each head, in linear time.

    q and k are divided by their Frobenius norms, over nodes and heads, so that every denominator is
    positive: a node's own value weighs N, all others a number of size 1 together.

    Shapes: `[nodes, heads, width]` twice, values `[nodes, heads, dim]` or, the same for all heads,
    `[nodes, 1, dim]`; returns `[nodes, heads, dim]`.

    Source: SGFormer (Wu et al. 2023); the released code for the norms over all heads.
    """
    nodes, heads = q.shape[:2]
    q, k = (_unit(part).transpose(0, 1) for part in (q, k))
    v = v.transpose(0, 1).expand(heads, -1, -1)
    normaliser = nodes + q @ k.sum(1).unsqueeze(-1)
    return ((nodes * v + q @ (k.transpose(1, 2) @ v)) / normaliser).transpose(0, 1)


def _unit(x: Tensor) -> Tensor:
    """A tensor over the norm of all of its entries; 0 stays 0."""
    return x / torch.linalg.vector_norm(x).clamp_min(torch.finfo(x.dtype).tiny)


class SimpleAttention(nn.Module):
    """`simple_attention` of linear maps of the nodes, mean over heads of full width.

    Shapes: `[nodes, dim] -> [nodes, dim]`.

    Args:
        dim: width of a node and of every head.
        heads: number of heads.
        value_map: map the values too; without it every head mixes the nodes as they are.
    """

    def __init__(self, dim: int, heads: int, value_map: bool) -> None:
        super().__init__()
        self.heads = heads
        self.queries = nn.Linear(dim, heads * dim)
        self.keys = nn.Linear(dim, heads * dim)
        self.values = nn.Linear(dim, heads * dim) if value_map else None

    def forward(self, x: Tensor) -> Tensor:
        """Mix the nodes."""
        q, k = (part(x).unflatten(-1, (self.heads, -1)) for part in (self.queries, self.keys))
        v = x.unsqueeze(1)
        if self.values is not None:
            v = self.values(x).unflatten(-1, (self.heads, -1))
        return simple_attention(q, k, v).mean(1)


class SimpleTransformer(nn.Module):
    """The attention's branch: `x <- drop(relu([LN](W x + b)))`, then a few layers of attention.

    A layer is `x <- drop([LN]((attention(x) + x) / 2))`, or without the residual connection
    `x <- drop([LN](attention(x)))`; neither activation nor feed-forward follows.

    Shapes: features `[nodes, in_channels]`, also sparse ones; returns `[nodes, dim]`.

    Args:
        in_channels: number of input features.
        dim: width.
        layers: number of layers of attention.
        heads: of each.
        dropout: of every layer's output.
        value_map: see `SimpleAttention`.
        residual: average a layer's output with its input.
        layer_norm: normalise where it says LN.
        weight_decay: of this branch's parameters; `None` is the optimiser's.
    """

    def __init__(
        self,
        in_channels: int,
        dim: int,
        layers: int,
        heads: int,
        dropout: float,
        value_map: bool,
        residual: bool,
        layer_norm: bool,
        weight_decay: float | None,
    ) -> None:
        super().__init__()
        norm = nn.LayerNorm if layer_norm else nn.Identity
        self.features = FeatureLinear(in_channels, dim)
        self.feature_norm = norm(dim)
        self.layers = nn.ModuleList(SimpleAttention(dim, heads, value_map) for _ in range(layers))
        self.norms = nn.ModuleList(norm(dim) for _ in range(layers))
        self.dropout = dropout
        self.residual = residual
        self.weight_decay = weight_decay

    def forward(self, features: Tensor | Features) -> Tensor:
        """Map and mix features."""
        x = self._drop(F.relu(self.feature_norm(self.features(features))))
        for attention, norm in zip(self.layers, self.norms, strict=True):
            mixed = attention(x)
            x = self._drop(norm((mixed + x) / 2 if self.residual else mixed))
        return x

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)


class GCNBranch(Checked, nn.Module):
    """The graph's branch on small graphs, a GCN: `x <- drop(relu(A x W + b))`, the last layer bare.

    Unlike `GraphNetwork` it drops hidden features only.

    Shapes: features `[nodes, in_channels]`, also sparse ones, adjacency A `[nodes, nodes]` (sparse
    CSR, normalised, with self-loops); returns `[nodes, dim]`.

    Args:
        in_channels: number of input features.
        dim: width.
        layers: number of layers.
        dropout: of hidden features.
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
        """Convolve features along the edges."""
        adjacency = as_matrix(adjacency)
        first, *others = zip(self.maps, self.biases, strict=True)
        x = self._layer(features, adjacency, *first)
        for layer in others:
            x = dropout(F.relu(x), self.dropout, self.training)
            x = self._layer(x, adjacency, *layer)
        return x

    def _layer(
        self, x: Tensor | Features, adjacency: SparseMatrix, linear: nn.Module, bias: Tensor
    ) -> Tensor:
        return adjacency @ linear(x) + bias


class TwoBranches(Encoder):
    """SGFormer's attention and a graph network side by side; a subclass merges them.

    Shapes: `batch.x [nodes, in_channels]`, `batch.normalised_adj [nodes, nodes]`, with self-loops.

    Args:
        in_channels: number of input features.
        averages: average a layer of attention's output with its input.
        graph_branch: makes the graph's branch of the numbers of features and of its output:
            `GCNBranch` or, for large graphs, `GraphConvolutionBranch`.
        dim: width of both branches and of every head.
        graph_weight: of the graph's branch in the sum of the two.
        layers: of attention.
        heads: of attention, each as wide as the model; their mean is taken.
        dropout: of the attention's branch.
        value_map: map the values that attention mixes; without it they are its input.
        layer_norm: normalise the attention's branch.
        transformer_weight_decay: of the attention's branch; null: `optimizer.weight_decay`.
    """

    directed = True

    def __init__(
        self,
        in_channels: int,
        averages: bool,
        graph_branch: Callable[[int, int], nn.Module] = GCNBranch,
        dim: PositiveInt = 16,
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
            value_map,
            averages,
            layer_norm,
            transformer_weight_decay,
        )
        self.graph_branch = graph_branch(in_channels, dim)
        self.graph_weight = graph_weight
        self.dim = dim

    def transforms(self) -> Sequence[GraphTransform]:
        """The graph's branch reads the adjacency with self-loops."""
        return (NormalisedAdjacency(),)


class SGFormer(TwoBranches, FlatEncoder):
    r"""Simplified graph transformer: `alpha x_graph + (1 - alpha) x_attention`.

    The decoder that follows is one linear map of this sum.

    PyTorch Geometric's `nn.models.SGFormer` (2.8) is not this model. It divides each row of q and k
    by its own norm instead of the matrices by theirs, always maps the values, and takes the
    residual connection, normalises and activates after attention. It adds batch norm and residual
    connections to the graph's branch and returns logarithms of probabilities.

    Args:
        in_channels: number of input features.
        residual: average a layer's output with its input.
        **options: those of `TwoBranches`; alpha is `graph_weight`.

    Shapes: `batch.x [nodes, in_channels]`, `batch.normalised_adj [nodes, nodes]`, with self-loops;
    returns `[nodes, dim]`.

    Source: the paper. For Cora, Citeseer and Pubmed the released code takes the layer's input for
    values, and neither norms nor residual connections.
    """

    def __init__(self, in_channels: int, residual: bool = False, **options: Any) -> None:
        super().__init__(in_channels, residual, **options)

    def forward(self, batch: Data) -> Tensor:
        """Node embeddings `[nodes, dim]`."""
        graph = SparseGraph.of(batch)
        of_graph = self.graph_branch(graph.features, graph.matrix("normalised_adj"))
        alone = self.transformer(graph.features).to(of_graph.dtype)
        return torch.lerp(alone, of_graph, self.graph_weight)
