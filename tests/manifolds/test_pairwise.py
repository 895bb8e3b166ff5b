"""Matrices of distances: equal to distances by rows, in value and gradient, block by block."""

import pytest
import torch

import manifold_reference as reference
from curvlab.manifolds import lorentz, pairwise, stereographic
from drawn import draw64, slopes
from manifold_reference import exact, mpf


def points(n, seed, size=0.2, heads=2):
    return draw64(heads, n, 3, size=size, seed=seed)


@pytest.fixture(params=[True, False], ids=["one block", "many blocks"])
def blocks(request, monkeypatch):
    if not request.param:
        monkeypatch.setitem(pairwise._BLOCK_ELEMENTS, "cpu", 40)


@pytest.mark.parametrize("kappa", [(-1.0, 0.5), (0.0, -1e-7), (1e-3, -1e-3)])
@pytest.mark.parametrize("power", [1, 2])
def test_equals_distances_by_rows(kappa, power, blocks):
    by_matrix = stereographic.pairwise_dist if power == 1 else stereographic.pairwise_sqdist
    by_row = stereographic.dist if power == 1 else stereographic.sqdist
    results = []
    for function in (
        by_matrix,
        lambda x, y, k: by_row(x[:, :, None], y[:, None], k[:, None, None]),
    ):
        inputs = [points(7, 0), points(9, 1), torch.tensor(kappa, dtype=torch.float64)]
        inputs = [i.requires_grad_() for i in inputs]
        distances = function(*inputs)
        results.append([distances, *slopes(distances, inputs)])
    torch.testing.assert_close(*results, rtol=1e-8, atol=1e-10)


def neighbours(kappa, dim, radii, separations):
    """Pairs `[pairs, 2, 1 + dim]` in units of the curvature: at a radius, a separation apart."""
    pairs = []
    for radius in radii:
        for separation in separations:
            ray, step = torch.randn(2, dim, dtype=torch.float64)
            x = lorentz.expmap0(radius * ray / ray.norm() / (-kappa) ** 0.5, kappa)
            v = torch.cat([(step * x[1:]).sum(0, keepdim=True) / x[0], step])
            v = v * separation / (-kappa * lorentz.inner(v, v)).sqrt()
            pairs.append(torch.stack([x, lorentz.expmap(x, v, kappa)]))
    return torch.stack(pairs)


@pytest.mark.parametrize("kappa", [-1e-2, -1.0, -100.0])
@pytest.mark.parametrize("dim", [3, 16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_near_neighbours_far_out_keep_their_digits(kappa, dim, dtype):
    """One product in float64 is 5e-4 off at radius 10 and 6.7e-2 at 15."""
    points = neighbours(kappa, dim, (1, 6, 10, 12, 15), (1e-2, 0.1, 1.0, 5.0)).to(dtype)
    points = lorentz.project(points, kappa)
    ball = lorentz.to_stereographic(points.double(), kappa)
    images = lorentz.from_stereographic(ball, kappa)
    expected = torch.tensor([float(reference.dist(*exact(pair), mpf(kappa))) for pair in ball])
    found = lorentz.pairwise_dist(images, images, kappa)[:, 0, 1].float()
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=0)
    found = stereographic.pairwise_dist(ball, ball, kappa)[:, 0, 1].float()
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=0)


@pytest.mark.parametrize("power", [1, 2])
def test_gradient_of_near_neighbours_far_out(power):
    """The gradient is that of distances by rows, whose differences are taken first."""
    points = neighbours(-1.0, 4, (8, 12, 15), (1e-2, 1.0)).float()
    points = lorentz.project(points, -1.0).requires_grad_()
    gradients = []
    for name in ("pairwise_dist", "dist") if power == 1 else ("pairwise_sqdist", "sqdist"):
        function = getattr(lorentz, name)
        x, y = points[:, :1], points[:, 1:]
        gradients.append(torch.autograd.grad(function(x, y, -1.0).sum(), points)[0])
    size = gradients[1].norm(dim=-1, keepdim=True)
    torch.testing.assert_close(gradients[0] / size, gradients[1] / size, rtol=0, atol=1e-4)
