"""The curvature module: initial values, bounds, learning, messages."""

import pytest
import torch

from curvlab.errors import UsageError
from curvlab.manifolds import Curvature

BOUNDS = [(None, None), (-3.0, None), (None, 2.0), (-3.0, 2.0)]


@pytest.mark.parametrize(("low", "high"), BOUNDS)
@pytest.mark.parametrize("kappa", [-1.0, -1e-3, 0.0, 1.5])
@pytest.mark.parametrize("learnable", [True, False])
def test_starts_at_the_given_value(kappa, low, high, learnable):
    curvature = Curvature(kappa, 3, learnable, low, high)
    expected = torch.full((3,), kappa)
    torch.testing.assert_close(curvature(), expected, rtol=1e-6, atol=3e-7)
    assert len(list(curvature.parameters())) == learnable
    assert len(curvature.state_dict()) == 1


@pytest.mark.parametrize(("low", "high"), BOUNDS)
@pytest.mark.parametrize("direction", [1, -1])
def test_moves_and_keeps_its_bounds(low, high, direction):
    curvature = Curvature(0.5, None, True, low, high)
    optimizer = torch.optim.SGD(curvature.parameters(), lr=0.5)
    for _ in range(60):
        optimizer.zero_grad()
        (direction * curvature()).backward()
        optimizer.step()
    assert (curvature() - 0.5) * direction < -0.4
    assert low is None or curvature() >= low
    assert high is None or curvature() <= high


def test_shapes():
    assert Curvature().forward().shape == ()
    assert Curvature(components=4)().shape == (4,)
    assert Curvature([-1.0, 0.5], 2)().tolist() == [-1.0, 0.5]


def test_says_what_it_is():
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
def test_refuses(arguments, message):
    with pytest.raises(UsageError, match=message):
        Curvature(*arguments)
