r"""Hypformer: linear attention on the hyperboloid beside a Euclidean graph network."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.errors import UsageError
from curvlab.layers.graph_propagation import GraphConvolutionBranch
from curvlab.layers.lorentz import LorentzLinear, lift_vectors
from curvlab.layers.lorentz_transformer import HyperbolicTransformer
from curvlab.manifolds import EmbeddingSpace, Euclidean, Lorentz, lorentz
from curvlab.models.encoder import Encoder
from curvlab.options import SpaceMaker

FUSIONS = ("tangent", "midpoint")
LINEAR_MAPS = (None, "per_branch")


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
        manifold: makes a Lorentz space, of its own curvature or of the `kappa` that it is given.
        attention: makes a layer of `dim`, `heads`, `head_dim` and `space`: linear or softmax.
        graph_branch: makes the graph's branch of `in_channels` and `dim`.
        kappa_in: curvature of the space that features are lifted to; all else is on `manifold()`.
        curvature_mode: `rescale` or `recalibrate`, see `LorentzLinear` and `HyperbolicTransformer`.
        input_lift: of the features and of the graph's vectors, `exp0` or `exp0_ref`, see
            `LorentzFeatureLinear`.
        dim: width of both branches.
        layers: of attention.
        heads: of attention.
        head_dim: width of a head.
        positional_encoding: add the second map of the features.
        layer_norm: normalise before the first layer and after each.
        input_activation: take the relu before the first layer.
        dropout: before the first layer.
        residual: add a layer's input to its output by the midpoint.
        transformer: whether there is the attention's branch.
        graph: whether there is the graph's.
        graph_weight: alpha, from 0 to 1.
        fusion: `tangent` or `midpoint`.
        linear_maps: `per_branch` for a linear decoder that draws the map of each branch by itself,
            as the authors' two; None for one that draws a map of both, smaller by `sqrt 2`.

    Raises:
        UsageError: neither branch is there, or an option is none of its choices.

    Source: Hypformer (Yang et al. 2024), Section 4 and the authors' code. The paper learns the
    curvatures (`learnable` of the manifold); in the code they are constants.
    """

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Lorentz],
        attention: Callable[..., nn.Module],
        graph_branch: Callable[..., GraphConvolutionBranch],
        kappa_in: float,
        curvature_mode: str,
        input_lift: str,
        dim: int,
        layers: int,
        heads: int,
        head_dim: int,
        positional_encoding: bool,
        layer_norm: bool,
        input_activation: bool,
        dropout: float,
        residual: bool,
        transformer: bool,
        graph: bool,
        graph_weight: float,
        fusion: str,
        linear_maps: str | None = None,
    ) -> None:
        super().__init__()
        if fusion not in FUSIONS:
            raise UsageError(f"fusion is 'tangent' or 'midpoint', not {fusion!r}")
        if linear_maps not in LINEAR_MAPS:
            raise UsageError(f"linear_maps is 'per_branch' or null, not {linear_maps!r}")
        if not (graph or transformer):
            raise UsageError(
                "model.graph=false and model.transformer=false leave nothing: keep one of the two"
            )
        self.dim, self.fusion, self.graph_weight = dim, fusion, graph_weight
        self.input_lift, self.maps = input_lift, linear_maps
        self.transformer: HyperbolicTransformer | None = None
        self.graph_branch: GraphConvolutionBranch | None = None
        space = manifold() if transformer or fusion == "midpoint" else None
        if transformer:
            assert space is not None
            self.transformer = HyperbolicTransformer(
                in_channels,
                dim,
                manifold(kappa=kappa_in),
                space,
                [
                    attention(dim=dim, heads=heads, head_dim=head_dim, space=space)
                    for _ in range(layers)
                ],
                curvature_mode,
                input_lift,
                positional_encoding,
                layer_norm,
                input_activation,
                dropout,
                residual,
            )
        if graph:
            self.graph_branch = graph_branch(in_channels, dim)
        self.graph_lift: LorentzLinear | None = None
        if graph and fusion == "midpoint":
            assert space is not None
            self.graph_lift = LorentzLinear(dim, dim, space, space, curvature_mode)
        self.space = space
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
        return 2 if self.maps == "per_branch" and self.dim_out == 2 * self.dim else 1

    def forward(self, batch: Data) -> Tensor:
        """Node embeddings `[nodes, dim_out]`."""
        point = None if self.transformer is None else self.transformer(batch.x)
        if self.graph_branch is None:
            return self._fused(point, None)
        return self._fused(point, self.graph_branch(batch.x, batch.normalised_adj))

    @torch.no_grad()
    def encode_in_chunks(self, batch: Data, chunk: int) -> Tensor:
        """What `forward` returns in evaluation, with the memory of so many nodes at a time.

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
