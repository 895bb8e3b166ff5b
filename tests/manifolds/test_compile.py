"""Midpoints compile: beyond the equator, of one set of points, without derivatives."""

import pytest
import torch

from curvlab.manifolds import lorentz, stereographic

POINTS = torch.linspace(-0.3, 0.4, 30).reshape(5, 2, 3)


@pytest.fixture(autouse=True)
def _fresh_compiler():
    torch.compiler.reset()


@pytest.mark.parametrize("printed", [False, True])
def test_a_midpoint_beyond_the_equator_compiles(printed):
    numerator = POINTS[0].clone().requires_grad_()
    inputs = numerator, torch.tensor([-1.0, 2.0]), torch.tensor([0.7, 0.5]), printed
    compiled = torch.compile(stereographic.midpoint_from_sums, fullgraph=True, backend="aot_eager")
    results = [function(*inputs) for function in (compiled, stereographic.midpoint_from_sums)]
    torch.testing.assert_close(*results)
    gradients = [torch.autograd.grad(r.square().sum(), numerator) for r in results]
    torch.testing.assert_close(*gradients)


def test_a_midpoint_of_one_set_of_points_compiles():
    x, weights = POINTS[:, 0].clone().requires_grad_(), torch.rand(len(POINTS))
    compiled = torch.compile(stereographic.midpoint, fullgraph=True, backend="aot_eager")
    gradients = [
        torch.autograd.grad(function(x, weights, -0.5).sum(), x)
        for function in (compiled, stereographic.midpoint)
    ]
    torch.testing.assert_close(*gradients)


@torch.no_grad()
def test_a_midpoint_compiles_without_derivatives_too():
    # With one curvature and no derivative it takes a shorter way.
    x = lorentz.from_space(POINTS, -0.5)
    compiled = torch.compile(lorentz.midpoint, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(
        compiled(x, x.flip(0), -0.5, 0.3), lorentz.midpoint(x, x.flip(0), -0.5, 0.3)
    )
