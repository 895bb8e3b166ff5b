"""Specformer: a transformer over the eigenvalues of the Laplacian learns the graph's filters."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.errors import UsageError
from curvlab.layers.dropout import dropout
from curvlab.layers.features import FeatureLinear
from curvlab.models.encoder import FlatEncoder

SCALE = 100.0
"""Of eigenvalues in their encoding, so that the frequencies tell close ones apart."""


class EigenvalueEncoding(nn.Module):
    """`rho(l) = W [l, sin(100 l / 10000^(2i/d)), cos(...)] + b` for i < d / 2.

    Shapes: `[eigenvalues] -> [eigenvalues, dim]`.

    Args:
        dim: d, even.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        if dim % 2:
            raise UsageError(f"model.dim={dim} must be even for sines and cosines")
        frequencies = SCALE * 10_000.0 ** (-torch.arange(0, dim, 2) / dim)
        self.frequencies: Tensor
        self.register_buffer("frequencies", frequencies, persistent=False)
        self.linear = nn.Linear(dim + 1, dim)

    def forward(self, eigenvalues: Tensor) -> Tensor:
        """Encode eigenvalues."""
        values = eigenvalues.unsqueeze(1)
        angles = values * self.frequencies
        return self.linear(torch.cat([values, angles.sin(), angles.cos()], dim=1))


class Specformer(FlatEncoder):
    r"""Specformer (Bo et al. 2023), on all eigenpairs of the Laplacian or on some.

    With eigenvalues l and vectors U, `l_m = (W Block(rho(l)) + b)_m` for each head m, and layers

        x <- w_0 * drop(x) + sum_m w_m * drop(U diag(l_m) U^T x)   (w elementwise, at first 1).

    Before them an MLP, `drop(W_2 relu(W_1 drop(X)))`, so that with `num_classes` these are the
    logits. As in the authors' code, weights of linear maps start from N(0, 0.01) and biases at 0
    (those of queries, keys and values from Xavier's), and the feed-forward part drops out its
    output only.

    Shapes: `batch.x [nodes, in_channels]`, `batch.spectrum_values [eigenvalues]`,
    `batch.spectrum_vectors [nodes, eigenvalues]`; returns `[nodes, dim_out]`.

    Args:
        in_channels: number of input features.
        dim: width of the MLP and of the eigenvalues' tokens.
        layers: number of filtering layers.
        heads: of attention, and number of learned filters.
        dropout: of the transformer.
        feature_dropout: of the MLP's input and output.
        filter_dropout: of each layer's input and of what each filter makes of it, independently.
        num_classes: width of the logits.
    """

    def __init__(
        self,
        in_channels: int,
        dim: int,
        layers: int,
        heads: int,
        dropout: float,
        feature_dropout: float,
        filter_dropout: float,
        num_classes: int | None = None,
    ) -> None:
        super().__init__()
        width = num_classes or dim
        self.first = FeatureLinear(in_channels, dim, dropout=feature_dropout)
        self.second = nn.Linear(dim, width)
        self.encoding = EigenvalueEncoding(dim)
        self.block = nn.TransformerEncoderLayer(
            dim, heads, dim, dropout, "gelu", batch_first=True, norm_first=True
        )
        self.block.dropout.p = 0.0  # inside the feed-forward part, where the authors have none
        self.decoder = nn.Linear(dim, heads)
        self.weights = nn.ParameterList(torch.ones(heads + 1, width) for _ in range(layers))
        self.feature_dropout = feature_dropout
        self.filter_dropout = filter_dropout
        self.logits = num_classes is not None
        for part in self.modules():
            if isinstance(part, nn.Linear):
                nn.init.normal_(part.weight, std=0.01)
                nn.init.zeros_(part.bias)

    @property
    def dim_out(self) -> int:
        """Width of the embeddings."""
        return self.second.out_features

    @property
    def gives_logits(self) -> bool:
        """Whether the embeddings are the logits."""
        return self.logits

    def filters(self, eigenvalues: Tensor) -> Tensor:
        """What each head makes of the eigenvalues, `[eigenvalues, heads]`."""
        tokens = self.block(self.encoding(eigenvalues).unsqueeze(0)).squeeze(0)
        return self.decoder(tokens)

    def forward(self, batch: Data) -> Tensor:
        """Embeddings `[nodes, dim_out]`."""
        filters, vectors = self.filters(batch.spectrum_values), batch.spectrum_vectors
        x = self._drop(self.second(F.relu(self.first(batch.x))), self.feature_dropout)
        for weight in self.weights:
            bases = self._drop(_bases(x, filters, vectors), self.filter_dropout)
            x = (weight * bases).sum(1)
        return x

    def _drop(self, x: Tensor, p: float) -> Tensor:
        return dropout(x, p, self.training)


def _bases(x: Tensor, filters: Tensor, vectors: Tensor) -> Tensor:
    """Signals and what each filter makes of them, `[nodes, heads + 1, dim_out]`."""
    spectral = filters.unsqueeze(2) * (vectors.T @ x).unsqueeze(1)
    # All heads at once: back by one product, which reads the eigenvectors once.
    filtered = (vectors @ spectral.flatten(1)).unflatten(1, spectral.shape[1:])
    return torch.cat([x.unsqueeze(1), filtered], dim=1)
