"""Multinomial regression against the specification's numbers, its definition and its limits."""

import pytest
import torch

from curvlab.layers import StereographicLogits
from curvlab.manifolds import Euclidean, Stereographic, stereographic

POINTS = torch.tensor([[0.1, 0.2, -0.3, 0.4], [0.5, -0.1, 0.2, 0.2]], dtype=torch.float64)
NORMALS = torch.tensor([[1, 0, 0, 1], [-1, 2, 0.5, 0.5]], dtype=torch.float64)
OFFSETS = torch.tensor([[0, 0, 0, 0], [0.1, -0.1, 0.2, 0.05]], dtype=torch.float64)

PAPER = {
    (-1, 1): [[2.051359, 2.643320], [3.316223, -2.160524]],
    (-0.25, 0.5): [[2.134549, 2.642314], [3.184204, -1.989874]],
    # The first entry depends on how an arcsine beyond 1 is clamped, and is left out.
    (-2, 2): [[float("nan"), 2.522287], [3.204572, -2.454266]],
}


def logits(space, curvature="geometric", normals=NORMALS, offsets=OFFSETS):
    layer = StereographicLogits(normals.shape[1], len(normals), space, curvature).double()
    with torch.no_grad():
        layer.normal.copy_(normals)
        layer.offset.copy_(offsets)
    return layer


@pytest.mark.parametrize(("kappa", "expected"), PAPER.items())
def test_worked_example_with_the_curvature_of_the_paper(kappa, expected):
    values, expected = (
        logits(Stereographic(2, kappa, learnable=True), "paper")(POINTS),
        torch.tensor(expected),
    )
    defined = ~expected.isnan()
    assert torch.allclose(values[defined], expected.double()[defined], atol=1e-6)
    assert torch.isfinite(values).all()


def test_flat_component_is_linear():
    layer = logits(Euclidean(1))
    expected = 4 * torch.stack(
        [((POINTS - p) * a).sum(-1) for p, a in zip(OFFSETS, NORMALS, strict=True)], 1
    )
    assert torch.allclose(layer(POINTS), expected, atol=1e-12)


@pytest.mark.parametrize("kappa", [-2.0, -0.3, 0.4, 1.5])
def test_is_the_distance_to_the_hyperplane_by_definition(kappa):
    """|logit| = 2 |a| arsin_k(u) from z = (-P) (+) x itself, with P and A built one by one."""
    x, a, p = (0.3 * torch.randn(5, 3, dtype=torch.float64) for _ in range(3))
    x = stereographic.expmap0(x, kappa)
    values = logits(Stereographic(1, kappa, learnable=True), normals=a, offsets=p)(x)
    for c in range(5):
        offset = stereographic.expmap0(p[c], kappa)
        normal = stereographic.transport0(offset, a[c], kappa)
        z = stereographic.mobius_add(-offset.expand_as(x), x, kappa)
        u = 2 * (z @ normal) / ((1 + kappa * z.square().sum(-1)) * normal.norm())
        expected = 2 * a[c].norm() * stereographic.arsin_k(u, kappa)
        assert torch.allclose(values[:, c], expected, atol=1e-10)


@pytest.mark.parametrize("kappa", [(-3.0, 2.0), (0.0, 0.0), (1e-8, -1e-8)])
def test_gradients_are_finite_at_initialisation_and_on_the_hyperplane(kappa):
    space = Stereographic(2, kappa, learnable=True)
    layer = StereographicLogits(4, 3, space)
    x = torch.cat([torch.zeros(1, 4), 0.2 * torch.randn(6, 4)]).requires_grad_()
    layer(x).square().sum().backward()
    for tensor in (x, *layer.parameters()):
        assert torch.isfinite(tensor.grad).all()
