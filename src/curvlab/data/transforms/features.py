"""Transforms of node features: scaling them, adding to them, mixing them along the edges."""

from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse import csr_array
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import degree

from curvlab.data.transforms.graph import (
    GraphTransform,
    IdentityFeatures,
    normalised_matrix,
    with_self_loops,
)
from curvlab.options import NonNegativeInt, PositiveInt


def row_normalised(x: Tensor) -> Tensor:
    """Each row divided by its sum; rows whose sum is 0 become 0."""
    scale = 1 / x.sum(dim=1, keepdim=True)
    return x * torch.where(torch.isinf(scale), 0, scale)


class RowNormalise(GraphTransform):
    """Divide each node's features by their sum, as bags of words are; empty rows stay empty.

    Args:
        enabled: false keeps the features as they are, as some models take counts.
    """

    reads = ("x",)
    writes = ("x",)

    def __init__(self, enabled: bool = True) -> None:
        self.enabled = enabled

    def forward(self, data: Data) -> Data:
        """Replace `x [nodes, features]`."""
        if self.enabled:
            data.x = row_normalised(data.x)
        return data


class DegreeFeatures(GraphTransform):
    """Append the one-hot degree, clipped, and a constant 1 to the features of a node.

    Source: HGCN's features of Airport, four columns that become eleven.

    Args:
        max_degree: larger degrees count as this one, which makes `max_degree + 1` columns.
        row_normalise: divide the features before them by their sum (LRN does, Hypformer does not).
    """

    reads = ("x", "edge_index")
    writes = ("x",)

    def __init__(self, max_degree: NonNegativeInt = 5, row_normalise: bool = False) -> None:
        self.max_degree = max_degree
        self.row_normalise = row_normalise

    def forward(self, data: Data) -> Data:
        """Replace `x [nodes, features]` by `x [nodes, features + max_degree + 2]`."""
        x = row_normalised(data.x) if self.row_normalise else data.x
        degrees = degree(data.edge_index[0], data.num_nodes).long().clamp(max=self.max_degree)
        one_hot = F.one_hot(degrees, self.max_degree + 1)
        data.x = torch.cat([x, one_hot.to(x.dtype), x.new_ones(len(x), 1)], dim=1)
        return data


class HopFeatures(GraphTransform):
    """Features mixed along the edges, `X <- A^hops X`, `A = D^{-1/2} (A + I) D^{-1/2}`.

    D counts the added self-loop. No hops: the features as they are. Source: FPS-T's search space
    (the paper gives the number of hops only; the operator is GCN's).

    Args:
        hops: times that A is applied.
    """

    reads = ("x", "edge_index")
    writes = ("x",)

    def __init__(self, hops: NonNegativeInt = 0) -> None:
        self.hops = hops
        self.cacheable = hops > 0

    def forward(self, data: Data) -> Data:
        """Replace `x [nodes, features]`."""
        if self.hops:
            adjacency = _with_self_loops(data)
            x = data.x.numpy()
            for _ in range(self.hops):
                x = adjacency @ x
            data.x = torch.from_numpy(x)
        return data


MADE = "its graph has no features, and those that were made for it belong to its nodes"


class OwnFeatures(GraphTransform):
    """Features of a user's graph: scaled, or made where it has none.

    Mean and deviation are those of the first graph, on others too. Made are
    `I + U(-noise, noise)` (`IdentityFeatures`) where that fits, of larger graphs its random
    projection onto `dim` columns, from torch's global generator. Both belong to the nodes of one
    graph.

    Args:
        scale: none; standard: each column to mean 0 and standard deviation 1; row: divide each
            node's features by their sum.
        dim: columns of random features, where a graph without features has many nodes.
        identity_up_to: nodes up to which a graph without features has the identity.
    """

    reads = ("x",)
    writes = ("x",)

    def __init__(
        self,
        scale: Literal["none", "standard", "row"] = "none",
        dim: PositiveInt = 256,
        identity_up_to: NonNegativeInt = 10_000,
    ) -> None:
        self.scale = scale
        self.dim = dim
        self.identity_up_to = identity_up_to

    def forward(self, data: Data) -> Data:
        """Add or replace `x [nodes, features]`."""
        nodes = int(data.num_nodes or 0)
        if data.x is None and nodes <= self.identity_up_to:
            self.tied = MADE
            return IdentityFeatures()(data)
        if data.x is None:
            self.tied = MADE
            data.x = torch.randn(nodes, self.dim) / self.dim**0.5
        elif self.scale == "standard":
            if not self.fitted:
                deviation = data.x.std(dim=0, correction=0)
                deviation = torch.where(deviation > 0, deviation, 1)
                self.fitted = {"mean": data.x.mean(dim=0), "deviation": deviation}
            data.x = (data.x - self.fitted["mean"]) / self.fitted["deviation"]
        elif self.scale == "row":
            data.x = row_normalised(data.x)
        return data


class StackedHops(GraphTransform):
    """Features beside their mixtures along the edges, `X <- [X, A X, ..., A^hops X]`.

    A is the operator of `HopFeatures`.

    Source: SIGN (Frasca et al. 2020), with one power of one operator a block.

    Args:
        hops: number of blocks after the first.
    """

    cacheable = True
    reads = ("x", "edge_index")
    writes = ("x",)

    def __init__(self, hops: PositiveInt = 2) -> None:
        self.hops = hops

    def forward(self, data: Data) -> Data:
        """Replace `x [nodes, features]` by `x [nodes, (hops + 1) features]`."""
        adjacency = _with_self_loops(data)
        blocks = [data.x.numpy()]
        for _ in range(self.hops):
            blocks.append(adjacency @ blocks[-1])
        data.x = torch.from_numpy(np.concatenate(blocks, axis=1))
        return data


def _with_self_loops(data: Data) -> csr_array:
    """The symmetrically normalised adjacency of a simple undirected graph and its self-loops.

    Its numbers are of the type of the features.
    """
    nodes = int(data.num_nodes or 0)
    edges, _ = with_self_loops(data.edge_index, None, nodes)
    return normalised_matrix(edges, nodes).astype(data.x.numpy().dtype)
