r"""The loss of graph reconstruction, over all pairs of nodes, in tiles (FPS-T, Section 5.1).

For every node `u` with neighbours `N(u)` and squared geodesic distances `D`,

    loss = sum_u sum_{v in N(u)} [ D_uv + log S_u ],    S_u = sum_{w not in N(u)} exp(-D_uw),

where `w = u` belongs to the sum (`exp(0) = 1`: without it the loss is unbounded below).

The neighbours' distances are differences of coordinates; the others go through matrix products:
`D` is a function of one bilinear form of the two nodes' features
(`curvlab.manifolds.pairs.profiles`).
Since `D` is symmetric, only tiles on and above the diagonal are visited, in arrays that stay in
cache, and the backward pass is written out: it needs one matrix per component, of which half is
kept. The arrays live from step to step, since fresh memory costs more than the arithmetic on it.
A tile's arithmetic is done in passes over these arrays, or, compiled, in one (`PairKernel`).

With a clamp `c` the loss is, as in the code that the paper builds on,

    loss = - sum_u sum_{v in N(u)} log max(c, max(c, exp(-D_uv)) / S_u),
    S_u = sum_{w not in N(u)} max(c, exp(-D_uw)).

Since `S_u >= 1`, the quotient is above `c` only where `exp(-D_uv)` is: the term of an edge is
`min(D_uv + log S_u, -log c)`. Neither an edge at its bound nor a non-neighbour below `c` has a
gradient.

Several processes that have the same points share the tiles (`PairTiles.ranks`). They add up `S_u`
in the forward pass, and the gradients by features and curvatures in the backward pass. Each of them
then has the whole loss and its whole gradient, as one process alone.
"""

from collections.abc import Callable
from functools import partial
from math import log
from typing import Any, NamedTuple

import torch
from torch import Tensor

from curvlab.manifolds.base import EmbeddingSpace
from curvlab.manifolds.pairs.kernel import SMALLEST_SQDIST, PairKernel
from curvlab.manifolds.pairs.profiles import CurvedProfile, FlatProfile, Number, PseudoProfile
from curvlab.manifolds.pairs.tiles import PairTiles, Tile, Workspace
from curvlab.manifolds.products import full_precision


def reconstruction_loss(
    x: Tensor,
    space: EmbeddingSpace,
    tiles: PairTiles,
    power: int = 2,
    kernel: PairKernel | None = None,
    clamp: float | None = None,
) -> Tensor:
    """Sum over both directions of every edge of `D_uv + log S_u`.

    Args:
        x: points of `space`, `[nodes, dim]`.
        space: where they lie; on a product `D` is the sum over components.
        tiles: the graph; of several ranks, all of which call this, and backward, equally often.
        power: 2 for squared distances, 1 for distances, in both terms.
        kernel: does a tile's arithmetic in one, which pays when it is compiled; None for passes, as
            on the pseudo-hyperboloid, whose arithmetic it has not.
        clamp: smallest value, below 1, of `exp(-D)` of a pair and of an edge's share of the
            negatives' sum; None for none.

    Source: FPS-T, Section 5.1, with the sign, the negatives and the squared distance of the code
    it builds on (Q-GCN, https://github.com/xiongbo010/QGCN, models/decoders.py at 5d8e449), which
    clamps at 1e-15.
    """
    left, right, kappa, scale, curved = space.pair_form(x)
    if curved is not CurvedProfile:
        kernel = None
    # Unlike that of `x[...]`, the gradient of `index_select` has one order; it is fast on rows.
    rows = x.contiguous()
    sources, targets = (rows.index_select(0, end) for end in (tiles.source, tiles.target))
    positive = space.sqdist(sources, targets) if power == 2 else space.dist(sources, targets)
    if kernel is None:
        sums_of = partial(_sums_in_passes, curved=curved)
    else:
        sums_of = partial(_sums_by_kernel, kernel=kernel)
    evaluate = partial(sums_of, tiles=tiles, power=power, scale=scale, clamp=clamp, dtype=x.dtype)
    # Each pair is differentiated through its left features alone, once for either end.
    sums = _NonNeighbourSums.apply(left, right.detach(), kappa, tiles, evaluate, x.dtype)
    logs = sums.log()
    if clamp is None:
        return 2 * positive.sum() + (tiles.degree * logs).sum()
    ends = torch.stack([tiles.source, tiles.target])
    return (positive + logs[ends]).clamp_max(-log(clamp)).sum()


class _Sums(NamedTuple):
    """What a forward pass finds, beside the weights in the workspace.

    Attributes:
        exponentials: `S_u`, `[nodes]`.
        entries: its derivatives by curvatures in units of `by_kappa`, `[components, nodes]`.
        by_form: the unit of the weights, which are derivatives by forms.
        by_kappa: see above, one a component; empty where it is flat.
    """

    exponentials: Tensor
    entries: Tensor
    by_form: Number
    by_kappa: list[Number]


class _NonNeighbourSums(torch.autograd.Function):
    """`S_u` for every node from the bilinear features, with a backward pass over the same tiles.

    The features may be wider than the arrays of the tiles, of the given dtype.
    """

    @staticmethod
    def forward(
        ctx: Any,
        left: Tensor,
        right: Tensor,
        kappa: Tensor | None,
        tiles: PairTiles,
        evaluate: Callable[..., _Sums],
        dtype: torch.dtype,
    ) -> Tensor:
        work = tiles.take_workspace(len(left), left.device, dtype)
        with full_precision():
            found = evaluate(left, right, kappa, work=work)
        ctx.save_for_backward(left, right, kappa, found.entries)
        ctx.by_form, ctx.by_kappa = found.by_form, found.by_kappa
        ctx.tiles, ctx.work, ctx.evaluate, ctx.dtype = tiles, work, evaluate, dtype
        return _of_all(found.exponentials, tiles)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "The reconstruction loss is differentiable once: for create_graph=True sum it over "
                "space.sqdist(x[:, None], x[None])."
            )
        left, right, kappa, entry_sums = ctx.saved_tensors
        tiles, work = ctx.tiles, ctx.work
        ctx.work = None
        grad_left = torch.zeros_like(right)
        parts, features = grad_left.split(tiles.size, dim=2), right.split(tiles.size, dim=2)
        pulls = grad.split(tiles.size)
        with full_precision():
            if work is None:  # a second pass, with retain_graph: the first has used up the weights
                work = tiles.take_workspace(len(left), left.device, ctx.dtype)
                ctx.evaluate(left, right, kappa, work=work)
            for n, tile in enumerate(tiles.tiles):
                i, j, weights = tile.row, tile.column, work.weights[n]
                weights.mul_(torch.add(pulls[i][:, None], pulls[j], out=work.forms[n]))
                weights = weights.to(right.dtype)
                parts[i].baddbmm_(features[j], weights.mT)
                if i != j:
                    parts[j].baddbmm_(features[i], weights)
        tiles.give_back(work)
        grad_left = _of_all(grad_left.mul_(-ctx.by_form), tiles)
        grad_kappa = None
        if ctx.by_kappa:
            by_entry = -entry_sums @ grad
            by_kappa = [by_entry[h] * unit for h, unit in enumerate(ctx.by_kappa)]
            grad_kappa = _of_all(torch.stack(by_kappa), tiles)
        return grad_left, None, grad_kappa, None, None, None


def _of_all(share: Tensor, tiles: PairTiles) -> Tensor:
    """The sum of the shares of all processes, in place."""
    if tiles.ranks > 1:
        torch.distributed.all_reduce(share)
    return share


def _sums_in_passes(
    left: Tensor,
    right: Tensor,
    kappa: Tensor | None,
    *,
    tiles: PairTiles,
    power: int,
    scale: float,
    dtype: torch.dtype,
    work: Workspace,
    curved: type[CurvedProfile | PseudoProfile],
    clamp: float | None,
) -> _Sums:
    """The sums by one operation at a time on a tile and component."""
    profiles: list[FlatProfile | CurvedProfile | PseudoProfile]
    profiles = [FlatProfile(scale)] if kappa is None else [curved(k) for k in kappa]
    scaled = torch.stack([left[h] * p.form_scale for h, p in enumerate(profiles)])
    rows, columns = scaled.mT.split(tiles.size, dim=1), right.split(tiles.size, dim=2)
    sums = _NodeSums(left, dtype, kappa is not None, tiles)
    for n, tile in enumerate(tiles.tiles):
        form, (total, *entries), weights = work.forms[n], work.summands[n], work.weights[n]
        total.zero_()
        for h, profile in enumerate(profiles):
            _multiply(rows[tile.row][h], columns[tile.column][h], form)
            if isinstance(profile, FlatProfile):
                profile.evaluate(form, total)
            else:
                profile.evaluate(form, total, weights[h], entries[h])
        exponential, slope = _exponential(total, power, tile.masked)
        if clamp is not None:
            exponential, slope = _clamped(exponential, slope, tile.masked, clamp)
        total.copy_(exponential)
        if kappa is None:
            weights[0].copy_(slope)
        else:
            weights.mul_(slope)
            work.summands[n][1:].mul_(slope)
        sums.add(work.summands[n], tile)
    by_kappa = [p.by_kappa for p in profiles if not isinstance(p, FlatProfile)]
    return _Sums(sums.exponentials, sums.entries, profiles[0].by_form, by_kappa)


def _sums_by_kernel(
    left: Tensor,
    right: Tensor,
    kappa: Tensor | None,
    *,
    tiles: PairTiles,
    power: int,
    scale: float,
    dtype: torch.dtype,
    work: Workspace,
    kernel: PairKernel,
    clamp: float | None,
) -> _Sums:
    """The sums by one call of the kernel a tile."""
    # On an accelerator looking at a sign would wait for the device.
    spherical = kappa is not None and (kappa.device.type != "cpu" or bool((kappa > 0).any()))
    rows, columns = (left * scale).mT.split(tiles.size, dim=1), right.split(tiles.size, dim=2)
    sums = _NodeSums(left, dtype, kappa is not None, tiles)
    for n, tile in enumerate(tiles.tiles):
        # Forms, which become the entries.
        _multiply(rows[tile.row], columns[tile.column], work.summands[n][1:])
        total, *forms = work.summands[n].unbind()
        forms[0].view(-1).index_fill_(0, tile.masked, -torch.inf)
        kernel(forms, kappa, spherical, power, total, work.weights[n].unbind(), clamp)
        sums.add(work.summands[n], tile)
    if kappa is None:
        return _Sums(sums.exponentials, sums.entries, scale, [])
    by_kappa: list[Number] = [kernel.by_kappa] * len(kappa)
    return _Sums(sums.exponentials, sums.entries, kernel.by_form, by_kappa)


def _multiply(rows: Tensor, columns: Tensor, out: Tensor) -> None:
    """The product of features, in their own type before it is rounded."""
    if rows.dtype == out.dtype:
        torch.matmul(rows, columns, out=out)
    else:
        out.copy_(rows @ columns)


def _exponential(total: Tensor, power: int, masked: Tensor) -> tuple[Tensor, Tensor]:
    """`exp(-D)` of a tile of `-D^2`, and minus its derivative by any component's squared distance.

    Zero where masked. The tile is overwritten.
    """
    if power == 2:
        exponential = total.exp_()
        exponential.view(-1).index_fill_(0, masked, 0)
        return exponential, exponential
    distance = total.neg_().clamp_min_(SMALLEST_SQDIST[total.dtype]).sqrt_()
    exponential = torch.exp(-distance)
    exponential.view(-1).index_fill_(0, masked, 0)
    return exponential, exponential / distance.mul_(2)


def _clamped(
    exponential: Tensor, slope: Tensor, masked: Tensor, clamp: float
) -> tuple[Tensor, Tensor]:
    """Exponentials of a tile from below, and their slopes, which vanish there."""
    slope = slope.masked_fill(exponential < clamp, 0)
    exponential = exponential.clamp_min(clamp)
    exponential.view(-1).index_fill_(0, masked, 0)
    return exponential, slope


class _NodeSums:
    """Sums over the other nodes of a pair: of exponentials, and of entries if there are any."""

    def __init__(
        self, left: Tensor, dtype: torch.dtype, with_entries: bool, tiles: PairTiles
    ) -> None:
        self.kinds = 1 + len(left) if with_entries else 1
        sums = left.new_zeros(self.kinds, len(tiles.degree), dtype=dtype)
        sums[0] = tiles.rank == 0  # the node itself, exp(0), once
        self.exponentials, self.entries = sums[0], sums[1:]
        self._parts = sums.split(tiles.size, dim=1)

    def add(self, summands: Tensor, tile: Tile) -> None:
        """Add a tile's row sums and, for its mirror image below the diagonal, its column sums."""
        summands = summands[: self.kinds]
        self._parts[tile.row].add_(summands.sum(2))
        if tile.row != tile.column:
            self._parts[tile.column].add_(summands.sum(1))
