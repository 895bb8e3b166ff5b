"""A run whose numbers are no longer finite ends where they began, and says where that was."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from curvlab.callbacks import FiniteGuard, finite_guard
from curvlab.errors import DivergedError

INTERVAL = 5


class Elsewhere:
    """A truth value on a device where looking at it takes time; it counts the looks."""

    device = SimpleNamespace(type="cuda")
    looks = 0

    def __init__(self, value):
        self.value = value

    def __and__(self, other):
        return Elsewhere(self.value & other.value)

    def __bool__(self):
        Elsewhere.looks += 1
        return bool(self.value)


@pytest.fixture
def accelerator(monkeypatch):
    """Let the guard think that it works on an accelerator."""
    original = finite_guard._is_finite
    monkeypatch.setattr(Elsewhere, "looks", 0)
    monkeypatch.setattr(finite_guard, "_is_finite", lambda *args: Elsewhere(original(*args)))


@pytest.mark.parametrize("batches", [1, 3])
@pytest.mark.parametrize("step", [1, 3, 6, 7, 10])
def test_it_names_step_module_and_curvature(fit, small, step, batches):
    module = small(break_at=step)
    with pytest.raises(
        DivergedError, match=rf"step {step}: output of counting; kappa/0 = -0\.5, -0\.5"
    ):
        fit(module, [FiniteGuard(INTERVAL)], steps=12, batches=batches)
    assert module.counting.weight.item() == step - 1  # before the update


@pytest.mark.parametrize(("step", "first", "look"), [(1, 1, 5), (7, 6, 10), (12, 11, 12)])
def test_on_an_accelerator_it_looks_once_an_interval_and_at_the_end(
    fit, small, step, first, look, accelerator
):
    with pytest.raises(DivergedError, match=f"between steps {first} and {look}: .*=nan,"):
        fit(small(break_at=step), [FiniteGuard(INTERVAL)], steps=12)
    assert Elsewhere.looks == -(-look // INTERVAL)


def test_on_an_accelerator_it_names_the_module_if_it_looks_at_every_step(fit, small, accelerator):
    with pytest.raises(DivergedError, match="at step 7: output of counting"):
        fit(small(break_at=7), [FiniteGuard(1)], steps=12)


class Root(nn.Module):
    """Finite itself, but not its slope at 0."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return x + self.weight.sqrt()


def infinite(module):
    class Infinite(type(module)):
        def training_step(self, *args):
            return super().training_step(*args) + torch.inf

    module.__class__ = Infinite


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (lambda made: setattr(made, "before", Root()), r"gradient of before\.weight"),
        (lambda made: made.counting.weight.data.fill_(torch.inf), r"parameter counting\.weight"),
        (infinite, "the loss, or the norm"),
    ],
)
def test_it_names_what_is_not_finite_when_all_modules_are(fit, small, spoil, what):
    module = small()
    spoil(module)
    with pytest.raises(DivergedError, match=f"step 1: {what}"):
        fit(module, [FiniteGuard(INTERVAL)], steps=5)
