"""Squared distances of queries to all entities in the unit ball, by matrix products.

MuRP, RotH and AttH take the distance of each query to each entity. Autograd of the formula
d = 2 arsinh(u), u^2 = |x - y|^2 / ((1 - |x|^2) (1 - |y|^2)), takes 3.5 times as long as the
functions below, which equal it: they split u^2 into factors of queries and of entities, and a
derivative into sums of the same factors.

The sums that make u^2 cancel near the rim: they are in double precision, distances are in single.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from curvlab.manifolds.kernels import squared_norm
from curvlab.manifolds.matrix_products import full_precision
from curvlab.models.triples.flat import SMALLEST

DISTANCE_DTYPE = torch.float32
"""Type of squared distances and of derivatives."""


class SquaredDistancesToShifted(Function):
    """4 arsinh(u)^2 to entities that each relation shifts: u^2 = p + q n - <z, b> m.

    Shapes: `group` `[queries]` numbers the queries' relations; z `[queries, dim]`, p and q
    `[queries, 1]` of `shifted_query_factors`; b `[entities, dim]`, n and m `[relations, entities]`
    of `shifted_entity_factors`; then b, n and m in double precision, which get no derivative. The
    result is `[queries, entities]`.
    """

    @staticmethod
    def forward(ctx: Any, *values: Tensor) -> Tensor:
        group, z, p, q, b, n, m, exact_b, exact_n, exact_m = values
        product = z @ exact_b.T
        squared, derivative = b.new_empty((2, *product.shape))
        for rows, relation in _row_blocks(group, len(b)):
            u2 = torch.mul(q[rows], exact_n[relation]).add_(p[rows])
            u2.addcmul_(product[rows], exact_m[relation], value=-1)
            squared[rows], derivative[rows] = _squared_distance_(u2.to(DISTANCE_DTYPE))
        z, q, product = (each.to(DISTANCE_DTYPE) for each in (z, q, product))
        ctx.save_for_backward(group, z, q, b, n, m, derivative, product)
        return squared

    @staticmethod
    @once_differentiable
    @full_precision()
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        group, z, q, b, n, m, derivative, product = ctx.saved_tensors
        grad_product = torch.empty_like(product)
        grad_p = torch.empty_like(q)
        grad_q = torch.empty_like(q)
        grad_n = torch.zeros_like(n)
        grad_m = torch.zeros_like(m)
        for rows, relation in _row_blocks(group, len(b)):
            grad_u2 = gradients[0][rows] * derivative[rows]
            grad_p[rows, 0] = grad_u2.sum(1)
            grad_q[rows, 0] = torch.linalg.vecdot(grad_u2, n[relation])
            torch.mul(grad_u2, m[relation], out=grad_product[rows])
            grad_m.index_add_(0, group[rows], grad_u2 * product[rows], alpha=-1)
            grad_n.index_add_(0, group[rows], grad_u2.mul_(q[rows]))
        grad_z = -(grad_product @ b)
        grad_b = grad_product.T @ -z
        return None, grad_z, grad_p, grad_q, grad_b, grad_n, grad_m, None, None, None


def shifted_query_factors(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Factors z, p and q of the distances of x to points t (+) w, in double precision.

    z = x / (1 - |x|^2), p = |x - w|^2 / ((1 - |x|^2) (1 - |w|^2)),
    q = (1 + |x|^2) / (1 - |x|^2). Such sums cancel less than |t (+) w|^2 does.

    Args:
        x: points of the queries `[queries, dim]`.
        w: shifts of their relations `[queries, dim]`.
    """
    x, w = x.double(), w.double()
    to_rim = 1 - squared_norm(x)
    p = squared_norm(x - w) / (to_rim * (1 - squared_norm(w)))
    return x / to_rim, p, 2 / to_rim - 1


def shifted_entity_factors(
    v: Tensor, scale: Tensor, w: Tensor, rim: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Factors b, n and m of the distances to points t (+) w, t = tanh(a) e = exp0(scale v).

    b = cosh(a) sinh(a) e, n = ((1 + |w|^2) sinh(a)^2 + 2 <w, b>) / (1 - |w|^2),
    m = (2 (1 + |w|^2) + 4 <w, t>) / (1 - |w|^2).

    Args:
        v: tangent vectors of the entities `[entities, dim]`.
        scale: sqrt(-kappa) `[1]`.
        w: shifts of the relations `[relations, dim]`.
        rim: largest a.
    """
    length = v.norm(dim=-1, keepdim=True).clamp(min=1e-15)
    a = (scale.to(v) * length).clamp(max=rim)
    w = w.to(v)
    growth = 2 / (1 - squared_norm(w)) - 1  # (1 + |w|^2) / (1 - |w|^2)
    along = (2 * (1 + growth) * w) @ v.T * (a.tanh() / length).T
    n = torch.addcmul(growth * a.sinh().square().T, along, a.cosh().square().T / 2)
    b = a.cosh() * a.sinh() / length * v
    return b, n, 2 * growth + along


class SquaredDistancesToRays(Function):
    """4 arsinh(u)^2 to points exp0(scale length ray), where each query has its own scale.

    u^2 = 2 p cosh(2 a) - 2 <x, ray> sinh(2 a) - 1/2, a = min(scale length, rim).

    Shapes: x `[queries, dim]`, p and scale `[queries, 1]` of `ray_query_factors`; rays
    `[entities, dim]` and length `[entities, 1]` of `ray_entity_factors`; the number rim; then,
    optionally, rays and length in double precision, which get no derivative. The result is
    `[queries, entities]`.
    """

    @staticmethod
    def forward(ctx: Any, *values: Any) -> Tensor:
        x, p, scale, rays, length, rim, *exact = values
        x, p, scale, *exact = (each.double() for each in (x, p, scale, *(exact or (rays, length))))
        scales, group = unique_without_waiting(scale.squeeze(1))
        q = x @ exact[0].T
        a = scales.unsqueeze(1) * exact[1].T
        growth = (2 * a).clamp_(max=2 * rim).exp_()
        fall = growth.reciprocal()
        cosh = growth + fall  # twice cosh and sinh
        sinh = growth - fall
        squared, derivative, slopes = q.new_empty((3, *q.shape), dtype=DISTANCE_DTYPE)
        for rows, at in _row_blocks(group, len(rays)):
            u2 = torch.mul(p[rows], cosh[at]).addcmul_(q[rows], sinh[at], value=-1).sub_(0.5)
            squared[rows], derivative[rows] = _squared_distance_(u2.to(DISTANCE_DTYPE))
            slopes[rows] = torch.mul(p[rows], sinh[at]).addcmul_(q[rows], cosh[at], value=-1)
        factors = (x, scale, rays, length, cosh, sinh, a < rim)
        saved = [factor.to(DISTANCE_DTYPE) for factor in factors]
        ctx.save_for_backward(*saved, group, derivative, slopes)
        return squared

    @staticmethod
    @once_differentiable
    @full_precision()
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, scale, rays, length, cosh, sinh, inside, group, derivative, slopes = ctx.saved_tensors
        grad_q = torch.empty_like(derivative)
        grad_p = torch.empty_like(scale)
        grad_scale = torch.empty_like(scale)
        grad_length = torch.zeros_like(length.T)
        for rows, at in _row_blocks(group, len(rays)):
            grad_u2 = gradients[0][rows] * derivative[rows]
            grad_p[rows, 0] = torch.linalg.vecdot(grad_u2, cosh[at])
            torch.mul(grad_u2, sinh[at], out=grad_q[rows])
            grad_a = grad_u2.mul_(slopes[rows]).mul_(inside[at])
            grad_scale[rows] = grad_a @ length
            grad_length += (scale[rows] * grad_a).sum(0)
        grad_x = -(grad_q @ rays)
        grad_rays = grad_q.T @ -x
        factors = grad_x, grad_p, 2 * grad_scale, grad_rays, 2 * grad_length.T
        return *factors, *[None] * (len(ctx.needs_input_grad) - len(factors))


def ray_query_factors(x: Tensor) -> tuple[Tensor, Tensor]:
    """Factors x / (2 (1 - |x|^2)) and p = (1 + |x|^2) / (4 (1 - |x|^2)) of points x."""
    x2 = squared_norm(x)
    return x / (2 * (1 - x2)), (1 + x2) / (4 * (1 - x2))


def ray_entity_factors(v: Tensor) -> tuple[Tensor, Tensor]:
    """Rays v / |v| and lengths |v| `[entities, 1]` of tangent vectors `[entities, dim]`."""
    length = v.norm(dim=-1, keepdim=True).clamp(min=1e-15)
    return v / length, length


def unique_without_waiting(values: Tensor) -> tuple[Tensor, Tensor]:
    """Unique values and each entry's index in them.

    On a GPU, where counting them would synchronise, the values are returned as they are.
    """
    if values.device.type == "cpu":
        return values.unique(return_inverse=True)
    return values, torch.arange(len(values), device=values.device)


def _row_blocks(group: Tensor, entities: int) -> list[tuple[slice, slice | Tensor]]:
    """Rows of one group whose pairs with entities fit in a core's cache, and the group's index."""
    if group.device.type != "cpu":
        return [(slice(len(group)), group)]
    blocks: list[tuple[slice, slice | Tensor]] = []
    size = max(1, 2**17 // entities)
    start = 0
    for number, count in torch.stack(group.unique_consecutive(return_counts=True), 1).tolist():
        end = start + count
        at = slice(number, number + 1)
        blocks += [(slice(i, min(i + size, end)), at) for i in range(start, end, size)]
        start = end
    return blocks


def _squared_distance_(u2: Tensor) -> tuple[Tensor, Tensor]:
    """4 arsinh(u)^2 and its derivative by u^2, in place; a u^2 that rounds below 0 counts as 0.

    arsinh(u) = log1p(u + u^2 / (1 + sqrt(1 + u^2))) is exact for small u, where the derivative
    4 arsinh(u) / (u sqrt(1 + u^2)) is 4.
    """
    u2 = u2.clamp_(min=SMALLEST)
    u = u2.sqrt()
    far = (1 + u2).sqrt_()
    distance = torch.addcdiv(u, u2, 1 + far, out=u2).log1p_().mul_(2)
    return distance.square(), distance.div_(u.mul_(far)).mul_(2)
