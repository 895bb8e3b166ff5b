r"""Attention between points of a hyperboloid (Hypformer, Section 4.3), linear and softmax.

Queries, keys and values of all heads are one product with the points. Linear attention compares
and sums their space parts alone; the time of the result is the only one that is computed.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import torch
import torch.nn.functional as F
from annotated_types import Ge
from torch import Tensor, nn
from torch.autograd import Function

from curvlab.errors import UsageError
from curvlab.layers.lorentz import Inner, LorentzLinear, inner_factor, lift
from curvlab.layers.spaces import OnSpaces
from curvlab.manifolds import Lorentz, lorentz
from curvlab.manifolds.kernels import dot, working
from curvlab.manifolds.products import full_precision

SMALLEST = 1e-6
"""Added to the rectified coordinates and to the sum of weights (Hypformer's authors' code)."""


def focused_features(e: Tensor, power: float, smallest: float = SMALLEST) -> Tensor:
    r"""The focused feature map `phi(e) = (|e'| / |e'^p|) e'^p`, `e' = relu(e) + smallest`.

    Powers are elementwise, norms over the last axis: `|phi(e)| = |e'|`. `e'` is divided by its
    largest entry before the power and multiplied by it afterwards, which changes nothing, since phi
    is homogeneous of degree 1, and lets no power underflow to 0 / 0. For the same reason the
    paper's scalar t, by which it divides `e'`, cancels between the numerator and the denominator of
    attention; it is left out.

    Shapes: `[..., dim] -> [..., dim]`.

    Source: Hypformer, Eq. 19, which prints no `smallest`; FLatten Transformer.
    """
    e = working(e)
    if power == 1:
        return F.relu(e) + smallest
    features: Tensor = _FocusedFeatures.apply(e, power, smallest)[0]
    return features


class _FocusedFeatures(Function):
    r"""phi of `focused_features`, for a power that is not 1; only its argument is kept.

    With u = e' / largest, v = u^p, a = |u|, b = |v| the features are largest (a / b) v, and for an
    incoming derivative g that by e' is p (a / b) u^{p-1} (g - v <g, v> / b^2) + u <g, v> / (a b).
    """

    generate_vmap_rule = True

    @staticmethod
    def _parts(e: Tensor, power: float, smallest: float) -> tuple[Tensor, ...]:
        """u, v, largest, a, b."""
        e = F.relu(e) + smallest
        largest = e.amax(-1, keepdim=True)
        u = e / largest
        v = u.pow(power)
        a, b = (torch.linalg.vector_norm(x, dim=-1, keepdim=True) for x in (u, v))
        return u, v, largest, a, b

    @staticmethod
    def forward(e: Tensor, power: float, smallest: float) -> tuple[Tensor, ...]:
        _, v, *small = _FocusedFeatures._parts(e, power, smallest)
        largest, a, b = small
        return v.mul_(largest * a / b), *small

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        e, ctx.power, ctx.smallest = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(e, *output[1:])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        g, power = grads[0], ctx.power
        e, largest, a, b = ctx.saved_tensors
        if torch.is_grad_enabled():
            u, v, _, a, b = _FocusedFeatures._parts(e, power, ctx.smallest)
            slope = u.pow(power - 1)
        else:
            u = F.relu(e).add_(ctx.smallest).div_(largest)
            slope = u if power == 2 else u.pow(power - 1)
            v = slope * u
        along = dot(g, v)
        across = torch.addcmul(g, v, -along / b.square()).mul_(power * a / b)
        g_e = torch.addcmul(u * (along / (a * b)), slope, across)
        # The derivative of relu, in one pass.
        return torch.ops.aten.threshold_backward(g_e, e, 0.0), None, None


def attention_sums(key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """`S = phi(k)^T v` `[heads, dim, width]` and `n = phi(k)^T 1` `[heads, dim]`.

    Shapes: key, of features phi(k), `[nodes, heads, dim]`, value `[nodes, heads, width]`.
    """
    return key.movedim(-2, 0).mT @ value.movedim(-2, 0), key.sum(0)


def attention_quotient(query: Tensor, S: Tensor, n: Tensor, smallest: float = SMALLEST) -> Tensor:
    """`phi(q) S / (phi(q) n + smallest)`, `[nodes, heads, width]` from phi(q) as in the sums."""
    numerator = (query.movedim(-2, 0) @ S).movedim(0, -2)
    denominator = (query.movedim(-2, 0) @ n.unsqueeze(-1)).movedim(0, -2)
    return numerator / (denominator + smallest)


def focused_attention(
    query: Tensor, key: Tensor, value: Tensor, power: float, smallest: float = SMALLEST
) -> Tensor:
    r"""Linear attention `phi(q) [phi(k)^T v] / (phi(q) [phi(k)^T 1] + smallest)`.

    Time and memory are linear in the nodes. Source: Hypformer, Eqs. 16 and 17.

    Shapes: query and key `[nodes, heads, dim]`, value `[nodes, heads, width]`; returns
    `[nodes, heads, width]`.
    """
    S, n = attention_sums(focused_features(key, power, smallest), value)
    return attention_quotient(focused_features(query, power, smallest), S, n, smallest)


class _Heads(nn.Module):
    """Queries, keys and values of all heads by one map of points.

    Its rows are `[3, heads, head_dim]`: queries, keys, values, each head after head.
    """

    def __init__(self, heads: int, head_dim: int, space: Lorentz) -> None:
        super().__init__()
        self.heads, self.head_dim, self.space = heads, head_dim, space

    @abstractmethod
    def projected(self, x: Tensor) -> Tensor:
        """What the map makes of points `[nodes, 1 + dim]`, `[nodes, 3 * heads * head_dim]`."""

    def split(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value `[nodes, heads, head_dim]`, views of one array."""
        parts = self.projected(x).unflatten(-1, (3, self.heads, self.head_dim))
        query, key, value = parts.unbind(-3)
        return query, key, value


def _heads_linear(dim: int, heads: int, head_dim: int, space: Lorentz) -> LorentzLinear:
    """One HTC for all heads, each head's matrix drawn by itself (Xavier-uniform, gain `sqrt 2`)."""
    linear = LorentzLinear(dim, 3 * heads * head_dim, space, space, "rescale")
    bound = (12 / (1 + dim + head_dim)) ** 0.5
    nn.init.uniform_(linear.weight, -bound, bound)
    return linear


class LorentzLinearAttention(OnSpaces, _Heads):
    r"""Linear attention on space parts with the focused feature map (Hypformer, Eqs. 14 to 19).

    `lift( mean_heads( phi(q) S / (phi(q) n) + psi(v) ) )`, `S = phi(k)^T v`, `n = phi(k)^T 1`, psi
    a linear map that all heads share. The two sums are all that nodes know of each other: `summary`
    of the chunks of a graph (or of its shards) adds up to that of the whole, and `attend` takes it.

    Shapes: `[nodes, 1 + dim] -> [nodes, 1 + dim]`, the time of the input enters the queries, keys
    and values as a coordinate.

    Args:
        dim: space-like coordinates of the input and the output.
        heads: number of heads.
        head_dim: width of one head; `dim` where heads are averaged.
        space: where input and output lie.
        power: the exponent p of the focused feature map.
        phi_on_value: apply phi to the values too (the paper's Eq. 15, not its authors' code).
        heads_fusion: `mean` of the heads, or `concat` and a linear map.

    Raises:
        UsageError: the heads do not fit.

    The curvature of the output differs from that of the values in Eq. 18; here both are one, and
    the factor, 1. The scalar t of Eq. 19 cancels and is left out (`focused_features`).
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        head_dim: int,
        space: Lorentz,
        power: Annotated[float, Ge(1)] = 2.0,
        phi_on_value: bool = False,
        heads_fusion: Literal["mean", "concat"] = "mean",
    ) -> None:
        if heads_fusion == "mean" and head_dim != dim:
            raise UsageError(
                f"heads that are averaged have the model's width {dim}, not {head_dim}: choose "
                "heads_fusion=concat or that width"
            )
        super().__init__(heads, head_dim, space)
        self.projection = _heads_linear(dim, heads, head_dim, space)
        self.power, self.phi_on_value, self.heads_fusion = power, phi_on_value, heads_fusion
        self.psi = nn.Linear(head_dim, head_dim)
        self.out = nn.Linear(heads * head_dim, dim) if heads_fusion == "concat" else None

    def projected(self, x: Tensor) -> Tensor:
        """Space parts of the HTC of points `[nodes, 1 + dim]`, side by side."""
        return self.projection.space_part(x)

    def forward(self, x: Tensor) -> Tensor:
        """Map points `[nodes, 1 + dim]` to points `[nodes, 1 + dim]`."""
        query, key, value = self._features(x)
        return self._fuse(query, value, *attention_sums(key, value))

    def summary(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """S `[heads, head_dim, head_dim]` and n `[heads, head_dim]` of points `[nodes, 1 + dim]`.

        Those of disjoint sets of nodes add up to those of their union.
        """
        _, key, value = self._features(x)
        return attention_sums(key, value)

    def context(self, S: Sequence[Tensor], n: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """What `attend` takes: the sums of the summaries of all chunks of nodes."""
        return sum(S[1:], S[0]), sum(n[1:], n[0])

    def attend(self, x: Tensor, S: Tensor, n: Tensor) -> Tensor:
        """What `forward` returns for points `[nodes, 1 + dim]` among all nodes that S and n sum."""
        query, _, value = self._features(x)
        return self._fuse(query, value, S, n)

    def _features(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """phi(q), phi(k) and the values."""
        query, key, value = self.split(x)
        if self.phi_on_value:
            value = focused_features(value, self.power)
        return focused_features(query, self.power), focused_features(key, self.power), value

    def _fuse(self, query: Tensor, value: Tensor, S: Tensor, n: Tensor) -> Tensor:
        heads = attention_quotient(query, S, n)
        if self.out is None:
            # psi is affine, so that of the mean is the mean of it.
            return lift(_mean_of_heads(heads) + self.psi(_mean_of_heads(value)), self.space)
        return lift(self.out((heads + self.psi(value)).flatten(-2)), self.space)


def _mean_of_heads(x: Tensor) -> Tensor:
    return x.squeeze(-2) if x.shape[-2] == 1 else x.mean(-2)


class PointAttention(OnSpaces, _Heads):
    """Attention whose queries, keys and values are points, of heads as wide as the model.

    Shapes: `[nodes, 1 + dim] -> [nodes, 1 + dim]`.

    Args:
        dim: space-like coordinates of the input and the output.
        heads: number of heads.
        head_dim: width of one head: `dim`, since the heads' midpoint is the output.
        space: where input and output lie.

    Raises:
        UsageError: the heads are not as wide as the model.
    """

    def __init__(self, dim: int, heads: int, head_dim: int, space: Lorentz) -> None:
        if head_dim != dim:
            raise UsageError(
                f"the midpoint of heads has their width, {head_dim}, where the model's is {dim}: "
                "let both be the same"
            )
        super().__init__(heads, head_dim, space)

    @abstractmethod
    def weighted_sums(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Sums of values for each query, points `[heads, nodes, 1 + head_dim]` as all three."""

    def forward(self, x: Tensor) -> Tensor:
        """Map points `[nodes, 1 + dim]` to points `[nodes, 1 + dim]`."""
        return self._joined(self.weighted_sums(*(self.points(part) for part in self.split(x))))

    def summary(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values `[nodes, heads, head_dim]` of points `[nodes, 1 + dim]`."""
        _, key, value = self.split(x)
        return key, value

    def context(self, key: Sequence[Tensor], value: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """What `attend` takes: the keys and values of all chunks of nodes, as points."""
        return self.points(torch.cat(list(key))), self.points(torch.cat(list(value)))

    def attend(self, x: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """What `forward` returns for points `[nodes, 1 + dim]` among all nodes of a context."""
        return self._joined(self.weighted_sums(self.points(self.split(x)[0]), key, value))

    def points(self, part: Tensor) -> Tensor:
        """Points `[heads, nodes, 1 + head_dim]` of space parts `[nodes, heads, head_dim]`."""
        return lift(part.movedim(-2, 0), self.space)

    def _joined(self, sums: Tensor) -> Tensor:
        """The heads' midpoint `[nodes, 1 + head_dim]` of sums `[heads, nodes, 1 + head_dim]`."""
        points = lorentz.normalise(sums.movedim(0, -2), self.space.kappa)
        if self.heads == 1:
            return points.squeeze(-2)
        return lorentz.centroid(points, points.new_ones(self.heads), self.space.kappa)


class LorentzSoftmaxAttention(PointAttention):
    r"""Softmax attention by the Lorentzian product, aggregation by the centroid (Eqs. 3 to 5).

    `A = softmax_j( 2 <q_i, k_j>_L / s )`, the centroid of the values with weights `A_ij` a head,
    and the midpoint of the heads. `s` is learned and starts at `sqrt(head_dim)`. What the squared
    distance `-2 / |kappa| - 2 <q, k>_L` and the authors' code add to the logits cancels in the
    softmax and is left out. Time is quadratic in the nodes; the scores are made in blocks, or not
    larger than once, by `torch.nn.functional.scaled_dot_product_attention`.

    With `inner="as_released"` the score is `2 |kappa| <q_i, k_j>_L / s`, that of the authors' code
    since its second release. It does not cancel: the softmax starts flatter.

    Shapes, further arguments and errors: see `PointAttention`.

    Args:
        inner: the product of the scores: None, <q, k>, or `as_released`, divided by k.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        head_dim: int,
        space: Lorentz,
        inner: Inner | None = None,
    ) -> None:
        super().__init__(dim, heads, head_dim, space)
        self.inner = inner
        self.projection = _heads_linear(dim, heads, head_dim, space)
        self.scale = nn.Parameter(torch.tensor(head_dim**0.5))

    def projected(self, x: Tensor) -> Tensor:
        """Space parts of the HTC of points `[nodes, 1 + dim]`, side by side."""
        return self.projection.space_part(x)

    def weighted_sums(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Sums of values by a softmax of products, points `[heads, nodes, 1 + head_dim]`."""
        query = lorentz.reflect_time(query) * (
            2 * inner_factor(self.space, self.inner) / self.scale
        )
        # PyTorch takes the way that makes no scores for four dimensions alone. The product cancels
        # far out: float32 in full, under autocast, too.
        with torch.autocast(query.device.type, enabled=False), full_precision():
            return F.scaled_dot_product_attention(query[None], key[None], value[None], scale=1.0)[0]
