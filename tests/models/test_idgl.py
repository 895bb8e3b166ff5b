"""IDGL against its formulas with dense matrices, and what of it is left where a share is 0 or 1."""

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Data

from curvlab.data.transforms.graph import NormalisedAdjacency
from curvlab.models.idgl import (
    IDGL,
    WeightedCosine,
    graph_between_anchors,
    graph_cost,
    half_squared_distances,
    step_over_anchors,
)
from graphs import ring

NODES, FEATURES, CLASSES, DIM = 11, 6, 3, 4

pytestmark = pytest.mark.usefixtures("float64")


@pytest.fixture
def graph():
    data = Data(x=torch.randn(NODES, FEATURES), edge_index=ring(NODES))
    return NormalisedAdjacency(self_loops=True)(data)


def model(**changed):
    options = {
        "given_share": 0.6,
        "later_share": 0.3,
        "smoothness": 0.2,
        "connectivity": 0.1,
        "sparsity": 0.3,
        "iterations": 3,
        "tolerance": 0.0,
        "input_dropout": 0.0,
        "later_dropout": 0.0,
        "all_pairs_up_to": NODES,
        "anchors": 5,
    }
    made = IDGL(FEATURES, CLASSES, dim=DIM, heads=2, dropout=0.0)
    made.of_features.threshold = made.of_embeddings.threshold = 0.1
    vars(made).update(options | changed)
    return made


def test_similarity_is_the_mean_of_weighted_cosines():
    x, cosines = torch.randn(7, FEATURES), WeightedCosine(FEATURES, 3, 0.2)
    found = cosines(x, torch.arange(2, 6))
    for i in range(7):
        for j in range(2, 6):
            by_hand = sum(
                F.cosine_similarity(w * x[i], w * x[j], dim=0) / 3 for w in cosines.weight
            )
            torch.testing.assert_close(found[i, j - 2], by_hand if by_hand > 0.2 else 0 * by_hand)
    assert 0 < (found == 0).sum() < found.numel()  # some are cut and some are not


def test_steps_over_anchors_are_their_matrices():
    r, x = torch.rand(6, 4), torch.rand(6, 2)
    rows, columns = torch.diag(r.sum(1)), torch.diag(r.sum(0))
    torch.testing.assert_close(
        step_over_anchors(r, x), rows.inverse() @ r @ columns.inverse() @ r.T @ x
    )
    torch.testing.assert_close(graph_between_anchors(r), r.T @ rows.inverse() @ r)


def test_cost_by_its_definition():
    a, x = torch.rand(6, 6), torch.rand(6, 2)
    a = a + a.T
    laplacian = torch.diag(a.sum(1)) - a
    apart = half_squared_distances(x)
    torch.testing.assert_close(apart, torch.cdist(x, x).square() / 2)
    torch.testing.assert_close(graph_cost(a, apart, 1, 0, 0), (x.T @ laplacian @ x).trace() / 36)
    torch.testing.assert_close(graph_cost(a, apart, 0, 1, 0), -a.sum(1).log().mean())
    torch.testing.assert_close(graph_cost(a, apart, 0, 0, 1), a.square().mean())
    alone = graph_cost(torch.zeros(6, 6), apart, 1, 1, 1)
    assert alone.isfinite()
    assert alone > 0


def by_matrices(made, graph):
    """Logits of all graphs, and the similarities, with a dense matrix for each graph."""
    x, w1, w2 = graph.x, made.first.weight.T, made.second.weight.T
    given, logits = graph.normalised_adj.to_dense().double(), []

    def normalised(s):
        return s / s.sum(1, keepdim=True)

    similarities = [made.of_features(x, None)]
    learned = normalised(similarities[0])
    for t in range(made.iterations + 1):
        if t:
            similarities.append(made.of_embeddings(z, None))  # noqa: F821
            learned = made.later_share * normalised(similarities[-1])
            learned = learned + (1 - made.later_share) * normalised(similarities[0])
        p = made.given_share * given + (1 - made.given_share) * learned
        z = F.relu(p @ x @ w1)
        logits.append(p @ z @ w2)
    return logits, similarities


def test_every_graph_is_its_formula(graph):
    made = model()
    logits, similarities = by_matrices(made, graph)
    torch.testing.assert_close(made.eval()(graph), logits[-1], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(made.train()(graph), logits[0], rtol=1e-6, atol=1e-6)
    assert len(logits) == 4
    costs = [graph_cost(s, half_squared_distances(graph.x), 0.2, 0.1, 0.3) for s in similarities]
    nodes = torch.tensor([3, 0])
    found = made.training_loss(graph, lambda embedded: embedded.square().sum(), nodes)
    losses = [each[nodes].square().sum() for each in logits]
    expected = losses[0] + sum(losses[1:]) / 3 + costs[0] + sum(costs[1:]) / 3
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("tolerance", "later"), [(0.0, 4), (1e9, 1)])
def test_it_stops_when_the_graph_stays(graph, tolerance, later):
    made = model(iterations=4, tolerance=tolerance)
    graphs = []
    made.training_loss(graph, lambda embedded: graphs.append(embedded) or embedded.sum())
    assert len(graphs) == 1 + later


def test_anchors_stand_for_all(graph):
    made = model(all_pairs_up_to=NODES - 1)
    one = made(graph)
    assert not torch.allclose(made(graph), one)  # drawn anew
    made.eval()
    assert torch.equal(made(graph), made(graph))  # the same always
