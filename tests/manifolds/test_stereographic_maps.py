"""Maps of tokens in C++ are the operations on tensors, in value and derivatives, to rounding."""

import pytest
import torch
from torch.func import vmap

from curvlab.cpp import kernel_kind, use_kernels
from curvlab.manifolds import Stereographic
from drawn import draw

pytestmark = pytest.mark.usefixtures("cpp_kernels")

KAPPAS = [(-1.0, 0.5), (1e-6, -1e-6), (-4.0, 3.0), (0.0, 0.0)]
DIM = 8


def expmap0(space, v, _y):
    return (space.expmap0(v),)


def expmap0_and_log(space, v, _y):
    return space.expmap0_and_log(v)


def clamp_tangent(space, v, _y):
    return (space.clamp_tangent(v),)


def logmap0(space, v, _y):
    return (space.logmap0(0.9 * space.expmap0(v)),)  # no identity, whose derivatives would be 0


def add(space, v, y):
    return (space.add(space.expmap0(v), space.expmap0(y)),)


def expmap0_sum(space, v, y):
    return (space.expmap0_sum(v, y[0]),)


def expmap0_sum_means(space, v, y):
    return space.expmap0_sum_means(v, y[0])


def mean_point(space, v, y):
    """Of sums that a node and its neighbours have, with weights of one sign."""
    vectors = space.mean_vectors(space.expmap0(v))
    return (space.mean_point(vectors + 0.7 * space.mean_vectors(space.expmap0(y))),)


def signed_mean_point(space, v, y):
    """Of sums beyond the equator too."""
    return (space.mean_point(space.split(v).movedim(-2, 0) + space.split(y).movedim(-2, 0)),)


MAPS = [expmap0, expmap0_and_log, clamp_tangent, logmap0, add, expmap0_sum, expmap0_sum_means,
        mean_point, signed_mean_point]  # fmt: skip


def make_space(kappas, dtype=torch.float32):
    return Stereographic(len(kappas), kappas, learnable=True).to(dtype)


def results(function, space, *points, create_graph=False):
    """Outputs, and derivatives of a sum of their entries by points and curvatures."""
    points = [each.detach().clone().requires_grad_() for each in points]
    outputs = function(space, *points)
    weights = [draw(*o.shape, seed=9, dtype=torch.float32).to(o.dtype) for o in outputs]
    total = sum((o * w).sum() for o, w in zip(outputs, weights, strict=True))
    options = {"create_graph": create_graph, "allow_unused": True, "materialize_grads": True}
    inputs = [*points, *space.parameters()]
    slopes = torch.autograd.grad(total, inputs, **options)
    if create_graph:
        slopes = torch.autograd.grad(sum((s**2).sum() for s in slopes), inputs, allow_unused=True)
    return [*outputs, *(s for s in slopes if s is not None)]


def plain(*arguments, **options):
    with use_kernels("plain"):
        found = results(*arguments, **options)
        assert kernel_kind() == "plain"
    return found


def error(found, exact):
    """Largest difference of an entry, as a fraction of the largest entry, for each array."""
    pairs = zip(found, exact, strict=True)
    return [((a - b).abs().max() / b.abs().max().clamp_min(1e-3)).item() for a, b in pairs]


@pytest.mark.parametrize("tokens", [1, 256, 700])
@pytest.mark.parametrize("size", [0.1, 0.6, 3.0])
@pytest.mark.parametrize("kappas", KAPPAS)
@pytest.mark.parametrize("function", MAPS)
def test_maps_are_the_plain_ones(function, kappas, size, tokens):
    """As far from double precision as operations on tensors in single precision are."""
    points = draw(tokens, DIM, size=size), draw(tokens, DIM, size=size, seed=1)
    space = make_space(kappas)
    found, expected = results(function, space, *points), plain(function, space, *points)
    assert kernel_kind() == "C++"
    double = make_space(kappas, torch.float64)
    double.load_state_dict(space.state_dict())
    exact = plain(function, double, *(each.double() for each in points))
    assert max(error(found, exact)) <= 4 * max(error(expected, exact)) + 2e-6


@pytest.mark.parametrize("form", [results, plain])
@pytest.mark.parametrize("size", [1e8, 1e12, 1e18, 1e20, 1e37])
@pytest.mark.parametrize("kappa", [-1.0, -1e-6, 1e-6, 1.0])
@pytest.mark.parametrize("function", [f for f in MAPS if f is not signed_mean_point])
def test_squares_of_long_vectors_do_not_overflow(function, kappa, size, form):
    """Results are finite; derivatives too, which on a sphere grow with the squares."""
    points = draw(300, DIM, size=size), draw(300, DIM, size=size, seed=1)
    space = make_space((kappa, kappa))
    found = form(function, space, *points)
    outputs = len(function(space, *points))
    checked = found if kappa < 0 or size < 1e10 else found[:outputs]
    assert all(each.isfinite().all() for each in checked)


@pytest.mark.parametrize("published", [False, True])
def test_published_midpoints_are_the_plain_ones(published):
    space = make_space((-1.0, 0.5))
    space.published_midpoint = published
    points = draw(300, DIM), draw(300, DIM, seed=1)
    found, expected = (f(signed_mean_point, space, *points) for f in (results, plain))
    assert max(error(found, expected)) < 1e-3


@pytest.mark.parametrize("function", MAPS)
def test_layout_and_threads_change_no_bit(function):
    space, points = make_space((-1.0, 0.5)), (draw(700, DIM), draw(700, DIM, seed=1))
    found, before = [results(function, space, *points)], torch.get_num_threads()
    found.append(results(function, space, *(each.mT.contiguous().mT for each in points)))
    torch.set_num_threads(3)
    found.append(results(function, space, *points))
    torch.set_num_threads(before)
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=0, atol=0)


@pytest.mark.parametrize("function", MAPS)
def test_second_derivatives_have_the_plain_form(function):
    space, points = make_space((-1.0, 0.5)), (draw(20, DIM, size=0.3), draw(20, DIM, size=0.3))
    found, expected = (f(function, space, *points, create_graph=True) for f in (results, plain))
    assert max(error(found, expected)) < 1e-4


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # of vmap
@pytest.mark.parametrize("function", MAPS)
def test_forward_mode_and_vmap_have_the_plain_form(function):
    space, v, y = make_space((-1.0, 0.5)), draw(20, DIM), draw(20, DIM, seed=1)

    def outputs(x):
        return function(space, x, y)

    with use_kernels("plain"):
        expected = torch.func.jvp(outputs, (v,), (y,))
        alone = outputs(v)
    torch.testing.assert_close(torch.func.jvp(outputs, (v,), (y,)), expected, rtol=0, atol=0)
    torch.testing.assert_close(tuple(each[0] for each in vmap(outputs)(v[None])), tuple(alone))


def test_long_vectors_and_what_is_no_number():
    space = make_space((-1.0, 0.5))
    v = draw(5, DIM)
    v[1] *= 1e25
    v[2, 0] = torch.nan
    found, expected = (f(expmap0, space, v, v) for f in (results, plain))
    torch.testing.assert_close(found, expected, equal_nan=True)
    assert found[0][1].isfinite().all()
    assert found[0][2].isnan().any()


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("power", [30, 48, 64])
def test_long_sums(published, power):
    """Of points near the rim: the midpoint of short ones, derivatives with fewer digits at most."""
    space = make_space((-1.0, 0.5))
    space.published_midpoint = published
    points = draw(300, DIM), draw(300, DIM, seed=1)
    short = results(signed_mean_point, space, *points)
    long = [2.0**power * each for each in points]
    found, expected = (f(signed_mean_point, space, *long) for f in (results, plain))
    assert all(each.isfinite().all() for each in found)
    assert max(error(found, expected)) < 1e-3
    torch.testing.assert_close(found[0], short[0], rtol=1e-4, atol=1e-4)
