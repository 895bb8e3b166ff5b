r"""SGFormer whose two branches meet on the hyperboloid, by one of LRN's residual operators."""

from collections.abc import Callable

from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.layers.lorentz_residual import UNWEIGHTED, LorentzResidual
from curvlab.manifolds import Lorentz
from curvlab.models.encoder import Encoder
from curvlab.models.sgformer import SimpleTransformer
from curvlab.options import SpaceMaker

IN_TANGENT_SPACE = (UNWEIGHTED, "tangent_space")
"""Operators whose operands are scaled before they are lifted."""


class LRNSGFormer(Encoder):
    r"""Hyperbolic SGFormer: attention Z and graph network G, both flat, merged on the hyperboloid.

    With g the graph's weight,

        centroid, space_addition:           (1 - g) exp_o(Z) (+) g exp_o(G), weights inside (+),
        parallel_transport, tangent_space:  exp_o((1 - g) Z) (+) exp_o(g G).

    A learned weight starts at these; prototypes decode the points.

    Shapes: `batch.x [nodes, in_channels]`, `batch.normalised_adj [nodes, nodes]`, with self-loops;
    returns `[nodes, 1 + dim]`.

    Args:
        in_channels: number of input features.
        manifold: makes the Lorentz space.
        residual: makes the connection of `space`, `weight_x` and `weight_y`.
        graph_branch: makes the graph's branch of the numbers of features and of its output.
        dim: width.
        graph_weight: g, from 0 to 1.
        layers: of attention; so are those below, see `SimpleTransformer`.
        heads: of attention, each as wide as the model.
        dropout: of the attention's branch.
        value_map: map the values.
        residual_attention: average a layer's output with its input, in flat space.
        layer_norm: normalise the attention's branch.
        transformer_weight_decay: of the attention's branch; `None` is the optimiser's.

    Source: LRN (He et al. 2024), Section 4.2 and Equations 5 and 6, the weights inside the operator
    (a scaled point is none); SGFormer (Wu et al. 2023). Differences from the code: vectors have no
    time coordinate before they are lifted, and of the two weights of the centroid, whose ratio
    counts, one is learned.
    """

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Lorentz],
        residual: Callable[..., LorentzResidual],
        graph_branch: Callable[[int, int], nn.Module],
        dim: int,
        graph_weight: float,
        layers: int,
        heads: int,
        dropout: float,
        value_map: bool,
        residual_attention: bool,
        layer_norm: bool,
        transformer_weight_decay: float | None,
    ) -> None:
        super().__init__()
        self.transformer = SimpleTransformer(
            in_channels,
            dim,
            layers,
            heads,
            dropout,
            value_map,
            residual_attention,
            layer_norm,
            transformer_weight_decay,
        )
        self.graph_branch = graph_branch(in_channels, dim)
        self.space, self.dim = manifold(), dim
        weights = 1 - graph_weight, graph_weight
        self.residual = residual(space=self.space)
        self.tangent_weights = (1.0, 1.0)
        if self.residual.operator in IN_TANGENT_SPACE:
            self.tangent_weights = weights
        else:
            self.residual = residual(space=self.space, weight_x=weights[0], weight_y=weights[1])

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
        branches = self.transformer(batch.x), self.graph_branch(batch.x, batch.normalised_adj)
        z, g = (
            self.space.expmap0(branch if weight == 1 else weight * branch)
            for weight, branch in zip(self.tangent_weights, branches, strict=True)
        )
        return self.residual(z, g)
