"""Random vectors without edges, to time operations on points."""

import torch
from torch_geometric.data import Data

from curvlab.data.files.sources import Generated
from curvlab.options import PositiveInt, Seed


class RandomPoints(Generated):
    """Normal vectors of length about one, `x [nodes, dim]`, and no edges.

    Args:
        num_nodes: number of vectors.
        dim: number of coordinates.
        seed: seed of the vectors, not of the run.
    """

    num_nodes: PositiveInt = 10000
    dim: PositiveInt = 2048
    seed: Seed = 0

    def load(self) -> Data:
        generator = torch.Generator().manual_seed(self.seed)
        x = torch.randn(self.num_nodes, self.dim, generator=generator) * self.dim**-0.5
        edges = torch.empty(2, 0, dtype=torch.long)
        return Data(x=x, edge_index=edges, num_nodes=self.num_nodes, without_edges=True)
