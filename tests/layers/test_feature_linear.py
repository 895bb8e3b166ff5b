"""Linear maps of sparse features against dense ones."""

import pytest
import torch
from torch import nn

from curvlab.layers.sparse_graph import FeatureLinear, Features

pytestmark = pytest.mark.usefixtures("float64")


def features(nodes=40, count=30, density=0.05):
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(nodes, count, generator=generator)
    return torch.where(torch.rand(nodes, count, generator=generator) < density, x, 0)


def grads(output, module):
    weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(1))
    return torch.autograd.grad((output * weights).sum(), list(module.parameters()))


@pytest.mark.parametrize("density", [0.0, 0.05, 0.6])
@pytest.mark.parametrize("bias", [True, False])
def test_output_and_gradient_are_those_of_a_linear_layer(density, bias):
    x, made = features(density=density), FeatureLinear(30, 4, bias)
    plain = nn.Linear(30, 4, bias)
    plain.load_state_dict(made.state_dict())
    torch.testing.assert_close(made(x), plain(x))
    torch.testing.assert_close(grads(made(x), made), grads(plain(x), plain))


@pytest.mark.parametrize("density", [0.05, 0.6])
def test_dropout_zeroes_features_and_scales_the_others(density):
    """With the identity as weight the output is the features after dropout."""
    x = features(count=30, density=density)
    made = FeatureLinear(30, 30, bias=False, dropout=0.25)
    made.weight.data = torch.eye(30)
    torch.manual_seed(0)
    draws = torch.stack([made(x) for _ in range(400)])
    there = x != 0
    kept = draws[:, there] / x[there]
    assert set(kept.unique().round(decimals=6).tolist()) == {0.0, round(1 / 0.75, 6)}
    assert not draws[:, ~there].any()
    torch.testing.assert_close(kept.mean(0), torch.ones(int(there.sum())), atol=0.2, rtol=0)
    made.eval()
    torch.testing.assert_close(made(x), x)


def test_sparse_features_are_never_made_dense():
    """Dropout of the whole matrix is what takes the time."""
    shapes = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            shapes.append((str(function), [a.shape for a in args if isinstance(a, torch.Tensor)]))
            return function(*args, **(kwargs or {}))

    x, made = Features(features()), FeatureLinear(30, 4, dropout=0.5)
    made(x)
    with Watch():
        made(x).sum().backward()
    assert shapes
    large = [name for name, found in shapes for s in found if s.numel() >= x.dense.numel()]
    assert all("sparse" in name or "mm" in name or "t." in name for name in large), large


def test_mixed_precision_has_sparse_products_in_the_weights_own():
    made, x = FeatureLinear(30, 4).float(), features().float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = made(x)
    assert mixed.dtype == torch.float32
    torch.testing.assert_close(mixed, made(x))
    torch.testing.assert_close(grads(mixed, made), grads(made(x), made))
