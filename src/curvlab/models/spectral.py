"""GPR-GNN, BernNet and ChebNetII: a perceptron followed by a learned polynomial filter."""

from collections.abc import Callable
from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.data.transforms.graph import NormalisedAdjacency
from curvlab.graph.sparse_graph import SparseGraph
from curvlab.layers.elementwise import dropout
from curvlab.layers.feature_linear import FeatureLinear
from curvlab.layers.spectral_filters import BernsteinFilter, ChebyshevInterpolation, GPRFilter
from curvlab.models.encoder import FlatEncoder
from curvlab.options import Dropout, FromData, NonNegativeFloat, PositiveFloat, PositiveInt


class MLPThenFilter(FlatEncoder):
    """`Z = h(A) drop(MLP(X))` with a learned filter h; every map of the MLP has input dropout.

    Shapes: `batch.x [nodes, in_channels]`, `batch.normalised_adj [nodes, nodes]` (sparse CSR);
    returns `[nodes, dim_out]`.

    Args:
        filter: factory of the filter of signals and adjacency; None: `own_filter`.
        dim: width of hidden layers, and of the embeddings without `logits`.
        layers: number of linear maps before the filter, ReLU between them.
        dropout: dropout of every map's input.
        filter_dropout: dropout of the filter's input.
        filter_lr: learning rate of the filter's coefficients; None: `optimizer.lr`.
        filter_weight_decay: weight decay of the coefficients; None: `optimizer.weight_decay`.

    Source: the code of BernNet and ChebNetII for small graphs.
    """

    transforms = (NormalisedAdjacency(self_loops=False),)
    own_filter: Callable[[], nn.Module] = GPRFilter

    def __init__(
        self,
        in_channels: int,
        filter: Callable[[], nn.Module] | None = None,
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
        self.gives_logits = logits and classes is not None
        self.dim_out = classes if self.gives_logits and classes else dim
        widths = [dim] * (layers - 1) + [self.dim_out]
        self.input = FeatureLinear(in_channels, widths[0], dropout=dropout)
        self.maps = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))
        self.filter = (filter or type(self).own_filter)()
        # Read by `parameter_groups`.
        vars(self.filter).update(lr=filter_lr, weight_decay=filter_weight_decay)
        self.dropout = dropout
        self.filter_dropout = filter_dropout

    def forward(self, batch: Data) -> Tensor:
        graph = SparseGraph.from_data(batch)
        y = self.input(graph.features)
        for linear in self.maps:
            y = linear(dropout(F.relu(y), self.dropout, self.training))
        y = dropout(y, self.filter_dropout, self.training)
        return self.filter(y, graph.matrix("normalised_adj"))


class GPRGNN(MLPThenFilter):
    """Generalised PageRank of a perceptron.

    Paper: GPR-GNN, "Adaptive universal generalized PageRank graph neural network". Chien et al.
    2021, arXiv:2006.07988.
    """

    transforms = (NormalisedAdjacency(self_loops=True),)
    directed = True  # powers of a random walk; filters of a spectrum need a symmetric matrix


class BernNet(MLPThenFilter):
    """A perceptron, then a filter of Bernstein polynomials with non-negative coefficients.

    Paper: BernNet, "BernNet: learning arbitrary graph spectral filters via Bernstein
    approximation". He et al. 2021, arXiv:2106.10994.
    """

    own_filter = BernsteinFilter


class ChebNetII(MLPThenFilter):
    """A perceptron, then a filter interpolated between Chebyshev nodes.

    Paper: ChebNetII, "Convolutional neural networks on graphs with Chebyshev approximation,
    revisited". He et al. 2022, arXiv:2202.03580.
    """

    own_filter = ChebyshevInterpolation
