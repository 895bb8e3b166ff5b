r"""Residual connections on the hyperboloid: four sums of a point and what a layer made of it."""

import math
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from curvlab.errors import UsageError
from curvlab.layers.spaces import OnSpaces
from curvlab.manifolds import Lorentz, lorentz, lorentz_sums
from curvlab.manifolds.kernels import by_rows
from curvlab.options import PositiveFloat

Operator = Literal["centroid", "parallel_transport", "tangent_space", "space_addition"]
Weights = Literal["fixed", "learned"]
OPERATORS: tuple[Operator, ...] = get_args(Operator)
FORMS = {"stable": lorentz_sums.STABLE, "maps": lorentz_sums.LITERAL}
UNWEIGHTED = "parallel_transport"


class LorentzResidual(OnSpaces, nn.Module):
    r"""Sum of a point x and a point y = f(x) of one hyperboloid.

    With s = sqrt(-kappa) and `lift` the point with a given space part:

        centroid:            (w_x x + w_y y) / (s sqrt(-<., .>_L)),
        parallel_transport:  exp_x(P_{o -> x}(log_o y)), without weights,
        tangent_space:       exp_o(w_x log_o x + w_y log_o y),
        space_addition:      lift(w_x x_s + w_y y_s).

    The centroid lies on the geodesic from x to y, so that a network of any depth stays where its
    layers put their outputs; the others move away from the origin, as in flat space. Its shrinking
    is undone by `output_scale`: the space part times gamma.

    Shapes: `[..., 1 + dim]` twice to `[..., 1 + dim]`.

    Args:
        space: where x, y and the sum lie.
        operator: of the sum, see above.
        weights: `learned`: `w_x = exp(log_weight)`, while `w_y` stays as it is.
        weight_x: w_x, of the layer's input; where it is learned, what it starts with.
        weight_y: w_y, of the layer's output.
        output_scale: gamma; null: none.
        learn_output_scale: learn `log gamma`, starting with `output_scale`.
        reverse: take `y + x`, which is another point by parallel transport.
        form: `stable`, or `maps`, the compositions of maps as they are written (for comparison).

    Raises:
        UsageError: an option does not go with the operator.

    Source: LRN (He et al. 2024), Section 3; the output's scale is of its later version (KDD 2025).
    """

    def __init__(
        self,
        space: Lorentz,
        operator: Operator = "centroid",
        weights: Weights = "fixed",
        weight_x: PositiveFloat = 1.0,
        weight_y: PositiveFloat = 1.0,
        output_scale: PositiveFloat | None = None,
        learn_output_scale: bool = False,
        reverse: bool = False,
        form: Literal["stable", "maps"] = "stable",
    ) -> None:
        super().__init__()
        if operator == UNWEIGHTED and (weights, weight_x, weight_y) != ("fixed", 1, 1):
            raise UsageError(
                "operator='parallel_transport' has no weights: leave weights='fixed' and both at 1"
            )
        if learn_output_scale and output_scale is None:
            raise UsageError("learn_output_scale=True needs an output_scale to start with")
        self.space, self.operator, self.form, self.reverse = space, operator, form, reverse
        self.weight_y = weight_y
        self._fixed = weight_x
        self._scale = output_scale
        self.log_weight: nn.Parameter | None = None
        if weights == "learned":
            self.log_weight = nn.Parameter(torch.tensor(math.log(weight_x)))
        self.log_scale: nn.Parameter | None = None
        if learn_output_scale and output_scale is not None:
            self.log_scale = nn.Parameter(torch.tensor(math.log(output_scale)))

    @property
    def weight_x(self) -> Tensor | float:
        """w_x."""
        return self._fixed if self.log_weight is None else self.log_weight.exp()

    @property
    def output_scale(self) -> Tensor | float | None:
        """gamma; None for none."""
        return self._scale if self.log_scale is None else self.log_scale.exp()

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Sum of points x and y, both `[..., 1 + dim]`."""
        total, kappa = FORMS[self.form][self.operator], self.space.kappa
        weights = self.weight_x, self.weight_y
        if self.reverse:
            return by_rows(lambda a, b: self.scaled(total(b, a, kappa, *weights[::-1])), x, y)
        return by_rows(lambda a, b: self.scaled(total(a, b, kappa, *weights)), x, y)

    def scaled(self, x: Tensor) -> Tensor:
        """Points with their space parts times gamma, `[..., 1 + dim]`."""
        gamma = self.output_scale
        return (
            x if gamma is None else lorentz.from_space(gamma * lorentz.space(x), self.space.kappa)
        )

    def extra_repr(self) -> str:
        """Show the operator, its form and its weights."""
        with torch.no_grad():
            weight = float(self.weight_x)
        kind = "fixed" if self.log_weight is None else "learned"
        return f"{self.operator}, {self.form}, {kind} w_x={weight:.4g}"
