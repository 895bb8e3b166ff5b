"""Products in full precision: those of PyTorch, whatever the precision of others is set to."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import jvp, vmap

from curvlab.manifolds import matrix_products
from curvlab.manifolds.matrix_products import full_precision, linear, product
from drawn import draw
from modes import tf32


def factors(*shapes, dtype=torch.float32):
    return [draw(*shape, seed=i, dtype=dtype).requires_grad_() for i, shape in enumerate(shapes)]


def test_a_product_is_not_rounded_forward_or_backward():
    a, b = factors((3, 5, 4), (4, 6))
    expected = a @ b
    slopes = torch.autograd.grad(expected.square().sum(), (a, b))
    with tf32() as mode:
        assert not torch.equal(a @ b, expected)
        rounded = mode.rounded
        found = product(a, b)
        assert torch.equal(found, expected)
        found_slopes = torch.autograd.grad(found.square().sum(), (a, b))
        torch.testing.assert_close(found_slopes, slopes, rtol=1e-6, atol=1e-6)
    assert mode.rounded == rounded


def test_a_linear_map_is_not_rounded():
    x, weight, bias = factors((2, 5, 4), (3, 4), (3,))
    expected = torch.nn.functional.linear(x, weight, bias)
    with tf32() as mode:
        torch.testing.assert_close(linear(x, weight, bias), expected, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(linear(x, weight), expected - bias, rtol=1e-6, atol=1e-6)
    assert not mode.rounded


def test_derivatives_of_a_product():
    with tf32():
        a, b = factors((2, 3, 4), (4, 2), dtype=torch.float64)
        assert gradcheck(product, (a, b), check_forward_ad=True)
        assert gradgradcheck(product, (a, b))
        a, b = (x.detach() for x in (a, b))
        value, along = jvp(product, (a, b), (a, b))  # of t^2 a @ b at t = 1
        torch.testing.assert_close((value, along), (a @ b, 2 * a @ b))
        assert torch.equal(vmap(product, (0, None))(a, b), a @ b)


def for_all(setting):
    torch.set_float32_matmul_precision(setting)


def for_one(number):
    matrix_products._BACKENDS[number].fp32_precision = "tf32"


def as_allowed(flag):
    torch.backends.cuda.matmul.allow_tf32 = flag


@pytest.mark.skipif(not matrix_products._BACKENDS, reason="torch before 2.9")
@pytest.mark.parametrize(
    ("choose", "setting"),
    [*((for_all, s) for s in ("highest", "high", "medium")), (for_one, 0), (for_one, 1),
     (as_allowed, True)],
)  # fmt: skip
def test_a_setting_is_put_back_for_each_backend(choose, setting):
    before = matrix_products._precisions()
    choose(setting)
    try:
        chosen = matrix_products._precisions()
        with full_precision():
            assert matrix_products.FULL.issuperset(matrix_products._precisions())
        assert matrix_products._precisions() == chosen
        with pytest.raises(ZeroDivisionError), full_precision():
            _ = 1 / 0
        assert matrix_products._precisions() == chosen
    finally:
        matrix_products._choose(before)


@pytest.mark.usefixtures("fresh_compiler")
def test_a_compiler_traces_a_product():
    a, b = (x.detach() for x in factors((5, 4), (4, 6)))
    traced = torch.compile(product, backend="eager", fullgraph=True)
    assert torch.equal(traced(a, b), a @ b)
    with torch.autocast("cpu", torch.bfloat16):
        assert traced(a, b).dtype == torch.float32
