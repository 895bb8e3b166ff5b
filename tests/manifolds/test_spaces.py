"""The classes: products of components, the flat space, curvatures that learn."""

import copy
from functools import partial

import pytest
import torch

from curvlab.errors import UsageError
from curvlab.manifolds import (
    Curvature,
    Euclidean,
    Lorentz,
    PoincareBall,
    Product,
    PseudoHyperboloid,
    Sphere,
    Stereographic,
    lorentz,
    stereographic,
)
from drawn import slopes

SPACES = {
    "hyperbolic": lambda: Stereographic(2, -1.0, learnable=True),
    "spherical": lambda: Stereographic(2, 0.3, learnable=False),
    "flat limit": lambda: Stereographic(2, 0.0, learnable=True),
    "bounded": lambda: Stereographic(1, -0.5, max=0.0, learnable=True),
    "euclidean": lambda: Euclidean(2),
    "ordinary euclidean": lambda: Euclidean(1, conformal_factor=1.0),
    "lorentz": lambda: Lorentz(-0.7, learnable=True),
}


@pytest.fixture(params=SPACES, ids=str)
def space(request):
    return SPACES[request.param]()


def points(space, *size, std=0.4):
    *shape, dim = size
    v = torch.randn(*shape, dim - space.codimension, dtype=torch.float64)
    return space.project(space.expmap0(std * v)).detach()


def test_maps_invert_and_transport_keeps_lengths(space):
    x, y = points(space, 5, 4), points(space, 5, 4)
    u = space.logmap(x, y)
    torch.testing.assert_close(space.expmap(x, u), y)
    torch.testing.assert_close(space.inner(x, u).sqrt(), space.dist(x, y))
    torch.testing.assert_close(space.proju(x, u), u)
    torch.testing.assert_close(space.logmap(x, space.expmap(x, 0.3 * u)), 0.3 * u)
    there = space.transp(x, y, u)
    torch.testing.assert_close(there, -space.logmap(y, x))
    torch.testing.assert_close(space.transp(y, x, there), u)
    torch.testing.assert_close(space.inner(y, there), space.inner(x, u))
    v = space.logmap0(x)
    torch.testing.assert_close(space.expmap0(v), x)
    torch.testing.assert_close(space.logmap0(space.expmap0(v / 2)), v / 2)
    origin = space.expmap0(torch.zeros_like(v))
    double = 2 * torch.eye(4 - space.codimension, dtype=x.dtype)
    torch.testing.assert_close(space.mobius_matvec(double, x), space.geodesic(2, origin, x))
    torch.testing.assert_close(space.dist0(x), space.dist(origin, x))


SHARES = [0.3, torch.linspace(0, 1, 5, dtype=torch.float64)]


@pytest.mark.parametrize("share", SHARES, ids=["number", "tensor"])
@pytest.mark.parametrize(
    "make",
    [
        *SPACES.values(),
        partial(Product, "H2xS2"),
        partial(Product, "L2xE1xU1"),
        partial(PseudoHyperboloid, 4, -0.6),
    ],
)
def test_a_share_of_a_geodesic_is_that_share_of_the_distance(make, share):
    space = make()
    size = 4 + isinstance(space, Product) * space.codimension
    x, y = points(space, 5, size), points(space, 5, size)
    found = space.geodesic(share, x, y)
    torch.testing.assert_close(space.dist(x, found), share * space.dist(x, y))
    torch.testing.assert_close(space.geodesic(1.0, x, y), y)


@pytest.mark.parametrize("kind", [Stereographic, PoincareBall, Sphere, Lorentz, PseudoHyperboloid])
def test_curvatures_are_fixed_unless_learnable(kind):
    assert not list(kind().parameters())
    assert len(list(kind(learnable=True).parameters())) == 1


@pytest.mark.parametrize("name", ["k", "c"])
@pytest.mark.parametrize(
    "make", [PoincareBall, Lorentz, Euclidean, stereographic.dist, lorentz.dist]
)
def test_names_of_other_libraries_are_answered_with_kappa(make, name):
    with pytest.raises(UsageError, match=f"takes no {name}=: pass the signed curvature as kappa="):
        make(**{name: 1.0})


def test_pairwise_distances_equal_distances(space):
    x, y = points(space, 5, 4), points(space, 7, 4)
    rows = space.dist(x[:, None], y[None])
    torch.testing.assert_close(space.pairwise_dist(x, y), rows)
    torch.testing.assert_close(space.pairwise_sqdist(x, y), rows.square())
    for itself in (x.requires_grad_(), x.detach().float().requires_grad_()):
        diagonal = space.pairwise_dist(itself, itself).diagonal()
        assert (diagonal == 0).all()
        assert torch.autograd.grad(diagonal.sum(), itself)[0].abs().max() < 1e-5


def test_riemannian_gradient_is_the_steepest_direction(space):
    x, target = points(space, 4), points(space, 4)
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(space.sqdist(x, target), x)
    riemannian = space.egrad2rgrad(x.detach(), gradient)
    torch.testing.assert_close(riemannian, -2 * space.logmap(x.detach(), target))


def test_weighted_mean_of_two_points_is_as_far_from_both(space):
    x = points(space, 2, 4)
    (middle,) = space.weighted_mean(x, lambda vectors: vectors.sum(-2, keepdim=True))
    torch.testing.assert_close(space.dist(x[0], middle), space.dist(x[1], middle))
    if space.components == 1:
        torch.testing.assert_close(2 * space.dist(x[0], middle), space.dist(x[0], x[1]))


def mobius_sum(space, x, y):
    blocks = stereographic.mobius_add(space.split(x), space.split(y), space.kappa)
    return space.project(space.merge(blocks))


def sum_of_points(space, v, make):
    x, y = space.expmap0(v[0]), space.expmap0(v[1])
    return space.add(x, y) if make == "fused" else mobius_sum(space, x, y)


def sum_with_one_exponential(space, v, make):
    y = space.expmap0(v[1, 0])
    if make == "fused":
        return space.expmap0_sum(v[0], v[1, 0])
    return mobius_sum(space, space.expmap0(v[0]), y.expand_as(v[0]))


def point_and_logarithm(space, v, make):
    if make == "fused":
        point, tangent = space.expmap0_and_log(v[0])
        return point - 2 * tangent + 3 * space.clamp_tangent(v[1])
    point, other = space.expmap0(v[0]), space.expmap0(v[1])
    return point - 2 * space.logmap0(point) + 3 * space.logmap0(other)


@pytest.mark.slow
@pytest.mark.parametrize("size", [0.2, 3.0])
@pytest.mark.parametrize("function", [sum_of_points, sum_with_one_exponential, point_and_logarithm])
def test_fused_maps_are_the_composed_ones(function, size):
    """Also for points beyond the rim, first and second derivatives, and either memory layout."""
    kappas = torch.tensor([-1.0, 0.5], dtype=torch.float64)
    space = Stereographic(2).double()
    v = size * torch.randn(2, 2, 6, dtype=torch.float64)

    def run(make, v, kappas):
        space.curvature = lambda: kappas
        return function(space, v, make)

    fused, composed = partial(run, "fused"), partial(run, "composed")
    del space.curvature
    inputs = v.requires_grad_(), kappas.requires_grad_()
    torch.testing.assert_close(fused(*inputs), composed(*inputs))
    across = v.mT.contiguous().mT
    assert across.stride(-1) != 1
    torch.testing.assert_close(fused(across, kappas), composed(*inputs))
    torch.testing.assert_close(*(slopes(f(*inputs), inputs) for f in (fused, composed)))
    assert torch.autograd.gradcheck(fused, inputs)
    assert torch.autograd.gradgradcheck(fused, inputs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_single(dtype):
    """What mixed precision makes of a linear map loses no more than its own rounding."""
    space = Stereographic(2, (-1.0, 0.5))
    v = (0.5 * torch.randn(5, 6)).to(dtype)
    for name in ("expmap0", "expmap0_unprojected", "logmap0", "clamp_tangent", "project"):
        result = getattr(space, name)(v)
        assert result.dtype == torch.float32
        assert torch.equal(result, getattr(space, name)(v.float()))
    assert torch.equal(space.expmap0_and_log(v)[0], space.expmap0_and_log(v.float())[0])
    assert torch.equal(space.expmap0_sum(v, v[0]), space.expmap0_sum(v.float(), v[0].float()))
    assert torch.equal(space.add(v, v), space.add(v.float(), v.float()))


def test_flat_space_is_the_limit_of_the_curved_without_a_map():
    flat, curved = Euclidean(2), Stereographic(2, 0.0)
    x, y = points(flat, 5, 6), points(flat, 5, 6)
    weights = torch.rand(1, 5, dtype=x.dtype)
    for name, arguments in [
        ("dist", (x, y)),
        ("sqdist", (x, y)),
        ("pairwise_sqdist", (x, y)),
        ("pairwise_dist", (x, y)),
        ("add", (x, y)),
        ("weighted_mean", (x, lambda vectors: weights @ vectors)),
        ("conformal_factor", (x,)),
        ("transport0", (x, y)),
        ("expmap", (x, y)),
        ("logmap", (x, y)),
        ("transp", (x, y, y)),
        ("inner", (x, y)),
        ("egrad2rgrad", (x, y)),
    ]:
        torch.testing.assert_close(
            getattr(flat, name)(*arguments), getattr(curved, name)(*arguments)
        )
    assert torch.equal(flat.add(x, y), x + y)
    for name in ("expmap0", "expmap0_unprojected", "logmap0", "project", "projx"):
        assert getattr(flat, name)(x) is x
    ordinary = Euclidean(1, conformal_factor=1.0)
    torch.testing.assert_close(ordinary.dist(x, y), (x - y).norm(dim=-1))


def test_refuses_what_does_not_split():
    with pytest.raises(UsageError, match="Dimension 7 does not split into 2"):
        Stereographic(2).expmap0(torch.zeros(3, 7))


def test_component_inner_of_the_lorentz_model_is_the_metric_and_has_a_root():
    """Far out, where the Lorentzian product of a short tangent vector is rounding of any sign."""
    space = Lorentz(-0.5)
    x = space.expmap0(torch.randn(50, 4).double())
    u, v = (space.proju(x, torch.randn(50, 5).double()) for _ in range(2))
    for others in ((u,), (u, v)):
        expected = space.inner(x, *others, keepdim=True)
        torch.testing.assert_close(space.component_inner(x, *others), expected)
    v = 15 * torch.nn.functional.normalize(torch.randn(50, 4))
    radial = space.logmap(space.expmap0(v), space.expmap0(1.001 * v))
    assert (space.inner(space.expmap0(v), radial) < 0).any()
    assert (space.component_inner(space.expmap0(v), radial) >= 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shares_of_points_beyond_the_equator_and_at_the_rim(dtype):
    """By the angle from the origin, pi / 2 at the equator, and by what `project` has moved."""
    space = Stereographic(3, [-2.0, 0.0, 0.5], learnable=False)
    v = 2 * torch.randn(500, 12)
    ball, _, sphere = space.split(v).unbind(-2)
    angle = 2 * sphere.norm(dim=-1) * 0.5**0.5
    beyond = (angle.remainder(2 * torch.pi) - torch.pi).abs() < torch.pi / 2
    stopped = stereographic.expmap0(ball, -2.0)
    stopped = stereographic.project(stopped.to(dtype), -2.0) != stopped.to(dtype)
    found = space.shares(space.expmap0(v.to(dtype)))
    assert found["beyond_equator"].item() == pytest.approx(beyond.sum().item() / 1500, abs=0.002)
    assert found["at_rim"].item() == pytest.approx(stopped.any(-1).sum().item() / 1500, abs=0.001)
    assert not any(share.requires_grad for share in found.values())
    flat = Stereographic(1, 0.0).shares(1e6 * v)
    assert {name: share.item() for name, share in flat.items()} == {
        "beyond_equator": 0,
        "at_rim": 0,
    }


@pytest.mark.parametrize(
    "space", [PoincareBall(1, -0.5, max=None), Euclidean(), Lorentz(-0.5, learnable=False)]
)
def test_a_space_makes_others_like_it(space):
    options = {} if isinstance(space, Lorentz) else {"components": 3}
    other = copy.deepcopy(space)(**options)
    assert type(other) is type(space)
    assert other.components == options.get("components", 1)
    if not isinstance(space, Euclidean):
        assert (other.kappa == -0.5).all()
        assert (other.curvature.learnable, other.curvature.max) == (
            space.curvature.learnable,
            space.curvature.max,
        )
    assert all(
        p.data_ptr() != q.data_ptr()
        for p, q in zip(space.parameters(), other.parameters(), strict=True)
    )


BOUNDS = [(None, None), (-3.0, None), (None, 2.0), (-3.0, 2.0)]


@pytest.mark.parametrize(("low", "high"), BOUNDS)
@pytest.mark.parametrize("kappa", [-1.0, -1e-3, 0.0, 1.5])
@pytest.mark.parametrize("learnable", [True, False])
def test_a_curvature_starts_at_the_given_value(kappa, low, high, learnable):
    curvature = Curvature(kappa, 3, learnable, low, high)
    expected = torch.full((3,), kappa)
    torch.testing.assert_close(curvature(), expected, rtol=1e-6, atol=3e-7)
    assert len(list(curvature.parameters())) == learnable
    assert len(curvature.state_dict()) == 1


@pytest.mark.parametrize(("low", "high"), BOUNDS)
@pytest.mark.parametrize("direction", [1, -1])
def test_a_curvature_moves_and_keeps_its_bounds(low, high, direction):
    curvature = Curvature(0.5, None, True, low, high)
    optimizer = torch.optim.SGD(curvature.parameters(), lr=0.5)
    for _ in range(60):
        optimizer.zero_grad()
        (direction * curvature()).backward()
        optimizer.step()
    assert (curvature() - 0.5) * direction < -0.4
    assert low is None or curvature() >= low
    assert high is None or curvature() <= high


def test_a_curvature_says_what_it_is():
    assert repr(Curvature(-1.0, 2)) == "Curvature(kappa=[-1, -1], learnable)"
    assert repr(Curvature(0.5, None, False, None, 1.0)) == (
        "Curvature(kappa=[0.5], fixed, in (None, 1.0))"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1.0, None, True, 0.0, None), "strictly between"),
        ((0.0, None, True, None, 0.0), "strictly between"),
        ((5.0, None, False, None, 2.0), "strictly between"),
        ((float("nan"),), "strictly between"),
        ((0.0, None, True, 1.0, -1.0), "must be below"),
        (([-1.0, 1.0], 3), "2 curvatures are given for 3 components"),
    ],
)
def test_a_curvature_refuses(arguments, message):
    with pytest.raises(UsageError, match=message):
        Curvature(*arguments)
