"""NAGphormer: a transformer over the hops of a node, read out against the node itself."""

import torch
from torch import Tensor, nn

from curvlab.models.token_network import TokenNetwork


class NAGphormer(TokenNetwork):
    r"""NAGphormer (Chen et al. 2023).

    Tokens are the features and Laplacian eigenvectors of a node, mixed along the edges from 0 to
    `orders` times. After pre-norm layers with softmax attention and a last norm,

        a_k = softmax_k(W_a [t_0 || t_k] + b_a),  z = relu(W (t_0 + sum_(k >= 1) a_k t_k) + b)

    with W to half the width; a linear decoder makes the logits.

    Shapes: see `TokenNetwork`; returns `[nodes, dim / 2]`.

    Args:
        in_channels: number of input features, eigenvectors among them.
        basis: `mono`.
        orders: number of hops.
        dim: width.
        layers: of the transformer.
        heads: which divide the width.
        dropout: of the transformer.
    """

    def __init__(
        self,
        in_channels: int,
        basis: str,
        orders: int,
        dim: int,
        layers: int,
        heads: int,
        dropout: float,
    ) -> None:
        super().__init__(in_channels, basis, orders, dim)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                dim, heads, 2 * dim, dropout, "gelu", batch_first=True, norm_first=True
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(dim)
        self.attention = nn.Linear(2 * dim, 1)
        self.output = nn.Linear(dim, dim // 2)
        for part in self.modules():
            if isinstance(part, nn.Linear):
                nn.init.normal_(part.weight, std=0.02 / layers**0.5)
                if part.bias is not None:
                    nn.init.zeros_(part.bias)

    @property
    def dim_out(self) -> int:
        """Width of the embeddings, half of the model's."""
        return self.output.out_features

    def read(self, tokens: Tensor) -> Tensor:
        """Embeddings `[nodes, dim / 2]`."""
        x = tokens.transpose(0, 1)
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        node, hops = x[:, :1], x[:, 1:]
        weights = self.attention(torch.cat([node.expand_as(hops), hops], dim=-1)).softmax(dim=1)
        return self.output(node.squeeze(1) + (weights * hops).sum(1)).relu()
