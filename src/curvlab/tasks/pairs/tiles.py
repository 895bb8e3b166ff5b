"""The pairs of a graph's nodes that are no neighbours, in tiles, and the arrays that these take."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass
class Tile:
    """A block of the pair matrix: its numbers, its size, and the entries that do not count.

    `place` is its first row, rows, first column, columns.
    """

    row: int
    column: int
    shape: tuple[int, int]
    place: tuple[int, int, int, int]
    masked: Tensor  # positions in the flattened tile: neighbours, and the diagonal


class PairTiles:
    """The non-neighbour pairs of a graph, cut in tiles on and above the diagonal.

    Args:
        edge_index: both directions of every edge, no self-loops, no duplicates, `[2, 2M]`.
        num_nodes: number of nodes.
        size: nodes a tile side; four tiles of 256 float32 numbers a side stay in a core's cache,
            accelerators like more. Several processes get at least as many tiles each as they are.
        rank: rank of this process.
        ranks: how many processes share the tiles; each takes every `ranks`-th one.
    """

    def __init__(
        self,
        edge_index: Tensor,
        num_nodes: int,
        size: int | None = None,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        self.edge_index = edge_index
        self.rank = rank
        self.ranks = ranks
        device = edge_index.device
        if size is None:
            size = 256 if device.type == "cpu" else 4096
            if ranks > 1:  # 2 R parts of the nodes make 2 R + 1 tiles for each of R processes
                size = min(size, -(-num_nodes // (2 * ranks)))
        self.degree = torch.bincount(edge_index[0], minlength=num_nodes)
        row = edge_index[0]
        column = edge_index[1]
        once = row < column
        self.source = row[once]
        self.target = column[once]

        diagonal = torch.arange(num_nodes, device=device)
        row = torch.cat([row, diagonal])
        column = torch.cat([column, diagonal])
        upper = row // size <= column // size
        row = row[upper]
        column = column[upper]
        per_side = -(-num_nodes // size)
        tile = row // size * per_side + column // size
        order = torch.argsort(tile)
        row = row[order]
        column = column[order]
        tile = tile[order]
        width = (num_nodes - column // size * size).clamp_max(size)
        masked = (row % size * width + column % size).split(
            torch.bincount(tile, minlength=per_side**2).tolist()
        )
        self.size = min(size, num_nodes)
        sides = [min(size, num_nodes - start) for start in range(0, num_nodes, size)]
        self.tiles = [
            Tile(
                i,
                j,
                (sides[i], sides[j]),
                (i * size, sides[i], j * size, sides[j]),
                masked[i * per_side + j],
            )
            for i in range(per_side)
            for j in range(i, per_side)
        ][rank::ranks]
        self.idle: Workspace | None = None

    def take_workspace(self, *kind: Any) -> "Workspace":
        """The arrays of the last finished pass, or new ones; kind: components, device, dtype."""
        workspace = self.idle
        self.idle = None
        return workspace if workspace and workspace.kind == kind else Workspace(self, *kind)


class Workspace:
    """The arrays of one forward and backward pass, as views of every tile's shape.

    Attributes:
        forms: forms of one tile, `[rows, columns]`.
        summands: summands of one tile, `[1 + components, rows, columns]`: exponentials, and the
            entries of each component.
        weights: weights of all tiles, `[components, rows, columns]`, for the backward pass.
    """

    def __init__(
        self, tiles: PairTiles, components: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.kind = components, device, dtype
        areas = [rows * columns for rows, columns in (tile.shape for tile in tiles.tiles)]
        shared = torch.empty(2 + components, tiles.size**2, device=device, dtype=dtype)
        views = [
            shared[:, :area].unflatten(1, tile.shape)
            for tile, area in zip(tiles.tiles, areas, strict=True)
        ]
        self.forms = [v[0] for v in views]
        self.summands = [v[1:] for v in views]
        own = shared.new_empty(components * sum(areas)).split([components * a for a in areas])
        self.weights = [
            part.unflatten(0, (components, *tile.shape))
            for tile, part in zip(tiles.tiles, own, strict=True)
        ]
