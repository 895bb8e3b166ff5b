"""Squared distances of queries to all entities in the unit ball, by matrix products.

MuRP, RotH and AttH need the distance d = 2 arsinh(u) of each query to each entity, with
u^2 = |x - y|^2 / ((1 - |x|^2) (1 - |y|^2)). Here u^2 = p + q N - <z, e> M. The factors z, p and q
belong to a query, the ray e to an entity, N and M to an entity and a relation. A gradient is a sum
of the same factors, so that few arrays of all pairs are allocated.

Near the rim terms of u^2 and of its gradients cancel. These terms have double precision, distances
single precision. `curvlab.models.triples.ball_scores` computes training steps in C++.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from curvlab.manifolds.kernels import squared_norm
from curvlab.models.triples.flat import SMALLEST

DISTANCE_DTYPE = torch.float32
"""Type of squared distances and of their derivatives with respect to u^2."""


def ball_scores(
    rim: float,
    group: Tensor,
    tail_bias: Tensor,
    head_bias: Tensor,
    weight: Tensor,
    z: Tensor,
    p: Tensor,
    q: Tensor,
    scale: Tensor,
    rays: Tensor,
    length: Tensor,
    *shifts: Tensor,
) -> Tensor:
    """Scores weight 4 arsinh(u)^2 + head_bias + tail_bias, `[queries, entities]`.

    Args:
        rim: half the largest distance of a tail from the origin before its shift.
        group: index of each query's relation `[queries]`.
        tail_bias: biases of the entities `[entities]`.
        head_bias: biases of the queries `[queries, 1]`.
        weight: factors of the squared distances `[queries, 1]`.
        z: points `[queries, dim]` of `query_factors`.
        p: summands `[queries, 1]` of `query_factors`.
        q: factors `[queries, 1]` of `query_factors`.
        scale: scales of the relations `[relations, 1]`, or one scale `[1, 1]`.
        rays: directions of the entities `[entities, dim]`.
        length: lengths of their tangent vectors `[entities, 1]`.
        shifts: factors `[relations, 1]` and points `[relations, dim]` of `shift_factors`, if
            relations shift tails.
    """
    relations, relation_index = unique_on_cpu(group)
    if len(scale) > 1:
        scale = scale.index_select(0, relations)
    shifts = tuple(shift.index_select(0, relations) for shift in shifts)
    n, m = tail_factors(rim, scale.double(), rays, length, *shifts)
    if len(n) == 1:  # one scale and no shifts
        relation_index = torch.zeros_like(relation_index)
    squared: Tensor = SquaredDistances.apply(relation_index, z, p, q, rays, n, m)
    biases = head_bias.to(squared) + tail_bias.to(squared)
    return torch.addcmul(biases, squared, weight.to(squared))


class SquaredDistances(Function):
    """4 arsinh(u)^2 with u^2 = p + q N - <z, e> M, `[queries, entities]`.

    Shapes: index `group` of each query's relation `[queries]`; z `[queries, dim]`, p and q
    `[queries, 1]`; e `[entities, dim]`, N and M `[relations, entities]`. All but `group` have
    double precision.
    """

    @staticmethod
    def forward(ctx: Any, *values: Tensor) -> Tensor:
        group, z, p, q, rays, n, m = values
        product = z @ rays.T
        squared, derivative = product.new_empty((2, *product.shape), dtype=DISTANCE_DTYPE)
        for rows, relation in _row_blocks(group, len(rays)):
            u2 = torch.mul(q[rows], n[relation]).add_(p[rows])
            u2.addcmul_(product[rows], m[relation], value=-1)
            squared[rows], derivative[rows] = _squared_distance_(u2.to(DISTANCE_DTYPE))
        ctx.save_for_backward(group, z, q, rays, n, m, derivative, product)
        return squared

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        group, z, q, rays, n, m, derivative, product = ctx.saved_tensors
        grad_product = torch.empty_like(product)
        grad_p = torch.empty_like(q)
        grad_q = torch.empty_like(q)
        grad_n = torch.zeros_like(n)
        grad_m = torch.zeros_like(m)
        for rows, relation in _row_blocks(group, len(rays)):
            grad_u2 = (gradients[0][rows] * derivative[rows]).double()
            grad_p[rows, 0] = grad_u2.sum(1)
            grad_q[rows, 0] = torch.linalg.vecdot(grad_u2, n[relation])
            torch.mul(grad_u2, m[relation], out=grad_product[rows])
            grad_m.index_add_(0, group[rows], grad_u2 * product[rows], alpha=-1)
            grad_n.index_add_(0, group[rows], grad_u2.mul_(q[rows]))
        # Matrix products of long rows are fastest.
        grad_z = -(rays.T @ grad_product.T).T
        grad_rays = -(z.T @ grad_product).T.contiguous()
        return None, grad_z, grad_p, grad_q, grad_rays, grad_n, grad_m


def query_factors(x: Tensor, w: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Factors z, p and q of the distances of x to points t (+) w, in double precision.

        z = x / (1 - |x|^2)
        p = |x - w|^2 / ((1 - |x|^2) (1 - |w|^2))
        q = (1 + |x|^2) / (1 - |x|^2)

    These terms cancel less than the terms of |t (+) w|^2.

    Args:
        x: points of the queries `[queries, dim]`.
        w: shifts of their relations `[queries, dim]`; None for 0.
    """
    x = x.double()
    w = torch.zeros_like(x) if w is None else w.double()
    denominator = 1 - squared_norm(x)
    z = x / denominator
    p = squared_norm(x - w) / (denominator * (1 - squared_norm(w)))
    q = 2 / denominator - 1
    return z, p, q


def shift_factors(w: Tensor) -> tuple[Tensor, Tensor]:
    """Factors g = (1 + |w|^2) / (1 - |w|^2) and points w' = 2 (1 + g) w of shifts w.

    Both have double precision; shapes `[relations, 1]` and `[relations, dim]`.
    """
    w = w.double()
    g = 2 / (1 - squared_norm(w)) - 1
    points = 2 * (1 + g) * w
    return g, points


def polar(v: Tensor) -> tuple[Tensor, Tensor]:
    """Rays v / |v| `[entities, dim]` and lengths |v| `[entities, 1]`, in double precision."""
    v = v.double()
    length = v.norm(dim=-1, keepdim=True).clamp(min=1e-15)
    return v / length, length


def tail_factors(
    rim: float,
    scale: Tensor,
    rays: Tensor,
    length: Tensor,
    g: Tensor | None = None,
    points: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Factors N and M of tails t (+) w, with t = tanh(a) e and a = min(scale length, rim).

        N = g sinh(a)^2 + A cosh(a)^2 / 2
        M = (2 g + A) sinh(a) cosh(a)
        A = <w', t>

    Shapes: `[relations, entities]`; `[1, entities]` of one scale without shifts.

    Args:
        rim: largest a.
        scale: scales `[relations, 1]`, or one scale `[1, 1]`.
        rays: directions e of the entities `[entities, dim]`.
        length: lengths of their tangent vectors `[entities, 1]`.
        g: g of `shift_factors` `[relations, 1]`; None for w = 0.
        points: w' of `shift_factors` `[relations, dim]`; None for w = 0.
    """
    a = (scale * length.T).clamp(max=rim)
    sinh = a.sinh()
    sinh2 = sinh.square()
    cosh2 = 1 + sinh2
    sinh_cosh = sinh * cosh2.sqrt()
    if g is None or points is None:
        return sinh2, 2 * sinh_cosh
    inner = (points @ rays.T) * a.tanh()
    n = torch.addcmul(g * sinh2, inner, cosh2 / 2)
    m = (2 * g + inner) * sinh_cosh
    return n, m


def unique_on_cpu(values: Tensor) -> tuple[Tensor, Tensor]:
    """Unique values, and each entry's index in them.

    On a GPU, where counting them would synchronise, the values are returned unchanged.
    """
    if values.device.type == "cpu":
        return values.unique(return_inverse=True)
    return values, torch.arange(len(values), device=values.device)


def _row_blocks(group: Tensor, entities: int) -> list[tuple[slice, slice | Tensor]]:
    """Blocks of rows with their group, whose pairs with entities fit in a core's cache."""
    if group.device.type != "cpu":
        return [(slice(len(group)), group)]
    blocks: list[tuple[slice, slice | Tensor]] = []
    size = max(1, 2**17 // entities)
    start = 0
    runs = torch.stack(group.unique_consecutive(return_counts=True), 1)
    for index, count in runs.tolist():
        end = start + count
        for row in range(start, end, size):
            rows = slice(row, min(row + size, end))
            blocks.append((rows, slice(index, index + 1)))
        start = end
    return blocks


def _squared_distance_(u2: Tensor) -> tuple[Tensor, Tensor]:
    """4 arsinh(u)^2 and its derivative with respect to u^2, in place.

    A u^2 that rounds below 0 counts as 0. arsinh(u) = log1p(u + u^2 / (1 + sqrt(1 + u^2))) is
    exact for small u, where the derivative 4 arsinh(u) / (u sqrt(1 + u^2)) is 4.
    """
    u2 = u2.clamp_(min=SMALLEST)
    u = u2.sqrt()
    root = (1 + u2).sqrt_()
    distance = torch.addcdiv(u, u2, 1 + root, out=u2).log1p_().mul_(2)
    squared = distance.square()
    derivative = distance.div_(u.mul_(root)).mul_(2)
    return squared, derivative
