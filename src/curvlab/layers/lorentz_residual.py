r"""Residual connections on the hyperboloid: four sums of a point and what a layer made of it."""

import math
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from curvlab.errors import UsageError
from curvlab.layers.spaces import TakesManifold
from curvlab.manifolds import Lorentz, lorentz_sums
from curvlab.options import PositiveFloat

Operator = Literal["centroid", "parallel_transport", "tangent_space", "space_addition"]
Weights = Literal["fixed", "learned"]
OPERATORS: tuple[Operator, ...] = get_args(Operator)
FORMS = {"stable": lorentz_sums.STABLE, "maps": lorentz_sums.LITERAL}
UNWEIGHTED = "parallel_transport"


class LorentzResidual(TakesManifold, nn.Module):
    r"""Sum of a point x and a point y = f(x) of one hyperboloid.

    With s = sqrt(-kappa) and `lift` the point with a given space part:

        centroid:            (w_x x + w_y y) / (s sqrt(-<., .>_L)),
        parallel_transport:  exp_x(P_{o -> x}(log_o y)), without weights,
        tangent_space:       exp_o(w_x log_o x + w_y log_o y),
        space_addition:      lift(w_x x_s + w_y y_s).

    The centroid lies on the geodesic from x to y, so that a network of any depth stays where its
    layers put their outputs; the others move away from the origin, as in flat space.

    Shapes: `[..., 1 + dim]` twice to `[..., 1 + dim]`.

    Args:
        manifold: where x, y and the sum lie.
        operator: of the sum, see above.
        weights: `learned`: `w_x = exp(log_weight)`, while `w_y` stays as it is.
        weight_x: w_x, of the layer's input; where it is learned, what it starts with.
        weight_y: w_y, of the layer's output.
        reverse: take `y + x`, which is another point by parallel transport.
        form: `stable`, or `maps`, the compositions of maps as they are written (for comparison).

    Raises:
        UsageError: an option does not go with the operator.

    Source: LRN (He et al. 2024), Section 3.
    """

    def __init__(
        self,
        manifold: Lorentz,
        operator: Operator = "centroid",
        weights: Weights = "fixed",
        weight_x: PositiveFloat = 1.0,
        weight_y: PositiveFloat = 1.0,
        reverse: bool = False,
        form: Literal["stable", "maps"] = "stable",
    ) -> None:
        super().__init__()
        if operator == UNWEIGHTED and (weights, weight_x, weight_y) != ("fixed", 1, 1):
            raise UsageError(
                "operator='parallel_transport' has no weights: leave weights='fixed' and both at 1"
            )
        self.space, self.operator, self.form, self.reverse = manifold, operator, form, reverse
        self.weight_y = weight_y
        self._fixed = weight_x
        self.log_weight: nn.Parameter | None = None
        if weights == "learned":
            self.log_weight = nn.Parameter(torch.tensor(math.log(weight_x)))

    @property
    def weight_x(self) -> Tensor | float:
        """w_x."""
        return self._fixed if self.log_weight is None else self.log_weight.exp()

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Sum of points x and y, both `[..., 1 + dim]`."""
        total, kappa = FORMS[self.form][self.operator], self.space.kappa
        weights = self.weight_x, self.weight_y
        if self.reverse:
            return total(y, x, kappa, *weights[::-1])
        return total(x, y, kappa, *weights)
