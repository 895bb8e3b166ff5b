"""PolyFormer: a transformer over the polynomial tokens of each node alone."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.layers import PolynomialAttention, SharedCoefficients
from curvlab.layers.dropout import dropout
from curvlab.models.token_network import TokenNetwork

FILTERED_NODES = 10_000
"""Nodes whose coefficients are taken at a time."""


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


class PolyFormer(TokenNetwork):
    r"""PolyFormer, and by its options PolyAttn and UniFilter alone.

    With the tokens `h_k = (g_k(A) X)_v` of a node v,

        H = W_1 h + b_1,   in each layer  H <- Mix(H),  H <- FFN(H),
        z = sum_k H_k,     z <- drop(relu(W_2 drop(z) + b_2)),

    after which a linear decoder makes the logits.

    Shapes: see `TokenNetwork`.

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
        super().__init__(in_channels, basis, orders, dim)
        self.mixers = nn.ModuleList(layer(orders=orders, dim=dim) for _ in range(layers))
        for mixer in self.mixers:  # read by `parameter_groups`
            vars(mixer).update(lr=attention_lr, weight_decay=attention_weight_decay)
        self.feed_forwards = nn.ModuleList(
            nn.Identity() if ffn_dim is None else TokenFeedForward(dim, ffn_dim, ffn_dropout)
            for _ in range(layers)
        )
        self.hidden = nn.Linear(dim, dim) if hidden else None
        self.dropout = dropout

    def read(self, tokens: Tensor) -> Tensor:
        """Embeddings `[nodes, dim]` of mapped tokens."""
        for mixer, feed_forward in zip(self.mixers, self.feed_forwards, strict=True):
            tokens = feed_forward(mixer(tokens))
        z = tokens.sum(0)
        if self.hidden is None:
            return z
        return self._drop(F.relu(self.hidden(self._drop(z))))

    @property
    def filters_nodes(self) -> bool:
        """Whether it is one linear filter of each node's tokens, as PolyAttn and UniFilter are."""
        mixer = self.mixers[0]
        plain = isinstance(mixer, PolynomialAttention) and mixer.is_filter
        bare = isinstance(self.feed_forwards[0], nn.Identity) and len(self.mixers) == 1
        return bare and (plain or isinstance(mixer, SharedCoefficients))

    @torch.no_grad()
    def node_filters(self, batch: Data, read_out: Tensor | None = None) -> Tensor:
        """Coefficients of the polynomials `[nodes, orders + 1]` (Theorem 3.1).

        A head h has the filter `alpha^(h)` of its own, of its part of the width.

        Args:
            batch: see `TokenNetwork`.
            read_out: weights r `[dim]` that map the embedding of a signal x, `x w`, to a number:
                the coefficients of the whole map, `sum_h (r_h . w_h) alpha^(h)`; None for the mean
                over heads.
        """
        mixer = self.mixers[0]
        assert isinstance(mixer, PolynomialAttention | SharedCoefficients)
        nodes = torch.arange(batch.num_nodes, device=self.input.weight.device)
        return torch.cat(
            [
                self._over_heads(mixer.coefficients(self.projected(batch, part)), read_out)
                for part in nodes.split(FILTERED_NODES)
            ]
        )

    def _over_heads(self, alpha: Tensor, read_out: Tensor | None) -> Tensor:
        """Of coefficients `[nodes, heads, orders + 1]` what `node_filters` returns."""
        if read_out is None:
            return alpha.mean(1)
        gains = (read_out * self.input.weight.squeeze(1)).view(alpha.shape[1], -1).sum(1)
        return torch.einsum("h,nhk->nk", gains, alpha)

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)
