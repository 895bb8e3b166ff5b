"""Specformer (Bo et al. 2023, arXiv:2303.01028) as its authors have it on large graphs."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.layers.batch_norm import BatchNorm
from curvlab.layers.features import FeatureLinear
from curvlab.layers.sparse_graph import SparseGraph
from curvlab.models.specformer import LearnedFilters
from curvlab.options import Dropout, PositiveInt

NORMS = {"layer": nn.LayerNorm, "batch": BatchNorm}


class LargeSpecformer(LearnedFilters):
    r"""Specformer as its authors have it on large graphs: wide layers with a norm.

    Features are mapped linearly, `x = W drop(X) + b`, layers end in a norm,

        x <- relu(norm(w_0 * x + sum_m w_m * (U diag(l_m) U^T x)))   (w from N(0, 0.01)),

    with the bases of `LearnedFilters`, and embeddings are dropped out before the task's decoder.

    Source: the authors' code for ogbn-arxiv (layer norm) and Penn94 (batch norm).

    Shapes: as of `Specformer`; returns `[nodes, dim]`.

    Args:
        in_channels: number of input features.
        dim: width of the signals and of the eigenvalues' tokens.
        layers: number of filtering layers.
        heads: heads of attention, and number of learned filters.
        norm: of every filtering layer: `layer` or `batch`.
        dropout: of the transformer.
        feature_dropout: of the features and of the embeddings.
        filter_dropout: of each layer's input and of each filter's output.
    """

    whole_graph = True

    def __init__(
        self,
        in_channels: int,
        dim: PositiveInt = 32,
        layers: PositiveInt = 2,
        heads: PositiveInt = 2,
        norm: Literal["layer", "batch"] = "layer",
        dropout: Dropout = 0.0,
        feature_dropout: Dropout = 0.0,
        filter_dropout: Dropout = 0.0,
    ) -> None:
        super().__init__(dim, heads, dropout, filter_dropout)
        self.input = FeatureLinear(in_channels, dim, dropout=feature_dropout)
        self.weights = nn.ParameterList(0.01 * torch.randn(heads + 1, dim) for _ in range(layers))
        self.norms = nn.ModuleList(NORMS[norm](dim) for _ in range(layers))
        self.feature_dropout = feature_dropout
        self.dim = dim
        self.start_small()

    def forward(self, batch: Data) -> Tensor:
        """Embeddings `[nodes, dim]`."""
        filters, vectors = self.filters(batch.spectrum_values), batch.spectrum_vectors
        x = self.input(SparseGraph.of(batch).features)
        for weight, norm in zip(self.weights, self.norms, strict=True):
            x = norm((weight * self.bases(x, filters, vectors)).sum(1)).relu()
        return self.drop(x, self.feature_dropout)
