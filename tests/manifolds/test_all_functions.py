"""Of every public function: compilation, transforms of torch, derivatives, number types, heads."""

import inspect

import pytest
import torch

from curvlab.manifolds import charts, distributions, lorentz, stereographic
from drawn import assert_finite

MODULES = (stereographic, lorentz, charts, distributions)
POINTS = torch.linspace(-0.3, 0.4, 30).reshape(5, 2, 3)
FUNCTIONS = [
    pytest.param(module, name, id=f"{module.__name__.rsplit('.', 1)[-1]}.{name}")
    for module in MODULES
    for name in module.__all__
    if name != "WrappedNormal"
]


def has_sets(module, name):
    """Whether a function takes sets of points, `[heads, points, dim]`."""
    averages = (stereographic, "midpoint"), (stereographic, "midpoints"), (lorentz, "centroid")
    return name.startswith(("pairwise", "frechet")) or (module, name) in averages


def arguments(module, name, dtype=torch.float32):
    """Arguments by parameter name: points `[5, 2, 3]` with a curvature for each of two heads."""
    sets = has_sets(module, name)
    points = (POINTS.transpose(0, 1) if sets else POINTS).to(dtype)
    signs = [-1.0, 0.5]
    if module is lorentz or name.endswith(("half_space", "hyperboloid")):
        signs = [-1.0, -0.5]
    elif name.endswith("sphere") or name == "antipode":
        signs = [1.0, 0.5]
    kappa = torch.tensor(signs, dtype=dtype)
    tangents = points
    if module is lorentz and name not in ("expmap0", "from_space", "from_stereographic"):
        points = lorentz.from_space(points, kappa[:, None] if sets else kappa)
        tangents = points if name != "transport0" else tangents
    if module is charts and name.startswith("from_") and name != "from_klein":
        points = getattr(charts, name.replace("from_", "to_"))(points, kappa)
    if name.endswith("_k"):
        points = points[..., 0]
    values = {
        "v": tangents,
        "kappa": kappa,
        "kappa_from": kappa,
        "kappa_to": -2.0,
        "weights": torch.linspace(0.1, 1, 5, dtype=dtype).expand(2, 5),
        "weight": torch.tensor([0.2, 0.6], dtype=dtype),
        "r": torch.tensor([0.5, 1.5], dtype=dtype),
        "t": torch.tensor([0.3, 0.8], dtype=dtype),
        "m": points if name == "normalise" else torch.linspace(-1, 1, 12, dtype=dtype).view(4, 3),
        "function": torch.tanh,
        "signed": True,
        "dim": 3,
        "numerator": POINTS[0].to(dtype),
        "denominator": torch.tensor([1.0, 2.0], dtype=dtype),
        "published": False,
    }
    if name == "midpoints":
        values["weights"] = torch.linspace(0.1, 1, 15, dtype=dtype).view(3, 5).expand(2, 3, 5)
    parameters = list(inspect.signature(getattr(module, name)).parameters)
    given = [values.get(p, points) for p in parameters]
    for i in range(1, len(given)):  # no two points are the same
        if given[i] is points or given[i] is tangents:
            given[i] = (1 - i / 10) * given[i].roll(i, -2 if sets else 0)
    return [g.clone() if isinstance(g, torch.Tensor) else g for g in given]


def leaves(inputs):
    return [i.requires_grad_() for i in inputs if isinstance(i, torch.Tensor)]


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch):
    """Frechet means in four steps of Newton: of near points they are those in all twenty."""
    monkeypatch.setattr(distributions, "_STEPS", 4)


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.sampled(4)
@pytest.mark.parametrize(("module", "name"), FUNCTIONS)
def test_compiles_as_one_graph(module, name):
    function, inputs = getattr(module, name), arguments(module, name)
    given = leaves(inputs)
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")(*inputs)
    eager = function(*inputs)
    torch.testing.assert_close(compiled, eager)
    gradients = [
        torch.autograd.grad(value.square().sum(), given, allow_unused=True)
        for value in (compiled, eager)
    ]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize(("module", "name"), FUNCTIONS)
def test_results_have_the_type_of_the_points_and_its_rounding(module, name, dtype):
    """Curvatures may have another type."""
    inputs = arguments(module, name)
    inputs = [i.to(dtype) if torch.is_tensor(i) and i.dim() > 1 else i for i in inputs]
    exact = [i.double() if torch.is_tensor(i) else i for i in inputs]
    result, expected = getattr(module, name)(*inputs), getattr(module, name)(*exact)
    assert result.dtype == (torch.float32 if name == "origin" else dtype)
    eps = max(torch.finfo(dtype).eps, 2e-6)
    torch.testing.assert_close(result.double(), expected, rtol=eps, atol=eps / 8)


@pytest.mark.parametrize(("module", "name"), FUNCTIONS)
def test_curvatures_broadcast_against_leading_dimensions(module, name):
    """Each head is what the function gives of it alone, with a number for its curvature."""
    inputs = arguments(module, name, torch.float64)
    together = getattr(module, name)(*inputs)
    for h in range(2):
        alone = [_of_head(i, h) if torch.is_tensor(i) else i for i in inputs]
        alone = [i.item() if torch.is_tensor(i) and i.dim() == 0 else i for i in alone]
        if name == "midpoint_from_sums":  # whose denominator is no number
            alone[1] = torch.tensor(alone[1], dtype=torch.float64)
        expected = getattr(module, name)(*alone)
        torch.testing.assert_close(_of_head(together, h), expected.to(together.dtype))


def _of_head(value, h):
    if value.shape == (4, 3):  # the matrix, which is of all heads
        return value
    return value[h] if value.shape[0] == 2 else value[:, h]


@pytest.mark.sampled(6)
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
@pytest.mark.parametrize(("module", "name"), FUNCTIONS)
def test_derivatives_and_transforms_of_torch(module, name):
    """First and second ones are finite differences, by forward mode too; vmap is a loop."""
    inputs = arguments(module, name, torch.float64)
    function = getattr(module, name)
    places = [i for i, value in enumerate(inputs) if torch.is_tensor(value)]

    def evaluate(*tensors):
        given = list(inputs)
        for i, tensor in zip(places, tensors, strict=True):
            given[i] = tensor
        return function(*given)

    tensors = [inputs[i] for i in places]
    assert torch.autograd.gradcheck(evaluate, leaves(tensors), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(evaluate, leaves(tensors))
    first, *others = (t.detach() for t in tensors)

    def total(x):
        return evaluate(x, *others).square().sum()

    stacked = torch.stack([first, 0.9 * first])
    hessians = torch.func.vmap(torch.func.hessian(total))(stacked)
    one_by_one = [torch.autograd.functional.hessian(total, x) for x in stacked]
    torch.testing.assert_close(hessians, torch.stack(one_by_one))


SPECIAL = [0, 1e-30, 0.3, 1, -1, 1.5, -1 / 0.3, 1e4]
"""In units of the curvature; 1 is the rim, up to rounding."""


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("module", "name"),
    [
        case
        for case in FUNCTIONS  # not of numbers, nor what far out is beyond the largest one
        if not case.id.endswith(
            ("_k", "origin", "change_curvature", "lorentz.inner", ".space", "_time")
        )
        and "lorentz.expmap" not in case.id
    ],
)
def test_gradients_are_finite_everywhere(module, name, dtype):
    """At all pairs of special points, each with a curvature of its own."""
    parameters = inspect.signature(getattr(module, name)).parameters
    own = dict(zip(parameters, arguments(module, name), strict=True))
    places = torch.cartesian_prod(*[torch.tensor(SPECIAL, dtype=dtype)] * 2).unbind(1)
    for kappa in (-100.0, -1.0, -1e-8, 0.0, 1e-8, 1.0, 100.0):
        signs = own["kappa"]
        if (kappa <= 0 and (signs > 0).all()) or (kappa >= 0 and (signs < 0).all()):
            continue
        k = torch.full((len(places[0]),), kappa, dtype=dtype)
        unit = torch.tensor([0.6, -0.8, 0.0], dtype=dtype) / (abs(kappa) ** 0.5 or 1)
        pairs = [p[:, None] * unit for p in places]
        if module is lorentz and next(iter(own.values())).shape[-1] == 4:
            pairs = [lorentz.from_space(p, k) for p in pairs]
        given = {"kappa": k, "weights": torch.ones(len(k), 2, dtype=dtype)}
        given |= {each: torch.full_like(k, 0.7) for each in ("r", "t", "weight", "denominator")}
        inputs, order = [], 0
        for parameter, value in own.items():
            if parameter in given or not torch.is_tensor(value) or value.shape == (4, 3):
                inputs.append(given.get(parameter, value))
                continue
            point = pairs[order % 2]
            if (module, name, parameter) == (lorentz, "transport0", "v"):
                point = lorentz.space(point)
            inputs.append(torch.stack([point, pairs[1]], 1) if has_sets(module, name) else point)
            order += 1
        inputs = [i.to(dtype).clone().requires_grad_() if torch.is_tensor(i) else i for i in inputs]
        assert_finite(getattr(module, name)(*inputs), filter(torch.is_tensor, inputs))


ON_THE_HYPERBOLOID = lorentz.from_space(POINTS[0], -0.5)


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("derivatives", [True, False])
@pytest.mark.parametrize(
    ("function", "x", "others"),
    [
        *(
            (stereographic.midpoint_from_sums, POINTS[0], (*numbers, published))
            for published in (False, True)
            for numbers in [(torch.tensor([-1.0, 2.0]), torch.tensor([0.7, 0.5]))]
        ),
        (stereographic.midpoint, POINTS[0], (torch.tensor([0.3, 0.7]), -0.5)),
        (lorentz.midpoint, ON_THE_HYPERBOLOID, (ON_THE_HYPERBOLOID.flip(0), -0.5, 0.3)),
    ],
)
def test_midpoints_beyond_the_equator_and_of_one_set_compile(function, x, others, derivatives):
    x = x.clone().requires_grad_(derivatives)
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    results = [f(x, *others) for f in (compiled, function)]
    torch.testing.assert_close(*results)
    if derivatives:
        torch.testing.assert_close(*[torch.autograd.grad(r.square().sum(), x) for r in results])
