"""Transforms of node features: scaling them, adding to them, mixing them along the edges."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import add_remaining_self_loops, degree

from curvlab.data.transforms.graph import (
    GraphTransform,
    IdentityFeatures,
    normalised_matrix,
)
from curvlab.data.vocabulary import vocabulary_of
from curvlab.options import NonNegativeInt, PositiveInt


def normalise_rows(x: Tensor) -> Tensor:
    """Divide each row by its sum; rows whose sum is 0 become 0."""
    scale = 1 / x.sum(dim=1, keepdim=True)
    return x * torch.where(torch.isinf(scale), 0, scale)


class RowNormalise(GraphTransform):
    """Divide each node's features by their sum, as bags of words are; empty rows stay empty.

    Args:
        enabled: false keeps the features as they are, as some models take counts.
    """

    reads = ("x",)
    writes = ("x",)

    enabled: bool = True

    def forward(self, data: Data) -> Data:
        if self.enabled:
            data.x = normalise_rows(data.x)
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

    max_degree: NonNegativeInt = 5
    row_normalise: bool = False

    def forward(self, data: Data) -> Data:
        """Replace `x [nodes, features]` by `x [nodes, features + max_degree + 2]`."""
        x = normalise_rows(data.x) if self.row_normalise else data.x
        degrees = degree(data.edge_index[0], data.num_nodes).long().clamp(max=self.max_degree)
        one_hot = F.one_hot(degrees, self.max_degree + 1)
        data.x = torch.cat([x, one_hot.to(x.dtype), x.new_ones(len(x), 1)], dim=1)
        return data


class HopFeatures(GraphTransform):
    """Features mixed along the edges, `A^hops X`, `A = D^{-1/2} (A + I) D^{-1/2}`.

    Source: FPS-T's search space; the operator is GCN's.

    Args:
        hops: Number of times that A is applied.
    """

    revision = 2  # 2: writes `inputs`
    cacheable = True
    reads = ("x", "edge_index")
    writes = ("inputs",)

    hops: PositiveInt = 1

    def forward(self, data: Data) -> Data:
        """Add `inputs [nodes, features]`."""
        data.inputs = _propagate(data, self.hops)[-1]
        return data


GENERATED_REASON = "its features were made for its nodes"

IDENTITY_UP_TO = 10_000
"""Nodes up to which the identity is used."""

RANDOM_COLUMNS = 256
"""Columns of the random features of larger graphs."""

FEW_COLUMNS = 16
"""Columns below which a run suggests the identity as an alternative."""

UNSCALED = 10.0
"""Ratio of the deviations of two columns, or of a deviation to 1, above which a run says so."""

COARSE = 1e-5
"""Ratio of a deviation to the largest value below which float32 rounds differences away."""


class OwnFeatures(GraphTransform):
    """Features of a user's graph: its own columns, scaled, or generated ones.

    Mean and deviation are computed on the training nodes of the first graph, or on all its nodes
    where the task has no training nodes, and applied to further graphs. The identity is
    `IdentityFeatures`, above 10,000 nodes its random projection onto 256 columns.

    Args:
        kind: own: the graph's columns, the identity if it has none; identity; own+identity: both,
            next to each other; none: a constant 1, so that a model sees the edges alone.
        scale: auto: standard for the columns of a table with other values than 0 and 1; standard:
            each column to mean 0 and standard deviation 1; row: divide each node's features by
            their sum; none.
    """

    revision = 3  # 3: mean and deviation of the training nodes, in float64
    reads = ("x",)
    writes = ("x",)

    kind: Literal["own", "identity", "own+identity", "none"] = "own"
    scale: Literal["auto", "standard", "row", "none"] = "auto"

    def forward(self, data: Data) -> Data:
        nodes = int(data.num_nodes or 0)
        if self.kind == "none":
            data.x = torch.ones(nodes, 1)
            return data
        blocks = [] if data.x is None or self.kind == "identity" else [self._scale(data)]
        if self.kind != "own" or not blocks:
            self.transductive_reason = GENERATED_REASON
            featureless = Data(num_nodes=nodes)
            if nodes <= IDENTITY_UP_TO:
                blocks.append(IdentityFeatures()(featureless).x)
            else:
                blocks.append(torch.randn(nodes, RANDOM_COLUMNS) / RANDOM_COLUMNS**0.5)
        data.x = torch.cat([block.to(torch.get_default_dtype()) for block in blocks], dim=1)
        return data

    def _scale(self, data: Data) -> Tensor:
        """Scale the graph's columns by the mean and deviation of the first graph."""
        x: Tensor = data.x
        if self.scale == "row":
            return normalise_rows(x)
        if not self.fitted:
            rows = x[data.train_mask] if "train_mask" in data else x
            scaled = self._columns_to_scale(data)
            deviation = rows.std(dim=0, correction=0)
            self.fitted = {
                "mean": torch.where(scaled, rows.mean(dim=0), 0),
                "deviation": torch.where(scaled & (deviation > 0), deviation, 1),
            }
        return (x - self.fitted["mean"]) / self.fitted["deviation"]

    def _columns_to_scale(self, data: Data) -> Tensor:
        x: Tensor = data.x
        has_names = vocabulary_of(data).features is not None
        if self.scale == "standard" or (self.scale == "auto" and has_names):
            binary = ((x == 0) | (x == 1)).all(dim=0)
            return ~binary if self.scale == "auto" else torch.ones_like(binary)
        return torch.zeros(x.shape[1], dtype=torch.bool)

    def remarks(self, data: Data) -> list[str]:
        """Sentences on the use of the columns of a graph as read, with alternatives."""
        nodes = int(data.num_nodes or 0)
        if self.kind == "none":
            return ["features: a constant 1 (dataset.features=none)"]
        if data.x is None or self.kind == "identity":
            replacement = f"{RANDOM_COLUMNS} random columns"
            if nodes <= IDENTITY_UP_TO:
                replacement = "identity"
            reason = "it has none of its own" if data.x is None else f"dataset.features={self.kind}"
            return [f"features: {replacement} ({reason}); the model will work on this graph alone"]
        count = int(self._columns_to_scale(data).sum())
        total = data.x.shape[1]
        says = []
        if count:
            nodes_text = "all nodes" if data.y is None else "the training nodes"
            says.append(
                f"{count} of {total} columns standardised by {nodes_text} "
                "(dataset.features.scale=none)"
            )
        deviations = data.x.std(dim=0, correction=0)
        coarse = (deviations > 0) & (deviations < COARSE * data.x.abs().amax(dim=0))
        if not count and bool(coarse.any()):
            says.append(
                f"{int(coarse.sum())} columns have values that float32 does not distinguish: "
                "dataset.features.scale=standard keeps their differences"
            )
        deviations = deviations[deviations > 0]
        if not count and self.scale in ("none", "auto") and len(deviations):
            low = float(deviations.min())
            high = float(deviations.max())
            if high > UNSCALED or (high > UNSCALED * low and self.scale == "none"):
                says.append(
                    f"columns are not scaled, their deviations are {low:.2g} to {high:.2g}: "
                    "dataset.features.scale=standard often trains better"
                )
        if self.kind == "own" and total < min(FEW_COLUMNS, nodes // 2):
            says.append(
                f"few columns ({total}) for {nodes:,} nodes: if scores are low, try "
                "dataset.features=own+identity or identity (the model then works on this "
                "graph alone)"
            )
        return says


class StackedHops(GraphTransform):
    """Features and their mixtures along the edges, `[X, A X, ..., A^hops X]`.

    A is the operator of `HopFeatures`. Source: SIGN (Frasca et al. 2020), with one power of one
    operator a block.

    Args:
        hops: Number of blocks after the first.
    """

    revision = 2  # 2: writes `inputs`
    cacheable = True
    reads = ("x", "edge_index")
    writes = ("inputs",)

    hops: PositiveInt = 2

    def forward(self, data: Data) -> Data:
        """Add `inputs [nodes, (hops + 1) features]`."""
        data.inputs = torch.cat(_propagate(data, self.hops), dim=1)
        return data


def _propagate(data: Data, hops: int) -> list[Tensor]:
    """`X, A X, ..., A^hops X` with the normalised adjacency of the graph and its self-loops."""
    nodes = int(data.num_nodes or 0)
    blocks = [data.x]
    edges, _ = add_remaining_self_loops(data.edge_index, num_nodes=nodes)
    adjacency = normalised_matrix(edges, nodes).astype(data.x.numpy().dtype)
    for _ in range(hops):
        blocks.append(torch.from_numpy(adjacency @ blocks[-1].numpy()))
    return blocks
