"""NAGphormer, "A tokenized graph transformer for node classification in large graphs".

Chen et al. 2023, arXiv:2206.04910.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from curvlab.data.transforms.graph import GraphTransform
from curvlab.data.transforms.spectrum import EigenvectorFeatures
from curvlab.layers.elementwise import Dropout as DropoutLayer
from curvlab.layers.elementwise import dropout as drop
from curvlab.models.encoder import check_divides
from curvlab.models.token_network import TokenNetwork, TokenType, polynomial_tokens
from curvlab.options import Dropout, NonNegativeInt, PositiveInt


class TokenAttention(nn.MultiheadAttention):
    """`torch.nn.MultiheadAttention` of one sequence, 1.2 to 1.7 times as fast in training.

    Queries, keys and values are split by `unbind`, whose gradient fills fewer zeros than torch's
    selection. Scores are scaled instead of queries and keys.

    Shapes: `[nodes, tokens, dim] -> [nodes, tokens, dim]`.
    """

    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__(dim, heads, dropout, batch_first=True)

    def forward(  # type: ignore[override]
        self, tokens: Tensor, *_: Tensor, **__: Any
    ) -> tuple[Tensor, None]:
        projected = F.linear(tokens, self.in_proj_weight, self.in_proj_bias)
        parts = projected.unflatten(-1, (3, self.num_heads, self.head_dim))
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        scores = query @ key.transpose(-1, -2) * self.head_dim**-0.5
        mixed = drop(scores.softmax(-1), self.dropout, self.training) @ value
        return self.out_proj(mixed.transpose(1, 2).flatten(2)), None


def token_encoder_layer(dim: int, heads: int, dropout: float) -> nn.TransformerEncoderLayer:
    """A pre-norm `torch.nn.TransformerEncoderLayer` with a GELU network of twice the width.

    Dropout acts on the outputs of attention and network, not on the network's hidden features, as
    in the code of NAGphormer's authors.
    """
    layer = nn.TransformerEncoderLayer(
        dim, heads, 2 * dim, dropout, "gelu", batch_first=True, norm_first=True
    )
    layer.self_attn = TokenAttention(dim, heads, dropout)
    layer.dropout1 = DropoutLayer(dropout)
    layer.dropout2 = DropoutLayer(dropout)
    layer.dropout = nn.Identity()  # type: ignore[assignment]
    return layer


class NAGphormer(TokenNetwork):
    r"""A transformer over the hops of a node, whose read-out compares hops with the node itself.

    Tokens are the features and Laplacian eigenvectors of a node, averaged along the edges 0 to
    `orders` times. After pre-norm layers of softmax attention and a last norm,

        a_k = softmax_k(W_a [t_0 || t_k] + b_a),  z = relu(W (t_0 + sum_(k >= 1) a_k t_k) + b)

    where W maps to half the width. As in the authors' code, initial weights are N(0, 0.02 /
    sqrt(layers)), initial biases are 0, and the hidden features of the feed-forward network have
    no dropout.

    Returns `[nodes, dim / 2]`.

    Args:
        basis: basis of the hops: `mono`, powers of the adjacency.
        dropout: dropout of the transformer.
        eigenvectors: Number of Laplacian eigenvectors appended to the features.
    """

    revision = 3  # 3: the basis of eigenvectors is the same on every machine
    takes_tokens = False  # eigenvectors come from the graph in memory

    def __init__(
        self,
        in_channels: int,
        basis: Literal["mono"] = "mono",
        orders: NonNegativeInt = 10,
        dim: PositiveInt = 64,
        layers: PositiveInt = 1,
        heads: PositiveInt = 8,
        dropout: Dropout = 0.0,
        eigenvectors: NonNegativeInt = 15,
        token_dtype: TokenType = "float32",
    ) -> None:
        width = in_channels + eigenvectors
        super().__init__(width, basis, orders, dim, token_dtype=token_dtype)
        self.token_features = "inputs" if eigenvectors else "x"
        self.transforms = self.required_transforms(
            {
                "basis": basis,
                "orders": orders,
                "dim": dim,
                "eigenvectors": eigenvectors,
                "token_dtype": token_dtype,
            }
        )
        check_divides("heads", heads, dim)
        self.layers = nn.ModuleList(token_encoder_layer(dim, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.attention = nn.Linear(2 * dim, 1)
        self.output = nn.Linear(dim, dim // 2)
        self.apply(partial(_initialise, std=0.02 / layers**0.5))
        self.dim_out = dim // 2

    @classmethod
    def required_transforms(cls, options: Mapping[str, Any]) -> Sequence[GraphTransform]:
        count = options["eigenvectors"]
        tokens = partial(
            polynomial_tokens,
            options["basis"],
            options["orders"],
            options["dim"],
            self_loops=None,
            token_dtype=options["token_dtype"],
        )
        if not count:
            return (tokens(),)
        return EigenvectorFeatures(count), tokens(features="inputs")

    def forward_tokens(self, tokens: Tensor) -> Tensor:
        x = tokens.transpose(0, 1).contiguous()  # else each norm and dropout would copy it
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        node = x[:, :1]
        hops = x[:, 1:]
        weights = self.attention(torch.cat([node.expand_as(hops), hops], dim=-1)).softmax(dim=1)
        return self.output(node.squeeze(1) + (weights * hops).sum(1)).relu()


def _initialise(part: nn.Module, std: float) -> None:
    """Initialise linear maps, and those of queries, keys and values: normal weights, biases 0."""
    if isinstance(part, nn.Linear):
        nn.init.normal_(part.weight, std=std)
        if part.bias is not None:
            nn.init.zeros_(part.bias)
    elif isinstance(part, nn.MultiheadAttention):  # has the three maps in one parameter
        nn.init.normal_(part.in_proj_weight, std=std)
        nn.init.zeros_(part.in_proj_bias)
