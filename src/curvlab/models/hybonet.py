r"""HyboNet, a graph network that never leaves the hyperboloid, and LRN, the same with residuals."""

from collections.abc import Callable

from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.errors import UsageError
from curvlab.layers.hybonet import (
    CentroidAggregation,
    CentroidAttention,
    HyboNetFeatureLinear,
    HyboNetLinear,
)
from curvlab.layers.lorentz_residual import LorentzResidual
from curvlab.manifolds import Lorentz, lorentz
from curvlab.models.encoder import Encoder
from curvlab.options import SpaceMaker

SKIPS = ("sequential", "aggregate_all")


class HyboNet(Encoder):
    r"""HyboNet's graph convolution network; with `residual` it is LRN's.

        h_0 = exp_o(features),    z_l = aggregate(linear_l(h_{l-1})),    h_1 = z_1,

        none:           h_l = z_l,
        sequential:     h_l = h_{l-1} (+) z_l, as LRN's code and its appendix,
        aggregate_all:  h_l = z_l, and the result is z_L (+) z_{L-1} (+) ... (+) z_1, from the left,
                        by the centroid the one of all of them; as LRN's Section 3.

    The first layer has no residual connection, because its input is as wide as the features; its
    input is activated in LRN alone, as in the two codes. All points lie on one hyperboloid of one
    curvature.

    Shapes: `batch.x [nodes, in_channels]`, `batch.adj_t [nodes, nodes]` (sparse CSR); returns
    `[nodes, 1 + dim]`.

    Args:
        in_channels: number of input features.
        manifold: makes the Lorentz space.
        residual: makes a layer's connection of `space`; None for HyboNet.
        skip_mode: `sequential` or `aggregate_all`.
        dim: space-like coordinates; the papers' dimensions count time too.
        layers: L, at least 1.
        dropout: of every layer's input, time included.
        activation: of the input of every layer, of HyboNet's but the first; None for none.
        attention: weigh neighbours by `CentroidAttention`.
        time_offset: see `SigmoidTime`.
        max_scale: see `SigmoidTime`.

    Raises:
        UsageError: there is no such skip mode.

    Source: Chen et al. 2022; LRN (He et al. 2024), Section 3, Appendix F.1.1 and code. Differences
    from the code: all layers agree on one curvature (there the residual connection has -c and
    all else -1 / c, docs/protocol.md), and a node without neighbours stays where it is instead of
    leaving the hyperboloid.
    """

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Lorentz],
        residual: Callable[..., LorentzResidual] | None,
        skip_mode: str,
        dim: int,
        layers: int,
        dropout: float,
        activation: str | None,
        attention: bool,
        time_offset: float,
        max_scale: float | None,
    ) -> None:
        super().__init__()
        if skip_mode not in SKIPS:
            raise UsageError(f"skip_mode is {' or '.join(map(repr, SKIPS))}, not {skip_mode!r}")
        self.space = manifold()
        self.dim, self.skip_mode = dim, skip_mode
        time = time_offset, max_scale
        first = None if residual is None else activation
        self.features = HyboNetFeatureLinear(in_channels, dim, self.space, dropout, first, *time)
        self.linears = nn.ModuleList(
            HyboNetLinear(dim, dim, self.space, dropout, activation, *time)
            for _ in range(layers - 1)
        )
        centroid = CentroidAggregation(self.space)  # without parameters: one for all layers
        self.aggregations = nn.ModuleList(
            CentroidAttention(dim, self.space, *time) if attention else centroid
            for _ in range(layers)
        )
        self.residuals = nn.ModuleList()
        if residual is not None:
            self.residuals.extend(residual(space=self.space) for _ in range(layers - 1))

    @property
    def manifold_out(self) -> Lorentz:
        """The hyperboloid."""
        return self.space

    @property
    def dim_out(self) -> int:
        """Coordinates of a point, with time."""
        return 1 + self.dim

    def forward(self, batch: Data) -> Tensor:
        """Node embeddings `[nodes, 1 + dim]`."""
        first, *aggregations = self.aggregations
        points = [first(batch.adj_t, self.features(batch.x))]
        sequential = self.skip_mode == "sequential"
        for i, (linear, aggregate) in enumerate(zip(self.linears, aggregations, strict=True)):
            z = aggregate(batch.adj_t, linear(points[-1]))
            if self.residuals and sequential:
                z = self.residuals[i](points[-1], z)
            points.append(z)
        if self.residuals and not sequential:
            return self._sum(points)
        return points[-1]

    def _sum(self, points: list[Tensor]) -> Tensor:
        """z_L (+) ... (+) z_1: w_x weighs what has been summed, w_y the next."""
        total, *earlier = points[::-1]
        residuals: list[LorentzResidual] = list(self.residuals)  # type: ignore[arg-type]
        pairs = zip(residuals, earlier, strict=True)
        if residuals[0].operator != "centroid":
            for residual, z in pairs:
                total = residual(total, z)
            return total
        for residual, z in pairs:
            total = total + (residual.weight_y / residual.weight_x) * z
        return residual.scaled(lorentz.normalise(total, self.space.kappa))
