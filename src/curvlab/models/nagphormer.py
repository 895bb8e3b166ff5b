"""NAGphormer, "A tokenized graph transformer for node classification in large graphs".

Chen et al. 2023, arXiv:2206.04910.
"""

from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from curvlab.layers.token_attention import token_encoder_layer
from curvlab.models.token_network import TokenNetwork
from curvlab.models.widths import check_divides
from curvlab.options import Dropout, NonNegativeInt, PositiveInt


class NAGphormer(TokenNetwork):
    r"""A transformer over the hops of a node, read out against the node itself.

    Tokens are the features and Laplacian eigenvectors of a node, mixed along the edges from 0 to
    `orders` times. After pre-norm layers with softmax attention and a last norm,

        a_k = softmax_k(W_a [t_0 || t_k] + b_a),  z = relu(W (t_0 + sum_(k >= 1) a_k t_k) + b)

    with W to half the width; a linear decoder makes the logits. As in the authors' code, weights
    start from N(0, 0.02 / sqrt(layers)) and biases at 0, and outputs of attention and of the
    feed-forward part are dropped out, but not its hidden features. Only the decoder, which
    belongs to the task, starts as other models' decoders do.

    Shapes: see `TokenNetwork`; returns `[nodes, dim / 2]`.

    Args:
        in_channels: number of input features, eigenvectors among them.
        basis: hops are powers of the adjacency.
        orders: number of hops.
        dim: width of a token.
        layers: layers of the transformer.
        heads: heads of attention, a divisor of `dim`.
        dropout: of the transformer.
    """

    def __init__(
        self,
        in_channels: int,
        basis: Literal["mono"] = "mono",
        orders: NonNegativeInt = 10,
        dim: PositiveInt = 64,
        layers: PositiveInt = 1,
        heads: PositiveInt = 8,
        dropout: Dropout = 0.0,
    ) -> None:
        super().__init__(in_channels, basis, orders, dim)
        check_divides("heads", heads, dim)
        self.layers = nn.ModuleList(token_encoder_layer(dim, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.attention = nn.Linear(2 * dim, 1)
        self.output = nn.Linear(dim, dim // 2)
        self.apply(partial(_initialise, std=0.02 / layers**0.5))

    @property
    def dim_out(self) -> int:
        """Width of the embeddings, half of the model's."""
        return self.output.out_features

    def read(self, tokens: Tensor) -> Tensor:
        """Embeddings `[nodes, dim / 2]`."""
        x = tokens.transpose(0, 1).contiguous()  # or norms and dropout would copy it each time
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        node, hops = x[:, :1], x[:, 1:]
        weights = self.attention(torch.cat([node.expand_as(hops), hops], dim=-1)).softmax(dim=1)
        return self.output(node.squeeze(1) + (weights * hops).sum(1)).relu()


def _initialise(part: nn.Module, std: float) -> None:
    """Normal weights and no bias, in linear maps and in those of queries, keys and values."""
    if isinstance(part, nn.Linear):
        nn.init.normal_(part.weight, std=std)
        if part.bias is not None:
            nn.init.zeros_(part.bias)
    elif isinstance(part, nn.MultiheadAttention):  # has these three as one bare parameter
        nn.init.normal_(part.in_proj_weight, std=std)
        nn.init.zeros_(part.in_proj_bias)
