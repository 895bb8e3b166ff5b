"""One block of FPS-T: the specification's numbers, its flat limit, its symmetries."""

import functools

import pytest
import torch
from torch.nn import functional

from curvlab.manifolds import Euclidean, Stereographic
from curvlab.models.fpst import FPSTBlock

pytestmark = pytest.mark.usefixtures("float64")

# Coordinates after one block, four tokens of width 4 in two heads: (kappas, layer norm) -> rows.
WORKED = {
    ((-1.0, 0.5), True): [
        (-0.019950, 0.889262, 1.100260, 0.573501),
        (0.413578, 0.703483, 0.529011, -0.475593),
        (0.520367, 0.290925, -0.544412, -1.221825),
        (-0.270888, 0.819636, 0.541087, -0.754488),
    ],
    ((-1.0, 0.5), False): [
        (0.367609, 0.726459, 0.518596, -0.080769),
        (0.590993, 0.630335, 0.154703, -0.724405),
        (0.458426, 0.054845, -0.620541, -0.802864),
        (-0.400912, -0.138837, -0.198520, -0.216839),
    ],
}


def matrix(shift):
    """`0.5 sin(1.3 i + 0.7 j + shift)`, `[4, 4]`."""
    index = torch.arange(4.0)
    return 0.5 * torch.sin(1.3 * index[:, None] + 0.7 * index + shift)


def block(space, layer_norm=True, dropout=0.0, activation=functional.relu, dim=4):
    return FPSTBlock(
        space=space,
        dim=dim,
        heads=space.components,
        head_dim=dim // space.components,
        ffn_ratio=1,
        activation=activation,
        layer_norm=layer_norm,
        attention="linear",
        out_proj=True,
        dropout=dropout,
    )


def worked_block(space, layer_norm=True, activation=functional.relu):
    """The specification's block: weights `matrix(s)`, biases `0.1 cos(i + s)`, s = 1 ... 6."""
    made = block(space, layer_norm, activation=activation)
    attention, feed_forward = made.attention, made.feed_forward
    layers = (attention.query, attention.key, attention.value, attention.out)
    with torch.no_grad():
        for s, layer in enumerate((*layers, feed_forward.inner, feed_forward.outer), start=1):
            layer.weight.copy_(matrix(s))
            layer.bias.copy_(0.1 * torch.cos(torch.arange(4.0) + s))
    return made


@pytest.mark.parametrize(("kappas", "layer_norm"), WORKED)
def test_worked_example(kappas, layer_norm):
    space = Stereographic(2, kappas)
    out = worked_block(space, layer_norm)(matrix(0.1))
    expected = WORKED[kappas, layer_norm]
    assert out.tolist() == [pytest.approx(row, abs=1e-6) for row in expected]


@pytest.mark.parametrize("layer_norm", [True, False])
@pytest.mark.parametrize("space", [Euclidean(2), Stereographic(2)], ids=["flat", "kappa 0"])
def test_flat_block_is_the_pre_norm_transformer_with_linear_attention(space, layer_norm):
    """Against the transformer written out with nothing but plain matrix operations."""
    made = worked_block(space.double(), layer_norm)
    x = matrix(0.1)

    def norm(t):
        return functional.layer_norm(t, (4,)) if layer_norm else t

    def linear(t, s):
        return t @ matrix(s).T + 0.1 * torch.cos(torch.arange(4.0) + s)

    query, key, value = (linear(norm(x), s).view(4, 2, 2).transpose(0, 1) for s in (1, 2, 3))
    scores = (functional.elu(query) + 1) @ (functional.elu(key) + 1).mT
    heads = scores / scores.sum(-1, keepdim=True) @ value
    y = x + linear(heads.transpose(0, 1).reshape(4, 4), 4)
    expected = y + linear(functional.relu(linear(norm(y), 5)), 6)
    torch.testing.assert_close(made(x), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("layer_norm", [True, False])
def test_output_is_continuous_in_the_curvature_through_zero(layer_norm):
    """From both sides, and with one slope: what is odd in kappa leaves no jump at 0."""

    def output(kappa):
        space = Stereographic(2, kappa)
        return worked_block(space, layer_norm)(matrix(0.1)).detach()

    flat = output(0.0)
    for kappa in (1e-6, 1e-7, 1e-9):
        above, below = output(kappa) - flat, output(-kappa) - flat
        assert above.abs().max() < 100 * kappa
        assert (above + below).abs().max() < 1e-3 * kappa + 1e-14
        assert above.abs().max() > 1e-3 * kappa


def test_block_without_weights_is_the_exponential():
    """Both sublayers then give the origin, and 0 (+) x = x."""
    space = Stereographic(2, (-1.0, 0.5))
    made = block(space)
    for name, parameter in made.named_parameters():
        if "curvature" not in name and "norm" not in name:
            torch.nn.init.zeros_(parameter)
    v = matrix(0.1)
    torch.testing.assert_close(made(v), space.expmap0(v), atol=1e-15, rtol=0)


def test_block_in_single_precision_keeps_its_digits():
    """Also where curvatures start to move: values and derivatives by kappa near 0."""
    results = {}
    for dtype in (torch.float32, torch.float64):
        for kappa in (0.0, 1e-7, -1e-5, 1e-3, -1.0):
            space = Stereographic(2, kappa)
            made = worked_block(space, activation=torch.tanh).to(dtype)
            v = matrix(0.1).to(dtype)
            out = made(v).double()
            gradient = torch.autograd.grad((out * matrix(7)).sum(), space.curvature.raw)[0].double()
            results[dtype, kappa] = out.detach(), gradient
    close = functools.partial(torch.testing.assert_close, atol=1e-5, rtol=1e-4)
    for (dtype, kappa), values in results.items():
        if dtype == torch.float32:
            for single, double in zip(values, results[torch.float64, kappa], strict=True):
                close(single, double)
