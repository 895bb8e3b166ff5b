"""Transforms of node features: scaling them, adding to them, mixing them along the edges."""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
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


@dataclass(eq=False, repr=False)
class RowNormalise(GraphTransform):
    """Divide each node's features by their sum, as bags of words are; empty rows stay empty.

    Args:
        enabled: false keeps the features as they are, as some models take counts.
    """

    reads = ("x",)
    writes = ("x",)

    enabled: bool = True

    def forward(self, data: Data) -> Data:
        """Replace `x [nodes, features]`."""
        if self.enabled:
            data.x = row_normalised(data.x)
        return data


@dataclass(eq=False, repr=False)
class DegreeFeatures(GraphTransform):
    """Append the one-hot degree, clipped, and a constant 1 to the features of a node.

    Source: HGCN's features of Airport, four columns that become eleven.

    Args:
        max_degree: larger degrees count as this one, which makes `max_degree + 1` columns.
        row_normalise: divide the features before them by their sum (LRN does, Hypformer does not).
    """

    reads = ("x", "edge_index")
    writes = ("x",)

    max_degree: NonNegativeInt = 5
    row_normalise: bool = False

    def forward(self, data: Data) -> Data:
        """Replace `x [nodes, features]` by `x [nodes, features + max_degree + 2]`."""
        x = row_normalised(data.x) if self.row_normalise else data.x
        degrees = degree(data.edge_index[0], data.num_nodes).long().clamp(max=self.max_degree)
        one_hot = F.one_hot(degrees, self.max_degree + 1)
        data.x = torch.cat([x, one_hot.to(x.dtype), x.new_ones(len(x), 1)], dim=1)
        return data


@dataclass(eq=False, repr=False)
class HopFeatures(GraphTransform):
    """Features mixed along the edges, `X <- A^hops X`, `A = D^{-1/2} (A + I) D^{-1/2}`.

    D counts the added self-loop. No hops: the features as they are. Source: FPS-T's search space
    (the paper gives the number of hops only; the operator is GCN's).

    Args:
        hops: times that A is applied.
    """

    reads = ("x", "edge_index")
    writes = ("x",)

    hops: NonNegativeInt = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.cacheable = self.hops > 0

    def forward(self, data: Data) -> Data:
        """Replace `x [nodes, features]`."""
        if self.hops:
            data.x = _propagated(data, self.hops)[-1]
        return data


MADE = "its graph has no features, and those that were made for it belong to its nodes"


@dataclass(eq=False, repr=False)
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

    scale: Literal["none", "standard", "row"] = "none"
    dim: PositiveInt = 256
    identity_up_to: NonNegativeInt = 10_000

    def forward(self, data: Data) -> Data:
        """Add or replace `x [nodes, features]`."""
        nodes = int(data.num_nodes or 0)
        if data.x is None and nodes <= self.identity_up_to:
            self.transductive_reason = MADE
            return IdentityFeatures()(data)
        if data.x is None:
            self.transductive_reason = MADE
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


@dataclass(eq=False, repr=False)
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

    hops: PositiveInt = 2

    def forward(self, data: Data) -> Data:
        """Replace `x [nodes, features]` by `x [nodes, (hops + 1) features]`."""
        data.x = torch.cat(_propagated(data, self.hops), dim=1)
        return data


def _propagated(data: Data, hops: int) -> list[Tensor]:
    """`X, A X, ..., A^hops X` with the normalised adjacency of the graph and its self-loops."""
    nodes, blocks = int(data.num_nodes or 0), [data.x]
    edges, _ = with_self_loops(data.edge_index, None, nodes)
    adjacency = normalised_matrix(edges, nodes).astype(data.x.numpy().dtype)
    for _ in range(hops):
        blocks.append(torch.from_numpy(adjacency @ blocks[-1].numpy()))
    return blocks
