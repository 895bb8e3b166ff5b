"""LRN's SGFormer, whose two branches meet on the hyperboloid (He et al. 2024, arXiv:2412.14695)."""

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from curvlab.layers.lorentz_residual import UNWEIGHTED, LorentzResidual, Operator, Weights
from curvlab.layers.sparse_graph import SparseGraph
from curvlab.manifolds import Lorentz
from curvlab.models.sgformer import TwoBranches
from curvlab.options import Fraction, PositiveFloat, SpaceMaker

IN_TANGENT_SPACE = (UNWEIGHTED, "tangent_space")
"""Operators whose operands are scaled before they are lifted."""


class BranchSum(LorentzResidual):
    r"""Sum on the hyperboloid of two flat branches, attention Z and graph network G.

    With g the graph's weight,

        centroid, space_addition:           (1 - g) exp_o(Z) (+) g exp_o(G), weights inside (+),
        parallel_transport, tangent_space:  exp_o((1 - g) Z) (+) exp_o(g G).

    Shapes: `[nodes, dim]` twice to `[nodes, 1 + dim]`.

    Args:
        space: where the sum lies.
        graph_weight: g.
        operator: of the sum, see above.
        weights: `learned`: that of the attention's branch, starting at 1 - g.
        output_scale: factor of the sum's space part; null: none.
        learn_output_scale: learn its logarithm, starting with `output_scale`.
    """

    def __init__(
        self,
        space: Lorentz,
        graph_weight: Fraction,
        operator: Operator = "centroid",
        weights: Weights = "learned",
        output_scale: PositiveFloat | None = None,
        learn_output_scale: bool = False,
    ) -> None:
        shares, ones = (1 - graph_weight, graph_weight), (1.0, 1.0)
        before, inside = (shares, ones) if operator in IN_TANGENT_SPACE else (ones, shares)
        super().__init__(space, operator, weights, *inside, output_scale, learn_output_scale)
        self.before = before

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Points of two flat branches."""
        z, g = (
            self.space.lift(branch if weight == 1 else weight * branch)
            for weight, branch in zip(self.before, (x, y), strict=True)
        )
        return super().forward(z, g)


class LRNSGFormer(TwoBranches):
    r"""Hyperbolic SGFormer: attention and graph network, both flat, merged on the hyperboloid.

    Prototypes decode the points.

    Shapes: `batch.x [nodes, in_channels]`, `batch.normalised_adj [nodes, nodes]`, with self-loops;
    returns `[nodes, 1 + dim]`.

    Args:
        in_channels: number of input features.
        manifold: makes the Lorentz space.
        residual: makes the sum of `space` and `graph_weight`.
        residual_attention: average a layer's output with its input, in flat space.
        **options: those of `TwoBranches`.

    Source: Section 4.2 and Equations 5 and 6, the weights inside the operator (a scaled point is
    none); SGFormer (Wu et al. 2023). Differences from the code: vectors have no time coordinate
    before they are lifted, and of the two weights of the centroid, whose ratio counts, one is
    learned.
    """

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Lorentz] = Lorentz,
        residual: Callable[..., BranchSum] = BranchSum,
        residual_attention: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(in_channels, residual_attention, **options)
        self.space = manifold()
        self.residual = residual(space=self.space, graph_weight=self.graph_weight)

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
        graph = SparseGraph.of(batch)
        attention = self.transformer(graph.features)
        of_graph = self.graph_branch(graph.features, graph.matrix("normalised_adj"))
        return self.residual(attention, of_graph)
