"""Transforms that solve for eigenvalues of the Laplacian: the spectrum itself, and as features."""

import numpy as np
import torch
from torch_geometric.data import Data

from curvlab.data.transforms.eigenvectors import largest_eigenpairs
from curvlab.data.transforms.graph import (
    GraphTransform,
    LaplacianEigenvectors,
    normalised_adjacency_matrix,
)
from curvlab.errors import UsageError
from curvlab.options import NonNegativeInt, PositiveInt

MAX_DENSE_NODES = 25_000  # a float64 matrix of this size takes 5 GB, and its solver as much again
DENSE_SPECTRUM_NODES = 2_000  # a dense solver misses no copy of an eigenvalue that repeats


class LaplacianSpectrum(GraphTransform):
    """Eigenvalues and eigenvectors of `L = I - D^{-1/2} A D^{-1/2}`, ascending, all or both ends.

    All of them take a dense matrix and time cubic in the nodes; some of them, of a graph of more
    than 2,000 nodes, take Lanczos iterations. For the basis see `largest_eigenpairs`. Source:
    Specformer (Bo et al. 2023).

    Args:
        smallest: number of the smallest; null: all.
        largest: number of the largest, in addition.
    """

    revision = 2  # 2: the basis where an eigenvalue repeats is the same on every machine
    cacheable = True
    reads = ("edge_index",)
    writes = ("spectrum_values", "spectrum_vectors")

    smallest: PositiveInt | None = None
    largest: NonNegativeInt = 0

    def forward(self, data: Data) -> Data:
        """Add `spectrum_values [q]` and `spectrum_vectors [nodes, q]`."""
        nodes = int(data.num_nodes or 0)
        adjacency = normalised_adjacency_matrix(data.edge_index, nodes)
        if self.smallest is None or self.smallest + self.largest >= nodes:
            if nodes > MAX_DENSE_NODES:
                raise UsageError(
                    f"all eigenvalues of a graph of {nodes:,} nodes need a dense matrix of "
                    f"{8e-9 * nodes**2:.0f} GB: ask for some by model.smallest=5000."
                )
            values, vectors = largest_eigenpairs(adjacency, nodes, dense=True)
        else:
            dense = nodes <= DENSE_SPECTRUM_NODES
            values, vectors = largest_eigenpairs(adjacency, self.smallest, dense)
            if self.largest:
                high_values, high_vectors = largest_eigenpairs(-adjacency, self.largest, dense)
                values = np.concatenate([values, -high_values[::-1]])
                vectors = np.concatenate([vectors, high_vectors[:, ::-1]], axis=1)
        dtype = torch.get_default_dtype()
        data.spectrum_values = torch.from_numpy(1 - values).to(dtype)
        data.spectrum_vectors = torch.from_numpy(vectors.copy()).to(dtype)
        return data


class EigenvectorFeatures(GraphTransform):
    """Features and the Laplacian eigenvectors of the smallest eigenvalues but one.

    See `LaplacianEigenvectors`. As in the authors' code one vector is left out as trivial, although
    eigenvalue 0 occurs once per component. Source: NAGphormer (Chen et al. 2023).

    Args:
        count: Number of eigenvectors.
    """

    revision = 1 + LaplacianEigenvectors.revision  # 3: writes `inputs`
    cacheable = True
    transductive_reason = LaplacianEigenvectors.transductive_reason
    reads = ("x", "edge_index")
    writes = ("inputs",)

    count: PositiveInt = 15

    def forward(self, data: Data) -> Data:
        """Add `inputs [nodes, features + count]`."""
        vectors = LaplacianEigenvectors(self.count + 1)(data.clone()).eigenvectors[:, 1:]
        data.inputs = torch.cat([data.x, vectors.to(data.x.dtype)], dim=1)
        return data
