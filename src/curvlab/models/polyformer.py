"""PolyFormer: a transformer over the polynomial tokens of each node alone."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.layers.dropout import dropout
from curvlab.layers.features import FeatureLinear
from curvlab.layers.graph_propagation import SparsePropagation
from curvlab.layers.polynomials import check_basis, polynomials
from curvlab.manifolds import Euclidean
from curvlab.models.encoder import Encoder


class TokenFeedForward(nn.Module):
    """`H + drop(W_b gelu(W_a LN(H) + b_a) + b_b)`, the same map for every token.

    Shapes: `[..., dim] -> [..., dim]`.

    Args:
        dim: width of a token.
        hidden: width between the two maps.
        dropout: of the output.
    """

    def __init__(self, dim: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.inner = nn.Linear(dim, hidden)
        self.outer = nn.Linear(hidden, dim)
        self.dropout = dropout

    def forward(self, tokens: Tensor) -> Tensor:
        """Map tokens."""
        mapped = self.outer(F.gelu(self.inner(self.norm(tokens))))
        return tokens + dropout(mapped, self.dropout, self.training)


class PolyFormer(Encoder):
    r"""PolyFormer, and by its options PolyAttn and UniFilter alone.

    With the tokens `h_k = (g_k(A) X)_v` of a node v,

        H = W_1 h + b_1,   in each layer  H <- Mix(H),  H <- FFN(H),
        z = sum_k H_k,     z <- drop(relu(W_2 drop(z) + b_2)),

    after which a linear decoder makes the logits. Nodes never see each other, so that a step makes
    the embeddings of its training nodes only, and mini-batches change nothing.

    Where the graph has `normalised_adj` instead of `tokens`, features are mapped first and then
    propagated, which is the same: `g_k(A) (X W^T) + b`.

    Shapes: `batch.tokens [nodes, orders + 1, in_channels]`, or `batch.x [nodes, in_channels]` and
    `batch.normalised_adj [nodes, nodes]` (sparse CSR); returns `[nodes, dim]`.

    Args:
        in_channels: number of input features.
        basis: of the polynomials, see `curvlab.layers.polynomials`.
        orders: highest order of the tokens.
        dim: width of a token.
        layers: number of layers.
        layer: makes what mixes a node's tokens of `orders` and `dim`: `PolynomialAttention`, or
            `SharedCoefficients`.
        ffn_dim: inner width of the feed-forward networks; None for none.
        ffn_dropout: of their outputs.
        hidden: whether there is `W_2`; without it the sum over orders is the embedding.
        dropout: of the head.
        attention_lr: learning rate of the layers `layer`; None is the optimiser's.
        attention_weight_decay: likewise.

    Source: PolyFormer, Section 3.3, with the differences of `PolynomialAttention`; the head has
    biases and ReLU.
    """

    def __init__(
        self,
        in_channels: int,
        basis: str,
        orders: int,
        dim: int,
        layers: int,
        layer: Callable[..., nn.Module],
        ffn_dim: int | None,
        ffn_dropout: float,
        hidden: bool,
        dropout: float,
        attention_lr: float | None,
        attention_weight_decay: float | None,
    ) -> None:
        super().__init__()
        check_basis(basis)
        self.input = FeatureLinear(in_channels, dim)
        self.mixers = nn.ModuleList(layer(orders=orders, dim=dim) for _ in range(layers))
        for mixer in self.mixers:  # read by `parameter_groups`
            vars(mixer).update(lr=attention_lr, weight_decay=attention_weight_decay)
        self.feed_forwards = nn.ModuleList(
            nn.Identity() if ffn_dim is None else TokenFeedForward(dim, ffn_dim, ffn_dropout)
            for _ in range(layers)
        )
        self.hidden = nn.Linear(dim, dim) if hidden else None
        self.propagation = SparsePropagation()
        self.basis = basis
        self.orders = orders
        self.dim = dim
        self.dropout = dropout
        self.space = Euclidean(conformal_factor=1.0)

    @property
    def manifold_out(self) -> Euclidean:
        """Flat space with the ordinary distance."""
        return self.space

    @property
    def dim_out(self) -> int:
        """Width of the embeddings."""
        return self.dim

    @property
    def node_wise(self) -> bool:
        """Nodes never see each other."""
        return True

    def forward(self, batch: Data) -> Tensor:
        """Embeddings `[nodes, dim]`."""
        return self._embedded(self.projected(batch))

    def of_nodes(self, batch: Data, nodes: Tensor) -> Tensor:
        """Embeddings `[some nodes, dim]`, without those of the others."""
        return self._embedded(self.projected(batch, nodes))

    @torch.no_grad()
    def encode_in_chunks(self, batch: Data, chunk: int) -> Tensor:
        """What `forward` returns in evaluation, so many nodes at a time."""
        parts = torch.arange(batch.num_nodes, device=self.input.weight.device).split(chunk)
        return torch.cat([self.of_nodes(batch, nodes) for nodes in parts])

    def projected(self, batch: Data, nodes: Tensor | None = None) -> Tensor:
        """Mapped tokens `[orders + 1, nodes, dim]` of some nodes, or of all."""
        weight, bias = self.input.weight, self.input.bias
        if "tokens" in batch:
            tokens = batch.tokens
            if nodes is not None:
                tokens = tokens.index_select(0, nodes.to(tokens.device))
            tokens = tokens.to(weight.device, weight.dtype)
            return F.linear(tokens, weight, bias).transpose(0, 1).contiguous()
        x = self.input.product(batch.x, weight)
        orders = polynomials(
            self.basis, self.orders, x, lambda x: self.propagation(batch.normalised_adj, x)
        )
        rows = (x if nodes is None else x.index_select(0, nodes) for x in orders)
        return torch.stack(list(rows)) + bias

    def _embedded(self, tokens: Tensor) -> Tensor:
        for mixer, feed_forward in zip(self.mixers, self.feed_forwards, strict=True):
            tokens = feed_forward(mixer(tokens))
        z = tokens.sum(0)
        if self.hidden is None:
            return z
        z = F.relu(self.hidden(self._drop(z)))
        return self._drop(z)

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)
