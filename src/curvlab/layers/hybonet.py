r"""Layers of HyboNet: linear maps and aggregation on one hyperboloid, without tangent spaces.

Points are `[..., 1 + features]`, time first; widths count space-like coordinates only. The symbols
are s = sqrt(-kappa), <x, x>_L = 1 / kappa, and o for the origin.

Source: Chen et al. 2022, Fully Hyperbolic Neural Networks; LRN (He et al. 2024) and its code for
curvatures other than -1.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from curvlab.graph.sparse_graph import Features, as_features
from curvlab.graph.sparse_matrix import SparseMatrix, as_matrix
from curvlab.layers.elementwise import activation_function, dropout
from curvlab.layers.feature_linear import FeatureLinear
from curvlab.layers.lorentz import exponential_factors
from curvlab.layers.spaces import TakesManifold
from curvlab.manifolds import Lorentz, lorentz, lorentz_maps
from curvlab.manifolds.kernels import curvature_like, split_time, squared_norm, upcast_half
from curvlab.options import Activation

SMALLEST = 1e-4
"""Smallest length of a vector with a direction (HyboNet's code divides by no less)."""

LONGEST_TANGENT = 10.0
"""Length over the radius of curvature at which lifted features are cut (HyboNet's code)."""

FIRST_SCALE = 10.0
"""Initial exp(log_scale)."""


class SigmoidTime(TakesManifold, nn.Module):
    r"""The point of a vector h: its time is a sigmoid of h_0, its direction that of h_s.

    t = exp(log_scale) sigmoid(h_0) + 1 / s + time_offset,
    y_s = h_s sqrt((t^2 + 1 / kappa) / |h_s|^2),

    so that no point is farther than arcosh(s (exp(log_scale) + time_offset) + 1) / s from o. A
    vector with |h_s| below 1e-4 has no direction: its point is o, and h gets no gradient.

    Shapes: `[..., 1 + dim]` to `[..., 1 + dim]`.
    """

    def __init__(self, manifold: Lorentz, time_offset: float, max_scale: float | None) -> None:
        super().__init__()
        self.space = manifold
        self.time_offset = time_offset
        self.max_scale = max_scale
        self.log_scale = nn.Parameter(torch.tensor(math.log(FIRST_SCALE)))

    def forward(self, h: Tensor) -> Tensor:
        h = upcast_half(h)
        kappa = self.space.kappa
        scale = self.log_scale.exp()
        if self.max_scale is not None:
            scale = scale.clamp(max=self.max_scale)
        library = lorentz_maps.functions([h], kappa, scale)
        if library:
            limits = self.time_offset, SMALLEST
            return lorentz_maps.sigmoid_time(library, self.plain, h, kappa, scale, limits)
        return self.plain(h, kappa, scale)

    def plain(self, h: Tensor, kappa: Tensor, scale: Tensor) -> Tensor:
        """`forward` in operations on tensors, of a curvature `[]` and exp(log_scale)."""
        kappa = curvature_like(kappa, h.dtype, h)
        radius = (-kappa).rsqrt()
        time_part, space_part = split_time(h)
        time = torch.addcmul(radius + self.time_offset, torch.sigmoid(time_part), scale)
        squared = squared_norm(space_part)
        # Dropout leaves vectors without a direction, whose derivative would be 1 / SMALLEST.
        directed = squared > SMALLEST**2
        length = ((time.square() + 1 / kappa) / squared.where(directed, 1)).sqrt()
        factor = length.where(directed, 0)
        time = time.where(directed, radius)
        return torch.cat([time, space_part * factor], -1)


class HyboNetLinear(TakesManifold, FeatureLinear):
    r"""Linear map of all coordinates of a point, `y = SigmoidTime(W drop(act(x)) + b)`.

    Activation and dropout act on the time too, as in the code. The initial `W`, `[1 + out, 1 +
    in]`, is U(-1 / sqrt(1 + out), 1 / sqrt(1 + out)) with a column of zeros for the input's time,
    and the initial b is 0.

    Shapes: `[..., 1 + in_features]` to `[..., 1 + out_features]`.

    Source: Chen et al. 2022, Equation 3 with the code's choice of functions.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        manifold: Lorentz,
        dropout: float,
        activation: Activation | None,
        time_offset: float,
        max_scale: float | None,
    ) -> None:
        super().__init__(1 + in_features, 1 + out_features, dropout=dropout)
        self.space = manifold
        self.activation = None if activation is None else activation_function(activation)
        self.point = SigmoidTime(manifold, time_offset, max_scale)

    def reset_parameters(self) -> None:
        bound = self.out_features**-0.5
        nn.init.uniform_(self.weight, -bound, bound)
        with torch.no_grad():
            self.weight[:, 0].zero_()
            self.bias.zero_()

    def forward(self, x: Any) -> Tensor:
        if self.activation is not None:
            x = self.activation(x)
        x = dropout(x, self.dropout, self.training)
        return self.point(F.linear(x, self.weight, self.bias))


class HyboNetFeatureLinear(HyboNetLinear):
    r"""`HyboNetLinear` of Euclidean features, mapped to points by the exponential at the origin.

    exp_o(x) = (t, c x) with c = sinh(a) / (s |x|) and a = s |x|, clipped at 10. Each row has one
    number c, so that `W drop(exp_o(x)) = c (W_s drop(x)) + w_t drop(t)`. Features that are nearly
    all 0 go through sparse products, as in `FeatureLinear`, unless there is an activation.

    Shapes: `[nodes, in_features]` to `[nodes, 1 + out_features]`.
    """

    def forward(self, x: Tensor | Features) -> Tensor:
        x = as_features(x)
        kappa = self.space.kappa
        longest = LONGEST_TANGENT * (-kappa).rsqrt()
        time, factor = exponential_factors(x.squared_norms(), kappa, longest)
        if self.activation is not None:
            point = self.activation(torch.cat([time, factor * x.dense], dim=-1))
            point = F.dropout(point, self.dropout, self.training)
            return self.point(F.linear(point, self.weight, self.bias))
        time = F.dropout(time, self.dropout, self.training)
        h = torch.addcmul(self.bias, time, self.weight[:, 0])
        return self.point(torch.addcmul(h, factor, self.product(x, self.weight[:, 1:])))


class CentroidAggregation(TakesManifold, nn.Module):
    r"""Centroid of a node's neighbours, `u / (s sqrt(-<u, u>_L))` with `u = A x`.

    Isolated nodes keep their position. Scaling a row of A does not change the result.

    Shapes: `[nodes, 1 + dim] -> [nodes, 1 + dim]`.

    Source: Chen et al. 2022, Equation 8; Law et al. 2019.
    """

    def __init__(self, manifold: Lorentz) -> None:
        super().__init__()
        self.space = manifold

    def forward(self, adjacency: Tensor | SparseMatrix, x: Tensor) -> Tensor:
        """Aggregate along a matrix `[nodes, nodes]` (sparse CSR, at least 0, rows are targets)."""
        adjacency = as_matrix(adjacency)
        u = adjacency @ x
        if adjacency.has_empty_rows:
            u = torch.where(u[..., :1] > 0, u, x)
        return lorentz.normalise(u, self.space.kappa)
