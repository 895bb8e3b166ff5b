r"""The loss of graph reconstruction, over all pairs of nodes, in tiles (FPS-T, Section 5.1).

For every node `u` with neighbours `N(u)` and squared geodesic distances `D`,

    loss = sum_u sum_{v in N(u)} [ D_uv + log S_u ],    S_u = sum_{w not in N(u)} exp(-D_uw),

where `w = u` belongs to the sum (`exp(0) = 1`: without it the loss is unbounded below).

The neighbours' distances are computed from differences of coordinates, all other distances by
matrix products: `D` is a function of one bilinear form of the two nodes' features
(`curvlab.manifolds.pair_form`). A space without such a form uses plain autograd. Since `D` is
symmetric, only tiles on and above the diagonal are computed, in arrays that stay in cache. The
backward pass is explicit: it needs one matrix per component, stored as its upper half. The
arrays are kept from step to step, since allocating them takes longer than the arithmetic.

With a clamp `c` the loss is, as in the code that the paper builds on,

    loss = - sum_u sum_{v in N(u)} log max(c, max(c, exp(-D_uv)) / S_u),
    S_u = sum_{w not in N(u)} max(c, exp(-D_uw)).

Since `S_u >= 1`, the quotient is above `c` only where `exp(-D_uv)` is: the term of an edge is
`min(D_uv + log S_u, -log c)`. Neither an edge at its bound nor a non-neighbour below `c` has a
gradient.

Several processes with the same points share the tiles (`PairTiles.ranks`). They sum `S_u` in the
forward pass, and the gradients of features and curvatures in the backward pass. Each process then
has the whole loss and its whole gradient, like a single process.
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
from curvlab.tasks.pairs.fused import LIBRARY, EdgeDistances, FusedTiles
from curvlab.tasks.pairs.tiles import PairTiles, Workspace

# Rounding of a matrix product. Below it the derivative of a distance (not squared) is arbitrary.
_SMALLEST_SQDIST = {torch.float32: 1e-6, torch.float64: 1e-15}


class Evaluate(Compilable):
    """`Profile.evaluate` of any profile, as a module that compilation fuses on a GPU."""

    dynamic = False  # the tiles of a graph have at most three shapes

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
        tiles: the graph. All ranks must call the function and its backward pass equally often.
        power: 2 for squared distances, 1 for distances, in both terms.
        clamp: smallest value, below 1, of `exp(-D)` of a pair and of the quotient of an edge; None
            for none.
        evaluate: arithmetic that `torch.compile` fuses on a GPU; None: not compiled.

    Source: FPS-T, Section 5.1, with the sign, the negatives and the squared distance of the code
    it builds on (Q-GCN, https://github.com/xiongbo010/QGCN, models/decoders.py at 5d8e449), which
    clamps at 1e-15.
    """
    form = space.pair_form(x)
    fused = None
    if form is not None:
        kappa = None
        functions = None
        if form.kappa is not None:
            kappa = form.kappa.detach()
            functions = LIBRARY.functions(x, form.left)
        values = form._replace(left=form.left.detach(), right=form.right.detach(), kappa=kappa)
        evaluate = evaluate or Evaluate()
        arithmetic = _Arithmetic(values, power, clamp, evaluate, x.dtype, functions)
        fused = arithmetic.fused
    # The gradient of `index_select` sums in a fixed order, unlike that of `x[...]`. It is fast on
    # contiguous rows.
    rows = x.contiguous()
    weight = None
    if fused is not None and power == 2:
        weight = space.chord_weight(rows)
    if weight is not None:
        distances = EdgeDistances.apply(
            rows, weight, space.kappa, fused, tiles.source, tiles.target
        )
    else:
        sources = rows.index_select(0, tiles.source)
        targets = rows.index_select(0, tiles.target)
        distance = space.sqdist if power == 2 else space.dist
        distances = distance(sources, targets)
    if form is None:
        sums = _plain_sums(x, space, tiles, power, clamp)
    else:
        # The gradient of a pair flows through its left features alone, once for either end.
        sums = _NonNeighbourSums.apply(form.left, form.kappa, arithmetic, tiles, x.dtype)
    logs = sums.log()
    if clamp is None:
        return 2 * distances.sum() + (tiles.degree * logs).sum()
    edges = torch.stack([tiles.source, tiles.target])
    terms = distances + logs[edges]
    return terms.clamp_max(-log(clamp)).sum()


def _plain_sums(
    x: Tensor, space: Manifold, tiles: PairTiles, power: int, clamp: float | None
) -> Tensor:
    """`S_u` in plain autograd, a block of rows of the distance matrix at a time."""
    source, target = tiles.edge_index

    def block_sums(rows: Tensor, start: int) -> Tensor:
        squared = space.pairwise_sqdist(rows, x)
        distances = squared if power == 2 else safe_sqrt(squared)
        exponentials = (-distances).exp()
        if clamp is not None:
            exponentials = exponentials.clamp_min(clamp)
        mask = torch.zeros_like(squared, dtype=torch.bool)
        in_block = (source >= start) & (source < start + len(rows))
        mask[source[in_block] - start, target[in_block]] = True
        index = torch.arange(len(rows), device=x.device)
        mask[index, index + start] = True
        return 1 + exponentials.masked_fill(mask, 0).sum(1)

    starts = range(0, len(x), tiles.size)
    sums = []
    for rows, start in zip(x.split(tiles.size), starts, strict=True):
        sums.append(checkpoint(block_sums, rows, start, use_reentrant=False))
    return torch.cat(sums)


class _NonNeighbourSums(torch.autograd.Function):
    """`S_u` of every node from the bilinear features, with a backward pass over the same tiles.

    The features may have a wider dtype than the arrays of the tiles.
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
        work = tiles.acquire_workspace(len(left), left.device, dtype)
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
        if work is None:
            # A second backward pass, with retain_graph: the first released the arrays.
            work = tiles.acquire_workspace(len(right), right.device, ctx.dtype)
            arithmetic.sums(tiles, work)
        grad = grad.contiguous()
        grad_left = torch.zeros_like(right)
        grad_parts = grad_left.split(tiles.size, dim=2)
        feature_parts = right.split(tiles.size, dim=2)
        node_grads = grad.split(tiles.size)
        with full_precision():
            for n, tile in enumerate(tiles.tiles):
                i = tile.row
                j = tile.column
                weights = work.weights[n]
                if arithmetic.fused:
                    arithmetic.fused.pull(tile, weights, work.summands[n], grad, grad_left)
                    continue
                pair_grads = torch.add(node_grads[i][:, None], node_grads[j], out=work.forms[n])
                # The buffer is in cache, unlike the weights of all tiles.
                buffer = work.summands[n][-len(weights) :]
                products = torch.mul(weights, pair_grads, out=buffer).to(right.dtype)
                grad_parts[i].baddbmm_(feature_parts[j], products.mT)
                if i != j:
                    grad_parts[j].baddbmm_(feature_parts[i], products)
        tiles.idle_workspace = work
        grad_left.mul_(-arithmetic.profiles[0].by_form)
        grad_left = _all_reduce(grad_left, tiles)
        grad_kappa = None
        if ctx.entries is not None:
            grad_entries = -ctx.entries @ grad
            component_grads = []
            for grad_entry, profile in zip(grad_entries, arithmetic.profiles, strict=True):
                component_grads.append(grad_entry * profile.by_kappa)
            grad_kappa = _all_reduce(torch.stack(component_grads), tiles)
        return grad_left, grad_kappa, None, None, None


def _all_reduce(share: Tensor, tiles: PairTiles) -> Tensor:
    """Sum the shares of all processes, in place."""
    if tiles.ranks > 1:
        torch.distributed.all_reduce(share)
    return share


class _Arithmetic:
    """Arithmetic on the tiles of a form, one operation at a time on a tile and component."""

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
        # Compilation does not make it faster on a CPU.
        on_cpu = form.left.device.type == "cpu"
        self.evaluate = evaluate.forward if on_cpu else evaluate
        if form.kappa is None:
            self.profiles = [Profile()]
        else:
            self.profiles = [form.profile(kappa, far=power == 1) for kappa in form.kappa]
        scaled_features = []
        for features, profile in zip(form.left, self.profiles, strict=True):
            scaled_features.append(features * profile.form_scale)
        self.left = torch.stack(scaled_features)
        self.fused = None
        if functions is not None:
            self.fused = FusedTiles(
                functions,
                self.left,
                form.right,
                self.profiles,
                power,
                clamp,
                _SMALLEST_SQDIST[torch.float32],
            )

    def sums(self, tiles: PairTiles, work: Workspace) -> Tensor:
        """Sums over the pairs of each node, `[1 + components, nodes]`.

        The first is the sum of exponentials. Curved components have sums of entries. The weights
        stay in the workspace.
        """
        right = self.form.right
        num_sums = 1
        if self.form.kappa is not None:
            num_sums += len(self.profiles)
        rows = self.left.mT.split(tiles.size, dim=1)
        columns = right.split(tiles.size, dim=2)
        dtype = work.kind[2]
        sums = torch.zeros(num_sums, len(tiles.degree), dtype=dtype, device=right.device)
        sums[0] = tiles.rank == 0  # the node itself, exp(0), in one process
        parts = sums.split(tiles.size, dim=1)
        for n, tile in enumerate(tiles.tiles):
            if self.fused:
                self.fused.fill(tile, work.summands[n], work.weights[n], sums)
                continue
            with full_precision():
                self._fill(rows[tile.row], columns[tile.column], work, n, tile.mask)
            summands = work.summands[n][:num_sums]
            parts[tile.row].add_(summands.sum(2))
            if tile.row != tile.column:  # the mirror image below the diagonal
                parts[tile.column].add_(summands.sum(1))
        return sums

    def _fill(self, rows: Tensor, columns: Tensor, work: Workspace, n: int, mask: Tensor) -> None:
        """Fill the summands and weights of the n-th tile from features of rows and columns.

        Weights are `exp(-D)` times the derivatives of D with respect to the forms; entries are
        `exp(-D)` times those with respect to the curvatures.
        """
        form = work.forms[n]
        total, *entries = work.summands[n]
        weights = work.weights[n]
        total.zero_()
        for h, profile in enumerate(self.profiles):
            if rows.dtype == form.dtype:
                torch.matmul(rows[h], columns[h], out=form)
            else:  # the product has the features' dtype before it is rounded
                form.copy_(rows[h] @ columns[h])
            self.evaluate(profile, form, total, weights[h], entries[h])
        if self.power == 2:
            slope = exponential = total.exp_()
        else:
            smallest = _SMALLEST_SQDIST[total.dtype]
            distance = total.neg_().clamp_min_(smallest).sqrt_()
            exponential = torch.exp(-distance)
            slope = exponential / distance.mul_(2)
        if self.clamp is not None:
            slope = slope.masked_fill(exponential < self.clamp, 0)
            exponential = exponential.clamp_min(self.clamp)
        exponential.view(-1).index_fill_(0, mask, 0)
        slope.view(-1).index_fill_(0, mask, 0)
        total.copy_(exponential)
        if self.form.kappa is None:
            weights[0].copy_(slope)
        else:
            weights.mul_(slope)
            work.summands[n][1:].mul_(slope)
