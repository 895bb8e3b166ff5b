"""Losses of triples are torch's and the papers'; samples are drawn as the papers say."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Data

from curvlab.data.datasets.synthetic_triples import SyntheticKnowledgeGraph
from curvlab.data.datasets.triples import triple_numbers
from curvlab.data.loaders.triple_batches import TripleDataModule
from curvlab.errors import UsageError
from curvlab.models.triples.flat import ComplEx, DistMult, RotatE, TransE
from curvlab.tasks import triple_losses
from curvlab.tasks.kg_completion import KnowledgeGraphCompletion
from curvlab.tasks.triple_losses import SAMPLE_LOSSES, corrupt, one_vs_all_loss
from curvlab.tasks.triple_regularization import REGULARIZERS, dura

TRUE = torch.tensor([[0.3], [-1.2]], dtype=torch.float64)
SIDES = {"head": 3, "tail": 7}
SAMPLES = torch.tensor([[0.1, -0.4, 2.0], [0.0, -3.0, -1.0]], dtype=torch.float64)


def softmax():
    return F.cross_entropy(
        torch.cat([TRUE, SAMPLES], 1), torch.zeros(2, dtype=torch.long), reduction="none"
    )


def bce():
    scores = torch.cat([TRUE, SAMPLES], 1)
    target = torch.tensor([[1.0, 0, 0, 0]] * 2, dtype=torch.float64)
    return F.binary_cross_entropy_with_logits(scores, target, reduction="none").sum(1)


def margin():
    ones = torch.ones_like(SAMPLES)
    return F.margin_ranking_loss(
        TRUE.expand_as(SAMPLES), SAMPLES, ones, 0.7, reduction="none"
    ).mean(1)


def self_adversarial():
    """Sun et al. 2019, equation 5, with distances d = -score: term by term."""
    found = []
    for true, samples in zip(TRUE.tolist(), SAMPLES.tolist(), strict=True):
        weights = [math.exp(0.5 * s) for s in samples]
        log_sigmoid = [
            -math.log1p(math.exp(-x)) for x in [0.7 + true[0], *(-s - 0.7 for s in samples)]
        ]
        sampled = sum(w / sum(weights) * x for w, x in zip(weights, log_sigmoid[1:], strict=True))
        found.append(-(log_sigmoid[0] + sampled) / 2)
    return torch.tensor(found, dtype=torch.float64)


@pytest.mark.parametrize("expected", [softmax, bce, margin, self_adversarial])
def test_a_loss_is_the_papers(expected):
    loss = SAMPLE_LOSSES[expected.__name__]
    torch.testing.assert_close(loss(TRUE, SAMPLES, 0.7, 0.5), expected())
    left_out = torch.cat([SAMPLES, torch.full((2, 1), -torch.inf)], 1)
    if expected is not margin:  # a mean over the samples
        torch.testing.assert_close(loss(TRUE, left_out, 0.7, 0.5), expected())


@pytest.mark.parametrize("name", SAMPLE_LOSSES)
def test_a_triple_whose_samples_are_all_known_keeps_its_own_term(name):
    true, samples = TRUE.clone().requires_grad_(), torch.full((2, 3), -torch.inf).double()
    samples.requires_grad_()
    loss = SAMPLE_LOSSES[name](true, samples, 0.7, 0.5)
    own = {"bce": F.softplus(-TRUE), "self_adversarial": F.softplus(-0.7 - TRUE) / 2}
    torch.testing.assert_close(loss, own.get(name, torch.zeros_like(TRUE))[:, 0])
    slopes = torch.autograd.grad(loss.sum(), (true, samples))
    assert all(slope.isfinite().all() for slope in slopes)
    assert not slopes[1].any()


def test_regularisers_by_hand():
    moduli = torch.tensor([[[1.0, 2.0]], [[3.0, 0.5]], [[0.0, 1.0]]])
    query = torch.tensor([[3.0, 4.0]])
    assert REGULARIZERS["n3"](moduli).flatten().tolist() == pytest.approx([3, 27.125 / 3, 1 / 3])
    assert REGULARIZERS["l2"](moduli).flatten().tolist() == pytest.approx([2.5, 4.625, 0.5])
    assert dura(moduli, query).item() == pytest.approx(25 + 1)


def test_n3_adds_the_cubes_of_the_moduli():
    """Lacroix et al. 2018, equation 7, by the difference of two losses."""
    data = module(training="one_vs_all")
    batch, model = data.batch(torch.arange(20)), ComplEx(**data.inputs, dim=4, dropout=0.0)
    plain, cubed = (
        KnowledgeGraphCompletion(model, regularizer=r, regularization=0.3).training_step(batch, 0)
        for r in (None, "n3")
    )
    row = batch.query
    columns = (model.entities, batch.head[row]), (model.relations, batch.relation[row])
    columns = (*columns, (model.entities, batch.tail))
    cubes = sum(
        (torch.complex(*table(index).chunk(2, -1)).abs() ** 3).sum(1) for table, index in columns
    )
    torch.testing.assert_close(cubed - plain, 0.3 * (cubes / 3).mean())


@pytest.mark.parametrize("regularizer", ["l2", "n3"])
@pytest.mark.parametrize("kind", [TransE, DistMult, ComplEx, RotatE])
def test_a_regulariser_of_all_rows_has_its_slope_on_every_row(kind, regularizer):
    """That of w |x|^p / p, times x |x|^(p - 2): for p = 2, what a weight decay of w adds."""
    data = module(training="one_vs_all")
    batch, model = data.batch(torch.arange(3)), kind(**data.inputs, dim=4, dropout=0.0)
    weights = {"entities": 0.3, "relations": 0.0 if kind is RotatE else 0.7}
    how = {"regularizer": regularizer, "regularization": weights, "regularized_rows": "all"}
    plain, regularised = (
        torch.autograd.grad(
            KnowledgeGraphCompletion(model, **options).training_step(batch, 0), model.parameters()
        )
        for options in ({}, how)
    )
    for (name, table), before, after in zip(
        model.named_parameters(), plain, regularised, strict=True
    ):
        weight = weights.get(name.partition(".")[0], 0.0)
        moduli = torch.ones_like(table)
        if regularizer == "n3":
            parts = table.chunk(2 if model.is_complex else 1, 1)
            moduli = torch.stack(parts).square().sum(0).sqrt().repeat(1, len(parts))
        torch.testing.assert_close(after - before, weight * moduli * table, atol=1e-6, rtol=1e-4)


def test_entities_and_relations_of_a_batch_have_their_own_weights():
    data = module(training="one_vs_all")
    batch, model = data.batch(torch.arange(20)), DistMult(**data.inputs, dim=4, dropout=0.0)

    def loss(**options):
        return KnowledgeGraphCompletion(model, **options).training_step(batch, 0)

    weights = {"entities": 0.3, "relations": 0.7}
    row = batch.query
    of_ends = model.entities(batch.head[row]).square() + model.entities(batch.tail).square()
    expected = (0.3 * of_ends + 0.7 * model.relations(batch.relation[row]).square()).sum(1) / 2
    found = loss(regularizer="l2", regularization=weights) - loss()
    torch.testing.assert_close(found, expected.mean())


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("kind", [ComplEx, TransE])
def test_each_side_of_a_triple_has_its_own_samples(kind, inverse, monkeypatch):
    """The mean over sides of cross-entropies against 3 heads, and against 7 tails."""
    options = {"training": "negative_sampling", "inverse_relations": inverse}
    data = module(**options)
    batch = data.batch(torch.randperm(len(data.train_triples.T))[:20])
    model = kind(**data.inputs, dim=4, dropout=0.0)
    task = KnowledgeGraphCompletion(model, **options, negatives={"head": 3, "tail": 7})
    drawn, randint = {}, torch.randint

    def kept(entities, shape, **others):
        drawn[shape[1]] = randint(entities, shape, **others)
        return drawn[shape[1]]

    monkeypatch.setattr(torch, "randint", kept)
    loss = task.training_step(batch, 0)
    triples = zip(batch.head[batch.query], batch.relation[batch.query], batch.tail, strict=True)
    losses, used = [], {3: 0, 7: 0}
    for head, relation, tail in triples:
        sides = ("tail", "head")
        if inverse:  # (t, r^-1, h) predicts the head h
            sides = ("head",) if relation >= data.num_relations // 2 else ("tail",)
        for side in sides:
            count = {"head": 3, "tail": 7}[side]
            ends = drawn[count][used[count]]
            used[count] += 1
            every = torch.cat([(tail if side == "tail" or inverse else head).view(1), ends])
            columns = {"head": head.expand(count + 1), "tail": tail.expand(count + 1)}
            columns["tail" if side == "tail" or inverse else "head"] = every
            scores = model.triple_scores(Data(relation=relation.expand(count + 1), **columns))
            losses.append(F.cross_entropy(scores, torch.tensor(0)))
    assert used == {count: len(rows) for count, rows in drawn.items()}
    torch.testing.assert_close(loss, torch.stack(losses).mean())


@pytest.mark.parametrize("inverse", [False, True])
def test_weights_of_subsampling_are_inverse_roots_of_counts(inverse):
    data = module(training="negative_sampling", inverse_relations=inverse, subsampling=True)
    triples = [tuple(triple) for triple in data.train_triples.T.tolist()]
    batch = data.batch(torch.arange(0, len(triples), 3))
    for weight, (head, relation, tail) in zip(batch.weight, triples[::3], strict=True):
        same_pair = sum((h, r) == (head, relation) for h, r, _ in triples)
        same_tail = sum((r, t) == (relation, tail) for _, r, t in triples)
        # the authors count from 4, where a pair that occurs once has 4
        assert weight.item() == pytest.approx((same_pair + 3 + same_tail + 3) ** -0.5)


@pytest.mark.parametrize("kind", [RotatE, TransE])
def test_training_of_sun_et_al_2019_is_the_authors_formula(kind, monkeypatch):
    """Loss and gradient of equation 5 with weights, margin and temperature, by complex numbers."""
    monkeypatch.setattr(torch, "get_default_dtype", lambda: torch.float64)
    options = {"training": "negative_sampling", "inverse_relations": True, "subsampling": True}
    data = module(**options)
    batch = data.batch(torch.randperm(len(data.train_triples.T))[:20])
    scale = {"angle_scale": math.pi / 0.3} if kind is RotatE else {}
    model = kind(**data.inputs, dim=6, init=0.3, norm=1, reciprocal=False, **scale).double()
    how = {"loss": "self_adversarial", "margin": 6.0, "temperature": 0.5}
    task = KnowledgeGraphCompletion(model, **options, **how, negatives={"head": 5, "tail": 5})
    drawn, randint = [], torch.randint

    def kept(*args, **others):
        drawn.append(randint(*args, **others))
        return drawn[-1]

    monkeypatch.setattr(torch, "randint", kept)
    loss = task.training_step(batch, 0)
    relations = data.num_relations // 2
    inverse = batch.relation[batch.query] >= relations
    order = torch.cat([(~inverse).nonzero(), inverse.nonzero()]).squeeze(1)
    samples = torch.cat(drawn)

    def distance(head, relation, tail):
        ends = model.entities.weight[head], model.entities.weight[tail]
        if kind is TransE:
            return (ends[0] + model.relations.weight[relation] - ends[1]).abs().sum(-1)
        head, tail = (torch.complex(*end.chunk(2, -1)) for end in ends)
        turned = torch.polar(
            torch.ones(3, dtype=torch.float64), model.angles.weight[relation] * math.pi / 0.3
        )
        return (head * turned - tail).abs().sum(-1)

    positive, negative, weights = [], [], []
    for row, ends in zip(order.tolist(), samples.tolist(), strict=True):
        head = int(batch.head[batch.query[row]])
        relation, tail = int(batch.relation[batch.query[row]]), int(batch.tail[row])
        if relation >= relations:  # the head of (tail, relation, head) is replaced
            relation, distances = relation - relations, []
            distances = [distance(end, relation, head) for end in [tail, *ends]]
        else:
            distances = [distance(head, relation, end) for end in [tail, *ends]]
        scores = 6.0 - torch.stack(distances)
        share = (0.5 * scores[1:]).softmax(0).detach()
        positive.append(-F.logsigmoid(scores[0]))
        negative.append(-(share * F.logsigmoid(-scores[1:])).sum())
        weights.append(batch.weight[row])
    weight = torch.stack(weights).double()
    sides = [(weight * torch.stack(part)).sum() / weight.sum() for part in (positive, negative)]
    expected = sum(sides) / 2
    torch.testing.assert_close(loss, expected, rtol=1e-9, atol=0)
    leaves = list(model.parameters())
    torch.testing.assert_close(
        torch.autograd.grad(loss, leaves),
        torch.autograd.grad(expected, leaves),
        rtol=1e-6,
        atol=1e-9,
    )


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_samples_replace_one_end_by_any_entity(share):
    triples = torch.tensor([[50, 51], [1, 2], [60, 61]])
    head, relation, tail = corrupt(triples, 4000, 50, share)
    assert torch.equal(relation, triples[1].unsqueeze(1).expand(2, 4000))
    replaced = head < 50
    assert torch.equal(replaced, tail >= 50)  # never both
    assert replaced.double().mean().item() == pytest.approx(share, abs=4 * 0.5 / math.sqrt(8000))
    drawn = torch.where(replaced, head, tail)
    assert drawn.unique().tolist() == list(range(50))


def test_samples_of_both_ends_are_drawn_apart():
    triples = torch.tensor([[50, 51], [1, 2], [60, 61]])
    head, relation, tail = corrupt(triples, 4000, 50, 0.5, both_ends=True)
    assert max(head.max(), tail.max()) < 50
    assert (head == tail).double().mean().item() == pytest.approx(1 / 50, abs=0.007)
    assert torch.equal(relation, triples[1].unsqueeze(1).expand(2, 4000))


def module(**options):
    made = TripleDataModule(size=20, source=SyntheticKnowledgeGraph(8, 5, 0), **options)
    made.setup("fit")
    return made


def test_bernoulli_follows_tails_per_head():
    data = module(training="negative_sampling", corruption="bernoulli")
    head, relation, tail = data.train_triples
    batch = data.batch(torch.arange(20))
    for number, chance in zip(batch.relation[batch.query], batch.corrupt_head, strict=True):
        of = relation == number
        tails_per_head = int(of.sum()) / len(head[of].unique())
        heads_per_tail = int(of.sum()) / len(tail[of].unique())
        assert chance.item() == pytest.approx(tails_per_head / (tails_per_head + heads_per_tail))


def test_whole_queries_have_all_their_training_tails():
    data = module(training="k_vs_all")
    head, relation, tail = data.train_triples
    batch = data.batch(torch.arange(5))
    for row, (h, r) in enumerate(zip(batch.head, batch.relation, strict=True)):
        assert set(batch.tail[batch.query == row].tolist()) == set(
            tail[(head == h) & (relation == r)].tolist()
        )


def test_filtered_samples_are_no_training_triples(monkeypatch):
    data = module(training="negative_sampling", filtered=True)
    batch, entities = data.batch(torch.arange(20)), data.num_nodes
    options = {"training": "negative_sampling", "negatives": 30, "filtered": True}
    task = KnowledgeGraphCompletion(ComplEx(**data.inputs, dim=4), **options)
    seen, drawn = {}, []

    def loss(true, samples, *_):
        seen["left"] = samples.isfinite()
        return true.squeeze(1)

    def kept(*args):
        drawn.append(corrupt(*args))
        return drawn[0]

    monkeypatch.setitem(SAMPLE_LOSSES, "softmax", loss)
    monkeypatch.setattr("curvlab.tasks.triple_sampling.corrupt", kept)
    task.training_step(batch, 0)
    known = torch.isin(
        triple_numbers(*drawn[0], entities), triple_numbers(*data.train_triples, entities)
    )
    assert known.any()
    assert torch.equal(seen["left"], ~known)


@pytest.mark.parametrize("negatives", [40, 100])
@pytest.mark.parametrize("shared", [False, True])
def test_as_many_samples_as_entities_are_drawn_with_replacement(negatives, shared, monkeypatch):
    how = {"training": "negative_sampling", "corruption": "tail"}
    data = module(**how)
    assert data.num_nodes == 40
    batch = data.batch(torch.arange(20))
    model = ComplEx(**data.inputs, dim=4, dropout=0.0)
    task = KnowledgeGraphCompletion(model, **how, negatives=negatives, shared_negatives=shared)
    drawn, randint = [], torch.randint

    def kept(*args, **options):
        drawn.append(randint(*args, **options))
        return drawn[-1]

    monkeypatch.setattr(torch, "randint", kept)
    loss = task.training_step(batch, 0)
    samples = drawn[0].expand(20, negatives)
    assert all(len(row.unique()) < negatives for row in samples)
    head, relation = batch.head[batch.query], batch.relation[batch.query]
    tails = torch.cat([batch.tail.unsqueeze(1), samples], 1)
    rows = {"head": head, "relation": relation}
    columns = Data(
        tail=tails.flatten(), **{k: v.repeat_interleave(negatives + 1) for k, v in rows.items()}
    )
    scores = model.triple_scores(columns).view(20, -1)
    torch.testing.assert_close(loss, F.cross_entropy(scores, torch.zeros(20, dtype=torch.long)))


@pytest.mark.parametrize("filtered", [False, True])
def test_shared_samples_are_scored_with_every_query(filtered, monkeypatch):
    """The loss is that of each triple against the same tails, but for known ones."""
    how = {"training": "negative_sampling", "corruption": "tail", "filtered": filtered}
    data = module(**how)
    batch = data.batch(torch.arange(20))
    model = ComplEx(**data.inputs, dim=4, dropout=0.0)
    task = KnowledgeGraphCompletion(model, **how, negatives=7, shared_negatives=True)
    drawn = torch.tensor([0, 3, 8, 11, 20, 30, 39])
    monkeypatch.setattr(torch, "randint", lambda *_, **__: drawn)
    known = set(zip(*(column.tolist() for column in data.train_triples), strict=True))
    losses = []
    for row, tail in zip(batch.query.tolist(), batch.tail.tolist(), strict=True):
        head, relation = int(batch.head[row]), int(batch.relation[row])
        of = [t for t in drawn.tolist() if not filtered or (head, relation, t) not in known]
        columns = Data(
            head=torch.full((len(of) + 1,), head),
            relation=torch.full((len(of) + 1,), relation),
            tail=torch.tensor([tail, *of]),
        )
        losses.append(F.cross_entropy(model.triple_scores(columns), torch.tensor(0)))
    torch.testing.assert_close(task.training_step(batch, 0), torch.stack(losses).mean())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"training": "negative_sampling", "negatives": 4, "shared_negatives": True},
            "set task.corruption=tail",
        ),
        ({"loss": "margin"}, "set task.training=negative_sampling"),
        ({"smoothing": "added"}, r"needs task\.training=k_vs_all"),
        ({"smoothing": "added", "training": "k_vs_all", "loss": "bce"}, r"task\.loss=softmax"),
        (
            {"smoothing": "added", "training": "k_vs_all", "label_smoothing": 0.0},
            "greater than 0",
        ),
        ({"negatives": SIDES}, "set task.training=negative_sampling"),
        ({"subsampling": True}, "set task.training=negative_sampling"),
        (
            {"training": "negative_sampling", "negatives": SIDES, "shared_negatives": True}
            | {"corruption": "tail"},
            r"set task\.shared_negatives=false",
        ),
        (
            {"training": "negative_sampling", "negatives": SIDES, "corruption": "both"},
            r"set task\.corruption=uniform",
        ),
        ({"negatives": {"head": 3}}, "keys head and tail, each a whole number of at least 1"),
        ({"negatives": {"head": 3, "tail": 0}}, "negatives"),
        ({"regularization": {"entities": 0.1}}, "keys entities and relations"),
        ({"regularized_rows": "all"}, r"needs task\.regularizer=l2 or n3"),
        ({"regularized_rows": "all", "regularizer": "dura"}, r"needs task\.regularizer=l2 or n3"),
        (
            {"regularizer": "dura", "regularization": {"entities": 0.1, "relations": 0.1}},
            "has one weight",
        ),
        (
            {"regularized_rows": "all", "regularizer": "l2", "sparse": True},
            "set model.sparse=false",
        ),
        ({"reciprocal": False}, r"set task\.inverse_relations=true"),
    ],
)
def test_what_does_not_fit_is_refused(options, says):
    options = dict(options)
    of_model = {"reciprocal": True, "sparse": False}
    of_model = {name: options.pop(name, value) for name, value in of_model.items()}
    encoder = ComplEx(40, 3, dim=4, **of_model)
    with pytest.raises(UsageError, match=says):
        KnowledgeGraphCompletion(encoder, **options)


def product_loss(queries, candidates, query, tail, smoothing, *how):
    """The loss of dot products, a block at a time."""
    shape, sources, truth = (len(queries), len(candidates)), (queries, candidates), (query, tail)
    return one_vs_all_loss(lambda r, q, c: q[r] @ c.T, sources, shape, *truth, smoothing, *how)


def problem(dtype=torch.float64):
    """Five queries over eleven entities and eight triples, some of the same query."""
    queries = torch.randn(5, 4, dtype=dtype).requires_grad_()
    candidates = torch.randn(11, 4, dtype=dtype).requires_grad_()
    query = torch.tensor([0, 1, 1, 2, 3, 4, 4, 4])
    tail = torch.randint(0, 11, (8,))
    return queries, candidates, query, tail


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("per_query", [False, True])
@pytest.mark.parametrize("block", [1, 30, 2**20])
def test_each_loss_is_torchs_of_all_targets(smoothing, binary, per_query, block, monkeypatch):
    monkeypatch.setattr(triple_losses, "block_entries", lambda _: block)
    queries, candidates, query, tail = problem()
    tail = torch.arange(8)  # of a query each tail once
    other = smoothing / 10
    hot = torch.full((8, 11), other, dtype=torch.float64)
    hot[torch.arange(8), tail] = 1 - smoothing
    rows = query
    if per_query:
        rows, true = torch.arange(5), torch.zeros(5, 11, dtype=torch.float64)
        true[query, tail] = 1.0
        share = true if binary else true / true.sum(1, keepdim=True)
        hot = other + (1 - smoothing - other) * share
    scores = (queries @ candidates.T)[rows]
    expected = F.cross_entropy(scores, hot)
    if binary:
        expected = F.binary_cross_entropy_with_logits(scores, hot, reduction="none").sum(1).mean()
    loss = product_loss(queries, candidates, query, tail, smoothing, binary, per_query)
    torch.testing.assert_close(loss, expected)
    leaves = (queries, candidates)
    torch.testing.assert_close(
        torch.autograd.grad(3 * loss, leaves), torch.autograd.grad(3 * expected, leaves)
    )


@pytest.mark.parametrize("block", [1, 30, 2**20])
def test_added_smoothing_normalises_the_targets_of_each_query(block, monkeypatch):
    """LibKGE: (1 - e) y + 1 / E, divided by its sum; its divergence lacks the targets' entropy."""
    monkeypatch.setattr(triple_losses, "block_entries", lambda _: block)
    queries, candidates, query, _ = problem()
    tail, true = torch.arange(8), torch.zeros(5, 11, dtype=torch.float64)
    true[query, tail] = 1.0
    target = F.normalize(0.7 * true + 1 / 11, p=1, dim=1)
    expected = F.cross_entropy(queries @ candidates.T, target)
    divergence = F.kl_div((queries @ candidates.T).log_softmax(1), target, reduction="sum") / 5
    loss = product_loss(queries, candidates, query, tail, 0.3, False, True, True)
    torch.testing.assert_close(loss, expected)
    leaves = (queries, candidates)
    found = torch.autograd.grad(loss, leaves)
    torch.testing.assert_close(found, torch.autograd.grad(divergence, leaves))


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_factors_to_torchs_losses(smoothing):
    """Torch smooths over all entities, and its binary loss is their mean."""
    queries, candidates, query, tail = problem()
    scores, entities = (queries @ candidates.T)[query], len(candidates)
    own = smoothing * (entities - 1) / entities
    found = product_loss(queries, candidates, query, tail, own)
    torch.testing.assert_close(found, F.cross_entropy(scores, tail, label_smoothing=smoothing))
    if smoothing:
        assert found != product_loss(queries, candidates, query, tail, smoothing)
    target = F.one_hot(tail, entities).double() * (1 - smoothing) + smoothing / entities
    expected = entities * F.binary_cross_entropy_with_logits(scores, target)
    found = product_loss(queries, candidates, query, tail, own, True)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("binary", [False, True])
def test_factors_to_torchs_losses_of_whole_queries(smoothing, binary):
    queries, candidates, query, _ = problem()
    tail, entities = torch.arange(8), len(candidates)
    scores, true = queries @ candidates.T, torch.zeros(5, entities, dtype=torch.float64)
    true[query, tail] = 1.0
    if binary:
        target = true * (1 - smoothing) + smoothing / entities
        expected = entities * F.binary_cross_entropy_with_logits(scores, target)
    else:
        share = true / true.sum(1, keepdim=True)
        expected = F.cross_entropy(scores, share, label_smoothing=smoothing)
    own = smoothing * (entities - 1) / entities
    found = product_loss(queries, candidates, query, tail, own, binary, True)
    torch.testing.assert_close(found, expected)


def test_large_scores_do_not_overflow():
    queries, candidates, query, tail = problem(torch.float32)
    loss = product_loss(1000 * queries, candidates, query, tail, 0.1)
    exact = product_loss(1000 * queries.double(), candidates.double(), query, tail, 0.1)
    torch.testing.assert_close(loss.double(), exact, rtol=1e-5, atol=0)


def test_mixed_precision_is_as_exact_as_its_products():
    queries, candidates, query, tail = problem(torch.float32)
    exact = product_loss(queries, candidates, query, tail, 0.1)
    expected = torch.autograd.grad(exact, (queries, candidates))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = product_loss(queries, candidates, query, tail, 0.1)
    found = torch.autograd.grad(rough, (queries, candidates))
    assert rough.dtype == torch.float32
    assert float(rough.detach()) == pytest.approx(float(exact.detach()), rel=2e-2)
    for own, right in zip(found, expected, strict=True):
        assert own.dtype == torch.float32
        torch.testing.assert_close(own, right, atol=2e-2, rtol=5e-2)
