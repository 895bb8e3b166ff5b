"""Tiles of the pairs of nodes that are no neighbours, and the arrays of a pass over them."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass
class Tile:
    """A block of the pair matrix.

    Attributes:
        row: index of the tile's row of tiles.
        column: index of the tile's column of tiles.
        shape: numbers of rows and columns.
        place: first row, number of rows, first column, number of columns.
        mask: positions of neighbours and of the diagonal in the flattened tile.
    """

    row: int
    column: int
    shape: tuple[int, int]
    place: tuple[int, int, int, int]
    mask: Tensor


class PairTiles:
    """The non-neighbour pairs of a graph, cut in tiles on and above the diagonal.

    Args:
        edge_index: both directions of every edge, no self-loops, no duplicates, `[2, 2M]`.
        num_nodes: number of nodes.
        size: number of nodes per side of a tile; None: 256 on a CPU, of which four tiles in float32
            fit in a core's cache, and more on an accelerator. R processes get at least R tiles
            each.
        rank: rank of this process.
        ranks: number of processes that share the tiles; each takes every `ranks`-th tile.
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
            if ranks > 1:
                # 2 R intervals of nodes make 2 R + 1 tiles for each of R processes.
                size = min(size, -(-num_nodes // (2 * ranks)))
        self.size = min(size, num_nodes)
        row, column = edge_index
        self.degree = torch.bincount(row, minlength=num_nodes)
        is_upper = row < column
        self.source = row[is_upper]
        self.target = column[is_upper]

        diagonal = torch.arange(num_nodes, device=device)
        row = torch.cat([row, diagonal])
        column = torch.cat([column, diagonal])
        is_upper = row // size <= column // size
        row = row[is_upper]
        column = column[is_upper]
        num_intervals = -(-num_nodes // size)
        tile = row // size * num_intervals + column // size
        order = torch.argsort(tile)
        row = row[order]
        column = column[order]
        width = (num_nodes - column // size * size).clamp_max(size)
        position = row % size * width + column % size
        counts = torch.bincount(tile, minlength=num_intervals**2)
        masks = position.split(counts.tolist())

        starts = range(0, num_nodes, size)
        sizes = [min(size, num_nodes - start) for start in starts]
        tiles = []
        for i in range(num_intervals):
            for j in range(i, num_intervals):
                shape = sizes[i], sizes[j]
                place = starts[i], sizes[i], starts[j], sizes[j]
                tiles.append(Tile(i, j, shape, place, masks[i * num_intervals + j]))
        self.tiles = tiles[rank::ranks]
        self.idle_workspace: Workspace | None = None

    def acquire_workspace(self, *kind: Any) -> "Workspace":
        """Arrays of a finished pass, or new arrays; `kind` is components, device and dtype."""
        workspace = self.idle_workspace
        self.idle_workspace = None
        if workspace is None or workspace.kind != kind:
            workspace = Workspace(self, *kind)
        return workspace


class Workspace:
    """Arrays of one forward and backward pass, as views of every tile's shape.

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
        areas = [math.prod(tile.shape) for tile in tiles.tiles]
        shared = torch.empty(2 + components, tiles.size**2, device=device, dtype=dtype)
        weights = shared.new_empty(components * sum(areas))
        tile_weights = weights.split([components * area for area in areas])
        self.forms = []
        self.summands = []
        self.weights = []
        for tile, area, part in zip(tiles.tiles, areas, tile_weights, strict=True):
            view = shared[:, :area].unflatten(1, tile.shape)
            self.forms.append(view[0])
            self.summands.append(view[1:])
            self.weights.append(part.unflatten(0, (components, *tile.shape)))
