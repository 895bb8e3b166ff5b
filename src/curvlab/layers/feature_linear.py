"""Linear maps of a graph's features, which may be sparse."""

import torch.nn.functional as F
from torch import Tensor, nn

from curvlab.graph.sparse_graph import Features, as_features
from curvlab.layers.elementwise import dropout


class FeatureLinear(nn.Linear):
    """`torch.nn.Linear` of a graph's features after dropout, `drop(X) W^T + b`.

    Bags of words are nearly all 0. On CPU, such `Features` of a graph go through a sparse product,
    and dropout draws random numbers for the non-zero entries only, with the same distribution. A
    step on Cora's features is 100 times faster. A tensor is converted to sparse in each call.

    Shapes: `[nodes, in_features] -> [nodes, out_features]`.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, dropout: float = 0.0
    ) -> None:
        super().__init__(in_features, out_features, bias)
        self.dropout = dropout

    def forward(self, x: Tensor | Features) -> Tensor:
        return self.product(x, self.weight, self.bias)

    def product(self, x: Tensor | Features, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        features = as_features(x)
        if features.sparse is None:
            return F.linear(dropout(features.dense, self.dropout, self.training), weight, bias)
        matrix = features.sparse
        if self.training and self.dropout > 0:
            matrix = matrix.with_values(dropout(matrix.rows[2], self.dropout, training=True))
        out = matrix @ weight.T
        return out if bias is None else out + bias
