r"""The loss of graph reconstruction, over all pairs of nodes, in tiles (FPS-T, Section 5.1).

For every node `u` with neighbours `N(u)` and squared geodesic distances `D`,

    loss = sum_u sum_{v in N(u)} [ D_uv + log S_u ],    S_u = sum_{w not in N(u)} exp(-D_uw),

where `w = u` belongs to the sum (`exp(0) = 1`: without it the loss is unbounded below).

The neighbours' distances are differences of coordinates; the others go through matrix products:
`D` is a function of one bilinear form of the two nodes' features
(`curvlab.manifolds.pair_form`). A space without such a form has plain autograd instead.
Since `D` is symmetric, only tiles on and above the diagonal are visited, in arrays that stay in
cache, and the backward pass is written out: it needs one matrix per component; half of it is
kept. The arrays live from step to step, since fresh memory costs more than the arithmetic on it.

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

from ctypes import CDLL
from math import log
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from curvlab.compilation import Compilable
from curvlab.manifolds.base import Manifold
from curvlab.manifolds.curved_trig import safe_sqrt
from curvlab.manifolds.matrix_products import full_precision
from curvlab.manifolds.pair_form import PairForm, Profile
from curvlab.tasks.pairs.fused import LIBRARY, EdgeDistances, Fused
from curvlab.tasks.pairs.tiles import PairTiles, Workspace

# Rounding of a matrix product, below which a distance (not squared) would have a wild slope.
_SMALLEST_SQDIST = {torch.float32: 1e-6, torch.float64: 1e-15}


class Evaluate(Compilable):
    """`Profile.evaluate` of any profile as a module, which compilation fuses on a GPU."""

    dynamic = False  # a graph has tiles of at most three shapes

    def forward(self, profile: Profile, *tiles: Tensor) -> None:
        profile.evaluate(*tiles)


def reconstruction_loss(
    x: Tensor,
    space: Manifold,
    tiles: PairTiles,
    power: int = 2,
    clamp: float | None = None,
    evaluate: Evaluate | None = None,
) -> Tensor:
    """Sum over both directions of every edge of `D_uv + log S_u`.

    Args:
        x: points of `space`, `[nodes, dim]`.
        space: space of the points; on a product `D` is the sum over components.
        tiles: the graph; several ranks call this, and backward, equally often.
        power: 2 for squared distances, 1 for distances, in both terms.
        clamp: smallest value, below 1, of `exp(-D)` of a pair and of an edge's share of the
            negatives' sum; None for none.
        evaluate: the arithmetic that `torch.compile` fuses on a GPU; None: not compiled.

    Source: FPS-T, Section 5.1, with the sign, the negatives and the squared distance of the code
    it builds on (Q-GCN, https://github.com/xiongbo010/QGCN, models/decoders.py at 5d8e449), which
    clamps at 1e-15.
    """
    form = space.pair_form(x)
    fused = None
    if form is not None:
        kappa = None if form.kappa is None else form.kappa.detach()
        values = form._replace(left=form.left.detach(), right=form.right.detach(), kappa=kappa)
        functions = None if kappa is None else LIBRARY.functions(x, form.left)
        arithmetic = _Arithmetic(values, power, clamp, evaluate or Evaluate(), x.dtype, functions)
        fused = arithmetic.fused
    # Unlike that of `x[...]`, the gradient of `index_select` has one order; it is fast on rows.
    rows = x.contiguous()
    weight = space.chord_weight(rows) if fused is not None and power == 2 else None
    if weight is not None:
        positive = EdgeDistances.apply(rows, weight, space.kappa, fused, tiles.source, tiles.target)
    else:
        sources, targets = (rows.index_select(0, end) for end in (tiles.source, tiles.target))
        positive = space.sqdist(sources, targets) if power == 2 else space.dist(sources, targets)
    if form is None:
        logs = _sums_of_distances(x, space, tiles, power, clamp).log()
    else:
        # Each pair is differentiated through its left features alone, once for either end.
        logs = _NonNeighbourSums.apply(form.left, form.kappa, arithmetic, tiles, x.dtype).log()
    if clamp is None:
        return 2 * positive.sum() + (tiles.degree * logs).sum()
    ends = torch.stack([tiles.source, tiles.target])
    return (positive + logs[ends]).clamp_max(-log(clamp)).sum()


def _sums_of_distances(
    x: Tensor, space: Manifold, tiles: PairTiles, power: int, clamp: float | None
) -> Tensor:
    """`S_u` in plain autograd, a block of rows of the distance matrix at a time."""
    source, target = tiles.edge_index

    def sums(rows: Tensor, start: int) -> Tensor:
        squared = space.pairwise_sqdist(rows, x)
        exponentials = (-(squared if power == 2 else safe_sqrt(squared))).exp()
        if clamp is not None:
            exponentials = exponentials.clamp_min(clamp)
        own = torch.arange(len(rows), device=x.device)
        here = (source >= start) & (source < start + len(rows))
        masked = torch.zeros_like(squared, dtype=torch.bool)
        masked[source[here] - start, target[here]] = True
        masked[own, own + start] = True
        return 1 + exponentials.masked_fill(masked, 0).sum(1)

    starts = range(0, len(x), tiles.size)
    blocks = zip(x.split(tiles.size), starts, strict=True)
    return torch.cat([checkpoint(sums, *block, use_reentrant=False) for block in blocks])


class _NonNeighbourSums(torch.autograd.Function):
    """`S_u` for every node from the bilinear features, with a backward pass over the same tiles.

    The features may be wider than the arrays of the tiles, of the given dtype.
    """

    @staticmethod
    def forward(
        ctx: Any,
        left: Tensor,
        kappa: Tensor | None,
        arithmetic: "_Arithmetic",
        tiles: PairTiles,
        dtype: torch.dtype,
    ) -> Tensor:
        work = tiles.take_workspace(len(left), left.device, dtype)
        exponentials, *entries = arithmetic.sums(tiles, work)
        ctx.arithmetic = arithmetic
        ctx.tiles = tiles
        ctx.work = work
        ctx.dtype = dtype
        ctx.entries = None if kappa is None else torch.stack(entries)
        return _all_reduce(exponentials, tiles)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "The reconstruction loss is differentiable once: for create_graph=True sum it over "
                "space.sqdist(x[:, None], x[None])."
            )
        arithmetic = ctx.arithmetic
        tiles = ctx.tiles
        work = ctx.work
        ctx.work = None
        right = arithmetic.form.right
        if work is None:  # a second pass, with retain_graph: the first has used up the weights
            work = tiles.take_workspace(len(right), right.device, ctx.dtype)
            arithmetic.sums(tiles, work)
        grad = grad.contiguous()
        grad_left = torch.zeros_like(right)
        parts = grad_left.split(tiles.size, dim=2)
        features = right.split(tiles.size, dim=2)
        pulls = grad.split(tiles.size)
        with full_precision():
            for n, tile in enumerate(tiles.tiles):
                i = tile.row
                j = tile.column
                weights = work.weights[n]
                if arithmetic.fused:
                    arithmetic.fused.pull(tile, weights, work.summands[n], grad, grad_left)
                    continue
                pull = torch.add(pulls[i][:, None], pulls[j], out=work.forms[n])
                # Into an array that is in cache, since the weights of all tiles are not.
                weights = torch.mul(weights, pull, out=work.summands[n][-len(weights) :])
                weights = weights.to(right.dtype)
                parts[i].baddbmm_(features[j], weights.mT)
                if i != j:
                    parts[j].baddbmm_(features[i], weights)
        tiles.idle = work
        grad_left = _all_reduce(grad_left.mul_(-arithmetic.profiles[0].by_form), tiles)
        grad_kappa = None
        if ctx.entries is not None:
            by_entry = -ctx.entries @ grad
            units = (profile.by_kappa for profile in arithmetic.profiles)
            by_kappa = [entry * unit for entry, unit in zip(by_entry, units, strict=True)]
            grad_kappa = _all_reduce(torch.stack(by_kappa), tiles)
        return grad_left, grad_kappa, None, None, None


def _all_reduce(share: Tensor, tiles: PairTiles) -> Tensor:
    """The sum of the shares of all processes, in place."""
    if tiles.ranks > 1:
        torch.distributed.all_reduce(share)
    return share


class _Arithmetic:
    """The arithmetic on the tiles of a form, one operation at a time on a tile and component."""

    def __init__(
        self,
        form: PairForm,
        power: int,
        clamp: float | None,
        evaluate: Evaluate,
        dtype: torch.dtype,
        functions: CDLL | None = None,
    ) -> None:
        self.form = form
        self.power = power
        self.clamp = clamp
        # On a processor it is no faster compiled.
        on_cpu = form.left.device.type == "cpu"
        self.evaluate = evaluate.forward if on_cpu else evaluate
        kappa = form.kappa
        if kappa is None:
            self.profiles = [Profile()]
        else:
            self.profiles = [form.profile(k, far=power == 1) for k in kappa]
        pairs = zip(form.left, self.profiles, strict=True)
        self.left = torch.stack([features * profile.form_scale for features, profile in pairs])
        self.fused = None
        if functions is not None:
            sides = self.left, form.right
            smallest = _SMALLEST_SQDIST[torch.float32]
            self.fused = Fused(functions, *sides, self.profiles, power, clamp, smallest)

    def sums(self, tiles: PairTiles, work: Workspace) -> Tensor:
        """Sums over the other nodes of a pair: of exponentials, and of entries where it is curved.

        `[1 + components, nodes]`. The weights stay in the workspace.
        """
        right = self.form.right
        kinds = 1 + (self.form.kappa is not None) * len(self.profiles)
        rows = self.left.mT.split(tiles.size, dim=1)
        columns = right.split(tiles.size, dim=2)
        sums = torch.zeros(kinds, len(tiles.degree), dtype=work.kind[2], device=right.device)
        sums[0] = tiles.rank == 0  # the node itself, exp(0), once
        parts = sums.split(tiles.size, dim=1)
        for n, tile in enumerate(tiles.tiles):
            if self.fused:
                self.fused.fill(tile, work.summands[n], work.weights[n], sums)
                continue
            with full_precision():
                self._fill(rows[tile.row], columns[tile.column], work, n, tile.masked)
            summands = work.summands[n][:kinds]
            parts[tile.row].add_(summands.sum(2))
            if tile.row != tile.column:  # its mirror image below the diagonal
                parts[tile.column].add_(summands.sum(1))
        return sums

    def _fill(self, rows: Tensor, columns: Tensor, work: Workspace, n: int, masked: Tensor) -> None:
        """Fill the summands and weights of the n-th tile from features of rows and columns.

        Weights are `exp(-D)` times the derivatives of D by forms, entries those by curvatures.
        """
        form = work.forms[n]
        total, *entries = work.summands[n]
        weights = work.weights[n]
        total.zero_()
        for h, profile in enumerate(self.profiles):
            if rows.dtype == form.dtype:
                torch.matmul(rows[h], columns[h], out=form)
            else:  # in the features' own type before it is rounded
                form.copy_(rows[h] @ columns[h])
            self.evaluate(profile, form, total, weights[h], entries[h])
        if self.power == 2:
            slope = exponential = total.exp_()
        else:
            distance = total.neg_().clamp_min_(_SMALLEST_SQDIST[total.dtype]).sqrt_()
            exponential = torch.exp(-distance)
            slope = exponential / distance.mul_(2)
        if self.clamp is not None:
            slope = slope.masked_fill(exponential < self.clamp, 0)
            exponential = exponential.clamp_min(self.clamp)
        for counted in (exponential, slope):
            counted.view(-1).index_fill_(0, masked, 0)
        total.copy_(exponential)
        if self.form.kappa is None:
            weights[0].copy_(slope)
        else:
            weights.mul_(slope)
            work.summands[n][1:].mul_(slope)
