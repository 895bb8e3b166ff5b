r"""The loss of graph reconstruction, over all pairs of nodes, in tiles (FPS-T, Section 5.1).

For every node `u` with neighbours `N(u)` and squared geodesic distances `D`,

    loss = sum_u sum_{v in N(u)} [ D_uv + log S_u ],    S_u = sum_{w not in N(u)} exp(-D_uw),

where `w = u` belongs to the sum (`exp(0) = 1`: without it the loss is unbounded below).

The neighbours' distances are differences of coordinates; the others go through matrix products:
on every space of this project `D` is a function of one bilinear form of the two nodes' features
(for the stereographic model `u^2 = |x - y|^2 / ((1 + kappa |x|^2) (1 + kappa |y|^2))`). Since `D`
is symmetric, only tiles on and above the diagonal are visited, with buffers that stay in cache,
and the backward pass is written out: it needs one matrix per component, of which half is kept.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Any

import torch
from torch import Tensor

from curvlab.errors import UsageError
from curvlab.manifolds import Euclidean, Space, Stereographic

# Floors that keep quotients of two zeros finite and are far below what float32 resolves.
_SMALLEST_KAPPA = 1e-10
_SMALLEST_FORM = 1e-30
# Rounding of a matrix product, below which a distance (not squared) would have a wild slope.
_SMALLEST_SQDIST = {torch.float32: 1e-6, torch.float64: 1e-15}
# |kappa| below which d(distance)/d(kappa) is summed from its series: the closed form divides a
# difference of order kappa^2 by kappa^2. Pairs with kappa u^2 beyond the series' reach have
# exp(-D) = 0 there.
_FLAT = 2e-2
# asin(sqrt y)^2 = y sum_n c_n y^n, c_n = 4^(n+1) / (2 (n+1)^2 binom(2n+2, n+1)).
_SERIES = [4.0**n / (2 * n**2 * comb(2 * n, n)) for n in range(1, 10)]


@dataclass
class Tile:
    """Rows and columns of a block of the pair matrix, and the entries in it that do not count."""

    rows: slice
    columns: slice
    masked: Tensor  # positions in the flattened tile: neighbours, and the diagonal
    on_diagonal: bool


class PairTiles:
    """The non-neighbour pairs of a graph, cut in tiles on and above the diagonal.

    Args:
        edge_index: both directions of every edge, no self-loops, no duplicates, `[2, 2M]`.
        num_nodes: number of nodes.
        size: nodes a tile side; 512 float32 tiles stay in a core's cache, accelerators like more.
    """

    def __init__(self, edge_index: Tensor, num_nodes: int, size: int | None = None) -> None:
        self.edge_index = edge_index
        size = size or (512 if edge_index.device.type == "cpu" else 4096)
        device = edge_index.device
        self.degree = torch.bincount(edge_index[0], minlength=num_nodes)
        row, column = edge_index[0], edge_index[1]
        once = row < column
        self.source, self.target = row[once], column[once]

        diagonal = torch.arange(num_nodes, device=device)
        row, column = torch.cat([row, diagonal]), torch.cat([column, diagonal])
        upper = row // size <= column // size
        row, column = row[upper], column[upper]
        per_side = -(-num_nodes // size)
        tile = row // size * per_side + column // size
        order = torch.argsort(tile)
        row, column, tile = row[order], column[order], tile[order]
        width = (num_nodes - column // size * size).clamp_max(size)
        masked = (row % size * width + column % size).split(
            torch.bincount(tile, minlength=per_side**2).tolist()
        )
        spans = [slice(i, min(i + size, num_nodes)) for i in range(0, num_nodes, size)]
        self.size = min(size, num_nodes)
        self.tiles = [
            Tile(spans[i], spans[j], masked[i * per_side + j], i == j)
            for i in range(per_side)
            for j in range(i, per_side)
        ]


def reconstruction_loss(x: Tensor, space: Space, tiles: PairTiles, power: int = 2) -> Tensor:
    """Sum over both directions of every edge of `D_uv + log S_u`.

    Args:
        x: points of `space`, `[nodes, dim]`.
        space: where they lie; on a product `D` is the sum over components.
        tiles: the graph.
        power: 2 for squared distances, 1 for distances, in both terms.

    Source: FPS-T, Section 5.1, with the sign, the negatives and the squared distance of the code
    it builds on (Q-GCN).
    """
    sources, targets = x[tiles.source], x[tiles.target]
    positive = space.sqdist(sources, targets) if power == 2 else space.dist(sources, targets)
    left, right, kappa, scale = _bilinear_features(x, space)
    # Each pair is differentiated through its left features alone, once for either end.
    sums = _NonNeighbourSums.apply(left, right.detach(), kappa, tiles, power, scale)
    return 2 * positive.sum() + (tiles.degree * sums.log()).sum()


@dataclass
class Terms:
    """What one component contributes to a tile."""

    sqdist: Tensor  # squared geodesic distance D
    by_form: Tensor | float  # dD / d(bilinear form)
    by_kappa: Tensor | None  # dD / d(kappa) at fixed bilinear form


class FlatProfile:
    """`D = scale * form`."""

    def __init__(self, scale: float) -> None:
        self.factor = scale

    def scale(self, features: Tensor) -> Tensor:
        """Features whose product is `D` itself."""
        return features * self.factor

    def __call__(self, form: Tensor) -> Terms:
        """Terms of a tile of scaled forms, which is overwritten."""
        return Terms(form.clamp_min_(0), self.factor, None)


class CurvedProfile:
    """`D = (2 arsin_kappa(u))^2` as a function of the form `u^2` and of kappa.

    With `z = |kappa| u^2`, the double angle `t = 2 asinh(sqrt z)` (hyperbolic) or `2 asin(sqrt z)`
    (spherical) and `r = sqrt(z (1 -+ z))`, `D = t^2 / |kappa|` and `dD/d(u^2) = 2 t / r`.
    On the processor the sign of kappa chooses the branch; on an accelerator, where looking at it
    would wait for the device, both are computed.
    """

    def __init__(self, kappa: Tensor) -> None:
        kappa = kappa.detach()
        magnitude = kappa.abs().clamp_min(_SMALLEST_KAPPA)
        self.kappa: Tensor | float = torch.where(kappa > 0, magnitude, -magnitude)
        self.magnitude: Tensor | float = magnitude
        self.hyperbolic: Tensor | bool = kappa <= 0
        self.nearly_flat: Tensor | bool = magnitude < _FLAT
        if kappa.device.type == "cpu":
            self.kappa, self.magnitude = self.kappa.item(), magnitude.item()
            self.hyperbolic = bool(self.hyperbolic)
            self.nearly_flat = bool(self.nearly_flat)

    def scale(self, features: Tensor) -> Tensor:
        """Features whose product is `z`."""
        return features * self.magnitude

    def __call__(self, form: Tensor) -> Terms:
        """Terms of a tile of scaled forms `z`, which is overwritten."""
        z = form.clamp_min_(_SMALLEST_FORM)
        angle, root = self._double_angle(z)
        slope = (angle / root).mul_(2)
        sqdist = angle.mul_(angle)
        by_kappa = _choose(
            self.nearly_flat,
            lambda: self._kappa_series(z),
            lambda: (z * slope).sub_(sqdist).div_(self.kappa * self.magnitude),
        )
        return Terms(sqdist.div_(self.magnitude), slope, by_kappa)

    def _double_angle(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """`t` and `r` of the class docstring."""
        # Just short of the antipode, where the distance has a kink.
        bounded = _choose(self.hyperbolic, lambda: z, lambda: z.clamp_max(1 - 1e-6))
        root = _choose(
            self.hyperbolic,
            lambda: torch.addcmul(z, z, z).sqrt_(),
            lambda: torch.addcmul(bounded, bounded, bounded, value=-1).sqrt_(),
        )
        # 2 asinh(sqrt z) = log(1 + 2 z + 2 sqrt(z + z^2)): one logarithm, accurate down to z = 0.
        angle = _choose(
            self.hyperbolic,
            lambda: (z + root).mul_(2).log1p_(),
            lambda: bounded.sqrt().asin_().mul_(2),
        )
        return angle, root

    def _kappa_series(self, z: Tensor) -> Tensor:
        """`4 u^4 sum_n n c_n (kappa u^2)^(n-1)`, for small `kappa u^2`."""
        y = _choose(self.hyperbolic, lambda: -z, lambda: z).clamp(-1, 1)
        total = torch.zeros_like(z)
        for n in range(len(_SERIES) - 1, 0, -1):
            total = total.mul_(y).add_(n * _SERIES[n])
        return total.mul_((z / self.magnitude).square_()).mul_(4)


def _choose(
    condition: Tensor | bool, if_true: Callable[[], Tensor], if_false: Callable[[], Tensor]
) -> Tensor:
    """One of two tensors: the one computed, where the condition is known, else `torch.where`."""
    if isinstance(condition, bool):
        return if_true() if condition else if_false()
    return torch.where(condition, if_true(), if_false())


def _bilinear_features(x: Tensor, space: Space) -> tuple[Tensor, Tensor, Tensor | None, float]:
    """Features whose products are the form `u^2`, the curvatures, and `D / u^2` where it is flat.

    Flat: `|x - y|^2 = [|x|^2, 1, -2x] . [1, |y|^2, y]`; stereographic: each side divided by its
    `1 + kappa |.|^2`. Both are `[components, dim + 2, nodes]`.
    """
    if isinstance(space, Stereographic):
        blocks, kappa, scale = space.split(x), space.kappa, 1.0
        weight = 1 / (1 + kappa[:, None] * blocks.square().sum(-1, keepdim=True))
    elif isinstance(space, Euclidean):
        blocks, kappa, scale = x.unsqueeze(1), None, space.scale**2
        weight = torch.ones_like(blocks[..., :1])
    else:
        raise UsageError(
            f"reconstruction has no distance for {type(space).__name__}; it has for Stereographic "
            "and Euclidean"
        )
    weighted = weight * blocks
    norms = (weighted * blocks).sum(-1, keepdim=True)
    left = torch.cat([norms, weight, -2 * weighted], dim=-1)
    right = torch.cat([weight, norms, weighted], dim=-1)
    left, right = (side.permute(1, 2, 0).contiguous() for side in (left, right))
    return left, right, kappa, scale


class _NonNeighbourSums(torch.autograd.Function):
    """`S_u` for every node from the bilinear features, with a backward pass over the same tiles."""

    @staticmethod
    def forward(
        ctx: Any,
        left: Tensor,
        right: Tensor,
        kappa: Tensor | None,
        tiles: PairTiles,
        power: int,
        scale: float,
    ) -> Tensor:
        heads, _, nodes = left.shape
        profiles: list[FlatProfile | CurvedProfile]
        profiles = [FlatProfile(scale)] if kappa is None else [CurvedProfile(k) for k in kappa]
        scaled = torch.stack([p.scale(left[h]) for h, p in enumerate(profiles)])
        sums = left.new_ones(nodes)  # the node itself: exp(0)
        kappa_sums = left.new_zeros(heads, nodes)
        weights = []
        for tile in tiles.tiles:
            terms = [
                profile(scaled[h, :, tile.rows].T @ right[h, :, tile.columns])
                for h, profile in enumerate(profiles)
            ]
            exponential, slope = _exponential([term.sqdist for term in terms], power)
            for entries in (exponential, slope):
                entries.view(-1).index_fill_(0, tile.masked, 0)
            _add_sums(sums, exponential, tile)
            for h, term in enumerate(terms):
                if term.by_kappa is not None:
                    _add_sums(kappa_sums[h], term.by_kappa.mul_(slope), tile)
            weights.append([term.by_form * slope for term in terms])
        ctx.save_for_backward(right, kappa_sums)
        ctx.weights, ctx.tiles, ctx.curved = weights, tiles, kappa is not None
        return sums

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        right, kappa_sums = ctx.saved_tensors
        grad_left = torch.zeros_like(right)
        for tile, weights in zip(ctx.tiles.tiles, ctx.weights, strict=True):
            pair_grad = grad[tile.rows, None] + grad[None, tile.columns]
            for h, weight in enumerate(weights):
                weighted = weight * pair_grad
                grad_left[h, :, tile.rows].addmm_(right[h, :, tile.columns], weighted.T)
                if not tile.on_diagonal:
                    grad_left[h, :, tile.columns].addmm_(right[h, :, tile.rows], weighted)
        return grad_left, None, kappa_sums @ grad if ctx.curved else None, None, None, None


def _exponential(sqdists: list[Tensor], power: int) -> tuple[Tensor, Tensor]:
    """`exp(-D)` of a tile and its derivative with respect to any component's squared distance."""
    total = sqdists[0]
    for sqdist in sqdists[1:]:
        total.add_(sqdist)
    if power == 2:
        exponential = total.neg_().exp_()
        return exponential, -exponential
    distance = total.clamp_min_(_SMALLEST_SQDIST[total.dtype]).sqrt_()
    exponential = torch.exp(-distance)
    return exponential, exponential / distance.mul_(-2)


def _add_sums(target: Tensor, entries: Tensor, tile: Tile) -> None:
    """Add a tile's row sums and, for its mirror image below the diagonal, its column sums."""
    target[tile.rows] += entries.sum(1)
    if not tile.on_diagonal:
        target[tile.columns] += entries.sum(0)
