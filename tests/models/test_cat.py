"""CAT: counts, routing, its entropy term, its layouts of tokens, nodes and triples."""

import math
from types import SimpleNamespace

import pytest
import torch
from torch_geometric.data import Data

from composing import composed
from curvlab.errors import UsageError
from curvlab.models.cat import RoutingEntropy
from curvlab.models.cat_tokens import NeighbourTokens
from curvlab.run.parts import build_encoder


def model(name="cat", *words, dataset="wn18rr", steps_per_pass=1, train_triples=None, **sizes):
    config = composed(f"model={name}", f"dataset={dataset}", *words)
    inputs = {"num_entities": 9, "num_relations": 3} if dataset == "wn18rr" else {"in_channels": 5}
    torch.manual_seed(0)
    taken = {"steps_per_pass": steps_per_pass, "train_triples": train_triples}
    return build_encoder(config, SimpleNamespace(inputs=inputs | sizes, **taken))


def queries():
    return Data(head=torch.tensor([0, 4, 4, 8]), relation=torch.tensor([0, 1, 2, 2]))


def parameters(module):
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize(
    ("name", "fb15k237", "wn18rr"),
    [
        ("cat_euclidean", 979_264, 2_654_528),
        ("cat_hyperbolic", 974_720, 2_649_984),
        ("cat_spherical", 966_656, 2_641_920),  # printed 967,090, and a misprint
        ("cat", 1_031_235, 2_706_499),  # printed 1,031,669 and 2,706,933
    ],
)
def test_parameters_of_table_2(name, fb15k237, wn18rr):
    assert parameters(model(name, num_entities=14_541, num_relations=237)) == fb15k237
    assert parameters(model(name, num_entities=40_943, num_relations=11)) == wn18rr


def test_the_whole_is_its_branches_and_a_router():
    """Which holds of the printed numbers too, and of the control with three equal branches."""
    blocks = {n: parameters(model(n).blocks) for n in ("cat_euclidean", "cat_hyperbolic")}
    blocks["cat_spherical"] = parameters(model("cat_spherical").blocks)
    assert parameters(model().blocks) == sum(blocks.values()) + 2_179 == 85_443
    assert parameters(model("cat_eee").blocks) == 3 * 33_472 + 2_179 == 102_595
    assert parameters(model("cat_uniform").blocks) == sum(blocks.values())
    tables = 945_792
    printed = [979_264 - tables, 974_720 - tables, 967_090 - tables]
    assert 1_031_669 - tables - sum(printed) == 2_179


def test_scores_are_products_with_the_entities():
    cat = model().eval()
    batch = queries()
    expected = torch.stack([cat(batch) @ e for e in cat.tokens.entities.weight], 1)
    torch.testing.assert_close(cat.scores(batch), expected)
    assert cat.scores(batch).shape == (4, 9)


def test_a_router_that_is_sure_leaves_one_branch():
    cat = model().eval()
    last = cat.blocks[0].router.logits.reduce
    last.weight.data.zero_()
    for chosen, name in enumerate(cat.branch_names):
        last.bias.data = torch.full((3,), -1e9).index_fill(0, torch.tensor(chosen), 0.0)
        alone = model(f"cat_{name}").eval()
        alone.tokens.load_state_dict(cat.tokens.state_dict())
        alone.blocks[0].branches[0].load_state_dict(cat.blocks[0].branches[chosen].state_dict())
        torch.testing.assert_close(cat(queries()), alone(queries()))


def test_without_a_router_all_branches_count_the_same():
    uniform = model("cat_uniform").eval()
    x, _ = uniform.tokens(queries())
    mean = torch.stack([branch(x) for branch in uniform.blocks[0].branches]).mean(0)
    torch.testing.assert_close(uniform(queries()), mean.squeeze(1))
    assert uniform.routing is None
    for encoder in (uniform, model("cat_euclidean").eval()):
        total = encoder.triple_loss(lambda encoder=encoder: encoder(queries()).sum())
        assert torch.equal(total, encoder(queries()).sum())


def test_the_entropy_term_is_annealed_once_a_pass():
    term = RoutingEntropy(steps_per_pass=4)
    weights = torch.tensor([[0.7, 0.2, 0.1]])
    found = {}
    for step in range(4 * 46):
        found[step] = float(term.coefficient)
        assert float(term(weights)) == pytest.approx(-found[step] * 0.80181855, rel=1e-5)
    assert [found[s] for s in (0, 3, 4, 40)] == pytest.approx(
        [0.01, 0.01, 0.0095, 0.0059873694], rel=1e-5
    )
    assert found[4 * 44 + 3] > 0.001 == pytest.approx(found[4 * 45])
    assert "step" in term.state_dict()  # a resumed run goes on with it


@pytest.mark.parametrize("sign", ["encourage", "paper_formula"])
def test_a_step_on_the_entropy_term_raises_or_lowers_the_entropy(sign):
    words = (f"model.entropy.sign={sign}", "model.entropy.weight=1")
    cat = model("cat", *words, steps_per_pass=1000).eval()
    cat.blocks[0].router.logits.reduce.bias.data = torch.tensor([1.0, 0.0, -1.0])

    def term():
        return cat.triple_loss(lambda: 0 * cat(queries()).sum())

    optimizer = torch.optim.SGD(cat.blocks.parameters(), lr=0.1)
    before = term()
    before.backward()
    optimizer.step()
    sense = -1 if sign == "encourage" else 1
    entropies = sense * before.item(), sense * term().item()
    assert 0 < min(entropies) < math.log(3)
    assert (entropies[1] > entropies[0]) == (sign == "encourage")


@pytest.mark.parametrize(("used", "term"), [([1 / 3] * 3, 0.0), ([1.0, 0.0, 0.0], 2.0)])
def test_the_balancing_term_is_0_where_the_mean_weights_are_equal(used, term):
    """It is G - 1 where all tokens use one branch, and looks at means, not at single tokens."""
    of_one = {"weight": 0.0, "floor": 0.0}
    balanced = RoutingEntropy(1, **of_one, balance=0.5)
    assert balanced(torch.tensor([used] * 4)).item() == pytest.approx(0.5 * term, abs=1e-6)
    assert balanced(torch.eye(3)).item() == pytest.approx(0.0, abs=1e-6)


def test_a_router_can_start_with_equal_weights():
    encoder = model("cat__equal_start")
    encoder(queries())
    torch.testing.assert_close(encoder.routing, torch.full((4, 3), 1 / 3))


TRIPLES = torch.tensor([[0, 0, 4, 5, 6], [0, 0, 1, 2, 0], [1, 2, 0, 4, 7]])
"""Head 0 has answers 1 and 2 by relation 0 and comes in from 4 by relation 1."""


@pytest.mark.parametrize(
    ("inverse", "head", "relation", "seen"),
    [
        (False, 0, 0, {4}),
        (False, 0, 1, {1, 2, 4}),
        (False, 3, 0, set()),
        (True, 0, 0, {4}),
        (True, 0, 4, {1, 2}),  # (4, 1, 0), whose inverse it is
        (True, 4, 1, {5}),
    ],
)
def test_neighbours_are_training_triples_of_the_head_but_its_answers(inverse, head, relation, seen):
    turned = torch.stack([TRIPLES[2], TRIPLES[1] + 3, TRIPLES[0]])
    triples = torch.cat([TRIPLES, turned], 1) if inverse else TRIPLES
    tokens = NeighbourTokens(9, 6 if inverse else 3, 4, 0.0, triples, 3)
    batch = Data(head=torch.tensor([head]), relation=torch.tensor([relation]))
    x, mask = tokens(batch)
    assert set(tokens.others[head][mask[0, 0, 1:]].tolist()) == seen
    assert mask[0].diagonal().all()
    found = {tuple(row) for row in x[0, 1:][mask[0, 0, 1:]].tolist()}
    known = TRIPLES.T.tolist()
    e, w = tokens.entities.weight, tokens.relations.weight
    outgoing = [e[t] + w[r] for h, r, t in known if h == head and t in seen]
    incoming = [e[h] - w[r] for h, r, t in known if t == head and h in seen]
    assert found == {tuple(token.tolist()) for token in outgoing + incoming}


def test_a_query_attends_to_its_neighbours_with_the_parameters_of_one_token():
    sizes = {"num_entities": 9, "num_relations": 3, "train_triples": TRIPLES}
    encoder = model("cat__head_neighbours", **sizes).eval()
    assert parameters(encoder) == parameters(model())
    before = encoder(queries())
    assert before.shape == (4, 64)
    encoder.tokens.entities.weight.data[5] += 1  # a neighbour of entity 4
    changed = (encoder(queries()) - before).abs().amax(1) > 1e-6
    assert changed.tolist() == [False, True, True, False]  # (5, 2, 4) is not an answer of (4, 2)


def test_nodes_are_one_sequence_or_alone():
    graph = Data(x=torch.rand(6, 5))
    whole, alone = (
        model("cat", f"model.token_layout={layout}", dataset="cora").eval()
        for layout in ("graph", "single")
    )
    assert whole(graph).shape == (6, 64) == alone(graph).shape
    other = Data(x=graph.x.clone())
    other.x[0] = 1
    assert not torch.allclose(whole(graph)[1:], whole(other)[1:], atol=1e-6)
    torch.testing.assert_close(alone(graph)[1:], alone(other)[1:])


def test_with_a_mask_nodes_attend_to_their_neighbours_alone():
    path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])  # 0 - 1 - 2, and 3 by itself
    graph = Data(x=torch.rand(4, 5), edge_index=path)
    other = Data(x=graph.x.clone(), edge_index=path)
    other.x[0] = 1
    masked = model("cat__neighbours", dataset="cora").eval()
    changed = (masked(graph) - masked(other)).abs().amax(1) > 1e-6
    assert changed.tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("words", "dataset", "answer"),
    [
        ("model.branches=[]", "wn18rr", "must be a list of euclidean, hyperbolic, spherical"),
        ("model.token_layout=graph", "wn18rr", "is for nodes: for triples"),
        ("model.euclidean.heads=5", "wn18rr", "heads=5 does not divide model.dim=64"),
        ("model.attention_mask=adjacency", "wn18rr", "queries of triples have no mask"),
        (
            "model=cat__neighbours model.token_layout=single",
            "cora",
            "in one sequence, model.token_layout=graph",
        ),
    ],
)
def test_what_cannot_be_is_one_sentence(words, dataset, answer):
    with pytest.raises(UsageError, match=answer):
        model("cat", *words.split(), dataset=dataset)


def test_statistics_are_of_the_last_evaluation_and_run_no_block_again():
    cat, calls = model(), []
    cat.tokens.entities.weight.data[4] *= 1e4  # two of the four queries are stopped at the rim
    for block in cat.blocks:
        block.register_forward_hook(lambda *_: calls.append(1))
    cat.eval()
    batch = queries()
    with torch.no_grad():
        cat.scores(batch)
        found = cat.statistics(batch)
        assert len(calls) == len(cat.blocks)
        x, _ = cat.tokens(batch)
        lengths = cat.blocks[0].branches[1].value(x).norm(dim=-1)
    assert list(found) == list(cat.statistic_names)
    assert found["at_rim"] == (lengths > 20).float().mean() == 0.5
    weights = cat.routing
    assert found["routing_hyperbolic"] == weights[:, 1].mean()
    entropies = torch.distributions.Categorical(weights).entropy()
    torch.testing.assert_close(found["routing_entropy"], entropies.mean())
    assert model("cat_uniform").statistic_names == ["at_rim"]
    assert model("cat_euclidean").statistic_names == []
