r"""Hypformer, "Exploring efficient hyperbolic transformer fully in hyperbolic space".

Yang et al. 2024, arXiv:2407.01290. Section 4 and the authors' code; the paper learns the curvatures
(`learnable` of the manifold), in the code they are constants.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.data.transforms.graph import GraphTransform, NormalisedAdjacency
from curvlab.errors import UsageError
from curvlab.layers.graph_propagation import GraphConvolutionBranch
from curvlab.layers.lorentz import CurvatureMode, InputLift, LorentzLinear, lift_vectors
from curvlab.layers.lorentz_attention import LorentzLinearAttention
from curvlab.layers.lorentz_transformer import HyperbolicTransformer
from curvlab.layers.sparse_graph import SparseGraph
from curvlab.manifolds import EmbeddingSpace, Euclidean, Lorentz, lorentz
from curvlab.models.encoder import Encoder
from curvlab.options import Dropout, NegativeFloat, PositiveFloat, PositiveInt, Share, SpaceMaker


class Hypformer(Encoder):
    r"""Hypformer: a hyperbolic transformer and a Euclidean graph network, weighted by alpha.

    With z the points of `HyperbolicTransformer` and g the vectors of the graph's branch,

        tangent:   [(1 - alpha) log_0 z, alpha g], `[nodes, 2 dim]`, flat,
        midpoint:  the midpoint of (1 - alpha) z and alpha HTC(exp_0 g), `[nodes, 1 + dim]`.

    A linear decoder of the first is the weighted sum of two, what the authors' code calls `euc`;
    prototypes decode the second, as its `hyp`. Without one branch the other is left, unweighted.

    Shapes: `batch.x [nodes, in_channels]`, `batch.normalised_adj [nodes, nodes]` (sparse CSR).

    Args:
        in_channels: number of input features.
        manifold: makes a Lorentz space, of its own curvature or of the `kappa` that is passed.
        attention: makes a layer from `dim`, `heads`, `head_dim` and `space`.
        graph_branch: makes the graph network from `in_channels` and `dim`.
        kappa_in: curvature of the space that features are lifted to; the attention is on
            `manifold()`.
        kappa_out: curvature of the space of the embeddings, which decoders read; None: `manifold()`
            as well. With `learnable` of the manifold all three are learned.
        curvature_mode: between curvatures: `rescale` (the paper) or `recalibrate` (its code for
            small graphs), see `LorentzLinear` and `HyperbolicTransformer`.
        input_lift: of the features and of the graph's vectors: `exp0`, or `exp0_ref`, the paper's
            code, see `LorentzFeatureLinear`.
        dim: width of both branches.
        layers: layers of attention.
        heads: heads of attention.
        head_dim: width of a head; None: `dim`, as heads are averaged.
        positional_encoding: add a second linear map of the features.
        position_weight: its weight, the eps of Eq. 20.
        layer_norm: normalise before the first layer of attention and after each.
        input_activation: apply the ReLU before the first layer of attention.
        dropout: before the first layer of attention.
        residual: replace a layer's output by its midpoint with the input.
        transformer: use the transformer; False: the graph network alone.
        graph: use the graph network; False: the transformer alone.
        graph_weight: alpha, the weight of the graph network.
        fusion: of the branches: `tangent` (flat, side by side) or `midpoint` (on the hyperboloid).
        linear_maps: of a linear decoder of both branches: `per_branch` draws a map of each, as the
            paper's two; None draws one map, smaller by `sqrt 2`.

    Raises:
        UsageError: neither branch is used.
    """

    directed = True

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Lorentz] = Lorentz,
        attention: Callable[..., nn.Module] = LorentzLinearAttention,
        graph_branch: Callable[..., GraphConvolutionBranch] = GraphConvolutionBranch,
        kappa_in: NegativeFloat = -1.0,
        kappa_out: NegativeFloat | None = None,
        curvature_mode: CurvatureMode = "rescale",
        input_lift: InputLift = "exp0",
        dim: PositiveInt = 16,
        layers: PositiveInt = 1,
        heads: PositiveInt = 1,
        head_dim: PositiveInt | None = None,
        positional_encoding: bool = True,
        position_weight: PositiveFloat = 1.0,
        layer_norm: bool = False,
        input_activation: bool = False,
        dropout: Dropout = 0.0,
        residual: bool = True,
        transformer: bool = True,
        graph: bool = True,
        graph_weight: Share = 0.5,
        fusion: Literal["tangent", "midpoint"] = "tangent",
        linear_maps: Literal["per_branch"] | None = "per_branch",
    ) -> None:
        super().__init__()
        if not (graph or transformer):
            raise UsageError("graph=False and transformer=False leave nothing: keep one of the two")
        self.dim, self.fusion, self.graph_weight = dim, fusion, graph_weight
        self.input_lift, self.maps = input_lift, linear_maps
        self.transformer: HyperbolicTransformer | None = None
        self.graph_branch: GraphConvolutionBranch | None = None
        space = out = manifold() if transformer or fusion == "midpoint" else None
        if kappa_out is not None and space is not None:
            out = manifold(kappa=kappa_out)
        if transformer:
            assert space is not None
            assert out is not None
            self.transformer = HyperbolicTransformer(
                in_channels,
                dim,
                manifold(kappa=kappa_in),
                space,
                out,
                [
                    attention(dim=dim, heads=heads, head_dim=head_dim or dim, space=space)
                    for _ in range(layers)
                ],
                curvature_mode,
                input_lift,
                positional_encoding,
                position_weight,
                layer_norm,
                input_activation,
                dropout,
                residual,
            )
        if graph:
            self.graph_branch = graph_branch(in_channels, dim)
        self.graph_lift: LorentzLinear | None = None
        if graph and fusion == "midpoint":
            assert out is not None
            self.graph_lift = LorentzLinear(dim, dim, out, out, curvature_mode)
        self.space = out
        self.flat = Euclidean(conformal_factor=1.0)

    @property
    def manifold_out(self) -> EmbeddingSpace:
        """Flat space with the ordinary distance, or the hyperboloid."""
        if self.fusion == "tangent":
            return self.flat
        assert self.space is not None
        return self.space

    @property
    def dim_out(self) -> int:
        """Width of the embeddings: of the branches that there are, or of a point."""
        if self.fusion == "midpoint":
            return 1 + self.dim
        return self.dim * ((self.transformer is not None) + (self.graph_branch is not None))

    @property
    def linear_maps(self) -> int:
        """A map of each branch, or one."""
        both = self.transformer is not None and self.graph_branch is not None
        return 2 if self.maps and both and self.fusion == "tangent" else 1

    def transforms(self) -> Sequence[GraphTransform]:
        """The graph's branch reads the adjacency without self-loops."""
        return (NormalisedAdjacency(self_loops=False),) if self.graph_branch is not None else ()

    def forward(self, batch: Data) -> Tensor:
        """Node embeddings `[nodes, dim_out]`."""
        graph = SparseGraph.of(batch)
        point = None if self.transformer is None else self.transformer(graph.features)
        if self.graph_branch is None:
            return self._fused(point, None)
        adjacency = graph.matrix("normalised_adj")
        return self._fused(point, self.graph_branch(graph.features, adjacency))

    @torch.no_grad()
    def encode_in_chunks(self, batch: Data, chunk: int) -> Tensor:
        """What `forward` returns in evaluation, with the memory of `chunk` nodes at a time.

        The processes of a group share the chunks of both branches, all of which call this.
        Beside it and the features, four arrays `[nodes, dim]` are held at most, and with softmax
        attention, whose time is quadratic all the same, two more.
        """
        point = vector = None
        if self.transformer is not None:
            point = self.transformer.encode_in_chunks(batch.x, chunk)
        if self.graph_branch is not None:
            vector = self.graph_branch.encode_in_chunks(batch.x, batch.normalised_adj, chunk)
        out = batch.x.new_empty(len(batch.x), self.dim_out)
        for i in range(0, len(out), chunk):
            part = slice(i, i + chunk)
            out[part] = self._fused(
                None if point is None else point[part], None if vector is None else vector[part]
            )
        return out

    def _fused(self, point: Tensor | None, vector: Tensor | None) -> Tensor:
        """One embedding of the transformer's point and the graph's vector."""
        alpha = self.graph_weight
        if self.fusion == "midpoint":
            assert self.space is not None
            if vector is None:
                assert point is not None
                return point
            assert self.graph_lift is not None
            lifted = self.graph_lift(lift_vectors(vector, self.space, self.input_lift))
            if point is None:
                return lifted
            return lorentz.midpoint(point, lifted, self.space.kappa, alpha)
        if point is None:
            assert vector is not None
            return vector
        assert self.space is not None
        tangent = self.space.logmap0(point)
        if vector is None:
            return tangent
        return torch.cat([(1 - alpha) * tangent, alpha * vector], dim=-1)
