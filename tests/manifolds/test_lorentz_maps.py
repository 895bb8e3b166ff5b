"""Maps of the Lorentz model in C++ are the operations on tensors, in value and derivatives."""

import pytest
import torch

from curvlab.cpp import kernel_kind, use_kernels
from curvlab.layers.hybonet import SigmoidTime
from curvlab.manifolds import Lorentz, lorentz
from curvlab.tasks.decoders import LorentzianScore
from drawn import draw

pytestmark = pytest.mark.usefixtures("cpp_kernels")

ROWS, DIM = 130, 7


def from_space(space, x, y, number):
    return space.from_space(lorentz.space(x) + number * lorentz.space(y))


def normalise(space, x, y, _number):
    return lorentz.normalise(x + 0.3 * y, space.kappa)


def midpoint(space, x, y, number):
    return lorentz.midpoint(x, y, space.kappa, torch.sigmoid(number))


def constant_midpoint(space, x, y, _number):
    return lorentz.midpoint(x, y, space.kappa, 0.5)


def sigmoid_time(space, x, y, number):
    layer = SigmoidTime(space, 0.5, None)
    layer.log_scale = torch.nn.Parameter(torch.ones((), dtype=x.dtype))
    return layer(x - y + number)


def pair_scores(space, x, y, _number):
    """Of pairs in which a point occurs often, once with itself."""
    pairs = torch.stack([torch.arange(ROWS), torch.arange(ROWS) // 3])
    return LorentzianScore(space, 2.0).pair_scores(x + 0.1 * y, pairs)


MAPS = [from_space, normalise, midpoint, constant_midpoint, sigmoid_time, pair_scores]


def points(kappa, size, dim=DIM):
    """Two sets, one of them with a point that is in both."""
    v = size / (-kappa) ** 0.5 * torch.nn.functional.normalize(draw(2, ROWS, dim), dim=-1)
    v[1, 0] = v[0, 0]
    return lorentz.expmap0(v * torch.linspace(0.1, 1, ROWS)[:, None], kappa)


def results(function, kappa, size, kernels, dtype=torch.float32, second=False, dim=DIM):
    """Value, and derivatives by points, number and curvature."""
    space = Lorentz(kappa, learnable=True).to(torch.float32).to(dtype)
    inputs = [
        each.to(dtype).requires_grad_() for each in (*points(kappa, size, dim), torch.tensor(0.3))
    ]
    leaves, options = [*inputs, *space.parameters()], {"materialize_grads": True}
    with use_kernels(kernels):
        value = function(space, *inputs)
        assert kernel_kind() == ("plain" if kernels == "plain" else "C++")
        weights = draw(*value.shape, seed=9, dtype=torch.float32).to(dtype)
        total = (value * weights).sum()
        found = torch.autograd.grad(
            total, leaves, create_graph=second, allow_unused=True, **options
        )
        if second:
            total = sum(each.square().sum() for each in found)
            found = torch.autograd.grad(total, leaves, allow_unused=True, **options)
    return value, *found


def errors(found, exact):
    pairs = zip(found, exact, strict=True)
    return [((a - b).abs().max() / b.abs().max().clamp_min(1e-3)).item() for a, b in pairs]


@pytest.mark.parametrize("dim", [7, 15])
@pytest.mark.parametrize("size", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("kappa", [-0.3, -1.0, -4.0])
@pytest.mark.parametrize("function", MAPS)
def test_maps_are_the_plain_ones(function, kappa, size, dim):
    """As near to double precision as operations on tensors in single precision, or nearer."""
    exact = results(function, kappa, size, "plain", torch.float64, dim=dim)
    plain = max(errors(results(function, kappa, size, "plain", dim=dim), exact))
    found = results(function, kappa, size, "auto", dim=dim)
    assert max(errors(found, exact)) <= 1.5 * plain + 1e-6


@pytest.mark.parametrize("function", MAPS)
def test_second_derivatives_have_the_plain_form(function):
    found, expected = (results(function, -1.0, 1.0, k, second=True) for k in ("auto", "plain"))
    assert max(errors(found, expected)) < 1e-4


@pytest.mark.parametrize("function", MAPS)
def test_threads_change_no_bit(function):
    found, before = [], torch.get_num_threads()
    for threads in (1, 3):
        torch.set_num_threads(threads)
        found.append(results(function, -1.0, 1.0, "auto"))
    torch.set_num_threads(before)
    torch.testing.assert_close(*found, rtol=0, atol=0)


def test_a_vector_without_direction_is_the_origin():
    h = torch.zeros(3, 1 + DIM)
    h[:, 0] = 5
    h[1, 1:] = 1
    space = Lorentz(-2.0, learnable=True)
    h.requires_grad_()
    y = SigmoidTime(space, 0.5, None)(h)
    assert kernel_kind() == "C++"
    torch.testing.assert_close(y[[0, 2]], lorentz.origin(DIM, -2.0).expand(2, -1))
    (slope,) = torch.autograd.grad((y * draw(3, 1 + DIM)).sum(), h)
    assert not slope[[0, 2]].any()
    assert slope[1].all()
