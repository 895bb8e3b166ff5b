r"""FPS-T: "Curve Your Attention: Mixed-Curvature Transformers for Graph Representation Learning".

Cho et al. 2023, arXiv:2309.04082. A pre-norm transformer over the node and edge tokens of a graph.
Layer `l` lives on a product of one constant-curvature space per head, with learnable signed
curvatures `kappa^l`. On the Euclidean space it is TokenGT with kernelised attention.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.compilation import Compilable
from curvlab.data.transforms.features import HopFeatures
from curvlab.data.transforms.graph import GraphTransform, LaplacianEigenvectors
from curvlab.graph.sparse_graph import SparseGraph
from curvlab.layers.elementwise import activation_function
from curvlab.layers.feature_linear import FeatureLinear
from curvlab.layers.points import Points
from curvlab.layers.stereographic import (
    AttentionKind,
    Midpoint,
    StereographicAttention,
    StereographicFeedForward,
    StereographicLayerNorm,
    TokenLinear,
)
from curvlab.manifolds import Euclidean, Manifold, Stereographic
from curvlab.models.encoder import Encoder, make_space
from curvlab.options import Activation, Dropout, NonNegativeInt, PositiveInt, SpaceMaker


class TokenFeatures(FeatureLinear, TokenLinear):
    """A linear map of features that may be sparse, else in the layout of tokens."""


class GraphTokens(nn.Module):
    """Node and edge tokens of a graph (FPS-T, Section 4.1; TokenGT).

    Node `u`: `W_in x_u + b_in + PE(u, u) + T_0`; edge `(u, v)`: `PE(u, v) + T_1`, with node
    identifiers `PE(u, v) = W_p [P_u, P_v]` from the Laplacian's eigenvectors `P` and type
    identifiers `T`. Each direction of an edge has one token.

    Each end has a half of `W_p`, as in TokenGT. FPS-T's Appendix B.1 has `PE(u, v) = W_p P_u + W_p
    P_v` (`shared_identifiers`). With `sign_flips` a training step changes the sign of a random half
    of the eigenvectors, since their signs are arbitrary (TokenGT).

    Shapes: `batch.x [nodes, in_channels]`, `batch.eigenvectors [nodes, k]`, `batch.edge_index
    [2, edges]`; returns `[nodes + edges, dim]`, nodes first.
    """

    def __init__(
        self,
        in_channels: int,
        eigenvectors: int,
        dim: int,
        sign_flips: bool,
        shared_identifiers: bool = False,
        features: str = "x",
    ) -> None:
        super().__init__()
        self.features_name = features
        self.features = TokenFeatures(in_channels, dim)
        self.ends = 1 if shared_identifiers else 2
        self.identifiers = nn.Linear(self.ends * eigenvectors, dim, bias=False)
        self.types = nn.Embedding(2, dim)
        self.sign_flips = sign_flips

    def forward(self, batch: Data) -> Tensor:
        source, target = batch.edge_index
        vectors: Tensor = batch.eigenvectors
        if self.sign_flips and self.training:
            flips = torch.randint(2, vectors.shape[1:], device=vectors.device)
            vectors = vectors * (2 * flips - 1)
        # W_p [P_u, P_v] = (first half of W_p) P_u + (second half) P_v, projected once per node.
        halves = self.identifiers.weight.chunk(self.ends, dim=1)
        first = halves[0] @ vectors.T
        second = halves[-1] @ vectors.T
        edge_tokens = first.index_select(1, source) + second.index_select(1, target)
        features = self.features(SparseGraph.from_data(batch).features_of(self.features_name))
        node_type, edge_type = self.types.weight
        node_tokens = features + (first + second).T + node_type
        return torch.cat([node_tokens.T, (edge_tokens.T + edge_type).T], dim=1).T


class FPSTBlock(Compilable):
    """One pre-norm block with Moebius residuals (FPS-T, Eqs. 9-10).

    `x <- MHA(LN(x)) (+) x`, then `x <- FFN(LN(x)) (+) x`, with the sublayer as the left operand.
    """

    on_gpu = False  # Triton 3.6 fails on its backward pass (H100), after minutes

    def __init__(
        self,
        space: Manifold,
        dim: int,
        attention: StereographicAttention,
        feed_forward: StereographicFeedForward,
        layer_norm: bool,
    ) -> None:
        super().__init__()
        self.space = space
        self.norm1 = StereographicLayerNorm(dim, space) if layer_norm else nn.Identity()
        self.attention = attention
        self.norm2 = StereographicLayerNorm(dim, space) if layer_norm else nn.Identity()
        self.feed_forward = feed_forward

    def forward(self, tangent: Tensor, rows: int | None = None) -> Tensor:
        """Map tokens, tangent vectors at the origin `[tokens, dim]`, to points.

        Args:
            tangent: The tokens.
            rows: Number of first tokens to map; the other tokens are only keys and values. None:
                map all tokens.
        """
        x = Points(self.space, tangent, eager=rows is None)  # exp_0
        x = self.attention(self.norm1(x), rows) + x.first(rows)  # Eq. 9
        return (self.feed_forward(self.norm2(x)) + x).x  # Eq. 10


class FPST(Encoder):
    r"""Fully product-stereographic transformer: graph to node embeddings.

    Tokens are tangent vectors at the origin of the first layer's space. Between layers, points move
    by the logarithm and the exponential at the origins (FPS-T, Section 3.4).

    Args:
        manifold: factory of the space of one layer from its number of components; on the Euclidean
            space this is TokenGT. A manifold of one component becomes a product.
        heads: number of heads of a block, each with a learned curvature.
        activation: activation of the feed-forward layer, in the tangent space.
        layer_norm: normalise the inputs of attention and feed-forward.
        attention: `linear` in the tokens, or `exact`: signed dot products, quadratic, a reference.
        out_proj: mix the heads after attention.
        midpoint: midpoint of attention: None for the one on the values' side of a sphere, `paper`
            for the published quotient, which jumps to the antipode beyond the equator.
        dropout: dropout of attention's output and of the feed-forward weights.
        eigenvectors: number of the Laplacian's eigenvectors in the tokens' node identifiers.
        sign_flips: flip the sign of a random half of the eigenvectors in every training step.
        shared_identifiers: use one projection of node identifiers for both ends of an edge, as
            published.
        hops: Number of graph convolutions without weights that are applied to the features first.

    Shapes: a batch with `x`, `edge_index`, `eigenvectors`; returns `[nodes, dim]`, points of
    `manifold_out`.

    Differences from the paper: queries, keys and linear layers have biases, attention has an output
    projection, and the feed-forward layer has no expansion, as in the authors' code, which has a
    curvature vector in every linear layer instead of every block; midpoints of attention stay on
    the values' side of a sphere; node identifiers have a projection for each end of an edge.
    Queries and keys are initialised like the stereographic linear layers (Xavier, gain
    `1 / sqrt 2`, biases 0); the authors' code keeps the initialisation of `nn.Linear`.
    """

    # 2: midpoints of attention stay on the values' side of a sphere; 3: as `Encoder`;
    # 4: as `LaplacianEigenvectors`
    revision = 4

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Manifold] = partial(Stereographic, learnable=True),
        dim: PositiveInt = 16,
        layers: PositiveInt = 1,
        heads: PositiveInt = 2,
        activation: Activation = "relu",
        layer_norm: bool = True,
        attention: AttentionKind = "linear",
        out_proj: bool = True,
        midpoint: Midpoint | None = None,
        dropout: Dropout = 0.0,
        eigenvectors: PositiveInt = 32,
        sign_flips: bool = False,
        shared_identifiers: bool = False,
        hops: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        features = "inputs" if hops else "x"
        self.tokens = GraphTokens(
            in_channels, eigenvectors, dim, sign_flips, shared_identifiers, features
        )
        self.transforms = self.required_transforms({"eigenvectors": eigenvectors, "hops": hops})
        blocks = []
        function = activation_function(activation)
        for _ in range(layers):
            space = make_space(manifold, "heads", heads, dim)
            mixer = StereographicAttention(
                dim, heads, space, attention, out_proj, midpoint, dropout
            )
            network = StereographicFeedForward(dim, dim, function, space, weight_dropout=dropout)
            blocks.append(FPSTBlock(space, dim, mixer, network, layer_norm))
        self.spaces = [block.space for block in blocks]
        self.blocks = nn.Sequential(*blocks)
        self.dim_out = dim + self.manifold_out.codimension

    @classmethod
    def required_transforms(cls, options: Mapping[str, Any]) -> Sequence[GraphTransform]:
        eigenvectors = LaplacianEigenvectors(options["eigenvectors"])
        if not options["hops"]:
            return (eigenvectors,)
        return eigenvectors, HopFeatures(options["hops"])

    @property
    def manifold_out(self) -> Manifold:
        return self.spaces[-1]

    def forward(self, batch: Data) -> Tensor:
        *blocks, last_block = self.blocks
        x = self.tokens(batch)
        for block, space in zip(blocks, self.spaces, strict=False):
            x = space.logmap0(block(x))
        return last_block(x, len(batch.x))


class TokenGT(FPST):
    """FPS-T on Euclidean space, where all maps are identities.

    Paper: TokenGT (Kim et al. 2022, arXiv:2207.02505) with kernelised attention, FPS-T's flat
    counterpart and the baseline of its Section 5.

    Default: attention linear in the tokens, as in FPS-T's comparison. TokenGT's paper has softmax
    attention; `attention="exact"` has signed weights instead.
    """

    revision = 3  # 2: as `Encoder`; flat space has no other side; 3: as `LaplacianEigenvectors`

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Euclidean] = Euclidean,
        dim: PositiveInt = 16,
        layers: PositiveInt = 1,
        heads: PositiveInt = 2,
        activation: Activation = "relu",
        layer_norm: bool = True,
        attention: AttentionKind = "linear",
        out_proj: bool = True,
        dropout: Dropout = 0.0,
        eigenvectors: PositiveInt = 32,
        sign_flips: bool = False,
        shared_identifiers: bool = False,
        hops: NonNegativeInt = 0,
    ) -> None:
        super().__init__(
            in_channels,
            manifold,
            dim=dim,
            layers=layers,
            heads=heads,
            activation=activation,
            layer_norm=layer_norm,
            attention=attention,
            out_proj=out_proj,
            dropout=dropout,
            eigenvectors=eigenvectors,
            sign_flips=sign_flips,
            shared_identifiers=shared_identifiers,
            hops=hops,
        )
