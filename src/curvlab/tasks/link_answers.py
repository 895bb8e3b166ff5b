"""Answers of link prediction: nodes grouped by their distinct points, with ranks."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from scipy.sparse import csr_matrix
from torch import Tensor


class DistinctPoints:
    """The distinct points of nodes, of which several may coincide.

    Attributes:
        representatives: one node at each point `[points]`.
        index: index of each node's point `[nodes]`.
        sizes: number of nodes at each point `[points]`.

    Args:
        representative: result of `coincident_nodes` `[nodes]`.
    """

    def __init__(self, representative: Tensor) -> None:
        unique = representative.unique(return_inverse=True, return_counts=True)
        self.representatives, self.index, self.sizes = unique
        self._nodes_by_point = self.index.argsort(stable=True)
        self._starts = self.sizes.cumsum(0) - self.sizes

    def first_nodes(self, points: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        """The first `counts` nodes at each of `points`, and the position of their point there."""
        position = torch.arange(len(points)).repeat_interleave(counts)
        start = self._starts[points[position]]
        node = self._nodes_by_point[start + _index_in_group(position, counts)]
        return node, position


class RankedLinks(NamedTuple):
    """Links `[links]`: row and node, rank and score, and whether the link is known."""

    rows: Tensor
    nodes: Tensor
    ranks: Tensor
    scores: Tensor
    are_known: Tensor


class Answers:
    """Nodes that the nodes of some rows can be linked to, by their distinct points.

    Methods take points and their scores `values`, both `[rows, columns]`. The scores of a row are
    in descending order.

    Attributes:
        rows: indices of the rows.
        row_points: index of the point of each row's node.

    Args:
        distinct: distinct points of all nodes.
        rows: indices of the rows.
        nodes: node of each row.
        links: known links.
        count: number of answers of a row.
        known: whether a known link is an answer.
    """

    def __init__(
        self,
        distinct: DistinctPoints,
        rows: Tensor,
        nodes: Tensor,
        links: csr_matrix,
        count: int,
        known: bool,
    ) -> None:
        self.rows = rows
        self.row_points = distinct.index[nodes]
        self._distinct = distinct
        self._count = count
        self._num_nodes = len(distinct.index)
        self._num_points = len(distinct.representatives)
        link_rows, link_nodes = links[nodes.numpy()].nonzero()
        row = torch.from_numpy(link_rows).long()
        node = torch.from_numpy(link_nodes).long()
        self._known_pairs = self._pair_keys(row, node)
        excluded_pairs = self._pair_keys(torch.arange(len(rows)), nodes)
        if not known:
            excluded_pairs = torch.cat([excluded_pairs, self._known_pairs]).unique()
        self._excluded_pairs = excluded_pairs
        row = excluded_pairs // self._num_nodes
        node = excluded_pairs % self._num_nodes
        point_keys = row * self._num_points + distinct.index[node]
        self._excluded_points, self._excluded_counts = point_keys.unique(return_counts=True)

    def _pair_keys(self, row: Tensor, node: Tensor) -> Tensor:
        """A unique number for each pair of a row and a node."""
        return row * self._num_nodes + node

    def hide(self, tile: Tensor) -> None:
        """Set points without an answer to minus infinity in scores `[rows, points]`."""
        row = self._excluded_points // self._num_points
        point = self._excluded_points % self._num_points
        is_empty = self._excluded_counts == self._distinct.sizes[point]
        tile[row[is_empty], point[is_empty]] = -torch.inf

    def _sizes(self, row: Tensor, point: Tensor) -> Tensor:
        """Number of answers of rows at points. The indices broadcast."""
        key = row * self._num_points + point
        index = torch.searchsorted(self._excluded_points, key)
        index.clamp_max_(len(self._excluded_points) - 1)
        has_excluded = self._excluded_points[index] == key
        num_excluded = self._excluded_counts[index] * has_excluded
        return self._distinct.sizes[point] - num_excluded

    def _all_sizes(self, points: Tensor) -> Tensor:
        """Number of answers at the points `[rows, columns]` of each row."""
        row = torch.arange(len(points))[:, None]
        return self._sizes(row, points)

    def _last_score(self, values: Tensor, totals: Tensor) -> Tensor:
        """Score of each row's last answer `[rows, 1]`; `totals` counts answers up to a column."""
        column = (totals < self._count).sum(1, keepdim=True)
        return values.gather(1, column.clamp_max(values.shape[1] - 1))

    def are_certain(self, values: Tensor, points: Tensor, is_nearest: Tensor) -> Tensor:
        """Rows whose answers and ties are complete, `[rows]`.

        In such a row a candidate with a lower score than the last answer is nearer than all points
        that are no candidates.
        """
        totals = self._all_sizes(points).cumsum(1)
        is_lower = values < self._last_score(values, totals)
        return (is_nearest & is_lower).any(1)

    def count_further_ties(self, values: Tensor, points: Tensor, tile: Tensor) -> Tensor:
        """Number of answers outside `points` that are tied with a row's last answer, `[rows]`.

        Args:
            values: scores.
            points: points.
            tile: scores of all points `[rows, points]`.
        """
        sizes = self._all_sizes(points)
        last = self._last_score(values, sizes.cumsum(1))
        counts = torch.zeros(len(points), dtype=torch.long)
        may_continue = (values[:, -1:] == last) & last.isfinite()
        for row in may_continue.squeeze(1).nonzero().flatten():
            ties = (tile[row] == last[row]).nonzero().squeeze(1)
            count = self._sizes(row, ties).sum()
            counts[row] = count - sizes[row][values[row] == last[row]].sum()
        return counts

    def rank(
        self, values: Tensor, points: Tensor, further_ties: Tensor | None = None
    ) -> RankedLinks:
        """The best answers, by row and descending score. Ties have the mean of their ranks.

        Args:
            values: scores.
            points: points.
            further_ties: result of `count_further_ties`; None for no such answers.
        """
        sizes = self._all_sizes(points)
        totals = sizes.cumsum(1)
        previous_totals = F.pad(totals, (1, 0))
        first = torch.searchsorted(-values, -values)
        end = torch.searchsorted(-values, -values, right=True)
        better = previous_totals.gather(1, first)
        ties = previous_totals.gather(1, end) - better
        if further_ties is not None:
            is_last = values == self._last_score(values, totals)
            ties += further_ties[:, None] * is_last
        ranks = better + (ties + 1) / 2
        counts = (self._count - previous_totals[:, :-1]).clamp_min(0).minimum(sizes)
        row, column = counts.nonzero(as_tuple=True)
        node, index = self._first_answers(row, points[row, column], counts[row, column])
        row = row[index]
        column = column[index]
        are_known = torch.isin(self._pair_keys(row, node), self._known_pairs)
        return RankedLinks(self.rows[row], node, ranks[row, column], values[row, column], are_known)

    def _first_answers(self, row: Tensor, point: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        """The first `counts` answers of rows at points, and the index of their row and point."""
        num_excluded = self._distinct.sizes[point] - self._sizes(row, point)
        node, index = self._distinct.first_nodes(point, counts + num_excluded)
        pairs = self._pair_keys(row[index], node)
        is_answer = ~torch.isin(pairs, self._excluded_pairs)
        node = node[is_answer]
        index = index[is_answer]
        num_answers = torch.bincount(index, minlength=len(point))
        is_first = _index_in_group(index, num_answers) < counts[index]
        return node[is_first], index[is_first]


def _index_in_group(group: Tensor, sizes: Tensor) -> Tensor:
    """Index of each entry in its group. `group` is ascending; `sizes` has the groups' sizes."""
    starts = sizes.cumsum(0) - sizes
    return torch.arange(len(group)) - starts[group]
