"""Candidates for the nearest points of each point, by one product in float32."""

from collections.abc import Callable

import torch
from torch import Tensor

from curvlab.manifolds import Manifold
from curvlab.manifolds.pair_form import CurvedProfile
from curvlab.tasks.largest import largest_of_rows

Scores = Callable[[Tensor, Tensor], Tensor]
"""Scores of points `[..., dim]` and `[..., dim]`, which broadcast."""


class LinkScreen:
    """The best pairs of each row, without exact scores of all pairs.

    Where the squared distance increases with one bilinear form (`Manifold.pair_form`), products of
    features in float32 order pairs but for rounding. Only the candidates, which have the smallest
    products, are scored exactly. A row is certain if the form of its last answer, in float64, is
    smaller than that of every pair that is no candidate by more than rounding can explain.

    Attributes:
        applies: whether the space has such a form.

    Args:
        space: space of the points.
        points: points `[nodes, dim]`.
        same: node whose point each node has.
    """

    def __init__(self, space: Manifold, points: Tensor, same: Tensor) -> None:
        self.points = points.double().cpu()[same]
        form = space.pair_form(self.points)
        self.applies = form is not None and len(form.left) == 1 and form.profile is CurvedProfile
        if form is None or not self.applies:
            return
        self.left, self.right = form.left[0].T, form.right[0].T
        self._minus_left = -self.left.float()
        self._right = self.right.float().T.contiguous()
        lengths = self.right.norm(dim=1).max()
        # Both conversions, the products and their sum, each within half a unit in the last place.
        roundings = (self.left.shape[1] + 3) * torch.finfo(torch.float32).eps
        self.slack = roundings * lengths * self.left.norm(dim=1)

    def fill(self, rows: Tensor, tile: Tensor) -> None:
        """Fill `[rows, nodes]` with the forms, negated."""
        torch.mm(self._minus_left[rows], self._right, out=tile)

    def best(
        self, rows: Tensor, tile: Tensor, count: int, scores: Scores
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The `count` best pairs of each row: scores, columns, and whether they are certain.

        `tile` has what `fill` wrote, minus infinity where a pair is no answer. A tie of the last
        answer with the next is not certain.
        """
        limits, places = largest_of_rows(tile, min(4 * count + 32, tile.shape[1]))
        exact = scores(self.points[rows].unsqueeze(1), self.points[places]).float()
        exact = exact.masked_fill(limits == -torch.inf, -torch.inf)
        values, order = exact.sort(dim=1, descending=True)
        places = places.gather(1, order)
        next_form = (self.left[rows] * self.right[places[:, count]]).sum(1)
        certain = next_form < -limits[:, -1].double() - self.slack[rows]
        certain &= values[:, count] < values[:, count - 1]
        return values[:, :count].contiguous(), places[:, :count], certain
