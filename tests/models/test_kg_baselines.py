"""Baselines of knowledge-graph completion: scores are the papers', triple by triple."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import kge

import manifold_reference as reference
from curvlab.errors import UsageError
from curvlab.manifolds import PoincareBall
from curvlab.manifolds._geoopt import geoopt
from curvlab.models.triples import ball_distances
from curvlab.models.triples.ball import AttH, MuRP, RotH, reflect, rotate, unit_pairs
from curvlab.models.triples.flat import ComplEx, DistMult, RotatE, TransE
from curvlab.models.triples.floors import RelationFrequency, ReverseLookup
from curvlab.optim.optimisers import Adagrad
from curvlab.tasks import triple_losses
from drawn import assert_finite, filled, slopes
from manifold_reference import exact, mobius_add, mp

ENTITIES, RELATIONS, DIM = 9, 3, 6
HEAD, RELATION = torch.tensor([0, 4, 4, 8, 2]), torch.tensor([0, 1, 2, 2, 0])
ALL = torch.arange(ENTITIES)
FLAT, CURVED = (DistMult, ComplEx, TransE, RotatE), (MuRP, RotH, AttH)
KINDS = (*FLAT, *CURVED)
DISTANCES = (TransE, RotatE)
BALL = partial(PoincareBall, kappa=-0.7, learnable=True)

pytestmark = pytest.mark.usefixtures("float64")


def queries():
    return Data(head=HEAD, relation=RELATION)


def made(kind, **options):
    torch.manual_seed(1)
    return kind(ENTITIES, RELATIONS, dim=DIM, **options).eval()


@pytest.fixture
def double_distances(monkeypatch, plain_kernels):
    """Distances of the ball models in double precision to the end."""
    monkeypatch.setattr(ball_distances, "DISTANCE_DTYPE", torch.float64)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("kind", FLAT)
def test_an_inverse_relation_that_is_not_its_own_scores_the_swapped_triple_alike(kind, norm):
    options = {"norm": norm} if kind in DISTANCES else {}
    model = kind(ENTITIES, 2 * RELATIONS, dim=DIM, reciprocal=False, **options).eval()
    tail = torch.tensor([3, 0, 4, 8, 1])
    swapped = Data(head=tail, relation=RELATION + RELATIONS, tail=HEAD)
    triples = Data(head=HEAD, relation=RELATION, tail=tail)
    torch.testing.assert_close(model.triple_scores(triples), model.triple_scores(swapped))
    assert len(relation_table(model).weight) == RELATIONS


def relation_table(model):
    return model.angles if isinstance(model, RotatE) else model.relations


@pytest.mark.parametrize("kind", KINDS)
def test_initial_embeddings_are_uniform_on_an_interval(kind):
    weight = kind(4000, RELATIONS, dim=DIM, init=[-0.2, 1.0]).entities.weight.detach()
    assert -0.2 <= weight.min() < -0.19
    assert 0.99 < weight.max() <= 1.0
    torch.testing.assert_close(weight.mean(), torch.tensor(0.4), atol=0.01, rtol=0)
    for interval in ([1.0, -0.2], [0.5], [0.0, 0.0], [0.0, 1.0, 2.0]):
        with pytest.raises(UsageError, match="a list of two numbers, the lower one first"):
            kind(ENTITIES, RELATIONS, dim=DIM, init=interval)
    normal = kind(4000, RELATIONS, dim=DIM, init="xavier_normal").entities.weight.detach()
    expected = torch.tensor((2 / (4000 + DIM)) ** 0.5)
    torch.testing.assert_close(normal.std(), expected, atol=0, rtol=0.03)
    assert normal.abs().max() > 3 * expected


def authors_scores(model, head, relation, tail):
    """Minus the distances of Sun et al. 2019: moduli of complex numbers, one triple at a time."""
    found = []
    for h, r, t in zip(head.tolist(), relation.tolist(), tail.tolist(), strict=True):
        x, y = model.entities.weight[h], model.entities.weight[t]
        if isinstance(model, TransE):
            found.append(-sum(abs(x[i] + model.relations.weight[r, i] - y[i]) for i in range(DIM)))
            continue
        half, total = DIM // 2, 0.0
        for i in range(half):
            phase = model.angle_scale * model.angles.weight[r, i]
            real = x[i] * phase.cos() - x[i + half] * phase.sin() - y[i]
            imaginary = x[i] * phase.sin() + x[i + half] * phase.cos() - y[i + half]
            total = total + (real**2 + imaginary**2) ** 0.5
        found.append(-total)
    return torch.stack(found)


@pytest.mark.parametrize("options", [{}, {"angle_scale": 2.5}])
@pytest.mark.parametrize("kind", [TransE, RotatE])
def test_with_norm_1_distances_are_the_authors(kind, options):
    """Of single triples, among all entities, of samples and in blocks; and their derivatives."""
    model = filled(made(kind, norm=1, dropout=0.0, **(options if kind is RotatE else {})))
    weights = list(model.parameters())
    pairs = HEAD.repeat_interleave(ENTITIES), RELATION.repeat_interleave(ENTITIES), ALL.repeat(5)
    expected = authors_scores(model, *pairs).view(5, ENTITIES)
    scores, sources = model.block_scores(queries())
    found = {
        "single": model.triple_scores(Data(head=pairs[0], relation=pairs[1], tail=pairs[2])),
        "all": model.scores(queries()),
        "blocks": scores(slice(None), *sources),
        "tails": model.tail_scores(queries(), ALL.expand(5, -1)),
    }
    noise = torch.randn(5, ENTITIES)
    right = torch.autograd.grad((noise * expected).sum(), weights)
    for own in found.values():
        own = own.view(5, ENTITIES)
        torch.testing.assert_close(own, expected)
        torch.testing.assert_close(torch.autograd.grad((noise * own).sum(), weights), right)


@pytest.mark.parametrize("dropout", [0.0, 1e-9])  # with and without the shorter way
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("double_distances")
def test_other_tails_score_as_triples(kind, dropout):
    model = made(kind, **({"dropout": dropout} if kind in FLAT else {}))
    for tails in (torch.tensor([[3], [0], [4], [8], [1]]), ALL.expand(5, -1).flip(1)):
        found = model.tail_scores(queries(), tails)
        torch.testing.assert_close(found, model.scores(queries()).gather(1, tails))


def test_moduli_of_the_tables():
    model = made(ComplEx)
    numbers = torch.complex(*model.entities.weight.chunk(2, 1))
    torch.testing.assert_close(model.table_moduli()["entities"], numbers.abs())
    torch.testing.assert_close(
        made(TransE).table_moduli()["relations"], made(TransE).relations.weight.abs()
    )
    assert list(made(RotatE).table_moduli()) == ["entities"]
    with pytest.raises(UsageError, match=r"drop task\.regularized_rows"):
        made(RotH).table_moduli()


@pytest.mark.parametrize("kind", FLAT)
def test_dropout_of_head_relation_and_tail_are_options_of_their_own(kind):
    """A head without coordinates; the tails keep theirs, or lose them too."""
    model = made(kind, dropout=0.99999, init=1.0).train()
    assert model(queries()).count_nonzero() < DIM
    assert model.tails().count_nonzero() == ENTITIES * DIM
    assert made(kind, dropout=0.99999, tail_dropout=True).train().tails().count_nonzero() < DIM
    assert model.entities.weight.abs().max() > 0.8
    if kind is TransE:
        model = made(kind, dropout=0.99999, relation_dropout=0.0).train()
        assert model(queries()).count_nonzero() == len(HEAD) * DIM


@pytest.mark.parametrize("kind", FLAT)
def test_a_sparse_step_is_the_dense_one_and_moves_the_rows_of_its_batch_alone(kind):
    batch, tables = Data(head=HEAD, relation=RELATION, tail=torch.tensor([1, 2, 4, 8, 1])), []
    for sparse in (True, False):
        model = made(kind, sparse=sparse, dropout=0.0)
        before = model.entities.weight.detach().clone()
        optimizer = Adagrad(lr=0.1).build(model)
        for _ in range(2):
            optimizer.zero_grad()
            (model.triple_scores(batch).sum() + model.scores(batch, batch.tail).sum()).backward()
            optimizer.step()
        assert model.entities.weight.grad.is_sparse == sparse
        tables.append(model.entities.weight)
    torch.testing.assert_close(*tables)
    moved = (tables[0] != before).any(1).nonzero().squeeze(1)
    assert moved.tolist() == torch.cat([batch.head, batch.tail]).unique().tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("double_distances")
def test_single_triples_and_some_entities_score_as_among_all(kind):
    model, tail = made(kind, init=0.3), torch.tensor([3, 0, 4, 8, 1])
    assert 0.2 < model.entities.weight.abs().max() <= 0.3
    torch.testing.assert_close(model.scores(queries(), tail), model.scores(queries())[:, tail])
    triples = Data(head=HEAD, relation=RELATION, tail=tail)
    single = model.triple_scores(triples)
    torch.testing.assert_close(single, model.scores(queries())[torch.arange(len(HEAD)), tail])


def triple_by_triple(score):
    """The scores of all tails from a function of head, relation and tail."""
    rows = zip(HEAD.tolist(), RELATION.tolist(), strict=True)
    return torch.stack([torch.stack([score(h, r, t) for t in ALL.tolist()]) for h, r in rows])


PYG = {TransE: {"p_norm": 2}, DistMult: {}, ComplEx: {}, RotatE: {"margin": 0.0}}


@pytest.mark.parametrize("options", [{}, {"dropout": 0.0}])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("both_ends", [False, True])
@pytest.mark.usefixtures("double_distances")
def test_samples_score_as_single_triples(kind, options, both_ends):
    """With replaced heads, tails, or both, one of which is what it was; and so do derivatives."""
    model = made(kind, **(options if kind in FLAT else {}))
    filled(model)
    tail = torch.tensor([3, 0, 4, 8, 1])
    triples = Data(head=HEAD, relation=RELATION, tail=tail)
    head = torch.stack([HEAD, HEAD, torch.tensor([5, 5, 7, 1, 1]), HEAD], 1)
    tails = torch.stack([torch.tensor([6, 2, 2, 0, 0]), tail, tail, tail], 1)
    if both_ends:
        tails[:, 2] = 7
    relation = RELATION.unsqueeze(1).expand_as(head)
    true, sampled = model.sampled_scores(triples, (head, relation, tails), both_ends)
    found = torch.cat([true, sampled], 1)
    expected = torch.stack(
        [model.triple_scores(triples)]
        + [
            model.triple_scores(Data(head=head[:, i], relation=RELATION, tail=tails[:, i]))
            for i in range(head.shape[1])
        ],
        1,
    )
    torch.testing.assert_close(found, expected)
    weights = [p for p in model.parameters() if p.requires_grad]
    torch.testing.assert_close(slopes(found, weights), slopes(expected, weights))


@pytest.mark.parametrize("kind", PYG)
@torch.no_grad()
def test_scores_are_pygs(kind):
    model = made(kind, dropout=0.0)
    theirs = getattr(kge, kind.__name__)(9, 3, DIM // (1 + kind.is_complex), **PYG[kind])
    entities = model.entities.weight
    if kind is TransE:  # PyTorch Geometric normalises heads and tails
        entities /= entities.norm(dim=1, keepdim=True)
    relations = model.angles.weight if kind is RotatE else model.relations.weight
    for own, name in ((entities, "node_emb"), (relations, "rel_emb")):
        tables = [getattr(theirs, n) for n in (name, f"{name}_im") if hasattr(theirs, n)]
        for table, half in zip(tables, own.chunk(len(tables), 1), strict=True):
            table.weight.copy_(half)
    rows = [theirs(h.expand(9), r.expand(9), ALL) for h, r in zip(HEAD, RELATION, strict=True)]
    torch.testing.assert_close(model.scores(queries()), torch.stack(rows), atol=1e-6, rtol=1e-6)


def murp(ball, model, h, r, t):
    moved = ball.expmap0(model.stretches.weight[r] * model.entities.weight[h])
    points = model.entities.weight[t], model.translations.weight[r]
    return moved, ball.mobius_add(*map(ball.expmap0, points))


def roth(ball, model, h, r, t):
    tables = (model.entities, h), (model.translations, r), (model.last_translations, r)
    head, first, last = (ball.expmap0(table.weight[row]) for table, row in tables)
    turned = rotate(unit_pairs(model.rotations.weight[r]), ball.mobius_add(head, first))
    return ball.mobius_add(turned, last), ball.expmap0(model.entities.weight[t])


def atth(ball, model, h, r, t):
    head = model.entities.weight[h]
    both = torch.stack(
        [
            rotate(unit_pairs(model.rotations.weight[r]), head),
            reflect(unit_pairs(model.reflections.weight[r]), head),
        ]
    )
    weights = (both @ model.contexts.weight[r] / DIM**0.5).softmax(0)
    points = weights @ both, model.translations.weight[r]
    return ball.mobius_add(*map(ball.expmap0, points)), ball.expmap0(model.entities.weight[t])


@pytest.mark.parametrize(
    ("kind", "formula", "kappas"),
    [(MuRP, murp, [-0.7]), (RotH, roth, [-0.3, -1, -2.5]), (AttH, atth, [-0.3, -1, -2.5])],
)
@pytest.mark.usefixtures("double_distances")
def test_a_model_is_its_formula_on_geoopts_balls(kind, formula, kappas):
    model, kappas = filled(made(kind, manifold=BALL), size=0.3), torch.tensor(kappas)
    model.curvature.raw.data.copy_(torch.expm1(-kappas).log())
    torch.testing.assert_close(model.curvature(), kappas)

    def score(h, r, t):
        ball = geoopt.PoincareBall(c=-kappas[r % len(kappas)])
        distance = ball.dist(*formula(ball, model, h, r, t))
        return -(distance**2) + model.head_bias[h] + model.tail_bias[t]

    torch.testing.assert_close(model.scores(queries()), triple_by_triple(score))


def roth_of_fifty_digits(model, h, r, t):
    """The score from the model's parameters, in the model's ball and with no rim."""
    kappa = exact(model.curvature()[r])

    def point(table, row):
        return reference.expmap0(exact(table.weight[row]), kappa)

    head = mobius_add(point(model.entities, h), point(model.translations, r), kappa)
    turned, angles = [], exact(model.rotations.weight[r])
    for i in range(0, len(head), 2):
        (a, b), (c, s) = head[i : i + 2], angles[i : i + 2]
        length = mp.hypot(c, s)
        turned += [(c * a - s * b) / length, (s * a + c * b) / length]
    moved = mobius_add(turned, point(model.last_translations, r), kappa)
    return torch.tensor(float(-(reference.dist(moved, point(model.entities, t), kappa) ** 2)))


@pytest.mark.parametrize(("norm", "near_rim"), [(0.8, False), (1.6, True)])
@pytest.mark.usefixtures("double_distances")
def test_roth_near_the_rim_needs_double_precision(norm, near_rim):
    """Entities and translations of norm 1.6 make points that float32's rim stops."""
    model = made(RotH, manifold=partial(BALL, kappa=-1.0))
    for table in (model.entities, model.translations, model.last_translations):
        directions = torch.randn_like(table.weight)
        table.weight.data = norm * directions / directions.norm(dim=1, keepdim=True)
    for parameter in model.parameters():
        parameter.data = parameter.data.float().double()  # numbers that both types have
    expected = triple_by_triple(partial(roth_of_fifty_digits, model))
    double = model.scores(queries()).detach()
    batch = Data(head=HEAD, relation=RELATION, tail=HEAD)
    torch.testing.assert_close(double, expected, rtol=1e-9, atol=0)
    assert model.statistics(batch)["at_rim"] == 0
    single = model.float().scores(queries()).detach().double()
    error = ((single - expected) / expected).abs().max()
    assert (error > 0.1) == near_rim
    assert (model.statistics(batch)["at_rim"] > 0) == near_rim
    if not near_rim:
        assert error < 1e-5


@pytest.mark.parametrize("kind", CURVED)
def test_the_share_at_the_rim_counts_queries_and_tails(kind):
    model = made(kind, manifold=BALL)
    batch = Data(head=HEAD, relation=RELATION, tail=torch.tensor([1, 1, 3, 3, 7]))
    assert model.statistics(batch)["at_rim"] == 0
    model.entities.weight.data[3] *= 1e4  # the tail of two triples, the head of none
    assert model.statistics(batch)["at_rim"] == 2 / 10
    assert DistMult(9, 3, 4, dropout=0.0).statistics(batch) == {}


def test_planes_are_rotated_and_reflected():
    angle, x = unit_pairs(torch.randn(4, DIM)), torch.randn(4, DIM)
    for move in (rotate, reflect):
        torch.testing.assert_close(move(angle, x).norm(dim=1), x.norm(dim=1))
    torch.testing.assert_close(reflect(angle, reflect(angle, x)), x)
    quarter = unit_pairs(torch.tensor([0.0, 2.0] * 3))
    torch.testing.assert_close(
        rotate(quarter, torch.tensor([1.0, 0.0] * 3)), torch.tensor([0.0, 1.0] * 3)
    )


@pytest.mark.parametrize("relations", [[0, 1, 2, 2, 0], [1, 1, 1, 1, 1]])
@pytest.mark.parametrize("kind", CURVED)
@pytest.mark.usefixtures("double_distances")
def test_scores_and_gradients_are_those_of_the_formula_of_single_triples(kind, relations):
    """`triple_scores` is the plain form, by autograd, in both regimes: inside and at the rim."""
    model = filled(made(kind, manifold=BALL), size=0.3)
    model.entities.weight.data[7] *= 1e3
    query = Data(head=HEAD, relation=torch.tensor(relations))
    pairs = Data(
        head=query.head.repeat_interleave(ENTITIES),
        relation=query.relation.repeat_interleave(ENTITIES),
        tail=ALL.repeat(len(HEAD)),
    )
    found, expected = model.scores(query), model.triple_scores(pairs).view(len(HEAD), ENTITIES)
    torch.testing.assert_close(found, expected)
    weights = torch.randn_like(found)
    gradients = (
        torch.autograd.grad((weights * scores).sum(), list(model.parameters()))
        for scores in (found, expected)
    )
    torch.testing.assert_close(*gradients, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kind", CURVED)
@pytest.mark.usefixtures("plain_kernels")
def test_final_distances_in_single_precision_have_the_ranks_of_double(kind, monkeypatch):
    model = kind(2000, 3, dim=16).double()
    model.entities.weight.data *= 1e3  # some points are at the rim
    batch = Data(head=torch.arange(50), relation=torch.arange(50) % 3)
    ranks = []
    for final in (torch.float32, torch.float64):
        monkeypatch.setattr(ball_distances, "DISTANCE_DTYPE", final)
        ranks.append(model.scores(batch).argsort(dim=1, descending=True).argsort(dim=1))
    moved = (ranks[0] - ranks[1]).abs()
    assert moved.max() <= 2
    assert moved.double().mean() < 0.01


@pytest.mark.parametrize("kind", CURVED)
def test_gradients_are_finite_where_points_coincide_and_at_the_rim(kind):
    model = made(kind, manifold=BALL)
    model.entities.weight.data[4] = model.entities.weight.data[0] = 0
    model.entities.weight.data[8] *= 1e4
    model.translations.weight.data.zero_()
    assert_finite(model.scores(queries()), model.parameters())


def test_halves_need_an_even_width():
    for kind in (ComplEx, RotatE):
        with pytest.raises(UsageError, match=r"dim=5 must be even"):
            kind(ENTITIES, RELATIONS, dim=5)


def test_floors_count_training_triples():
    triples = torch.tensor([[0, 1, 2, 0, 5], [1, 1, 1, 0, 1], [4, 4, 3, 4, 8]])
    batch = Data(head=torch.tensor([8, 3, 8]), relation=torch.tensor([1, 1, 0]))
    frequency = RelationFrequency(ENTITIES, RELATIONS, triples).scores(batch)
    counts = [0, 0, 0, 1, 2, 0, 0, 0, 1]
    assert frequency.tolist() == [counts, counts, [0, 0, 0, 0, 1, 0, 0, 0, 0]]
    lookup = ReverseLookup(ENTITIES, RELATIONS, triples).scores(batch)
    assert lookup.argmax(1).tolist() == [5, 2, 4]  # (5, 1, 8) and (2, 1, 3) are known
    assert lookup[0].argsort(descending=True, stable=True)[:2].tolist() == [5, 4]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", [1, 2 * ENTITIES, 2**20])
@pytest.mark.usefixtures("double_distances")
def test_a_loss_in_blocks_has_the_gradient_of_all_scores(kind, block, monkeypatch):
    monkeypatch.setattr(triple_losses, "block_entries", lambda _: block)
    model = made(kind, **({"manifold": BALL} if kind in CURVED else {}))
    query, tail = torch.tensor([0, 1, 1, 2, 3, 4, 4]), torch.tensor([3, 0, 8, 4, 4, 1, 2])
    plain = F.cross_entropy(model.scores(queries())[query], tail)
    parameters = list(model.parameters())
    expected = torch.autograd.grad(plain, parameters)
    batch = model.sort_queries(queries().update(Data(query=query, tail=tail)))
    scores, sources = model.block_scores(batch)
    shape = len(HEAD), model.num_entities
    loss = triple_losses.one_vs_all_loss(scores, sources, shape, batch.query, tail, 0.0)
    assert float(loss.detach()) == pytest.approx(float(plain.detach()), abs=1e-12)
    torch.testing.assert_close(
        torch.autograd.grad(loss, parameters), expected, atol=1e-12, rtol=1e-10
    )
