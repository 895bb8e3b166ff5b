"""Attention over the polynomial tokens of one node, which is a filter of that node."""

from itertools import repeat

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from curvlab.checked import Checked
from curvlab.errors import UsageError
from curvlab.layers import token_mixing
from curvlab.layers.elementwise import dropout, dropout_mask
from curvlab.options import Dropout, NonNegativeFloat, Passed, PositiveFloat, PositiveInt

BLOCK_ENTRIES = 2**18
"""Number of scores that are held at a time on CPU, which fit in its cache."""


LIBRARY_PRODUCT = 400
"""Multiplications per matrix from which on torch computes batched products on CPU by MKL."""


class OrderwiseMLP(nn.Module):
    """A separate network for each order, `T_k = W2_k relu(W1_k h_k + b1_k) + b2_k`.

    Shapes: `[orders + 1, nodes, dim] -> [orders + 1, nodes, dim]`.

    Source: PolyFormer, Algorithm 1.
    """

    def __init__(self, orders: int, dim: int, hidden: int) -> None:
        super().__init__()
        self.weight1, self.bias1 = _orderwise_linear(orders, dim, hidden)
        self.weight2, self.bias2 = _orderwise_linear(orders, hidden, dim)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = torch.baddbmm(self.bias1, tokens, self.weight1).relu_()
        return torch.baddbmm(self.bias2, hidden, self.weight2)


class PolynomialAttention(Checked, nn.Module):
    r"""PolyAttn: attention among the tokens of one node.

    With V = LN(H), T the order-wise networks of V, `Q = T W_Q` and `K = T W_K`, in every head

        S_ij = tanh(q_i . k_j / sqrt(d)) beta_j / (j + 1)^power,   H <- H + drop(drop(S) V),

    without maps of values and output. Without `pre_norm` and `residual`, the sum over orders is a
    polynomial filter for each node, `Z_i = sum_j alpha_j g_j(A) x` with `alpha_j = sum_i S_ij`
    (Theorem 3.1).

    Shapes: `[orders + 1, nodes, dim] -> [orders + 1, nodes, dim]`.

    Args:
        orders: highest order of the tokens.
        dim: width of a token.
        heads: number of attention heads, a divisor of `dim`.
        expansion: ratio of the hidden width of the order-wise networks to `dim`.
        power: exponent of the decay of higher orders.
        dropout: dropout of the scores and of the output.
        pre_norm: normalise the tokens first.
        residual: add the tokens to the output.

    Differences from the paper: scores are divided by sqrt(d), as in its code; the coefficients are
    sums of columns, not of rows.

    Source: PolyFormer, Algorithms 1 and 2.
    """

    def __init__(
        self,
        orders: int,
        dim: int,
        heads: Passed[PositiveInt] = 1,
        expansion: PositiveFloat = 1.0,
        power: NonNegativeFloat = 1.0,
        dropout: Passed[Dropout] = 0.0,
        pre_norm: bool = True,
        residual: bool = True,
    ) -> None:
        super().__init__()
        if dim % heads:
            raise UsageError(f"heads={heads} does not divide dim={dim}")
        self.norm = nn.LayerNorm(dim) if pre_norm else nn.Identity()
        self.mlp = OrderwiseMLP(orders, dim, max(1, int(expansion * dim)))
        self.query = nn.Linear(dim, dim, bias=False)
        self.key = nn.Linear(dim, dim, bias=False)
        self.beta = nn.Parameter(torch.ones(heads, orders + 1))
        decay = torch.arange(1.0, orders + 2) ** -power
        self.decay = nn.Buffer(decay.to(torch.get_default_dtype()), persistent=False)
        self.scale = (dim // heads) ** -0.5
        self.heads = heads
        self.dropout = dropout
        self.residual = residual

    def forward(self, tokens: Tensor) -> Tensor:
        values, query, key = self._project(tokens)
        bias = self._bias
        mask = None
        if self.training and self.dropout > 0:
            orders, nodes, _ = values.shape
            mask = dropout_mask((nodes, self.heads, orders, orders), self.dropout, values.device)
            bias = bias / (1 - self.dropout)
        # Under autocast the norm returns float32, in which a CPU multiplies a node's small matrices
        # faster than in half precision.
        if values.device.type != "cpu":
            values = values.to(query.dtype)
        mixed = dropout(self._mix(query, key, values, bias, mask), self.dropout, self.training)
        return tokens + mixed if self.residual else mixed

    def _mix(
        self, query: Tensor, key: Tensor, values: Tensor, bias: Tensor, mask: Tensor | None
    ) -> Tensor:
        """`mix_tokens`; on CPU in C++, or in blocks of nodes whose scores are recomputed backward.

        For 10,000 nodes with 8 heads and 11 orders, the scores of a layer take 39 MB, of which
        autograd would keep several copies.
        """
        if query.device.type != "cpu":
            return mix_tokens(query, key, values, bias, mask)
        library = token_mixing.LIBRARY.functions(query, key, values, bias)
        if library is not None:
            return token_mixing.mix_tokens(library, mix_tokens, query, key, values, bias, mask)
        size = max(1, BLOCK_ENTRIES // (self.heads * len(query) ** 2))
        parts = zip(query.split(size, 1), key.split(size, 1), values.split(size, 1), strict=True)
        masks = repeat(None) if mask is None else mask.split(size)
        mixed = [
            checkpoint(mix_tokens, *part, bias, rows, use_reentrant=False, preserve_rng_state=False)
            for part, rows in zip(parts, masks, strict=False)
        ]
        return torch.cat(mixed, 1)

    def coefficients(self, tokens: Tensor) -> Tensor:
        """Filters `alpha_j = sum_i S_ij` of nodes and heads, `[nodes, heads, orders + 1]`."""
        _, query, key = self._project(tokens)
        q = split_nodes_and_heads(query, self.heads)
        k = split_nodes_and_heads(key, self.heads)
        return ((q @ k.mT).tanh() * self._bias).sum(-2)

    @property
    def is_filter(self) -> bool:
        """Whether the output is linear in the tokens, for given coefficients."""
        return isinstance(self.norm, nn.Identity) and not self.residual

    def _project(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        values = self.norm(tokens)
        mapped = self.mlp(values)
        return values, self.query(mapped) * self.scale, self.key(mapped)

    @property
    def _bias(self) -> Tensor:
        return (self.beta * self.decay).unsqueeze(1)


class SharedCoefficients(nn.Module):
    """UniFilter: one filter for all nodes, the sum over orders of `h_k <- alpha_k h_k`.

    Initial coefficients are random with absolute values that add up to 1 (`mono`), or ones
    (`cheb`), as in the code of earlier filters in PolyFormer's repository; the paper gives no
    formula.

    Shapes: `[orders + 1, nodes, dim] -> [orders + 1, nodes, dim]`.

    Args:
        orders: highest order of the tokens.
        dim: width of a token; unused.
        basis: `mono` or `cheb`.
    """

    is_filter = True

    def __init__(self, orders: int, dim: int, basis: str) -> None:  # noqa: ARG002
        super().__init__()
        start = torch.ones(orders + 1)
        if basis == "mono":
            start.uniform_(-1, 1)
            start /= start.abs().sum()
        self.alpha = nn.Parameter(start)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.alpha[:, None, None] * tokens

    def coefficients(self, tokens: Tensor) -> Tensor:
        return self.alpha.expand(tokens.shape[1], 1, -1)


def _orderwise_linear(orders: int, inputs: int, outputs: int) -> tuple[nn.Parameter, nn.Parameter]:
    """Weight `[orders + 1, inputs, outputs]` and bias, initialised like `nn.Linear` per order."""
    limit = inputs**-0.5
    weight = torch.empty(orders + 1, inputs, outputs).uniform_(-limit, limit)
    bias = torch.empty(orders + 1, 1, outputs).uniform_(-limit, limit)
    return nn.Parameter(weight), nn.Parameter(bias)


def split_nodes_and_heads(x: Tensor, heads: int) -> Tensor:
    """`[orders + 1, nodes, heads * width]` as `[nodes, heads, orders + 1, width]`, a view."""
    return x.unflatten(-1, (heads, -1)).movedim(0, 2)


def mix_tokens(
    query: Tensor, key: Tensor, values: Tensor, bias: Tensor, mask: Tensor | None
) -> Tensor:
    """`(tanh(Q K^T) * bias * mask) V` of every node and head.

    Shapes: scaled queries, keys and values `[orders + 1, nodes, dim]`; the factors of columns,
    `bias`, `[heads, 1, orders + 1]`; the scores that dropout keeps, `mask`,
    `[nodes, heads, orders + 1, orders + 1]` or None; returns `[orders + 1, nodes, dim]`.
    """
    heads = len(bias)
    q = split_nodes_and_heads(query, heads)
    k = split_nodes_and_heads(key, heads)
    v = split_nodes_and_heads(values, heads)
    width = v.shape[-1]
    # On CPU, padding heads of two numbers to four lets MKL compute the products, up to five times
    # as fast as torch's own loop.
    needed = -(-LIBRARY_PRODUCT // len(query) ** 2)
    if v.device.type == "cpu" and width < needed <= 2 * width:
        padding = (0, needed - width)
        q, k, v = F.pad(q, padding), F.pad(k, padding), F.pad(v, padding)
    scores = (q @ k.mT).tanh()
    if mask is not None:
        scores = scores * mask
    # The factor of a column of scores multiplies a row of the values, a smaller array.
    mixed = scores @ (v * bias.mT)
    return mixed[..., :width].movedim(2, 0).flatten(2)
