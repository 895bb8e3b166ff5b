"""Candidates for the nearest points of each point, by matrix products in float32."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from curvlab.manifolds import Manifold
from curvlab.manifolds.pair_form import CurvedProfile, Profile
from curvlab.tasks.topk import row_topk

ScoreFunction = Callable[[Tensor, Tensor], Tensor]
"""Function from points `[..., dim]` and `[..., dim]`, which broadcast, to scores `[...]`."""

TILE = 2**17
"""Number of entries computed at a time, which fit in a processor's cache."""

MARGIN = 2**10 * torch.finfo(torch.float32).eps
"""Largest relative rounding of a squared distance in float32, near the antipode of a sphere."""


class Candidates(NamedTuple):
    """Candidates of each row, `[rows, candidates]`.

    Attributes:
        values: scores, descending.
        points: indices of the points.
        is_nearest: whether a candidate is nearer than all points that are no candidates.
    """

    values: Tensor
    points: Tensor
    is_nearest: Tensor


class LinkScreen:
    """Candidates for the nearest points of each row, without exact scores of all pairs.

    A squared distance is a sum of functions of bilinear forms (`Manifold.pair_form`), one for each
    component. Products of features in float32, minus the largest rounding, are lower bounds of the
    forms of all pairs. The points with the smallest bounds are the candidates. Only candidates are
    scored exactly. In float64 most candidates are nearer than the bounds of all other points.

    Attributes:
        applies: whether the space has bilinear forms.

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
        kappas = [None]
        if form.kappa is not None:
            kappas = [*form.kappa.detach().double().cpu()]
        arguments = zip(form.left, form.right, kappas, strict=True)
        self._components = [_component(*component) for component in arguments]

    def fill(self, rows: Tensor, tile: Tensor) -> None:
        """Fill `[rows, points]` with negated bounds of squared distances.

        The bounds of a single component are those of its form, a monotonic function.
        """
        row_features = [component.row_features[rows].float() for component in self._components]
        if len(row_features) == 1:
            torch.mm(-row_features[0], self._components[0].features, out=tile)
            return
        tile.zero_()
        width = TILE // max(1, len(rows)) + 1
        buffers = torch.empty(3, len(rows), width)
        for start in range(0, tile.shape[1], width):
            columns = slice(start, start + width)
            total = tile[:, columns]
            form, *workspace = buffers[:, :, : total.shape[1]]
            for component, features in zip(self._components, row_features, strict=True):
                torch.mm(features, component.features[:, columns], out=form)
                component.profile.subtract(form, total, *workspace)

    def candidates(
        self, rows: Tensor, tile: Tensor, count: int, scores: ScoreFunction
    ) -> Candidates:
        """The points of each row with the smallest bounds.

        Args:
            rows: points of the rows.
            tile: result of `fill`, with minus infinity where a point is no answer.
            count: number of candidates.
            scores: exact scores.
        """
        bounds, points = row_topk(tile, min(count, tile.shape[1]))
        exact = scores(self.points[rows].unsqueeze(1), self.points[points]).float()
        exact = exact.masked_fill(bounds == -torch.inf, -torch.inf)
        values, order = exact.sort(dim=1, descending=True)
        points = points.gather(1, order)
        limit = -bounds[:, -1:].double()
        is_nearest = self._exact(rows, points) < limit - MARGIN * limit.abs()
        return Candidates(values, points, is_nearest)

    def _exact(self, rows: Tensor, columns: Tensor) -> Tensor:
        """The quantity that `fill` bounds, of pairs `[rows, columns]`, in float64."""
        forms = [component.exact(rows, columns) for component in self._components]
        if len(forms) == 1:
            return forms[0]
        total = torch.zeros_like(forms[0])
        for component, form in zip(self._components, forms, strict=True):
            workspace = torch.empty(2, *form.shape, dtype=form.dtype)
            component.profile.subtract(form, total, *workspace)
        return -total


class _Component(NamedTuple):
    """The form of a component, as a product of features of a row and of a column.

    With the means `l'` and `r'` of all features, the form `l . r` is
    `(l - l') . (r - r') + l' . r + (l - l') . r'`. The nearer the points are to each other, the
    smaller are these terms and their roundings.

    Attributes:
        left: float64 features of the first point `[nodes, features]`.
        right: float64 features of the second point `[nodes, features]`.
        profile: the squared distance as a function of the form.
        features: float32 features of the columns `[features + 2, nodes]`.
        row_features: float64 features of the rows `[nodes, features + 2]`. In float32 their
            products with `features` are lower bounds of the form.
    """

    left: Tensor
    right: Tensor
    profile: Profile
    features: Tensor
    row_features: Tensor

    def exact(self, rows: Tensor, columns: Tensor) -> Tensor:
        """The form of pairs `[rows, columns]` in float64."""
        return torch.einsum("rf,rcf->rc", self.left[rows], self.right[columns])


def _component(left: Tensor, right: Tensor, kappa: Tensor | None) -> _Component:
    """Prepare a component from its features `[features, nodes]`.

    Args:
        left: features of the first point.
        right: features of the second point.
        kappa: curvature. A flat component of a product has the curvature 0, and its squared
            distance is four times the form. A flat space has None.
    """
    profile = Profile()
    scale = profile.form_scale
    if kappa is not None and kappa == 0:
        scale = 4.0
    elif kappa is not None:
        profile = CurvedProfile(kappa)
        scale = profile.form_scale
    left = left.T.double() * scale
    right = right.T.double()
    left_mean = left.mean(0)
    right_mean = right.mean(0)
    left_offset = left - left_mean
    right_offset = right - right_mean
    row_term = left_offset @ right_mean
    column_term = right @ left_mean
    # Conversions, products and sums round by half a unit each.
    roundings = left.shape[1] + 5
    size = left_offset.norm(dim=1) * right_offset.norm(dim=1).max()
    size += column_term.abs().max() + row_term.abs()
    slack = roundings * torch.finfo(torch.float32).eps * size
    double_size = left.norm(dim=1) * right.norm(dim=1).max()
    slack += roundings * torch.finfo(torch.float64).eps * double_size
    ones = torch.ones_like(row_term)
    columns = torch.stack([*right_offset.T, column_term, ones]).float()
    rows = torch.stack([*left_offset.T, ones, row_term - slack], dim=1)
    return _Component(left, right, profile, columns, rows)
