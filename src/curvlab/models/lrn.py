"""LRN: Lorentzian residual neural networks (He et al. 2024, arXiv:2412.14695)."""

from collections.abc import Callable
from typing import Any, Literal

from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.layers.lorentz_residual import LorentzResidual
from curvlab.manifolds import Lorentz, lorentz
from curvlab.models.hybonet import HyboNet
from curvlab.options import PositiveInt, SpaceMaker


class LRN(HyboNet):
    r"""HyboNet with Lorentzian residual connections.

    With `z_l = aggregate(linear_l(h_{l-1}))` and `h_1 = z_1`,

        sequential:     h_l = h_{l-1} (+) z_l, as LRN's code and its appendix,
        aggregate_all:  h_l = z_l, and the result is z_L (+) z_{L-1} (+) ... (+) z_1, from the left,
                        by the centroid the one of all of them; as LRN's Section 3.

    The first layer has no residual connection, because its input is as wide as the features; its
    input is activated, unlike HyboNet's, as in the two codes.

    Args:
        manifold: makes the Lorentz space.
        residual: makes a layer's connection of `space`.
        skip_mode: see above.
        layers: number of layers.
        **options: those of `HyboNet`.

    Source: Section 3, Appendix F.1.1 and code.
    """

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Lorentz] = Lorentz,
        residual: Callable[..., LorentzResidual] = LorentzResidual,
        skip_mode: Literal["sequential", "aggregate_all"] = "sequential",
        layers: PositiveInt = 3,
        **options: Any,
    ) -> None:
        super().__init__(in_channels, manifold, layers=layers, activate_features=True, **options)
        self.skip_mode = skip_mode
        self.residuals = nn.ModuleList(residual(space=self.space) for _ in range(layers - 1))

    def forward(self, batch: Data) -> Tensor:
        """Node embeddings `[nodes, 1 + dim]`."""
        points = self.points(batch)
        if self.skip_mode == "aggregate_all" and self.residuals:
            return self._sum(points)
        return points[-1]

    def connect(self, layer: int, x: Tensor, z: Tensor) -> Tensor:
        """A layer's input x and output z, added."""
        return self.residuals[layer](x, z) if self.skip_mode == "sequential" else z

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
        return lorentz.normalise(total, self.space.kappa)
