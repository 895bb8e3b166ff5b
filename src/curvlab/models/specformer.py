"""Specformer, "Specformer: spectral graph neural networks meet transformers".

Bo et al. 2023, arXiv:2303.01028. A transformer over the Laplacian's eigenvalues learns the filters.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.data.transforms.graph import GraphTransform
from curvlab.data.transforms.spectrum import LaplacianSpectrum
from curvlab.errors import UsageError
from curvlab.graph.sparse_graph import SparseGraph
from curvlab.layers.elementwise import BatchNorm, dropout
from curvlab.layers.feature_linear import FeatureLinear
from curvlab.models.encoder import FlatEncoder, check_divides
from curvlab.options import Dropout, FromData, NonNegativeInt, PositiveInt

SCALE = 100.0
"""Scale of eigenvalues in their encoding, which makes close ones distinguishable."""


class EigenvalueEncoding(nn.Module):
    """`rho(l) = W [l, sin(100 l / 10000^(2i/d)), cos(...)] + b` for i < d / 2.

    Shapes: `[eigenvalues] -> [eigenvalues, dim]`.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        if dim % 2:
            raise UsageError(f"dim={dim} must be even for sines and cosines")
        frequencies = SCALE * 10_000.0 ** (-torch.arange(0, dim, 2) / dim)
        self.frequencies = nn.Buffer(frequencies, persistent=False)
        self.linear = nn.Linear(dim + 1, dim)

    def forward(self, eigenvalues: Tensor) -> Tensor:
        values = eigenvalues.unsqueeze(1)
        angles = values * self.frequencies
        return self.linear(torch.cat([values, angles.sin(), angles.cos()], dim=1))


class LearnedFilters(FlatEncoder):
    """The transformer of both forms of Specformer, which maps eigenvalues to filters.

    With eigenvalues l and eigenvectors U, each head m computes `l_m = (W Block(rho(l)) + b)_m`. A
    signal x has the bases `x, U diag(l_1) U^T x, ..., U diag(l_heads) U^T x`, each with separate
    dropout. Initial weights of linear maps are N(0, 0.01), their biases 0; attention has Xavier's.

    Args:
        dim: width of the signals and of the eigenvalues' tokens.
        layers: number of filtering layers.
        heads: number of attention heads and of learned filters.
        dropout: dropout of the transformer.
        filter_dropout: dropout of each layer's input and of each filter's output.
        smallest: Number of smallest eigenvalues; null: all, in time cubic in the nodes.
        largest: Number of additional largest eigenvalues.
    """

    revision = 3  # 3: as `LaplacianSpectrum`
    whole_graph = True

    def __init__(
        self,
        dim: int,
        heads: int,
        dropout: float,
        filter_dropout: float,
        smallest: int | None,
        largest: int,
    ) -> None:
        super().__init__()
        check_divides("heads", heads, dim)
        self.transforms = self.required_transforms({"smallest": smallest, "largest": largest})
        self.encoding = EigenvalueEncoding(dim)
        self.block = nn.TransformerEncoderLayer(
            dim, heads, dim, dropout, "gelu", batch_first=True, norm_first=True
        )
        self.block.dropout.p = 0.0  # of the feed-forward network, as in the authors' code
        self.decoder = nn.Linear(dim, heads)
        self.filter_dropout = filter_dropout

    @classmethod
    def required_transforms(cls, options: Mapping[str, Any]) -> Sequence[GraphTransform]:
        return (LaplacianSpectrum(options["smallest"], options["largest"]),)

    def filters(self, eigenvalues: Tensor) -> Tensor:
        tokens = self.block(self.encoding(eigenvalues).unsqueeze(0)).squeeze(0)
        return self.decoder(tokens)

    def bases(self, x: Tensor, filters: Tensor, vectors: Tensor) -> Tensor:
        """Signals and filtered signals `[nodes, heads + 1, width of x]`."""
        spectral = filters.unsqueeze(2) * (vectors.T @ x).unsqueeze(1)
        # One product of all heads reads the eigenvectors once.
        filtered = (vectors @ spectral.flatten(1)).unflatten(1, spectral.shape[1:])
        bases = torch.cat([x.unsqueeze(1), filtered], dim=1)
        return dropout(bases, self.filter_dropout, self.training)

    def start_small(self) -> None:
        for part in self.modules():
            if isinstance(part, nn.Linear):
                nn.init.normal_(part.weight, std=0.01)
                nn.init.zeros_(part.bias)


class Specformer(LearnedFilters):
    r"""Specformer on all or some eigenpairs of the Laplacian.

    An MLP, `drop(W_2 relu(W_1 drop(X)))`, is followed by layers with the bases of `LearnedFilters`,

        x <- w_0 * x + sum_m w_m * (U diag(l_m) U^T x)   (w elementwise, initially 1).

    Shapes: `batch.x [nodes, in_channels]`, `batch.spectrum_values [eigenvalues]`,
    `batch.spectrum_vectors [nodes, eigenvalues]`; returns `[nodes, dim_out]`.

    Args:
        feature_dropout: dropout of the MLP's input and output.
    """

    def __init__(
        self,
        in_channels: int,
        dim: PositiveInt = 32,
        layers: PositiveInt = 2,
        heads: PositiveInt = 2,
        dropout: Dropout = 0.0,
        feature_dropout: Dropout = 0.0,
        filter_dropout: Dropout = 0.0,
        logits: bool = False,
        classes: FromData[int | None] = None,
        smallest: PositiveInt | None = None,
        largest: NonNegativeInt = 0,
    ) -> None:
        super().__init__(dim, heads, dropout, filter_dropout, smallest, largest)
        self.gives_logits = logits and classes is not None
        width = classes if logits and classes else dim
        self.dim_out = width
        self.first = FeatureLinear(in_channels, dim, dropout=feature_dropout)
        self.second = nn.Linear(dim, width)
        self.weights = nn.ParameterList(torch.ones(heads + 1, width) for _ in range(layers))
        self.feature_dropout = feature_dropout
        self.start_small()

    def forward(self, batch: Data) -> Tensor:
        filters = self.filters(batch.spectrum_values)
        vectors = batch.spectrum_vectors
        x = self.second(F.relu(self.first(SparseGraph.from_data(batch).features)))
        x = dropout(x, self.feature_dropout, self.training)
        for weight in self.weights:
            x = (weight * self.bases(x, filters, vectors)).sum(1)
        return x


class LargeSpecformer(LearnedFilters):
    r"""Specformer for large graphs, as in its authors' code: wide layers with a norm.

    A linear map of the features, `x = W drop(X) + b`, is followed by layers with the bases of
    `LearnedFilters`,

        x <- relu(norm(w_0 * x + sum_m w_m * (U diag(l_m) U^T x)))   (w initially N(0, 0.01)).

    The embeddings have dropout before the task's decoder.

    Paper: Specformer (Bo et al. 2023, arXiv:2303.01028), in its authors' form for large graphs.

    Source: the authors' code for ogbn-arxiv (layer norm) and Penn94 (batch norm).

    Shapes: as in `Specformer`; returns `[nodes, dim]`.

    Args:
        norm: normalisation of every filtering layer: `layer` or `batch`.
        feature_dropout: dropout of the features and of the embeddings.
    """

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
        smallest: PositiveInt | None = None,
        largest: NonNegativeInt = 0,
    ) -> None:
        super().__init__(dim, heads, dropout, filter_dropout, smallest, largest)
        norms = {"layer": nn.LayerNorm, "batch": BatchNorm}
        self.input = FeatureLinear(in_channels, dim, dropout=feature_dropout)
        self.weights = nn.ParameterList(0.01 * torch.randn(heads + 1, dim) for _ in range(layers))
        self.norms = nn.ModuleList(norms[norm](dim) for _ in range(layers))
        self.feature_dropout = feature_dropout
        self.dim_out = dim
        self.start_small()

    def forward(self, batch: Data) -> Tensor:
        filters = self.filters(batch.spectrum_values)
        vectors = batch.spectrum_vectors
        x = self.input(SparseGraph.from_data(batch).features)
        for weight, norm in zip(self.weights, self.norms, strict=True):
            x = norm((weight * self.bases(x, filters, vectors)).sum(1)).relu()
        return dropout(x, self.feature_dropout, self.training)
