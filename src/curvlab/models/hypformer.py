r"""Hypformer, "Exploring efficient hyperbolic transformer fully in hyperbolic space".

Yang et al. 2024, arXiv:2407.01290. Source: Section 4 and the authors' code. The paper learns the
curvatures (`learnable` of the manifold); in the code they are constants.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.data.transforms.graph import GraphTransform, NormalisedAdjacency
from curvlab.errors import UsageError
from curvlab.graph.sparse_graph import Features, SparseGraph, as_features
from curvlab.layers.elementwise import Dropout as DropoutLayer
from curvlab.layers.graph_propagation import GraphConvolutionBranch
from curvlab.layers.lorentz import (
    CurvatureMode,
    InputLift,
    LorentzFeatureLinear,
    LorentzLinear,
    LorentzMap,
    midpoint,
    vectors_to_points,
)
from curvlab.layers.lorentz_attention import LorentzLinearAttention
from curvlab.manifolds import Euclidean, Lorentz, Manifold, lorentz
from curvlab.models.encoder import Encoder
from curvlab.options import Dropout, NegativeFloat, PositiveFloat, PositiveInt, Share, SpaceMaker


class HyperbolicTransformer(nn.Module):
    r"""The attention branch (Hypformer, Section 4 and Figure 4): features to points.

    With HTC a linear map of points, HRC a function of their space parts, and `(.)` the midpoint:

        x = HTC(exp_0 X),  x <- x (.) eps HTC'(exp_0 X),  x <- HRC[layer norm, relu, dropout](x);
        in each layer  x <- HRC[layer norm]( attention(x) (.) x );  z = HTC''(x).

    The second term, with a separate map, is the positional encoding. A layer has neither activation
    nor feed-forward network; the paper's figure calls the last HTC a feed-forward layer.

    With `curvature_mode=recalibrate` the midpoints are on the features' space, as in the authors'
    code for small graphs. Unlike in the code, a point lies on the same space in training and
    evaluation.

    Shapes: `[nodes, in_channels] -> [nodes, 1 + dim]`; features may be nearly all 0.

    Args:
        spaces: Spaces of the lifted features, of the points between the first and the last map, and
            of the result; the last HTC makes the change of curvature of Eq. 18.
        attentions: Layers of attention on the second space.
        input_functions: Functions of the first HRC.

    Source: Hypformer, Section 4, in the order of the authors' code.
    """

    def __init__(
        self,
        in_channels: int,
        dim: int,
        spaces: tuple[Lorentz, Lorentz, Lorentz],
        attentions: Sequence[nn.Module],
        curvature_mode: CurvatureMode,
        input_lift: InputLift,
        position_weight: float,
        input_functions: Sequence[nn.Module],
        layer_norm: bool,
        residual: bool,
    ) -> None:
        super().__init__()
        space_in, space, space_out = spaces
        middle = space_in if curvature_mode == "recalibrate" else space
        make_linear = partial(
            LorentzFeatureLinear, in_channels, dim, space_in, middle, curvature_mode, input_lift
        )
        self.features = make_linear()
        self.position = make_linear()
        self.space = space
        self.middle = middle
        self.position_share = position_weight / (1 + position_weight)
        self.input_map = None
        if input_functions:
            self.input_map = LorentzMap(nn.Sequential(*input_functions), self.space)
        self.attentions = nn.ModuleList(attentions)
        self.norms = nn.ModuleList(
            LorentzMap(nn.LayerNorm(dim), self.space) for _ in attentions if layer_norm
        )
        self.residual = residual
        self.last = LorentzLinear(dim, dim, self.space, space_out, curvature_mode)

    def forward(self, features: Tensor | Features) -> Tensor:
        features = as_features(features)
        x = self.features(features)
        position = self.position(features)
        x = lorentz.midpoint(x, position, self.middle.kappa, self.position_share)
        if self.input_map is not None:
            x = self.input_map(x)
        for i, attention in enumerate(self.attentions):
            attended = attention(x)
            if self.residual:
                is_mapped = self.input_map if i == 0 else self.norms
                space = self.space if is_mapped else self.middle  # the space of x
                attended = midpoint(x, attended, space, self.space)
                if space is not self.middle:
                    attended = lorentz.change_curvature(attended, space.kappa, self.middle.kappa)
            x = self.norms[i](attended) if self.norms else attended
        return self.last(x)


class Hypformer(Encoder):
    r"""Hypformer: a hyperbolic transformer and a Euclidean graph network, weighted by alpha.

    With z the points of `HyperbolicTransformer` and g the vectors of the graph branch,

        tangent:   [(1 - alpha) log_0 z, alpha g], `[nodes, 2 dim]`, flat,
        midpoint:  the midpoint of (1 - alpha) z and alpha HTC(exp_0 g), `[nodes, 1 + dim]`.

    A linear decoder maps `tangent` to the weighted sum of two decoders, `euc` in the authors' code.
    Prototypes decode `midpoint`, as the code's `hyp`. With a single branch no weights are applied.

    Shapes: `batch.x [nodes, in_channels]`, `batch.normalised_adj [nodes, nodes]` (sparse CSR).

    Args:
        manifold: factory of a Lorentz space, with its default curvature or with a given `kappa`.
        attention: factory of a layer from `dim`, `heads` and `manifold`.
        graph_branch: factory of the graph network from `in_channels` and `dim`.
        kappa_in: curvature of the space of the lifted features; attention uses `manifold()`.
        kappa_out: curvature of the space of the embeddings; None: that of `manifold()`.
        curvature_mode: change between curvatures: `rescale` (the paper) or `recalibrate` (its
            code).
        input_lift: lift of the features and of the graph's vectors: `exp0` (the paper) or
            `exp0_ref` (its code).
        dim: width of both branches, and of a head.
        heads: number of attention heads, whose outputs are averaged.
        position_weight: weight eps of the positional encoding (Eq. 20).
        layer_norm: normalise before the first layer of attention and after each.
        input_activation: apply the ReLU before the first layer of attention.
        dropout: dropout before the first layer of attention.
        residual: replace a layer's output by its midpoint with the input.
        transformer: use the transformer; False: the graph network alone.
        graph: use the graph network; False: the transformer alone.
        self_loops: Add a self-loop to every node that the graph network averages over; true in the
            authors' code for large and nearest-neighbour graphs.
        graph_weight: weight alpha of the graph network.
        fusion: fusion of the branches: `tangent` (flat, concatenated) or `midpoint` (on the
            hyperboloid).
        linear_maps: maps in the initialisation of a linear decoder: `per_branch` for one map per
            branch; None for a single map, whose initial values are smaller.
    """

    directed = True
    space: Lorentz

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Lorentz] = partial(Lorentz, learnable=True),
        attention: Callable[..., nn.Module] = LorentzLinearAttention,
        graph_branch: Callable[..., GraphConvolutionBranch] = GraphConvolutionBranch,
        kappa_in: NegativeFloat = -1.0,
        kappa_out: NegativeFloat | None = None,
        curvature_mode: CurvatureMode = "rescale",
        input_lift: InputLift = "exp0",
        dim: PositiveInt = 16,
        layers: PositiveInt = 1,
        heads: PositiveInt = 1,
        position_weight: PositiveFloat = 1.0,
        layer_norm: bool = False,
        input_activation: bool = False,
        dropout: Dropout = 0.0,
        residual: bool = True,
        transformer: bool = True,
        graph: bool = True,
        self_loops: bool = False,
        graph_weight: Share = 0.5,
        fusion: Literal["tangent", "midpoint"] = "tangent",
        linear_maps: Literal["per_branch"] | None = "per_branch",
    ) -> None:
        super().__init__()
        if not (graph or transformer):
            raise UsageError("graph=False and transformer=False leave no branch: keep one of them")
        self.fusion = fusion
        self.graph_weight = graph_weight
        self.input_lift = input_lift
        concatenates = bool(graph and transformer) and fusion == "tangent"
        self.linear_maps = 2 if linear_maps and concatenates else 1
        branches = bool(graph) + bool(transformer)
        self.dim_out = 1 + dim if fusion == "midpoint" else branches * dim
        self.transformer = self.graph_branch = self.graph_lift = None
        curved = transformer or fusion == "midpoint"
        space: Any = manifold() if curved else None
        out = space
        if curved and kappa_out is not None:
            out = manifold(kappa=kappa_out)
        if transformer:
            input_functions: list[nn.Module] = []
            if layer_norm:
                input_functions.append(nn.LayerNorm(dim))
            if input_activation:
                input_functions.append(nn.ReLU())
            if dropout > 0:
                input_functions.append(DropoutLayer(dropout))
            self.transformer = HyperbolicTransformer(
                in_channels,
                dim,
                (manifold(kappa=kappa_in), space, out),
                [attention(dim=dim, heads=heads, manifold=space) for _ in range(layers)],
                curvature_mode,
                input_lift,
                position_weight,
                input_functions,
                layer_norm,
                residual,
            )
        if graph:
            self.graph_branch = graph_branch(in_channels, dim)
        if graph and fusion == "midpoint":
            self.graph_lift = LorentzLinear(dim, dim, out, None, curvature_mode)
        self.transforms = self.required_transforms({"graph": graph, "self_loops": self_loops})
        self.space = out  # last, since the order of modules is that of the curvatures
        self.flat = Euclidean(conformal_factor=1.0)

    @classmethod
    def required_transforms(cls, options: Mapping[str, Any]) -> Sequence[GraphTransform]:
        return (NormalisedAdjacency(options["self_loops"]),) if options["graph"] else ()

    @property
    def manifold_out(self) -> Manifold:
        return self.space if self.fusion == "midpoint" else self.flat

    def forward(self, batch: Data) -> Tensor:
        graph = SparseGraph.from_data(batch)
        point = None
        vector = None
        if self.transformer is not None:
            point = self.transformer(graph.features)
        if self.graph_branch is not None:
            vector = self.graph_branch(graph.features, graph.matrix("normalised_adj"))
        if self.fusion == "tangent" and point is not None:
            point = self.space.logmap0(point)
        if self.graph_lift is not None and vector is not None:
            vector = self.graph_lift(vectors_to_points(vector, self.space, self.input_lift))
        if point is None or vector is None:
            single = vector if point is None else point
            assert single is not None
            return single
        if self.fusion == "midpoint":
            return lorentz.midpoint(point, vector, self.space.kappa, self.graph_weight)
        return torch.cat([(1 - self.graph_weight) * point, self.graph_weight * vector], dim=-1)
