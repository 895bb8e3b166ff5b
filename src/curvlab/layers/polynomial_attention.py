"""Attention over the polynomial tokens of one node, which makes it a filter of its own."""

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from curvlab.checked import Checked
from curvlab.errors import UsageError
from curvlab.layers.dropout import dropout, dropout_mask
from curvlab.options import Dropout, NonNegativeFloat, Passed, PositiveFloat, PositiveInt

BLOCK_ENTRIES = 2**18
"""Scores held at a time on a processor: what its cache holds."""

LIBRARY_PRODUCT = 400
"""Multiplications a matrix from which on torch leaves a processor's batched products to MKL."""


class OrderwiseMLP(nn.Module):
    """A network of its own for each order, `T_k = W2_k relu(W1_k h_k + b1_k) + b2_k`.

    Shapes: `[orders + 1, nodes, dim] -> [orders + 1, nodes, dim]`.

    Source: PolyFormer, Algorithm 1.
    """

    def __init__(self, orders: int, dim: int, hidden: int) -> None:
        super().__init__()
        self.weight1, self.bias1 = _orderwise_linear(orders, dim, hidden)
        self.weight2, self.bias2 = _orderwise_linear(orders, hidden, dim)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map the tokens of each order by its network."""
        hidden = torch.baddbmm(self.bias1, tokens, self.weight1).relu_()
        return torch.baddbmm(self.bias2, hidden, self.weight2)


class PolynomialAttention(Checked, nn.Module):
    r"""PolyAttn: attention among the tokens of one node.

    With V = LN(H), T the order-wise networks of V, `Q = T W_Q` and `K = T W_K`, in every head

        S_ij = tanh(q_i . k_j / sqrt(d)) beta_j / (j + 1)^power,   H <- H + drop(drop(S) V),

    without a map of the values or of the output. Without `pre_norm` and `residual` the sum over
    orders is a polynomial filter of the node's own, `Z_i = sum_j alpha_j g_j(A) x`, with
    `alpha_j = sum_i S_ij` (Theorem 3.1).

    Shapes: `[orders + 1, nodes, dim] -> [orders + 1, nodes, dim]`.

    Args:
        orders: highest order of the tokens.
        dim: width of a token.
        heads: of attention, a divisor of `dim`.
        expansion: width of the order-wise networks over `dim`.
        power: exponent by which higher orders count less.
        dropout: of the scores and of the output.
        pre_norm: normalise the tokens first.
        residual: add the tokens to the output.

    Differences from the paper: scores are divided by sqrt(d), as in its code; the sums of columns,
    not of rows, are the coefficients.

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
        self.decay: Tensor
        decay = torch.arange(1.0, orders + 2) ** -power
        self.register_buffer("decay", decay.to(torch.get_default_dtype()), persistent=False)
        self.scale = (dim // heads) ** -0.5
        self.heads = heads
        self.dropout = dropout
        self.residual = residual

    def forward(self, tokens: Tensor) -> Tensor:
        """Mix each node's tokens."""
        values, query, key = self._project(tokens)
        bias, kept = self._bias, None
        if self.training and self.dropout > 0:
            orders, nodes, _ = values.shape
            kept = dropout_mask((nodes, self.heads, orders, orders), self.dropout, values.device)
            bias = bias / (1 - self.dropout)
        # Autocast makes half-precision products of what the norm returns in float32, in which a
        # processor multiplies matrices as small as a node's faster.
        if values.device.type != "cpu":
            values = values.to(query.dtype)
        mixed = TanhAttention.apply(query, key, values, bias, kept, self.heads)
        mixed = dropout(mixed, self.dropout, self.training)
        return tokens + mixed if self.residual else mixed

    def coefficients(self, tokens: Tensor) -> Tensor:
        """Filters `alpha_j = sum_i S_ij` of nodes and heads, `[nodes, heads, orders + 1]`."""
        _, query, key = self._project(tokens)
        q, k = (by_node_and_head(x, self.heads) for x in (query, key))
        scores = torch.bmm(q, k.transpose(1, 2)).tanh_().unflatten(0, (-1, self.heads))
        return (scores * self._bias).sum(-2)

    @property
    def is_filter(self) -> bool:
        """Whether the output is linear in the tokens but for the coefficients."""
        return isinstance(self.norm, nn.Identity) and not self.residual

    def _project(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        values = self.norm(tokens)
        mapped = self.mlp(values)
        return values, self.query(mapped) * self.scale, self.key(mapped)

    @property
    def _bias(self) -> Tensor:
        """Factor of each order's column, `[heads, 1, orders + 1]`."""
        return (self.beta * self.decay).unsqueeze(1)


class SharedCoefficients(nn.Module):
    """UniFilter: one filter for all nodes, `h_k <- alpha_k h_k`, whose sum over orders it is.

    Coefficients start at random, their absolute values adding up to 1 (`mono`), or at ones
    (`cheb`), as in what PolyFormer's code keeps of earlier filters; the paper gives no formula.

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
        """Weigh the orders."""
        return self.alpha[:, None, None] * tokens

    def coefficients(self, tokens: Tensor) -> Tensor:
        """The same filter for each node, `[nodes, 1, orders + 1]`."""
        return self.alpha.expand(tokens.shape[1], 1, -1)


def _orderwise_linear(orders: int, inputs: int, outputs: int) -> tuple[nn.Parameter, nn.Parameter]:
    """Weight `[orders + 1, inputs, outputs]` and bias, each order's drawn as `nn.Linear` does."""
    bound = inputs**-0.5
    shapes = ((orders + 1, inputs, outputs), (orders + 1, 1, outputs))
    weight, bias = (nn.Parameter(torch.empty(shape).uniform_(-bound, bound)) for shape in shapes)
    return weight, bias


def by_node_and_head(x: Tensor, heads: int, padding: int = 0) -> Tensor:
    """`[orders + 1, nodes, heads * width]` as `[nodes * heads, orders + 1, width + padding]`."""
    view = x.unflatten(-1, (heads, -1)).flatten(1, 2).transpose(0, 1)
    return F.pad(view, (0, padding)) if padding else view


class TanhAttention(torch.autograd.Function):
    """`(tanh(Q K^T) * kept) (bias * V)` of every node and head, with scores computed twice.

    For 10,000 nodes with 8 heads and 11 orders the scores of a layer take 39 MB, and autograd would
    keep several copies; those of a block of nodes stay in the cache.

    Shapes: queries (scaled), keys and values `[orders + 1, nodes, dim]`, a factor for the column of
    each order `[heads, 1, orders + 1]`, the scores that dropout keeps `[nodes, heads, orders + 1,
    orders + 1]` or None, and the number of heads; returns `[orders + 1, nodes, dim]`.
    """

    @staticmethod
    def forward(  # noqa: D102
        ctx: Any,
        query: Tensor,
        key: Tensor,
        values: Tensor,
        bias: Tensor,
        kept: Tensor | None,
        heads: int,
    ) -> Tensor:
        ctx.save_for_backward(query, key, values, bias, kept)
        ctx.heads = heads
        out = torch.empty_like(values)
        padding = _padding(values, heads)
        for part in _blocks(values, heads):
            q, k, v = (
                by_node_and_head(x[:, part], heads, padding).to(values.dtype)
                for x in (query, key, values)
            )
            scores = torch.bmm(q, k.transpose(1, 2)).tanh_()
            if kept is not None:
                scores *= kept[part].flatten(0, 1)
            _put(out[:, part], torch.bmm(scores, _weigh(v, bias)), heads)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # noqa: D102
        *inputs, bias, kept = ctx.saved_tensors
        heads = ctx.heads
        grads = [torch.empty_like(x) for x in inputs]
        grad_bias = torch.zeros_like(bias)
        padding = _padding(grad, heads)
        for part in _blocks(grad, heads):
            q, k, v, g = (
                by_node_and_head(x[:, part], heads, padding).to(grad.dtype) for x in (*inputs, grad)
            )
            scores = tanh = torch.bmm(q, k.transpose(1, 2)).tanh_()
            slope = torch.bmm(g, _weigh(v, bias).transpose(1, 2))
            if kept is not None:
                mask = kept[part].flatten(0, 1).to(tanh.dtype)
                scores = tanh * mask
                slope *= mask
            inner = torch.ops.aten.tanh_backward(slope, tanh)
            grad_weighted = torch.bmm(scores.transpose(1, 2), g)
            products = (
                torch.bmm(inner, k),
                torch.bmm(inner.transpose(1, 2), q),
                _weigh(grad_weighted, bias),
            )
            for out, product in zip(grads, products, strict=True):
                _put(out[:, part], product, heads)
            grad_columns = (grad_weighted * v).sum(-1, dtype=bias.dtype)
            grad_bias += grad_columns.unflatten(0, (-1, heads)).sum(0).unsqueeze(1)
        return *grads, grad_bias, None, None


def _blocks(tokens: Tensor, heads: int) -> Iterator[slice]:
    """Blocks of the nodes of `[orders + 1, nodes, dim]`; on a GPU one of them all."""
    orders, nodes, _ = tokens.shape
    size = max(1, nodes)
    if tokens.device.type == "cpu":
        size = max(1, BLOCK_ENTRIES // (heads * orders**2))
    return (slice(start, start + size) for start in range(0, nodes, size))


def _padding(tokens: Tensor, heads: int) -> int:
    """Zeros that make heads wide enough for a library's products, where they double them at most.

    Torch's own loop takes up to five times as long for heads of two numbers as MKL for four.
    """
    orders, _, dim = tokens.shape
    width, needed = dim // heads, math.ceil(LIBRARY_PRODUCT / orders**2)
    return needed - width if tokens.device.type == "cpu" and width < needed <= 2 * width else 0


def _weigh(values: Tensor, bias: Tensor) -> Tensor:
    """Values `[nodes * heads, orders + 1, width]`, each order's times its bias.

    This equals multiplying the scores of that order, a larger array.
    """
    nodes = len(values) // len(bias)
    return values * bias.transpose(1, 2).to(values.dtype).repeat(nodes, 1, 1)


def _put(target: Tensor, x: Tensor, heads: int) -> None:
    """Write what is by nodes and heads, without its padding, into tokens by orders."""
    view = by_node_and_head(target, heads)
    view.copy_(x[..., : view.shape[-1]])
