"""What GPR-GNN, BernNet and ChebNetII have in common: they filter after a perceptron."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.data.transforms.graph import GraphTransform, NormalisedAdjacency
from curvlab.layers.dropout import dropout
from curvlab.layers.features import FeatureLinear
from curvlab.layers.sparse_graph import SparseGraph
from curvlab.models.encoder import FlatEncoder
from curvlab.options import Dropout, FromData, NonNegativeFloat, PositiveFloat, PositiveInt


class FilteredPerceptron(FlatEncoder):
    """`Z = h(A) drop(MLP(X))` with a learned filter h; the MLP drops out the input of every map.

    With `logits` Z are the logits.

    Shapes: `batch.x [nodes, in_channels]`, `batch.normalised_adj [nodes, nodes]` (sparse CSR);
    returns `[nodes, dim_out]`.

    Args:
        in_channels: number of input features.
        filter: makes the filter of signals and adjacency, see `curvlab.layers.spectral_filters`.
        dim: width of hidden layers, and of the embeddings without `logits`.
        layers: number of linear maps before the filter, ReLU between them.
        dropout: of every map's input.
        filter_dropout: of the filter's input.
        filter_lr: learning rate of the filter's coefficients; None: `optimizer.lr`.
        filter_weight_decay: weight decay of the coefficients; None: `optimizer.weight_decay`.
        logits: the outputs are the logits; False: embeddings of width `dim`.
        classes: number of logits; None: there are none.

    Attributes:
        self_loops: whether the matrix that filters are of has them.

    Source: the code of BernNet and ChebNetII for small graphs.
    """

    self_loops = False

    def __init__(
        self,
        in_channels: int,
        filter: Callable[[], nn.Module],
        dim: PositiveInt = 64,
        layers: PositiveInt = 2,
        dropout: Dropout = 0.0,
        filter_dropout: Dropout = 0.0,
        filter_lr: PositiveFloat | None = None,
        filter_weight_decay: NonNegativeFloat | None = None,
        logits: bool = False,
        classes: FromData[int | None] = None,
    ) -> None:
        super().__init__()
        widths = [dim] * (layers - 1) + [(classes if logits and classes else dim)]
        self.input = FeatureLinear(in_channels, widths[0], dropout=dropout)
        self.maps = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))
        self.dim = widths[-1]
        self.filter = filter()
        # Read by `parameter_groups`.
        vars(self.filter).update(lr=filter_lr, weight_decay=filter_weight_decay)
        self.dropout = dropout
        self.filter_dropout = filter_dropout
        self.logits = logits and classes is not None

    @property
    def gives_logits(self) -> bool:
        """Whether the embeddings are the logits."""
        return self.logits

    def transforms(self) -> Sequence[GraphTransform]:
        """The matrix that filters are of."""
        return (NormalisedAdjacency(self.self_loops),)

    def forward(self, batch: Data) -> Tensor:
        """Embeddings `[nodes, dim_out]`."""
        graph = SparseGraph.of(batch)
        y = self.input(graph.features)
        for linear in self.maps:
            y = linear(dropout(F.relu(y), self.dropout, self.training))
        y = dropout(y, self.filter_dropout, self.training)
        return self.filter(y, graph.matrix("normalised_adj"))
