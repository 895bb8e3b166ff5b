"""Products of unlike manifolds."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from curvlab.errors import UsageError
from curvlab.manifolds.base import Manifold, root_of_sqdist
from curvlab.manifolds.euclidean_space import Euclidean
from curvlab.manifolds.lorentz_space import Lorentz
from curvlab.manifolds.pair_form import CurvedProfile, PairForm
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


def _sum(parts: list[Tensor]) -> Tensor:
    return torch.stack(parts).sum(0)


def _cat_features(sides: list[Tensor]) -> Tensor:
    """Concatenate features `[components, features, nodes]`, padded to the same number."""
    count = max(side.shape[1] for side in sides)
    return torch.cat([F.pad(side, (0, 0, 0, count - side.shape[1])) for side in sides])


def _map_factors(
    name: str, *kinds: str, join: Callable[[list[Tensor]], Tensor] = partial(torch.cat, dim=-1)
) -> Callable[..., Tensor]:
    """A method that joins the results of a method of the factors.

    Kinds of its arguments are `points`, `vectors` (tangent at the origin) and `shares`.
    """

    def method(self: "Product", *arguments: Tensor) -> Tensor:
        parts = []
        for kind, argument in zip(kinds, arguments, strict=True):
            split = getattr(self, f"_split_{kind}")
            parts.append(split(argument))
        factors = zip(self._spaces, *parts, strict=True)
        return join([getattr(space, name)(*arguments) for space, *arguments in factors])

    method.__doc__ = getattr(Manifold, name).__doc__
    return method


class Product(Manifold):
    """Product of manifolds; its squared distance is the sum of the factors' squared distances.

    Points and tangent vectors are concatenations of those of the factors.

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
            self.dims = []
            factors = []
            for text in signature.split("x"):
                letter = text[0]
                self.dims.append(int(text[1:]))
                options = {} if letter == "E" else {"learnable": learnable}
                factors.append(FACTORS[letter](**options))
            self.tangent_dim = sum(self.dims)
        self.factors = nn.ModuleList(factors)
        self.components = len(self.factors)
        self.codimensions = [space.codimension for space in factors]
        self.codimension = sum(self.codimensions)

    @property
    def kappa(self) -> Tensor | None:
        """Signed curvatures `[components]`, 0 of a flat factor; None if a factor has none."""
        if not all(isinstance(space, tuple(FACTORS.values())) for space in self._spaces):
            return None
        kappas = [space.kappa for space in self._spaces]
        return torch.stack([torch.zeros(()) if k is None else k.reshape(()) for k in kappas])

    def extra_repr(self) -> str:
        return "" if self.dims is None else f"dims={self.dims}"

    def _dims(self, width: int) -> list[int]:
        """Dimensions of the factors, or multiples of them, that add up to a width."""
        dims = self.dims or [1] * self.components
        if width % sum(dims):
            kind = self.signature if self.dims else f"{self.components} equal factors"
            raise UsageError(f"vectors of width {width} do not split into {kind}")
        return [dim * (width // sum(dims)) for dim in dims]

    def _split_vectors(self, v: Tensor) -> Sequence[Tensor]:
        return v.split(self._dims(v.shape[-1]), -1)

    def _split_shares(self, t: Tensor | float) -> Sequence[Tensor | float]:
        return [t] * self.components

    def _split_points(self, x: Tensor) -> Sequence[Tensor]:
        dims = self._dims(x.shape[-1] - self.codimension)
        widths = [sum(parts) for parts in zip(dims, self.codimensions, strict=True)]
        return x.split(widths, -1)

    @property
    def _spaces(self) -> Sequence[Manifold]:
        return cast("Sequence[Manifold]", self.factors)

    expmap0 = _map_factors("expmap0", "vectors")
    logmap0 = _map_factors("logmap0", "points")
    project = _map_factors("project", "points")
    add = _map_factors("add", "points", "points")
    transport0 = _map_factors("transport0", "points", "vectors")
    geodesic = _map_factors("geodesic", "shares", "points", "points")
    sqdist = _map_factors("sqdist", "points", "points", join=_sum)
    pairwise_sqdist = _map_factors("pairwise_sqdist", "points", "points", join=_sum)
    dist = root_of_sqdist

    def pair_form(self, x: Tensor) -> PairForm | None:
        forms = []
        for space, points in zip(self._spaces, self._split_points(x), strict=True):
            form = space.pair_form(points)
            if form is None or form.profile is not CurvedProfile:
                return None
            forms.append(form)
        # On a flat factor the form is the squared distance, which is 4 u^2.
        lefts = [f.left / 4 if f.kappa is None else f.left for f in forms]
        rights = [f.right for f in forms]
        kappa = [x.new_zeros(1) if f.kappa is None else f.kappa for f in forms]
        return PairForm(_cat_features(lefts), _cat_features(rights), torch.cat(kappa))

    def tangent_scale(self, x: Tensor) -> Tensor:
        parts = zip(self._spaces, self._split_points(x), strict=True)
        scales = [space.tangent_scale(points) for space, points in parts]
        one = x.new_ones(1, *x.shape[:-1], 1)
        return torch.cat([one if scale is None else scale for scale in scales])

    def mean_vectors(self, x: Tensor, scale: Tensor | None = None) -> Tensor:  # noqa: ARG002
        parts = zip(self._spaces, self._split_points(x), strict=True)
        vectors = [space.mean_vectors(points) for space, points in parts]
        longest = max(v.shape[-1] for v in vectors)
        return torch.cat([F.pad(v, (0, longest - v.shape[-1])) for v in vectors])

    def mean_point(self, sums: Tensor) -> Tensor:
        widths = [sums.shape[-1]] * self.components
        if self.dims is not None:
            times = (sums.shape[-1] - 1) // max(self.dims)
            widths = [times * dim + 1 for dim in self.dims]
        parts = zip(self._spaces, sums.split(1), widths, strict=True)
        return torch.cat([space.mean_point(part[..., :width]) for space, part, width in parts], -1)
