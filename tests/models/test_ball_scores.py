"""Scores of all entities in the unit ball, in C++ and in the plain form, are the formula's."""

import math
from functools import partial

import pytest
import torch
from mpmath import mp
from torch_geometric.data import Data

import manifold_reference as reference
from curvlab.cpp import ARRAY, INTEGER, Library, kernel_kind, use_kernels
from curvlab.manifolds import PoincareBall
from curvlab.models.triples import ball_scores
from curvlab.models.triples.ball import AttH, MuRP, RotH
from curvlab.tasks import triple_losses
from drawn import draw
from manifold_reference import exact

MODELS = (MuRP, RotH, AttH)
RELATIONS, QUERIES = 7, 40
KERNELS = ("plain", "auto")


def make_model(kind, entities=101, dim=20, size=1.0, kappa=-1.0):
    """A model with biases, and one entity at the origin."""
    manifold = partial(PoincareBall, kappa=kappa, learnable=True)
    model = kind(entities, RELATIONS, dim=dim, manifold=manifold)
    model.entities.weight.data *= size
    model.entities.weight.data[3] = 0
    model.head_bias.data = draw(entities, seed=1)
    model.tail_bias.data = draw(entities, seed=2)
    return model


def make_queries(model):
    """Queries whose relations come in short and long runs."""
    number = torch.arange(QUERIES)
    relation = torch.where(number < QUERIES // 2, number**2 % RELATIONS, number // 12)
    return Data(head=number * 7 % model.num_entities, relation=relation)


def score(model, batch, kernels, rows=slice(None)):
    with use_kernels(kernels):
        compute, sources = model.block_scores(batch)
        scores = compute(rows, *sources)
        assert kernel_kind() == {"auto": "C++", "plain": "plain"}[kernels]
    return scores


def slopes_of(scores, model):
    """Derivatives of a sum of scores by all parameters, by name."""
    weights = draw(*scores.shape, seed=3, dtype=torch.float32).to(scores)
    named = dict(model.named_parameters())
    slopes = torch.autograd.grad((weights * scores).sum(), list(named.values()))
    return dict(zip(named, slopes, strict=True))


def single_scores(model, batch):
    """The scores of `triple_scores`, the plain formula under autograd."""
    entities = model.num_entities
    pairs = Data(
        head=batch.head.repeat_interleave(entities),
        relation=batch.relation.repeat_interleave(entities),
        tail=torch.arange(entities).repeat(len(batch.head)),
    )
    return model.triple_scores(pairs).view(-1, entities)


CASES = {
    "usual": {},
    "near the centre": {"size": 1e-3},
    "far": {"size": 15.0},
    "at the rim": {"size": 200.0},
    "flat": {"kappa": -1e-4},
    "curved": {"kappa": -20.0},
    "one tile": {"entities": 48, "dim": 8},
    "few": {"entities": 5, "dim": 2},
    "wide": {"entities": 97, "dim": 70},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.usefixtures("cpp_kernels")
def test_scores_and_derivatives_are_those_of_plain_autograd_in_double_precision(
    kernels, kind, case
):
    model = make_model(kind, **CASES[case]).double()
    batch = make_queries(model)
    scores, expected = score(model, batch, kernels), single_scores(model, batch)
    bound = 1e-6 * expected.detach().abs().max().item()
    torch.testing.assert_close(scores.double(), expected, rtol=0, atol=bound)
    found, slopes = slopes_of(scores, model), slopes_of(expected, model)
    curvature = "curvature.raw"
    # of both terms that cancel where the ball is nearly flat
    terms = 1e-6 * expected.detach().abs().sum().item()
    torch.testing.assert_close(found.pop(curvature), slopes.pop(curvature), rtol=0, atol=terms)
    for name, slope in slopes.items():
        bound = 2e-6 * slope.abs().max().item()
        torch.testing.assert_close(found[name], slope, rtol=0, atol=bound, msg=name)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.usefixtures("cpp_kernels")
def test_parameters_in_single_precision_have_the_scores_of_the_plain_form(kind):
    model = make_model(kind)
    batch = make_queries(model)
    scores, expected = (score(model, batch, kernels) for kernels in ("auto", "plain"))
    torch.testing.assert_close(scores, expected, rtol=1e-6, atol=1e-6)
    slopes = slopes_of(expected, model)
    for name, slope in slopes_of(scores, model).items():
        assert slope.dtype == torch.float32
        bound = 1e-5 * slopes[name].abs().max().item()
        torch.testing.assert_close(slope, slopes[name], rtol=0, atol=bound, msg=name)


def murp_of_sixty_digits(head, stretch, w, tail, kappa):
    moved = reference.expmap0([a * b for a, b in zip(stretch, head, strict=True)], kappa)
    points = (reference.expmap0(each, kappa) for each in (tail, w))
    return -(reference.dist(moved, reference.mobius_add(*points, kappa), kappa) ** 2)


PLACES = {
    "origin": [0.0, 0.0, 0.0],
    "near the origin": [1e-5, -2e-5, 1e-5],
    "usual": [0.3, -0.2, 0.5],
    "near the head": [0.4 + 1e-5, 0.1, -0.3],
    "near the rim": [3.0, -2.0, 2.5],
    "opposite": [-3.0, 2.0, -2.5],
}


@pytest.mark.parametrize("kappa", [-1.0, -1e-5])
@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.usefixtures("cpp_kernels")
def test_scores_and_derivatives_are_those_of_sixty_digits(kernels, kappa):
    """Of MuRP's tails, their derivatives by differences of numbers with 60 digits."""
    manifold = partial(PoincareBall, kappa=kappa, learnable=True)
    model = MuRP(1 + len(PLACES), 1, dim=3, manifold=manifold).double()
    tails = torch.tensor([[0.4, 0.1, -0.3], *PLACES.values()], dtype=torch.float64)
    model.entities.weight.data = tails
    model.stretches.weight.data = torch.tensor([[1.1, 0.9, 1.3]], dtype=torch.float64)
    model.translations.weight.data = torch.tensor([[0.2, -0.1, 0.3]], dtype=torch.float64)
    batch = Data(head=torch.zeros(1).long(), relation=torch.zeros(1).long())
    scores = score(model, batch, kernels)
    rows = (exact(table.weight[0]) for table in (model.entities, model.stretches))
    head, stretch = rows
    w = exact(model.translations.weight[0])
    formula = partial(murp_of_sixty_digits, head, stretch, w, kappa=exact(model.curvature())[0])
    step = mp.mpf(10) ** -25
    for place, tail in enumerate(tails[1:], 1):
        own = exact(tail)
        value = formula(own)
        assert scores[0, place].item() == pytest.approx(float(value), rel=1e-6), place
        slope = []
        for i in range(3):
            ends = ([*own[:i], own[i] + sign * step, *own[i + 1 :]] for sign in (1, -1))
            up, down = map(formula, ends)
            slope.append(float((up - down) / (2 * step)))
        (found,) = torch.autograd.grad(scores[0, place], model.entities.weight, retain_graph=True)
        bound = 1e-6 * max(map(abs, slope))
        assert found[place].tolist() == pytest.approx(slope, rel=0, abs=bound), place


@pytest.mark.usefixtures("cpp_kernels")
def test_tails_along_a_ray_have_the_distance_of_their_length():
    """A query at the origin: the score is -(2 a)^2, and its derivative -8 a, up to the rim."""
    model = RotH(1001, 1, dim=2).double()
    a = torch.logspace(-5, math.log10(0.999 * model.rim), 1000, dtype=torch.float64)
    for weight in (model.entities.weight, model.translations.weight):
        weight.data.zero_()
    model.last_translations.weight.data.zero_()
    model.entities.weight.data[1:, 0] = a
    batch = Data(head=torch.zeros(1).long(), relation=torch.zeros(1).long())
    scores = score(model, batch, "auto")[0, 1:]
    torch.testing.assert_close(scores.double(), -4 * a**2, rtol=6e-7, atol=0)
    (slope,) = torch.autograd.grad(scores.sum(), model.entities.weight)
    torch.testing.assert_close(slope[1:, 0], -8 * a, rtol=6e-7, atol=0)


PROBE = """
extern "C" void probe(const double* a, const float* z, double* sinh, double* cosh, float* log,
                      int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const Hyperbolic value = hyperbolic(a[i]);
    sinh[i] = value.sinh, cosh[i] = value.cosh, log[i] = log1p_of(z[i]);
  }
}
"""


@pytest.mark.usefixtures("cpp_kernels")
def test_elementary_functions_have_the_digits_that_they_state(tmp_path):
    file = tmp_path / "probe.cpp"
    file.write_text(ball_scores.LIBRARY.source.read_text("utf-8") + PROBE, "utf-8")
    library = Library(file, {"probe": [*[ARRAY] * 5, INTEGER]})
    a = torch.cat([torch.zeros(1), torch.logspace(-12, 2.8, 2000)]).double()
    z = torch.cat([torch.zeros(1), torch.logspace(-30, 38, 2000)])
    sinh, cosh, log = torch.empty_like(a), torch.empty_like(a), torch.empty_like(z)
    functions = library.functions(torch.zeros(1).requires_grad_())
    functions.probe(*(x.data_ptr() for x in (a, z, sinh, cosh, log)), len(a))
    cases = (a, sinh, mp.sinh, 1e-15), (a, cosh, mp.cosh, 1e-15), (z, log, mp.log1p, 2e-7)
    for x, found, function, error in cases:
        expected = map(function, exact(x))
        for value, other in zip(exact(found), expected, strict=True):
            assert abs(value - other) <= error * abs(other)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("kind", [MuRP, RotH])
@pytest.mark.usefixtures("cpp_kernels")
def test_a_step_repeats_to_the_last_bit(kind, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        model = make_model(kind, entities=300)
        scores, again = (score(model, make_queries(model), "auto") for _ in range(2))
        assert torch.equal(scores, again)
        slopes = slopes_of(scores, model)
        for name, slope in slopes_of(again, model).items():
            assert torch.equal(slope, slopes[name]), name
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.usefixtures("cpp_kernels")
def test_rows_are_scored_as_among_all(kind):
    model = make_model(kind)
    batch = make_queries(model)
    whole = score(model, batch, "auto")
    rows = slice(11, 30)
    part = score(model, batch, "auto", rows)
    torch.testing.assert_close(part, whole[rows])
    weights = torch.zeros_like(whole)
    weights[rows] = draw(*part.shape, seed=3)
    parameters = list(model.parameters())
    expected = torch.autograd.grad((weights * whole).sum(), parameters)
    found = torch.autograd.grad((weights[rows] * part).sum(), parameters)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.usefixtures("cpp_kernels")
def test_a_loss_in_blocks_has_the_gradient_of_the_plain_form(kind, monkeypatch):
    monkeypatch.setattr(triple_losses, "block_entries", lambda _: 17 * 101)
    model = make_model(kind).double()
    query, tail = torch.arange(QUERIES), torch.arange(QUERIES) * 5 % 101
    gradients = {}
    for kernels in KERNELS:
        with use_kernels(kernels):
            batch = model.sort_queries(make_queries(model).update({"query": query, "tail": tail}))
            compute, sources = model.block_scores(batch)
            shape = QUERIES, model.num_entities
            truth = batch.query, batch.tail, 0.1
            loss = triple_losses.one_vs_all_loss(compute, sources, shape, *truth)
            gradients[kernels] = torch.autograd.grad(loss, list(model.parameters()))
    for found, expected in zip(gradients["auto"], gradients["plain"], strict=True):
        bound = 1e-5 * expected.abs().max().item() + 1e-8  # the sum of a softmax's is 0
        torch.testing.assert_close(found, expected, rtol=0, atol=bound)


@pytest.mark.parametrize("kind", [MuRP, RotH])
@pytest.mark.usefixtures("cpp_kernels")
def test_numbers_that_are_not_finite_are_seen(kind):
    model = make_model(kind)
    model.entities.weight.data[50, 1] = torch.nan
    scores = score(model, make_queries(model), "auto")
    assert scores[:, 50].isnan().all()


@pytest.mark.usefixtures("cpp_kernels")
def test_evaluation_and_half_precision_have_the_plain_form():
    model = make_model(MuRP)
    batch = make_queries(model)
    with torch.no_grad():
        model.scores(batch)
    model.bfloat16().scores(batch)
    assert kernel_kind() == "plain"


@pytest.mark.usefixtures("cpp_kernels")
def test_a_fixed_curvature_gets_no_gradient():
    slopes = []
    for learnable in (False, True):
        manifold = partial(PoincareBall, learnable=learnable)
        model = MuRP(20, RELATIONS, dim=4, manifold=manifold)
        for name in ("entities", "translations"):
            weight = model.get_submodule(name).weight
            weight.data = draw(*weight.shape, size=0.3)
        scores = score(model, make_queries(model), "auto")
        slopes.append(torch.autograd.grad(scores.square().sum(), model.entities.weight)[0])
    torch.testing.assert_close(*slopes)
