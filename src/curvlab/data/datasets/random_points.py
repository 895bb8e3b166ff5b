"""Random vectors without edges: what an operation on points is timed with."""

from pathlib import Path

import torch
from torch_geometric.data import Data

from curvlab.errors import UsageError


class RandomPoints:
    """Normal vectors of length about one, `x [nodes, dim]`, and no edges.

    Args:
        num_nodes: number of vectors, at least 1.
        dim: number of coordinates, at least 1.
        seed: of the vectors, not of the run.
    """

    def __init__(self, num_nodes: int, dim: int, seed: int) -> None:
        if min(num_nodes, dim) < 1:
            raise UsageError(f"num_nodes={num_nodes} and dim={dim} must be at least 1.")
        self.num_nodes, self.dim, self.seed = num_nodes, dim, seed

    def download(self) -> list[Path]:
        """Return no files: the vectors are generated."""
        return []

    def load(self) -> Data:
        """Return the vectors."""
        generator = torch.Generator().manual_seed(self.seed)
        x = torch.randn(self.num_nodes, self.dim, generator=generator) * self.dim**-0.5
        edges = torch.empty(2, 0, dtype=torch.long)
        return Data(x=x, edge_index=edges, num_nodes=self.num_nodes, without_edges=True)
