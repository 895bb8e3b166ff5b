"""Random numbers that are the same in every run; derivatives along them."""

from collections.abc import Iterable
from functools import partial

import torch
from torch import Tensor, nn
from torch.func import functional_call


def draw(*shape: int, size: float = 1.0, seed: int = 0, dtype: torch.dtype | None = None) -> Tensor:
    """Normal numbers with mean 0 and deviation `size`."""
    generator = torch.Generator().manual_seed(seed)
    return size * torch.randn(*shape, generator=generator, dtype=dtype)


def filled(layer: nn.Module, size: float = 0.4) -> nn.Module:
    """A layer whose parameters, biases too but for curvatures, are away from their first values."""
    generator = torch.Generator().manual_seed(1)
    for name, parameter in layer.named_parameters():
        if "curvature" not in name:
            parameter.data = size * torch.randn(parameter.shape, generator=generator)
    return layer


def slopes(output: Tensor, of: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Derivatives of a sum of the output's entries with drawn weights."""
    return torch.autograd.grad((output * draw(*output.shape, seed=9)).sum(), list(of))


def assert_finite(value: Tensor, of: Iterable[Tensor]) -> None:
    """Assert that a value is finite, and its derivatives, where there are any."""
    assert value.isfinite().all()
    for slope in torch.autograd.grad(value.sum(), list(of), retain_graph=True, allow_unused=True):
        assert slope is None or slope.isfinite().all()


def assert_close(results: Iterable[Tensor], expected: Iterable[Tensor], tolerance: float) -> None:
    """Each tensor within a fraction of its own largest entry, or of 1 if that is larger."""
    for result, other in zip(results, expected, strict=True):
        bound = tolerance * max(1.0, other.abs().max().item())
        torch.testing.assert_close(result.to(other.dtype), other, atol=bound, rtol=0)


def check_derivatives(module, arguments, *inputs: Tensor, only: str = "") -> None:
    """Compare derivatives by inputs and parameters, first and second, with finite differences.

    The module is called with `arguments(*inputs)`; parameters are those with `only` in their names.
    """
    named = {n: p.detach().clone() for n, p in module.named_parameters() if only in n}

    def output(*values):
        parameters = dict(zip(named, values[len(inputs) :], strict=True))
        return functional_call(module, parameters, arguments(*values[: len(inputs)]))

    leaves = [leaf.requires_grad_() for leaf in (*inputs, *named.values())]
    assert torch.autograd.gradcheck(output, leaves)
    assert torch.autograd.gradgradcheck(output, leaves)


draw64 = partial(draw, dtype=torch.float64)
