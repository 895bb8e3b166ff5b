"""Attention in flat, hyperbolic and spherical space: branches of CAT and the router over them.

A branch maps Euclidean tokens `[batch, tokens, dim]` to its space and back, to vectors of the same
shape. A mask `[tokens, tokens]` or `[batch, tokens, tokens]` is true where a token (row) may attend
to another; without a mask, each token attends to all tokens. Attention over a single token has the
weight 1 in any geometry, so the branches skip it, with the same result. A feed-forward network of
tangent vectors, clipped at a radius, remains.

Source: CAT, Sections 4.1 to 4.4, as corrected in docs/protocol.md.
"""

import math

import torch
from torch import Tensor, nn

from curvlab.checked import Checked
from curvlab.errors import UsageError
from curvlab.layers.elementwise import activation_function
from curvlab.manifolds import Curvature
from curvlab.manifolds import stereographic as k_space
from curvlab.manifolds.curved_trig import at_rim
from curvlab.options import Activation, NegativeFloat, PositiveFloat, PositiveInt

LARGEST_ANGLE = 3.1406
"""Largest angle between the origin of a sphere and a point; the antipode is at pi."""


class FeedForward(nn.Module):
    """W2 act(W1 x + b1) + b2, `[..., in_dim] -> [..., dim]`, with a hidden width."""

    def __init__(self, in_dim: int, hidden: int, dim: int, activation: Activation) -> None:
        super().__init__()
        self.expand = nn.Linear(in_dim, hidden)
        self.reduce = nn.Linear(hidden, dim)
        self.activation = activation_function(activation)

    def forward(self, x: Tensor) -> Tensor:
        return self.reduce(self.activation(self.expand(x)))


class Branch(Checked, nn.Module):
    """Base of branches.

    Args:
        dim: width of the tokens.
        ffn_ratio: ratio of the hidden width of the feed-forward network to `dim`.
        activation: activation of the feed-forward network.
        kappa: curvature.
        learnable: learn the curvature.
        residual: add the input to the output, unlike the paper.
    """


class FeedForwardBranch(Branch):
    """x + FF(x): a control without attention or geometry."""

    def __init__(self, dim: int, ffn_ratio: int, activation: Activation) -> None:
        super().__init__()
        self.feed_forward = FeedForward(dim, ffn_ratio * dim, dim, activation)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:  # noqa: ARG002
        return x + self.feed_forward(x)


class EuclideanBranch(Branch):
    """H = LayerNorm(x + MultiheadAttention(x)); LayerNorm(H + FF(H)). Source: CAT, Section 4.1.

    Args:
        heads: number of attention heads, a divisor of `dim`.

    Raises:
        UsageError: `heads` does not divide `dim`.
    """

    def __init__(
        self, dim: int, ffn_ratio: int, activation: Activation, heads: PositiveInt = 4
    ) -> None:
        super().__init__()
        if dim % heads:
            raise UsageError(f"heads={heads} does not divide dim={dim}")
        self.attention = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.feed_forward = FeedForward(dim, ffn_ratio * dim, dim, activation)
        self.attention_norm = nn.LayerNorm(dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        h = self.attention_norm(x + self._attend(x, mask))
        return self.norm(h + self.feed_forward(h))

    def _attend(self, x: Tensor, mask: Tensor | None) -> Tensor:
        if x.shape[-2] > 1:
            forbidden = None if mask is None else ~mask
            if forbidden is not None and forbidden.dim() == 3:
                forbidden = forbidden.repeat_interleave(self.attention.num_heads, 0)
            return self.attention(x, x, x, need_weights=False, attn_mask=forbidden)[0]
        dim = x.shape[-1]
        values = self.attention.in_proj_weight[2 * dim :], self.attention.in_proj_bias[2 * dim :]
        return self.attention.out_proj(nn.functional.linear(x, *values))


class HyperbolicBranch(Branch):
    """Distance attention in a ball: q, v = exp0(W x), softmax(-d(q_i, q_j)), FF(W_o log0(sum)).

    There are neither keys nor a temperature. The sum of the values is their midpoint,
    `1/2 (x) (sum_j A_j lambda_j v_j / sum_j A_j (lambda_j - 1))`. The published sum of Moebius
    multiples leaves the ball for more than one token.

    Source: CAT, Section 4.2; the paper counts W_o as a parameter but omits it in the formula.

    Attributes:
        at_rim: Share of the values at the rim of the ball, in the last pass in evaluation mode.
    """

    at_rim: Tensor

    def __init__(
        self,
        dim: int,
        ffn_ratio: int,
        activation: Activation,
        kappa: NegativeFloat = -1.0,
        learnable: bool = False,
        residual: bool = False,
    ) -> None:
        super().__init__()
        self.query = nn.Linear(dim, dim, bias=False)
        self.value = nn.Linear(dim, dim, bias=False)
        self.output = nn.Linear(dim, dim)
        self.feed_forward = FeedForward(dim, ffn_ratio * dim, dim, activation)
        self.curvature = Curvature(kappa, learnable=learnable, max=0.0)
        self.residual = residual

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        kappa = self.curvature()
        value = k_space.expmap0_projected(self.value(x), kappa)
        if not self.training:
            z = kappa.detach() * value.detach().square().sum(-1, keepdim=True)
            self.at_rim = at_rim(z).to(z.dtype).mean()
        if x.shape[-2] > 1:
            query = k_space.expmap0_projected(self.query(x), kappa)
            weights = _weights(-k_space.pairwise_dist(query, query, kappa), mask)
            value = k_space.midpoints(value, weights, kappa.squeeze(-1))
            value = k_space.project(value, kappa)
        y = self.feed_forward(self.output(k_space.logmap0(value, kappa)))
        return x + y if self.residual else y


def _weights(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax over the tokens to which each token may attend, `[..., tokens, tokens]`."""
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(-1)


class SphericalBranch(Branch):
    """Cosine attention on the sphere: t = exp_mu([u; 0]), softmax(<t_i, t_j>), FF(log_mu(y)).

    mu is the last unit vector of R^(dim + 1), and u = W x + b. The weighted sum w is normalised,
    y = w / |w|, before its logarithm is taken; the logarithm of y = [a; b] has the angle
    atan2(|a|, b), and FF gets its dim + 1 coordinates. exp_mu is injective up to the antipode only,
    so that u is rescaled to smaller norms. Angles are lengths times sqrt(kappa).

    Source: CAT, Section 4.3, which has neither W nor the normalisation. Its number of parameters
    requires about one matrix more than its formula.
    """

    def __init__(
        self,
        dim: int,
        ffn_ratio: int,
        activation: Activation,
        kappa: PositiveFloat = 1.0,
        learnable: bool = False,
        residual: bool = False,
    ) -> None:
        super().__init__()
        self.project = nn.Linear(dim, dim)
        self.feed_forward = FeedForward(dim + 1, ffn_ratio * dim, dim, activation)
        self.curvature = Curvature(kappa, learnable=learnable, min=0.0)
        self.residual = residual

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        root = self.curvature().sqrt()
        u = root * self.project(x)
        norm = u.norm(dim=-1, keepdim=True).clamp(min=1e-12)
        u = u * (LARGEST_ANGLE / norm).clamp(max=1)
        if x.shape[-2] > 1:
            points = sphere_exp(u)
            summed = _weights(points @ points.mT, mask) @ points
            u = sphere_log(summed / summed.norm(dim=-1, keepdim=True).clamp(min=1e-8))
        y = self.feed_forward(nn.functional.pad(u / root, (0, 1)))
        return x + y if self.residual else y


def sphere_exp(u: Tensor) -> Tensor:
    """Exponential of u `[..., dim]` at the last unit vector: points `[..., dim + 1]` of S^dim."""
    norm = u.norm(dim=-1, keepdim=True).clamp(min=1e-12)
    return torch.cat([norm.sin() / norm * u, norm.cos()], -1)


def sphere_log(y: Tensor) -> Tensor:
    """Logarithm `[..., dim]` at the last unit vector of points `[..., dim + 1]`."""
    a = y[..., :-1]
    b = y[..., -1:]
    norm = a.norm(dim=-1, keepdim=True).clamp(min=1e-12)
    return torch.atan2(norm, b) / norm * a


class BranchRouter(nn.Module):
    """softmax(W2 act(W1 x + b1) + b2), weights `[..., branches]` of tokens `[..., dim]`.

    The width between the two maps is half of that of the tokens. Source: CAT, Section 4.4.
    """

    def __init__(self, dim: int, branches: int, activation: Activation) -> None:
        super().__init__()
        self.logits = FeedForward(dim, dim // 2, branches, activation)

    def forward(self, x: Tensor) -> Tensor:
        return self.logits(x).softmax(-1)


def entropy(weights: Tensor) -> Tensor:
    """-sum_g a_g log a_g of weights `[..., branches]`, `[...]`."""
    return -(weights * weights.clamp(min=1e-12).log()).sum(-1)
