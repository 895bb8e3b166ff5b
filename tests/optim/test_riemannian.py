"""Riemannian Adam: geoopt's trajectory, torch's for the others, constraints, resumption."""

import copy

import pytest
import torch
from torch import nn

from curvlab.errors import UsageError
from curvlab.manifolds import Euclidean, Lorentz, Stereographic
from curvlab.manifolds._geoopt import geoopt
from curvlab.optim import RiemannianAdam, RiemannianAdamW

pytestmark = pytest.mark.usefixtures("float64")

SPACES = {
    "lorentz": lambda: Lorentz(-0.7, learnable=False),
    "poincare": lambda: Stereographic(2, -1.3, learnable=False),
    "sphere": lambda: Stereographic(2, 0.8, learnable=False),
    "mixed": lambda: Stereographic(2, [-0.9, 0.6], learnable=False),
    "nearly flat": lambda: Stereographic(2, 1e-7, learnable=False),
    "flat": lambda: Euclidean(2),
    "geoopt's": lambda: geoopt.Lorentz(torch.tensor(1.5)),
}
OPTIONS = {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-8}


def points(space, count=7, dim=6, seed=0):
    torch.manual_seed(seed)
    if isinstance(space, geoopt.Lorentz):
        return space.projx(torch.randn(count, dim))
    return space.random_normal(count, dim, std=0.5).detach()


def parameter(space, **options):
    return geoopt.ManifoldParameter(points(space, **options).clone(), manifold=space)


def trained(optimizer_class, space, steps=60, **options):
    """A trajectory: points that are drawn to a target that moves."""
    x = parameter(space)
    target = points(space, seed=1)
    generator = torch.Generator().manual_seed(2)
    optimizer = optimizer_class([x], **{**OPTIONS, **options})
    path = []
    for _ in range(steps):
        optimizer.zero_grad()
        noise = torch.randn(x.shape, generator=generator)
        ((x - target).square().sum() + 0.1 * (noise * x).sum()).backward()
        optimizer.step()
        path.append(x.detach().clone())
    return torch.stack(path), optimizer


@pytest.mark.slow
@pytest.mark.parametrize("weight_decay", [0.0, 0.03])
@pytest.mark.parametrize("name", SPACES)
def test_the_trajectory_is_geoopts(name, weight_decay):
    space = SPACES[name]()
    ours, _ = trained(RiemannianAdam, space, weight_decay=weight_decay)
    theirs, _ = trained(geoopt.optim.RiemannianAdam, space, weight_decay=weight_decay, stabilize=10)
    torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-8)
    assert (ours[0] - ours[-1]).abs().max() > 0.3


@pytest.mark.parametrize("option", ["amsgrad", "maximize"])
def test_options_without_a_step_for_points_are_refused(option):
    with pytest.raises(UsageError, match="no amsgrad and no maximize"):
        RiemannianAdam([parameter(SPACES["lorentz"]())], lr=0.1, **{option: True})


def test_sparse_gradients_of_points_are_refused_in_a_sentence():
    x = parameter(SPACES["poincare"]())
    x.grad = torch.eye(*x.shape).to_sparse()
    with pytest.raises(UsageError, match="points of a manifold have a sparse gradient"):
        RiemannianAdam([x], lr=0.1).step()


@pytest.mark.parametrize("name", ["lorentz", "poincare", "sphere", "flat"])
def test_points_without_a_gradient_do_not_move_and_zero_gradients_do_no_harm(name):
    space = SPACES[name]()
    x, other = parameter(space), parameter(space)
    optimizer = RiemannianAdam([x, other], lr=0.1)
    before = x.detach().clone()
    x.grad = torch.zeros_like(x)
    optimizer.step()
    torch.testing.assert_close(x.detach(), before)
    assert torch.equal(other, before)
    assert x.grad is not None


@pytest.mark.parametrize("name", ["lorentz", "poincare"])
def test_points_with_more_axes_move_like_a_list_of_them(name):
    space = SPACES[name]()
    flat = parameter(space, count=6)
    cube = geoopt.ManifoldParameter(flat.detach().clone().view(2, 3, 6), manifold=space)
    grad = torch.randn(6, 6)
    for x in (flat, cube):
        x.grad = grad.view(x.shape).clone()
        RiemannianAdam([x], lr=0.1).step()
    torch.testing.assert_close(cube.detach().view(6, 6), flat.detach())


@pytest.mark.parametrize(
    ("ours", "torchs"), [(RiemannianAdam, torch.optim.Adam), (RiemannianAdamW, torch.optim.AdamW)]
)
def test_the_others_move_as_by_torchs_optimiser(ours, torchs):
    one = nn.Linear(4, 3)
    two = copy.deepcopy(one)
    point = parameter(SPACES["lorentz"]())
    groups = [{"params": one.parameters()}, {"params": [point], "weight_decay": 0.0}]
    mixed = ours(groups, lr=0.03, weight_decay=0.1)
    plain = torchs(two.parameters(), lr=0.03, weight_decay=0.1)
    for _ in range(5):
        for a, b in zip(one.parameters(), two.parameters(), strict=True):
            a.grad = torch.randn_like(a)
            b.grad = a.grad.clone()
        point.grad = torch.randn_like(point)
        mixed.step()
        plain.step()
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("name", ["lorentz", "mixed"])
def test_a_resumed_optimiser_goes_on_where_it_was(name):
    space = SPACES[name]()
    gradients = torch.randn(8, 7, 6)

    def run(x, optimizer, part):
        for grad in part:
            x.grad = grad.clone()
            optimizer.step()

    x = parameter(space)
    optimizer = RiemannianAdam([x], lr=0.05)
    run(x, optimizer, gradients[:4])
    saved, weights = copy.deepcopy(optimizer.state_dict()), x.detach().clone()
    run(x, optimizer, gradients[4:])
    resumed = geoopt.ManifoldParameter(weights, manifold=space)
    again = RiemannianAdam([resumed], lr=0.05)
    again.load_state_dict(saved)
    run(resumed, again, gradients[4:])
    assert torch.equal(x, resumed)


@pytest.mark.usefixtures("float32")
@pytest.mark.parametrize("name", ["lorentz", "poincare"])
def test_long_steps_outwards_stay_on_the_manifold(name):
    """On the ball they stop at the rim that `project` keeps free."""
    space = SPACES[name]()
    x = parameter(space)
    optimizer = RiemannianAdam([x], lr=1.0)
    for _ in range(12):
        x.grad = -x.detach().clone()
        optimizer.step()
    assert x.isfinite().all()
    torch.testing.assert_close(x.detach(), space.projx(x.detach()))
    assert space.dist0(x.detach()).min() > 5
