"""A small graph."""

import pytest
import torch
from torch_geometric.data import Data

from curvlab.data.datasets.synthetic import SyntheticWeb
from curvlab.data.transforms.graph import LaplacianEigenvectors, SparseAdjacency


@pytest.fixture
def graph() -> Data:
    """Twelve nodes with five random features, three eigenvectors and a sparse adjacency."""
    data = SyntheticWeb(num_nodes=12, cycle_fraction=0.5, seed=0).load()
    data = SparseAdjacency(self_loops=False)(LaplacianEigenvectors(3)(data))
    data.x = torch.randn(12, 5, generator=torch.Generator().manual_seed(0))
    for name in ("eigenvectors", "adj_t"):
        data[name] = data[name].to(data.x.dtype)
    return data
