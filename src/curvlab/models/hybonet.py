"""HyboNet: Fully hyperbolic neural networks (Chen et al. 2022, arXiv:2105.14686)."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.data.transforms.graph import GraphTransform, SparseAdjacency
from curvlab.graph.sparse_graph import SparseGraph
from curvlab.layers.hybonet import CentroidAggregation, HyboNetFeatureLinear, HyboNetLinear
from curvlab.layers.lorentz import LorentzResidual
from curvlab.manifolds import Lorentz, lorentz
from curvlab.models.encoder import Encoder
from curvlab.options import Activation, Dropout, Passed, PositiveFloat, PositiveInt, SpaceMaker


class HyboNet(Encoder):
    r"""Graph convolution network that never leaves the hyperboloid.

        h_0 = exp_o(features),    h_l = aggregate(linear_l(h_{l-1})).

    All points lie on one hyperboloid of one curvature.

    Shapes: `batch.x [nodes, in_channels]`, `batch.adj_t [nodes, nodes]` (sparse CSR); returns
    `[nodes, 1 + dim]`.

    Args:
        dim: number of space-like coordinates; the papers also count the time, so that 15 is their
            16.
        dropout: dropout of every layer's input, time included.
        activation: activation of every layer's input except the first layer's; null: none.
        time_offset: smallest time of a layer's output above the origin's; 0.1 in HyboNet's code.
        max_scale: upper bound of the learned range of times; null: none.
        self_loops: Count a node among its own neighbours; false in LRN's code for heterophilous
            graphs.
        activate_features: apply the activation to the first layer's input too, as LRN does.

    Source: the paper's Section 3 and code. Differences from the code: all layers have one curvature
    (in the code, the residual connection of LRN has -c and all other layers have -1 / c, see
    docs/protocol.md), and a node without neighbours keeps its position instead of leaving the
    hyperboloid.
    """

    space: Lorentz

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Lorentz] = partial(Lorentz, learnable=True),
        dim: PositiveInt = 15,
        layers: PositiveInt = 2,
        dropout: Dropout = 0.0,
        activation: Activation | None = None,
        time_offset: PositiveFloat = 0.5,
        max_scale: PositiveFloat | None = None,
        self_loops: bool = True,
        activate_features: Passed[bool] = False,
    ) -> None:
        super().__init__()
        self.space = manifold()
        self.dim_out = 1 + dim
        self.transforms = self.required_transforms({"self_loops": self_loops})
        time = time_offset, max_scale
        first = activation if activate_features else None
        self.features = HyboNetFeatureLinear(in_channels, dim, self.space, dropout, first, *time)
        self.linears = nn.ModuleList(
            HyboNetLinear(dim, dim, self.space, dropout, activation, *time)
            for _ in range(layers - 1)
        )
        self.aggregate = CentroidAggregation(self.space)

    @classmethod
    def required_transforms(cls, options: Mapping[str, Any]) -> Sequence[GraphTransform]:
        return (SparseAdjacency(options["self_loops"]),)

    def forward(self, batch: Data) -> Tensor:
        return self.points(batch)[-1]

    def points(self, batch: Data) -> list[Tensor]:
        graph = SparseGraph.from_data(batch)
        adjacency = graph.matrix("adj_t")
        points = [self.aggregate(adjacency, self.features(graph.features))]
        for i, linear in enumerate(self.linears):
            z = self.aggregate(adjacency, linear(points[-1]))
            points.append(self.connect(i, points[-1], z))
        return points

    def connect(self, layer: int, x: Tensor, z: Tensor) -> Tensor:  # noqa: ARG002
        """Combine a layer's input x and output z."""
        return z


class LRN(HyboNet):
    r"""HyboNet with Lorentzian residual connections.

    With `z_l = aggregate(linear_l(h_{l-1}))` and `h_1 = z_1`,

        sequential:     h_l = h_{l-1} (+) z_l, as in LRN's code and appendix,
        aggregate_all:  h_l = z_l, and the result is z_L (+) z_{L-1} (+) ... (+) z_1, from the left
                        (the centroid of all for the operator `centroid`), as in LRN's Section 3.

    The first layer has no residual connection, because its input is as wide as the features. Unlike
    HyboNet's, its input is activated, as in both codes.

    Args:
        residual: factory of a layer's residual connection, from `manifold`.
        skip_mode: place of the residual connections, see above.

    Paper: LRN: Lorentzian residual neural networks (He et al. 2024, arXiv:2412.14695).

    Source: Section 3, Appendix F.1.1 and code.
    """

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Lorentz] = partial(Lorentz, learnable=True),
        residual: Callable[..., LorentzResidual] = LorentzResidual,
        skip_mode: Literal["sequential", "aggregate_all"] = "sequential",
        layers: PositiveInt = 3,
        dim: PositiveInt = 15,
        dropout: Dropout = 0.0,
        activation: Activation | None = None,
        time_offset: PositiveFloat = 0.5,
        max_scale: PositiveFloat | None = None,
        self_loops: bool = True,
    ) -> None:
        super().__init__(
            in_channels,
            manifold,
            dim,
            layers,
            dropout,
            activation,
            time_offset,
            max_scale,
            self_loops,
            activate_features=True,
        )
        self.skip_mode = skip_mode
        self.residuals = nn.ModuleList(residual(manifold=self.space) for _ in range(layers - 1))

    def forward(self, batch: Data) -> Tensor:
        points = self.points(batch)
        if self.skip_mode == "aggregate_all" and self.residuals:
            return self._sum(points)
        return points[-1]

    def connect(self, layer: int, x: Tensor, z: Tensor) -> Tensor:
        return self.residuals[layer](x, z) if self.skip_mode == "sequential" else z

    def _sum(self, points: list[Tensor]) -> Tensor:
        """z_L (+) ... (+) z_1: w_x weighs the sum so far, w_y the next point."""
        total, *points_below = points[::-1]
        residuals: list[LorentzResidual] = list(self.residuals)  # type: ignore[arg-type]
        pairs = zip(residuals, points_below, strict=True)
        if residuals[0].operator != "centroid":
            for residual, z in pairs:
                total = residual(total, z)
            return total
        for residual, z in pairs:
            total = total + (residual.weight_y / residual.weight_x) * z
        return lorentz.normalise(total, self.space.kappa)
