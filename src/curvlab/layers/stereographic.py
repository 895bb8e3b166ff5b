r"""Transformer layers on products of constant-curvature spaces (FPS-T, Section 3).

Every layer takes and returns points `[..., dim]`, as coordinates or `Points`. The space has
`components` blocks of `dim / components` coordinates; block `h` has curvature `kappa_h`. On
`curvlab.manifolds.Euclidean`, whose maps are identities, the layers are those of the plain
transformer.

Points of a ball are projected into the ball after every exponential and every Moebius sum.

Tokens have the shape `[tokens, dim]`, but in memory the tokens of one coordinate are contiguous.
Norms of short blocks and products with one factor per token are then sweeps over long rows, several
times faster than over the few coordinates of a token.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from curvlab.errors import UsageError
from curvlab.layers.points import PointLayer, Points, first_tokens
from curvlab.layers.spaces import TakesManifold
from curvlab.manifolds import Euclidean, Manifold, Stereographic, kernels, stereographic
from curvlab.manifolds.matrix_products import product

AttentionKind = Literal["linear", "exact"]
Midpoint = Literal["paper"]

LOWEST = -4.0
"""Lower bound of a query's largest coordinate, see `_raise_low_queries`."""

MeanVectors = tuple[Tensor, Tensor | None]
"""Vectors `[heads, tokens, width]` whose weighted sums give a mean, and the tokens' scales."""

TOKENS_AT_ONCE = 2**15
"""Number of tokens that linear attention processes at a time on CPU.

Larger arrays would be allocated in each call, which takes longer than their arithmetic."""


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`x W^T + b`, `[tokens, in] -> [tokens, out]`, with contiguous tokens in memory."""
    if x.dim() != 2:
        return F.linear(x, weight, bias)
    if bias is None:
        return (weight @ x.T).T
    return torch.addmm(bias[:, None], weight, x.T).T


class TokenLinear(nn.Linear):
    """`torch.nn.Linear` in the layout of `linear`."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


class StereographicLinear(PointLayer, nn.Linear):
    r"""Linear map in the tangent space at the origin, with a bias by Moebius addition.

    `exp_0(W log_0(x)) (+) exp_0(b)`. Exponentials and logarithms act on each block, `W` on all.

    Shapes: `[..., in_features] -> [..., out_features]`, both split into the space's components.

    Args:
        in_features: width of the input.
        out_features: width of the output.
        manifold: space of the input and the output.
        bias: add `exp_0(b)` on the right.
        weight_dropout: probability of zeroing an entry of `W` in training (DropConnect).

    Source: FPS-T, Section 3.2. The initialisation (Xavier, gain `1 / sqrt 2`), the bias and the
    dropout of weights are those of the authors' layers.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        manifold: Manifold,
        bias: bool = True,
        weight_dropout: float = 0.0,
    ) -> None:
        super().__init__(in_features, out_features, bias)
        self.space = manifold
        self.weight_dropout = weight_dropout

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.weight, gain=0.5**0.5)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Points) -> Points:  # type: ignore[override]
        out = self.tangent(x)
        if self.bias is None:
            return Points(self.space, x=self.space.expmap0(out))
        return Points(self.space, x=self.space.expmap0_sum(out, self.bias))

    def tangent(self, x: Points) -> Tensor:
        """Tangent vectors `W log_0(x)`."""
        weight = F.dropout(self.weight, self.weight_dropout, self.training)
        return linear(x.log, weight)

    def means(self, x: Points) -> list[MeanVectors]:
        """The space's `mean_vectors` and `tangent_scale` of the outputs, which are not computed."""
        assert self.bias is not None
        parts = split_tokens(self.tangent(x))
        return [self.space.expmap0_sum_means(part, self.bias) for part in parts]


class StereographicLayerNorm(PointLayer, nn.LayerNorm):
    """Layer norm of the logarithm at the origin, over the full width (FPS-T, Section 3.2).

    Shapes: `[..., dim] -> [..., dim]`.
    """

    def __init__(self, dim: int, manifold: Manifold) -> None:
        super().__init__(dim, eps=1e-5)
        self.space = manifold

    def forward(self, x: Points) -> Points:  # type: ignore[override]
        v = x.log
        # Sums instead of means, whose derivatives are arrays as large as v.
        dim = v.shape[-1]
        centred = v - v.sum(-1, keepdim=True) / dim
        scale = (kernels.squared_norm(centred) / dim + self.eps).rsqrt()
        return Points(self.space, torch.addcmul(self.bias, centred * scale, self.weight))


class StereographicFeedForward(PointLayer, nn.Module):
    """Linear, activation, linear: `[..., dim] -> [..., dim]` (FPS-T, Eq. 10).

    Args:
        dim: width of the input and the output.
        hidden: hidden width.
        function: activation of the hidden tangent vectors.
        manifold: space of input, hidden points and output.
        weight_dropout: DropConnect probability of both linear layers.
    """

    def __init__(
        self,
        dim: int,
        hidden: int,
        function: Callable[[Tensor], Tensor],
        manifold: Manifold,
        weight_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.space = manifold
        self.inner = StereographicLinear(dim, hidden, manifold, weight_dropout=weight_dropout)
        self.outer = StereographicLinear(hidden, dim, manifold, weight_dropout=weight_dropout)
        self.function = function

    def forward(self, x: Points) -> Points:
        # The exponential after the activation and the logarithm before the outer layer cancel
        # inside the rim, which activations that do not lengthen vectors do not reach. The
        # activation gets them in their layout in memory, `[hidden, tokens]`.
        hidden = self.function(self.inner(x).log.mT).mT
        return self.outer(Points(self.space, log=hidden))


def choose_midpoint(space: Manifold, midpoint: Midpoint | None) -> None:
    """Choose the midpoint of a stereographic space; other spaces have a single one."""
    if isinstance(space, Stereographic):
        space.published_midpoint = midpoint == "paper"
    elif midpoint is not None and not isinstance(space, Euclidean):
        raise UsageError(
            f"midpoint={midpoint!r}: only stereographic manifolds have the published quotient, not "
            f"{type(space).__name__}; leave midpoint=None"
        )


class StereographicAttention(PointLayer, nn.Module):
    r"""Multi-head attention whose head `h` lives on component `h` (FPS-T, Section 3.3, Eqs. 5-8).

    Values are points. Queries and keys are tangent vectors at the values, transported to the origin
    for their similarity. The result is the weighted mean of the values, on a stereographic space
    their gyro-midpoint. Queries and keys are initialised like `StereographicLinear`; in the
    authors' code they are `nn.Linear` with its initialisation.

    Shapes: `[tokens, dim] -> [tokens, dim]`, plus the space's further coordinates of points.

    Args:
        dim: width of tangent vectors of the input and the output.
        heads: number of heads, which is the number of components of `manifold`.
        manifold: space of the input and the output.
        kind: similarity: `linear` is `phi(q) . phi(k)`, in time linear in the tokens (Eq. 11);
            `exact` is `q . k` (Eqs. 6-7), a reference whose signed weights may cancel, so that
            outputs jump where the sum of a query's weights crosses 0.
        out_proj: mix the heads by a last stereographic linear layer, as in the authors' code (the
            paper's Eq. 8 only concatenates).
        midpoint: midpoint of the values: None, or `paper` for the published quotient, which jumps
            to the antipode beyond the equator (see `stereographic.midpoint_from_sums`).
        dropout: dropout of the outputs' logarithms.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        manifold: Manifold,
        kind: AttentionKind,
        out_proj: bool,
        midpoint: Midpoint | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        choose_midpoint(manifold, midpoint)
        self.heads = heads
        self.kind = kind
        self.space = manifold
        inner = heads * (dim // heads)  # unlike factors of a product need not divide the width
        self.query = TokenLinear(dim + manifold.codimension, inner)
        self.key = TokenLinear(dim + manifold.codimension, inner)
        self.value = StereographicLinear(dim, dim, manifold)
        self.out = StereographicLinear(dim, dim, manifold) if out_proj else nn.Identity()
        for linear in (self.query, self.key):
            nn.init.xavier_uniform_(linear.weight, gain=0.5**0.5)
            nn.init.zeros_(linear.bias)
        self.dropout = nn.Dropout(dropout)  # not `layers.dropout`, which cannot be compiled

    def forward(self, x: Points, rows: int | None = None) -> Points:
        """Attend from the first `rows` tokens, or from all (None), to all tokens."""
        query = self._heads(self.query(first_tokens(x.x, rows)))
        key = self._heads(self.key(x.x))
        if self.kind == "linear":
            mean = _attend(query, key, self.value.means(x), self.space)
        else:
            value = self.value(x).x
            scale = self.space.tangent_scale(value)
            if scale is not None:
                query = query * first_tokens(scale, rows)
                key = key * scale
            mean = midpoint_attention(query @ key.mT, value, self.space)
        out = self.out(Points(self.space, x=mean))
        if not self.training or self.dropout.p == 0:
            return out
        # Drawn for all tokens, so that `rows` does not change the random stream.
        mask = self.dropout(out.x.new_ones(x.log.shape[::-1]).T)
        scaled = self.space.scale_coordinates(out.x, mask[: len(out.x)])
        return Points(self.space, x=scaled)

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).movedim(-2, 0)


def split_tokens(x: Tensor) -> list[Tensor]:
    """Parts `[..., some tokens, dim]` of `[..., tokens, dim]`; gradients keep the layout of x."""
    at_once = TOKENS_AT_ONCE if x.device.type == "cpu" else max(x.shape[-2], 1)
    return [part.mT for part in x.mT.split(at_once, dim=-1)]


def positive_features(u: Tensor) -> Tensor:
    """The kernel's feature map `phi(u) = elu(u) + 1 > 0`, elementwise (FPS-T, Eq. 11)."""
    return F.elu(u) + 1


def _raise_low_queries(query: Tensor) -> Tensor:
    """Raise queries until their largest feature is at least `exp(LOWEST)`.

    For negative u, `elu(u) + 1` is `exp(u)`, and far below 0 this sum loses its digits. Raising a
    query multiplies all its features by one number, which does not change its midpoint.
    """
    deficit = LOWEST - query.detach().amax(-1, keepdim=True)
    return query + deficit.clamp_min(0)


def midpoint_attention(similarity: Tensor, value: Tensor, space: Manifold) -> Tensor:
    r"""Weighted means of the values under given similarities (FPS-T, Eq. 7).

    Shapes: similarity `[heads, queries, keys]`, value (points) `[keys, dim]`; returns
    `[queries, dim]`.
    """
    # The sum of a query's weights must be positive: on a sphere, a negative sum would give the
    # antipode.
    similarity = torch.where(similarity.sum(-1, keepdim=True) < 0, -similarity, similarity)
    return space.weighted_mean(value, lambda vectors: (vectors.mT @ similarity.mT).mT)


def linear_attention(query: Tensor, key: Tensor, value: Tensor, space: Manifold) -> Tensor:
    r"""`midpoint_attention` for `s_ij = phi(q_i) . phi(k_j)`, in time linear in the tokens.

    Shapes: query, key (tangent at the origin) `[heads, tokens, width]`, value (points)
    `[tokens, dim]`; returns `[tokens, dim]`.
    """
    means = [(space.mean_vectors(part), None) for part in split_tokens(value)]
    return _attend(query, key, means, space)


def _attend(query: Tensor, key: Tensor, values: Sequence[MeanVectors], space: Manifold) -> Tensor:
    """Means of values, given by `mean_vectors` m_j and `tangent_scale` of parts of the tokens.

    `sum_j phi(k_j) m_j^T` is computed once for all queries (FPS-T, Eq. 11, with the denominator of
    Appendix C, which Eq. 11 omits). Queries and keys are tangent vectors at the values; a scale
    transports them to the origin.
    """
    queries = split_tokens(query)
    keys = split_tokens(key)
    summaries = [
        vectors.mT @ positive_features(_scaled(k, scale))
        for k, (vectors, scale) in zip(keys, values, strict=True)
    ]
    summary = sum(summaries[1:], start=summaries[0])
    means = []
    for q, (_, scale) in zip(queries, values, strict=False):
        features = positive_features(_raise_low_queries(_scaled(q, scale)))
        means.append(space.mean_point((summary @ features.mT).mT))
    return means[0] if len(means) == 1 else torch.cat([mean.mT for mean in means], dim=-1).mT


def _scaled(x: Tensor, scale: Tensor | None) -> Tensor:
    """Vectors times the scales of their tokens, which are the first ones."""
    return x if scale is None else x * first_tokens(scale, x.shape[-2])


_SMALLEST_SQUARE = 1e-15

LogitCurvature = Literal["geometric", "paper"]


class StereographicLogits(TakesManifold, nn.Module):
    r"""Logits from signed distances to one hyperplane for each class.

    Class `c` has an offset `P = exp_0(p)` and a normal `A`, the transport of `a` from the origin to
    `P`. With `z = (-P) (+) x`, in every component

        u = 2 <z, A> / ((1 + kappa |z|^2) |A|),    D = arsin_kappa(u),

    and `logit = |2 a| sqrt(sum_h D_h^2) sign(sum_h <z_h, A_h>)`. With `s = x - P`,
    `alpha = 1 + kappa |P|^2`, `beta = 1 + kappa |x|^2`,

        u = 2 (alpha <s, a> + kappa |s|^2 <P, a>) / (alpha beta |a|),

    so that two matrix products with the classes suffice, without a tensor `[nodes, classes, dim]`.
    On one flat component the logit is `4 <x - p, a>`; on several components it is not linear.

    Shapes: `[nodes, dim] -> [nodes, classes]`.

    Args:
        dim: width of the points.
        classes: number of classes.
        manifold: space of the points.
        curvature: curvature of `arsin`: `geometric` is the space's kappa, for which D is the
            distance; `paper` is `kappa |kappa|`, as in FPS-T's Eq. 4 and its authors' code, whose
            argument is clamped to the domain beyond kappa = 1.

    Source: FPS-T, Eq. 4 and its product form; Ganea et al. 2018.
    """

    def __init__(
        self,
        dim: int,
        classes: int,
        manifold: Euclidean | Stereographic,
        curvature: LogitCurvature = "geometric",
    ) -> None:
        super().__init__()
        self.space = manifold
        self.curvature = curvature
        self.normal = nn.Parameter(0.01 * torch.randn(classes, dim))
        self.offset = nn.Parameter(torch.zeros(classes, dim))

    def forward(self, x: Tensor) -> Tensor:
        kappa = self.space.kappa
        if kappa is None:
            kappa = x.new_zeros(self.space.components)
        kappa = kappa.to(x.dtype)[:, None, None]
        point = self.space.split(x).movedim(-2, 0)
        offset = self.space.split(self.space.expmap0(self.offset)).movedim(-2, 0)
        normal = self.space.split(self.normal).movedim(-2, 0)
        alpha = kernels.conformal_denominator(offset, kappa).mT  # [components, 1, classes]
        beta = kernels.conformal_denominator(point, kappa)  # [components, nodes, 1]
        along = (offset * normal).sum(-1).unsqueeze(-2)  # <P, a>
        shift = product(point, normal.mT) - along  # <s, a>
        norms = point.square().sum(-1).unsqueeze(-1) + offset.square().sum(-1).unsqueeze(-2)
        squared = (norms - 2 * product(point, offset.mT)).clamp_min(0)  # |s|^2
        length = normal.square().sum(-1).clamp_min(_SMALLEST_SQUARE).sqrt().unsqueeze(-2)
        numerator = alpha * shift + kappa * squared * along
        bend = kappa * kappa.abs() if self.curvature == "paper" else kappa
        angle = stereographic.arsin_k(2 * numerator / (alpha * beta * length), bend)
        side = (alpha * numerator / (alpha * beta - kappa * squared)).sum(0).sign()
        distance = angle.square().sum(0).clamp_min(_SMALLEST_SQUARE).sqrt()
        return 2 * length.square().sum(0).sqrt() * distance * side
