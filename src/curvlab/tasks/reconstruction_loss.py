r"""The loss of graph reconstruction, over all pairs of nodes, in tiles (FPS-T, Section 5.1).

For every node `u` with neighbours `N(u)` and squared geodesic distances `D`,

    loss = sum_u sum_{v in N(u)} [ D_uv + log S_u ],    S_u = sum_{w not in N(u)} exp(-D_uw),

where `w = u` belongs to the sum (`exp(0) = 1`: without it the loss is unbounded below).

The neighbours' distances are differences of coordinates; the others go through matrix products:
`D` is a function of one bilinear form of the two nodes' features (`curvlab.tasks.pair_profiles`).
Since `D` is symmetric, only tiles on and above the diagonal are visited, in arrays that stay in
cache, and the backward pass is written out: it needs one matrix per component, of which half is
kept. The arrays live from step to step, since fresh memory costs more than the arithmetic on it.
A tile's arithmetic is done in passes over these arrays, or, compiled, in one (`PairKernel`).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from curvlab.errors import UsageError
from curvlab.manifolds import (
    EmbeddingSpace,
    Euclidean,
    Lorentz,
    PseudoHyperboloid,
    Stereographic,
    lorentz,
)
from curvlab.tasks.pair_kernel import SMALLEST_SQDIST, PairKernel
from curvlab.tasks.pair_profiles import CurvedProfile, FlatProfile, Number, PseudoProfile


@dataclass
class Tile:
    """A block of the pair matrix: its numbers, its size, and the entries that do not count."""

    row: int
    column: int
    shape: tuple[int, int]
    masked: Tensor  # positions in the flattened tile: neighbours, and the diagonal


class PairTiles:
    """The non-neighbour pairs of a graph, cut in tiles on and above the diagonal.

    Args:
        edge_index: both directions of every edge, no self-loops, no duplicates, `[2, 2M]`.
        num_nodes: number of nodes.
        size: nodes a tile side; four tiles of 256 float32 numbers a side stay in a core's cache,
            accelerators like more.
    """

    def __init__(self, edge_index: Tensor, num_nodes: int, size: int | None = None) -> None:
        self.edge_index = edge_index
        size = size or (256 if edge_index.device.type == "cpu" else 4096)
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
        self.size = min(size, num_nodes)
        sides = [min(size, num_nodes - start) for start in range(0, num_nodes, size)]
        self.tiles = [
            Tile(i, j, (sides[i], sides[j]), masked[i * per_side + j])
            for i in range(per_side)
            for j in range(i, per_side)
        ]
        self._idle: _Workspace | None = None

    def take_workspace(self, components: int, like: Tensor) -> "_Workspace":
        """The arrays of the last finished pass, or new ones."""
        workspace, self._idle = self._idle, None
        if workspace is None or not workspace.fits(components, like):
            workspace = _Workspace(self, components, like)
        return workspace

    def give_back(self, workspace: "_Workspace") -> None:
        """Keep the arrays for the next pass."""
        self._idle = workspace


class _Workspace:
    """The arrays of one forward and backward pass, as views of every tile's shape.

    Attributes:
        forms: of one tile, `[rows, columns]`.
        summands: of one tile, `[1 + components, rows, columns]`, what is summed over nodes:
            exponentials, and the entries of each component.
        weights: of all tiles, `[components, rows, columns]`, what the backward pass needs.
    """

    def __init__(self, tiles: PairTiles, components: int, like: Tensor) -> None:
        areas = [rows * columns for rows, columns in (tile.shape for tile in tiles.tiles)]
        shared = like.new_empty(2 + components, tiles.size**2)
        views = [
            shared[:, :area].unflatten(1, tile.shape)
            for tile, area in zip(tiles.tiles, areas, strict=True)
        ]
        self.forms, self.summands = [v[0] for v in views], [v[1:] for v in views]
        own = like.new_empty(components * sum(areas)).split([components * area for area in areas])
        self.weights = [
            part.unflatten(0, (components, *tile.shape))
            for tile, part in zip(tiles.tiles, own, strict=True)
        ]

    def fits(self, components: int, like: Tensor) -> bool:
        """Whether it is of the kind of such features."""
        form = self.forms[0]
        same = form.dtype == like.dtype and form.device == like.device
        return same and len(self.weights[0]) == components


def reconstruction_loss(
    x: Tensor,
    space: EmbeddingSpace,
    tiles: PairTiles,
    power: int = 2,
    kernel: PairKernel | None = None,
) -> Tensor:
    """Sum over both directions of every edge of `D_uv + log S_u`.

    Args:
        x: points of `space`, `[nodes, dim]`.
        space: where they lie; on a product `D` is the sum over components.
        tiles: the graph.
        power: 2 for squared distances, 1 for distances, in both terms.
        kernel: does a tile's arithmetic in one, which pays when it is compiled; None for passes, as
            on the pseudo-hyperboloid, whose arithmetic it has not.

    Source: FPS-T, Section 5.1, with the sign, the negatives and the squared distance of the code
    it builds on (Q-GCN).
    """
    left, right, kappa, scale = _bilinear_features(x, space)
    pseudo = isinstance(space, PseudoHyperboloid)
    curved, kernel = (PseudoProfile, None) if pseudo else (CurvedProfile, kernel)
    sources, targets = x[tiles.source], x[tiles.target]
    positive = space.sqdist(sources, targets) if power == 2 else space.dist(sources, targets)
    # Each pair is differentiated through its left features alone, once for either end.
    sums = _NonNeighbourSums.apply(left, right.detach(), kappa, tiles, power, scale, kernel, curved)
    return 2 * positive.sum() + (tiles.degree * sums.log()).sum()


def _bilinear_features(
    x: Tensor, space: EmbeddingSpace
) -> tuple[Tensor, Tensor, Tensor | None, float]:
    """Features whose products are the form `u^2`, the curvatures, and `D / u^2` where it is flat.

    Flat: `|x - y|^2 = [|x|^2, 1, -2x] . [1, |y|^2, y]`; stereographic: each side divided by its
    `1 + kappa |.|^2`, of a Lorentz point's stereographic image `2 / (1 + sqrt(1 - kappa |s|^2))`,
    which nothing cancels in. Pseudo-hyperboloid: `m = -|x' - y'|^2` with the product's signs, where
    `x' = sqrt(-kappa) x / 2`. Both are `[components, dim + 2, nodes]`.
    """
    if isinstance(space, PseudoHyperboloid):
        return _pseudo_features(x, space)
    if isinstance(space, Stereographic):
        blocks, kappa, scale = space.split(x), space.kappa, 1.0
        weight = 1 / (1 + kappa[:, None] * blocks.square().sum(-1, keepdim=True))
    elif isinstance(space, Euclidean):
        blocks, kappa, scale = x.unsqueeze(1), None, space.scale**2
        weight = torch.ones_like(blocks[..., :1])
    elif isinstance(space, Lorentz):
        kappa, scale, s = space.kappa.reshape(1), 1.0, lorentz.space(x).unsqueeze(1)
        weight = (1 + (1 - kappa * s.square().sum(-1, keepdim=True)).sqrt()) / 2
        blocks = s / (2 * weight)
    else:
        raise UsageError(
            f"reconstruction has no distance for {type(space).__name__}; it has for Stereographic, "
            "Lorentz, PseudoHyperboloid and Euclidean"
        )
    weighted = weight * blocks
    norms = (weighted * blocks).sum(-1, keepdim=True)
    left = torch.cat([norms, weight, -2 * weighted], dim=-1)
    right = torch.cat([weight, norms, weighted], dim=-1)
    left, right = (side.permute(1, 2, 0).contiguous() for side in (left, right))
    return left, right, kappa, scale


def _pseudo_features(x: Tensor, space: PseudoHyperboloid) -> tuple[Tensor, Tensor, Tensor, float]:
    """What `_bilinear_features` returns on the pseudo-hyperboloid."""
    kappa = space.kappa
    scaled = (-kappa).sqrt() / 2 * x
    time, rest = scaled.split([space.time_dims, x.shape[1] - space.time_dims], dim=1)
    signed = torch.cat([time, -rest], dim=1)  # -<x, y> = signed x . y
    norms = (signed * scaled).sum(-1, keepdim=True)
    ones = torch.ones_like(norms)
    left = torch.cat([norms, ones, -2 * signed], dim=1)
    right = torch.cat([ones, norms, scaled], dim=1)
    left, right = (side.T.contiguous().unsqueeze(0) for side in (left, right))
    return left, right, kappa.reshape(1), 1.0


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
        kernel: PairKernel | None,
        curved: type[CurvedProfile | PseudoProfile],
    ) -> Tensor:
        work = tiles.take_workspace(len(left), left)
        if kernel is None:
            found = _sums_in_passes(left, right, kappa, tiles, power, scale, work, curved)
        else:
            found = _sums_by_kernel(left, right, kappa, tiles, power, scale, work, kernel)
        ctx.save_for_backward(right, found.entries)
        ctx.by_form, ctx.by_kappa = found.by_form, found.by_kappa
        ctx.tiles, ctx.work = tiles, work
        return found.exponentials

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        right, entry_sums = ctx.saved_tensors
        tiles, work = ctx.tiles, ctx.work
        ctx.work = None
        grad_left = torch.zeros_like(right)
        parts, features = grad_left.split(tiles.size, dim=2), right.split(tiles.size, dim=2)
        pulls = grad.split(tiles.size)
        for n, tile in enumerate(tiles.tiles):
            i, j, weights = tile.row, tile.column, work.weights[n]
            weights.mul_(torch.add(pulls[i][:, None], pulls[j], out=work.forms[n]))
            parts[i].baddbmm_(features[j], weights.mT)
            if i != j:
                parts[j].baddbmm_(features[i], weights)
        tiles.give_back(work)
        grad_left *= -ctx.by_form
        grad_kappa = None
        if ctx.by_kappa:
            by_entry = -entry_sums @ grad
            grad_kappa = torch.stack([by_entry[h] * unit for h, unit in enumerate(ctx.by_kappa)])
        return grad_left, None, grad_kappa, None, None, None, None, None


def _sums_in_passes(
    left: Tensor,
    right: Tensor,
    kappa: Tensor | None,
    tiles: PairTiles,
    power: int,
    scale: float,
    work: _Workspace,
    curved: type[CurvedProfile | PseudoProfile],
) -> _Sums:
    """The sums by one operation at a time on a tile and component."""
    profiles: list[FlatProfile | CurvedProfile | PseudoProfile]
    profiles = [FlatProfile(scale)] if kappa is None else [curved(k) for k in kappa]
    scaled = torch.stack([left[h] * p.form_scale for h, p in enumerate(profiles)])
    rows, columns = scaled.mT.split(tiles.size, dim=1), right.split(tiles.size, dim=2)
    sums = _NodeSums(left, kappa is not None, tiles)
    for n, tile in enumerate(tiles.tiles):
        form, (total, *entries), weights = work.forms[n], work.summands[n], work.weights[n]
        total.zero_()
        for h, profile in enumerate(profiles):
            torch.mm(rows[tile.row][h], columns[tile.column][h], out=form)
            if isinstance(profile, FlatProfile):
                profile.evaluate(form, total)
            else:
                profile.evaluate(form, total, weights[h], entries[h])
        exponential, slope = _exponential(total, power, tile.masked)
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
    tiles: PairTiles,
    power: int,
    scale: float,
    work: _Workspace,
    kernel: PairKernel,
) -> _Sums:
    """The sums by one call of the kernel a tile."""
    # On an accelerator looking at a sign would wait for the device.
    spherical = kappa is not None and (kappa.device.type != "cpu" or bool((kappa > 0).any()))
    rows, columns = (left * scale).mT.split(tiles.size, dim=1), right.split(tiles.size, dim=2)
    sums = _NodeSums(left, kappa is not None, tiles)
    for n, tile in enumerate(tiles.tiles):
        # Forms, which become the entries.
        torch.bmm(rows[tile.row], columns[tile.column], out=work.summands[n][1:])
        total, *forms = work.summands[n].unbind()
        forms[0].view(-1).index_fill_(0, tile.masked, -torch.inf)
        kernel(forms, kappa, spherical, power, total, work.weights[n].unbind())
        sums.add(work.summands[n], tile)
    if kappa is None:
        return _Sums(sums.exponentials, sums.entries, scale, [])
    by_kappa: list[Number] = [kernel.by_kappa] * len(kappa)
    return _Sums(sums.exponentials, sums.entries, kernel.by_form, by_kappa)


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


class _NodeSums:
    """Sums over the other nodes of a pair: of exponentials, and of entries if there are any."""

    def __init__(self, left: Tensor, with_entries: bool, tiles: PairTiles) -> None:
        components, _, nodes = left.shape
        self.kinds = 1 + components if with_entries else 1
        sums = left.new_zeros(self.kinds, nodes)
        sums[0] = 1  # the node itself: exp(0)
        self.exponentials, self.entries = sums[0], sums[1:]
        self._parts = sums.split(tiles.size, dim=1)

    def add(self, summands: Tensor, tile: Tile) -> None:
        """Add a tile's row sums and, for its mirror image below the diagonal, its column sums."""
        summands = summands[: self.kinds]
        self._parts[tile.row].add_(summands.sum(2))
        if tile.row != tile.column:
            self._parts[tile.column].add_(summands.sum(1))
