"""Candidates for the nearest points of each point, by products in float32."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from curvlab.manifolds import Manifold
from curvlab.manifolds.pair_form import CurvedProfile, Profile
from curvlab.tasks.largest import largest_of_rows

Scores = Callable[[Tensor, Tensor], Tensor]
"""Scores of points `[..., dim]` and `[..., dim]`, which broadcast."""

TILE = 2**17
"""Entries computed at a time, which stay in a processor's cache."""

MARGIN = 2**10 * torch.finfo(torch.float32).eps
"""Largest relative rounding of a squared distance in float32, near the antipode of a sphere."""


class Candidates(NamedTuple):
    """Candidates of each row, `[rows, candidates]`.

    Attributes:
        values: scores, descending.
        at: numbers of the points.
        is_nearest: whether a candidate is nearer than all points that are none.
    """

    values: Tensor
    at: Tensor
    is_nearest: Tensor


class LinkScreen:
    """Candidates for the nearest points of each row, without exact scores of all pairs.

    Squared distances are sums of functions of bilinear forms (`Manifold.pair_form`), one for each
    component. Their products of features in float32, lowered by what rounding can add, are lower
    bounds of all distances. Only the candidates, which have the smallest bounds, are scored
    exactly. In float64 most of them are nearer than the bounds of all pairs that are none.

    Attributes:
        applies: whether the space has such forms.

    Args:
        space: space of the points.
        points: points `[points, dim]`.
    """

    def __init__(self, space: Manifold, points: Tensor) -> None:
        self.points = points.double().cpu()
        form = space.pair_form(self.points)
        self.applies = form is not None and form.profile is CurvedProfile
        if form is None or not self.applies:
            return
        kappas = [None] if form.kappa is None else form.kappa.detach().double().cpu()
        sides = zip(form.left, form.right, kappas, strict=True)
        self._components = [_component(*side) for side in sides]

    def fill(self, rows: Tensor, tile: Tensor) -> None:
        """Fill `[rows, points]` with negated bounds, of the form itself if there is only one."""
        bounds = [component.bound(rows) for component in self._components]
        if len(bounds) == 1:
            torch.mm(-bounds[0], self._components[0].features, out=tile)
            return
        tile.zero_()
        width = TILE // max(1, len(rows)) + 1
        rooms = torch.empty(3, len(rows), width)
        for start in range(0, tile.shape[1], width):
            total = tile[:, start : start + width]
            form, *two = rooms[:, :, : total.shape[1]]
            for component, bound in zip(self._components, bounds, strict=True):
                torch.mm(bound, component.features[:, start : start + width], out=form)
                component.profile.subtract(form, total, *two)

    def candidates(self, rows: Tensor, tile: Tensor, count: int, scores: Scores) -> Candidates:
        """The points of each row with the smallest bounds.

        `tile` has what `fill` wrote, minus infinity where a point is no answer.
        """
        bounds, places = largest_of_rows(tile, min(count, tile.shape[1]))
        exact = scores(self.points[rows].unsqueeze(1), self.points[places]).float()
        exact = exact.masked_fill(bounds == -torch.inf, -torch.inf)
        values, order = exact.sort(dim=1, descending=True)
        places = places.gather(1, order)
        limit = -bounds[:, -1:].double()
        is_nearest = self._exact(rows, places) < limit - MARGIN * limit.abs()
        return Candidates(values, places, is_nearest)

    def _exact(self, rows: Tensor, columns: Tensor) -> Tensor:
        """What `fill` bounds, of pairs `[rows, columns]`, in float64."""
        forms = [component.exact(rows, columns) for component in self._components]
        if len(forms) == 1:
            return forms[0]
        total = torch.zeros_like(forms[0])
        for component, form in zip(self._components, forms, strict=True):
            component.profile.subtract(form, total, *torch.empty(2, *form.shape, dtype=form.dtype))
        return -total


class _Component(NamedTuple):
    """The form of a component, as products of features of a row and of a column.

    With the means `l'` and `r'` of all features, the form `l . r` is
    `(l - l') . (r - r') + l' . r + (l - l') . r'`. These terms are as small as the points are near
    each other, and so are their roundings.

    Attributes:
        left: features of the first point `[nodes, features]`, float64.
        right: features of the second point, float64.
        profile: the squared distance as a function of the form.
        features: float32 features of the columns, `[features + 2, nodes]`.
        row_features: float64 features of the rows, `[nodes, features + 2]`.
    """

    left: Tensor
    right: Tensor
    profile: Profile
    features: Tensor
    row_features: Tensor

    def bound(self, rows: Tensor) -> Tensor:
        """Features of rows `[rows, features + 2]`, whose products with `features` are bounds."""
        return self.row_features[rows].float()

    def exact(self, rows: Tensor, columns: Tensor) -> Tensor:
        """The form of pairs `[rows, columns]` in float64."""
        return torch.einsum("rf,rcf->rc", self.left[rows], self.right[columns])


def _component(left: Tensor, right: Tensor, kappa: Tensor | None) -> _Component:
    """Prepare a component from its features `[features, nodes]`; curvature None is a flat space.

    Among other components a flat one has the curvature 0, and its squared distance is four times
    the form.
    """
    profile = CurvedProfile(kappa) if kappa is not None and kappa != 0 else Profile()
    scale = 4.0 if kappa is not None and kappa == 0 else profile.form_scale
    left = left.T.double() * scale
    right = right.T.double()
    mean_left, mean_right = left.mean(0), right.mean(0)
    near_left, near_right = left - mean_left, right - mean_right
    of_row = near_left @ mean_right
    of_column = right @ mean_left
    roundings = left.shape[1] + 5  # of conversions, products and sums, each half a unit
    size = near_left.norm(dim=1) * near_right.norm(dim=1).max()
    size += of_column.abs().max() + of_row.abs()
    slack = roundings * torch.finfo(torch.float32).eps * size
    whole_size = left.norm(dim=1) * right.norm(dim=1).max()
    slack += roundings * torch.finfo(torch.float64).eps * whole_size
    one = torch.ones_like(of_row)
    columns = torch.stack([*near_right.T, of_column, one]).float()
    rows = torch.stack([*near_left.T, one, of_row - slack], dim=1)
    return _Component(left, right, profile, columns, rows)
