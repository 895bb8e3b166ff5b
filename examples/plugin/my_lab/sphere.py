"""A manifold for curvlab."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from curvlab.manifolds import Manifold
from curvlab.manifolds.curved_trig import cosine, safe_sqrt, sin_ratio


class Hypersphere(Manifold):
    """Unit sphere in ambient coordinates `[..., 1 + dim]`, with the origin (1, 0, ..., 0)."""

    codimension = 1

    def expmap0(self, v: Tensor) -> Tensor:
        """`(cos |v|, sin |v| v / |v|)`."""
        squared = v.square().sum(-1, keepdim=True)
        return torch.cat([cosine(squared), sin_ratio(squared) * v], -1)

    def logmap0(self, x: Tensor) -> Tensor:
        """The angle to the origin times the direction."""
        first, rest = x[..., :1], x[..., 1:]
        length = (rest.square().sum(-1, keepdim=True) + 1e-18).sqrt()
        return rest * torch.atan2(length, first) / length

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """The rotation of y that carries the origin o to x, with x + o as `shifted`."""
        shifted = torch.cat([x[..., :1] + 1, x[..., 1:]], -1)
        along = (shifted * y).sum(-1, keepdim=True) / shifted[..., :1].clamp(min=1e-6)
        return self.project(y - along * shifted + 2 * y[..., :1] * x)

    def dist(self, x: Tensor, y: Tensor) -> Tensor:
        """The angle between x and y, from their chord."""
        half_chord = safe_sqrt((x - y).square().sum(-1) / 4)
        return 2 * half_chord.clamp(max=1 - 1e-6).asin()

    def project(self, x: Tensor) -> Tensor:
        """The nearest point of length 1."""
        return normalize(x, dim=-1)

    def mean_vectors(self, x: Tensor) -> Tensor:
        """The points themselves."""
        return x.unsqueeze(0)

    def mean_point(self, sums: Tensor) -> Tensor:
        """The sum of the points, divided by its length."""
        return self.project(sums[0])
