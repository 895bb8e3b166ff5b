"""Every public function compiles as one graph and keeps half precision, with the same values."""

import inspect

import pytest
import torch

from curvlab.manifolds import lorentz, stereographic

POINTS = torch.linspace(-0.3, 0.4, 30).reshape(5, 2, 3)


def arguments(module, name):
    """Arguments by parameter name: points `[5, 2, 3]` with a curvature for each of two heads."""
    signs = [-1.0, 0.5] if module is stereographic else [-1.0, -0.5]
    kappa = torch.tensor(signs, requires_grad=True)
    averages = "midpoint" if module is stereographic else "centroid"
    sets = name.startswith("pairwise") or name == averages
    points = POINTS.transpose(0, 1) if sets else POINTS
    if module is lorentz and name not in ("expmap0", "from_space", "from_stereographic"):
        points = lorentz.from_space(points, kappa.detach()[:, None] if sets else kappa.detach())
    if name.endswith("_k"):
        points = POINTS[..., 0]
    values = {
        "kappa": kappa,
        "kappa_from": kappa,
        "kappa_to": -2.0,
        "weights": torch.linspace(0.1, 1, 5).expand(2, 5),
        "weight": torch.tensor([0.2, 0.6]),
        "r": torch.tensor([0.5, 1.5]),
        "dim": 3,
        "numerator": POINTS[0],
        "denominator": torch.tensor([1.0, 2.0]),
        "printed": False,
    }
    parameters = inspect.signature(getattr(module, name)).parameters
    result = [values[p] if p in values else points.clone() for p in parameters]
    for value in result:
        if isinstance(value, torch.Tensor) and value.dim() > 1:
            value.requires_grad_()
    return result


pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _fresh_compiler():
    torch.compiler.reset()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("module", "name"),
    [
        pytest.param(module, name, id=f"{module.__name__.rsplit('.', 1)[-1]}.{name}")
        for module in (stereographic, lorentz)
        for name in module.__all__
    ],
)
def test_compiles_as_one_graph(module, name):
    function = getattr(module, name)
    inputs = arguments(module, name)
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")(*inputs)
    eager = function(*inputs)
    torch.testing.assert_close(compiled, eager)
    leaves = [i for i in inputs if isinstance(i, torch.Tensor) and i.requires_grad]
    gradients = [
        torch.autograd.grad(value.square().sum(), leaves, allow_unused=True)
        for value in (compiled, eager)
    ]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("module", [stereographic, lorentz])
def test_half_precision_is_the_rounded_result_of_the_rounded_points(module, dtype):
    for name in set(module.__all__) - {"origin"}:  # which takes no points
        inputs = [v.detach() if isinstance(v, torch.Tensor) else v for v in arguments(module, name)]
        points = [i for i, v in enumerate(inputs) if isinstance(v, torch.Tensor) and v.dim() > 1]
        for order, i in enumerate(points):
            inputs[i] = inputs[i].roll(order, -2 if name.startswith("pairwise") else 0).to(dtype)
        exact = [v.double() if isinstance(v, torch.Tensor) else v for v in inputs]
        result, expected = getattr(module, name)(*inputs), getattr(module, name)(*exact)
        assert result.dtype == dtype, name
        bound = {"rtol": torch.finfo(dtype).eps, "atol": torch.finfo(dtype).eps / 8}
        torch.testing.assert_close(result.double(), expected, **bound, msg=name)


@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
@pytest.mark.parametrize(
    ("module", "name"),
    [(stereographic, n) for n in ("expmap0", "expmap", "logmap", "sqdist", "mobius_add")]
    + [(lorentz, n) for n in ("from_space", "expmap0", "logmap", "sqdist", "midpoint")],
)
def test_transforms_of_torch_take_the_functions(module, name):
    """Forward mode is reverse mode, a Hessian of either is the other's, vmap is a loop."""
    first, *others = (
        i.detach().double() if torch.is_tensor(i) else i for i in arguments(module, name)
    )

    def total(x):
        return getattr(module, name)(x, *others).square().sum()

    torch.testing.assert_close(torch.func.jacfwd(total)(first), torch.func.grad(total)(first))
    both = torch.func.hessian(total)(first), torch.autograd.functional.hessian(total, first)
    torch.testing.assert_close(*both)
    stacked = torch.stack([first, 0.9 * first])
    torch.testing.assert_close(
        torch.func.vmap(total)(stacked), torch.stack([total(x) for x in stacked])
    )


@pytest.mark.parametrize("printed", [False, True])
def test_a_midpoint_beyond_the_equator_compiles(printed):
    numerator = POINTS[0].clone().requires_grad_()
    inputs = numerator, torch.tensor([-1.0, 2.0]), torch.tensor([0.7, 0.5]), printed
    compiled = torch.compile(stereographic.midpoint_from_sums, fullgraph=True, backend="aot_eager")
    results = [function(*inputs) for function in (compiled, stereographic.midpoint_from_sums)]
    torch.testing.assert_close(*results)
    gradients = [torch.autograd.grad(r.square().sum(), numerator) for r in results]
    torch.testing.assert_close(*gradients)


def test_a_midpoint_of_one_set_of_points_compiles():
    x, weights = POINTS[:, 0].clone().requires_grad_(), torch.rand(len(POINTS))
    compiled = torch.compile(stereographic.midpoint, fullgraph=True, backend="aot_eager")
    gradients = [
        torch.autograd.grad(function(x, weights, -0.5).sum(), x)
        for function in (compiled, stereographic.midpoint)
    ]
    torch.testing.assert_close(*gradients)


@torch.no_grad()
def test_a_midpoint_compiles_without_derivatives_too():
    # With one curvature and no derivative it takes a shorter way.
    x = lorentz.from_space(POINTS, -0.5)
    compiled = torch.compile(lorentz.midpoint, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(
        compiled(x, x.flip(0), -0.5, 0.3), lorentz.midpoint(x, x.flip(0), -0.5, 0.3)
    )


def test_every_public_function_is_listed():
    for module in (stereographic, lorentz):
        public = {
            name
            for name, value in vars(module).items()
            if inspect.isfunction(value)
            and value.__module__ == module.__name__
            and not name.startswith("_")
        }
        assert public <= set(module.__all__)
