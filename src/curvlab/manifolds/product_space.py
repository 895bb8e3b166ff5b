"""Products of unlike manifolds."""

import re
from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from curvlab.errors import UsageError
from curvlab.manifolds.base import Manifold
from curvlab.manifolds.curved_trig import safe_sqrt
from curvlab.manifolds.euclidean_space import Euclidean
from curvlab.manifolds.lorentz_space import Lorentz
from curvlab.manifolds.pairs.form import PairForm
from curvlab.manifolds.pairs.profiles import CurvedProfile
from curvlab.manifolds.stereographic_space import PoincareBall, Sphere, Stereographic
from curvlab.options import Learnable, Passed

FACTORS: dict[str, type[Manifold]] = {
    "E": Euclidean,
    "H": PoincareBall,
    "L": Lorentz,
    "S": Sphere,
    "U": Stereographic,
}
"""Factors by their letter in a signature."""


class Product(Manifold):
    """Product of manifolds; its squared distance is the sum of theirs.

    Points and tangent vectors are those of the factors, concatenated.

    Args:
        signature: factors and their dimensions: H (Poincare ball), L (Lorentz model), S (sphere),
            E (flat) and U (stereographic model of either sign), as in H8xS4xE4.
        learnable: whether the curvatures are parameters.
        factors: manifolds of equal dimension, in place of a signature.

    Raises:
        UsageError: the signature cannot be read.

    Source: Gu et al. 2019, "Learning mixed-curvature representations in product spaces".
    """

    def __init__(
        self,
        signature: str = "H8xS8",
        learnable: Learnable = False,
        factors: Passed[Sequence[Manifold] | None] = None,
    ) -> None:
        super().__init__()
        self.dims: list[int] | None = None
        self.signature = signature
        if factors is None:
            if not re.fullmatch(r"[EHLSU][1-9]\d*(x[EHLSU][1-9]\d*)*", signature):
                raise UsageError(
                    f"signature={signature!r} must be a letter of E, H, L, S, U and a dimension "
                    "for each factor, joined by x, as in H8xS4xE4"
                )
            named = signature.split("x")
            self.dims = [int(factor[1:]) for factor in named]
            self.tangent_dim = sum(self.dims)
            options = {"learnable": learnable}
            factors = [FACTORS[f[0]](**({} if f[0] == "E" else options)) for f in named]
        self.factors = nn.ModuleList(factors)
        self.components = len(self.factors)
        self.codimensions = [space.codimension for space in factors]
        self.codimension = sum(self.codimensions)

    @property
    def kappa(self) -> Tensor | None:
        """Signed curvatures `[components]`, 0 of a flat factor; None if a factor has none."""
        if not all(isinstance(space, tuple(FACTORS.values())) for space in self._spaces):
            return None
        found = [space.kappa for space in self._spaces]
        return torch.stack([torch.zeros(()) if k is None else k.reshape(()) for k in found])

    def extra_repr(self) -> str:
        """Show the dimensions."""
        return "" if self.dims is None else f"dims={self.dims}"

    def _dims(self, width: int) -> list[int]:
        """Dimensions of the factors, or multiples of them, that add up to a width.

        Raises:
            UsageError: they do not.
        """
        dims = self.dims or [1] * self.components
        if width % sum(dims):
            kind = self.signature if self.dims else f"{self.components} equal factors"
            raise UsageError(f"vectors of width {width} do not split into {kind}")
        return [dim * (width // sum(dims)) for dim in dims]

    def _split_vectors(self, v: Tensor) -> Sequence[Tensor]:
        """Parts of tangent vectors at the origin."""
        return v.split(self._dims(v.shape[-1]), -1)

    def _split_points(self, x: Tensor) -> Sequence[Tensor]:
        """Parts of points."""
        dims = self._dims(x.shape[-1] - self.codimension)
        return x.split([d + more for d, more in zip(dims, self.codimensions, strict=True)], -1)

    @property
    def _spaces(self) -> Sequence[Manifold]:
        return cast("Sequence[Manifold]", self.factors)

    def _concatenate(self, name: str, *parts: Sequence[Tensor]) -> Tensor:
        """A method of every factor on its parts, concatenated."""
        each = zip(self._spaces, *parts, strict=True)
        return torch.cat([getattr(space, name)(*given) for space, *given in each], -1)

    def expmap0(self, v: Tensor) -> Tensor:
        """Exponential map at the origin."""
        return self._concatenate("expmap0", self._split_vectors(v))

    def logmap0(self, x: Tensor) -> Tensor:
        """Logarithm at the origin."""
        return self._concatenate("logmap0", self._split_points(x))

    def project(self, x: Tensor) -> Tensor:
        """Points projected by the factors."""
        return self._concatenate("project", self._split_points(x))

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """Sums of the factors."""
        return self._concatenate("add", self._split_points(x), self._split_points(y))

    def transport0(self, y: Tensor, v: Tensor) -> Tensor:
        """Parallel transport of v from the origin to y."""
        return self._concatenate("transport0", self._split_points(y), self._split_vectors(v))

    def dist(self, x: Tensor, y: Tensor) -> Tensor:
        """Distance `[...]`, with gradient 0 where it is 0."""
        return safe_sqrt(self.sqdist(x, y))

    def sqdist(self, x: Tensor, y: Tensor) -> Tensor:
        """Squared distance, the sum over the factors."""
        parts = zip(self._spaces, self._split_points(x), self._split_points(y), strict=True)
        return torch.stack([space.sqdist(*points) for space, *points in parts]).sum(0)

    def pairwise_sqdist(self, x: Tensor, y: Tensor) -> Tensor:
        """Squared distances `[..., n, m]`, the sum over the factors."""
        parts = zip(self._spaces, self._split_points(x), self._split_points(y), strict=True)
        return torch.stack([space.pairwise_sqdist(*points) for space, *points in parts]).sum(0)

    def pair_form(self, x: Tensor) -> PairForm | None:
        """Forms of the factors, filled up with zeros; None if a factor has no such form."""
        parts = zip(self._spaces, self._split_points(x), strict=True)
        forms = [form for s, points in parts if (form := s.pair_form(points)) is not None]
        # Where it is flat, u^2 is the form if the squared distance is 4 times it.
        curved = [f for f in forms if f.kappa is not None or f.scale == 4]
        if len(curved) < self.components or any(f.profile is not CurvedProfile for f in forms):
            return None
        pads = [max(f.left.shape[1] for f in curved) - f.left.shape[1] for f in curved]
        left = [F.pad(f.left, (0, 0, 0, more)) for f, more in zip(curved, pads, strict=True)]
        right = [F.pad(f.right, (0, 0, 0, more)) for f, more in zip(curved, pads, strict=True)]
        kappa = [x.new_zeros(1) if f.kappa is None else f.kappa for f in curved]
        return PairForm(torch.cat(left), torch.cat(right), torch.cat(kappa))

    def tangent_scale(self, x: Tensor) -> Tensor:
        """Scales of the factors, `[components, ..., 1]`."""
        parts = zip(self._spaces, self._split_points(x), strict=True)
        scales = [space.tangent_scale(points) for space, points in parts]
        one = x.new_ones(1, *x.shape[:-1], 1)
        return torch.cat([one if scale is None else scale for scale in scales])

    def mean_vectors(self, x: Tensor, scale: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """Vectors of the factors, filled up with zeros to the longest."""
        parts = zip(self._spaces, self._split_points(x), strict=True)
        vectors = [space.mean_vectors(points) for space, points in parts]
        longest = max(v.shape[-1] for v in vectors)
        return torch.cat([F.pad(v, (0, longest - v.shape[-1])) for v in vectors])

    def mean_point(self, sums: Tensor) -> Tensor:
        """Weighted means of the factors, of which those of a signature have dim + 1 numbers."""
        widths = [sums.shape[-1]] * self.components
        if self.dims is not None:
            times = (sums.shape[-1] - 1) // max(self.dims)
            widths = [times * dim + 1 for dim in self.dims]
        parts = zip(self._spaces, sums.split(1), widths, strict=True)
        return torch.cat([space.mean_point(part[..., :width]) for space, part, width in parts], -1)
