"""LDS: its draws, its inner problem against torch's Adam, its hypergradient against differences."""

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Data

from curvlab.data.splits.halved_validation import HalvedValidation
from curvlab.errors import UsageError
from curvlab.models.lds import LDS, propagate, sampled_graph
from graphs import dense_adjacency, symmetric

OPTIONS = {"dim": 4, "dropout": 0.0}
SETTINGS = {
    "inner_weight_decay": 0.01,
    "inner_steps": 3,
    "inner_patience": 1000,
    "inner_limit": 1000,
    "samples": 4,
}


@pytest.fixture
def batch(graph) -> Data:
    """The small graph with three classes, and four nodes each of inner and outer problem."""
    graph.y = torch.arange(12) % 3
    graph.inner_mask = torch.arange(12) < 4
    graph.train_mask = (torch.arange(12) >= 4) & (torch.arange(12) < 8)
    return graph


def network(batch):
    made = LDS(5, 3, batch, **OPTIONS)
    vars(made).update(SETTINGS)
    return made


def dense(theta):
    above = theta.triu(1)
    return above + above.T


def outputs(x, adjacency, first, second):
    return propagate(adjacency, F.relu(propagate(adjacency, x @ first)) @ second)


def test_drawn_graphs_are_symmetric_without_loops_and_have_the_probabilities():
    theta = torch.tensor([[0.9, 0.5, 0.0], [0.7, 0.9, 1.0], [0.7, 0.7, 0.9]])
    drawn = torch.stack([sampled_graph(theta) for _ in range(4000)])
    assert set(drawn.unique().tolist()) == {0.0, 1.0}
    assert torch.equal(drawn, drawn.mT)
    assert not drawn.diagonal(dim1=1, dim2=2).any()
    assert not drawn[:, 0, 2].any()
    assert drawn[:, 1, 2].all()
    # four standard errors of 4,000 draws
    assert drawn[:, 0, 1].mean().item() == pytest.approx(0.5, abs=4 * (0.25 / 4000) ** 0.5)


def test_gradient_goes_straight_through_to_what_is_above_the_diagonal():
    theta = torch.rand(4, 4, requires_grad=True)
    weights = torch.randn(4, 4)
    (sampled_graph(theta) * weights).sum().backward()
    torch.testing.assert_close(theta.grad, (weights + weights.T).triu(1))


@pytest.mark.usefixtures("float64")
def test_inner_steps_are_those_of_adam_on_the_graph(batch):
    """Probabilities of 0 and 1 leave nothing to chance."""
    model = network(batch)
    weights = [model.first.clone().requires_grad_(), model.second.clone().requires_grad_()]
    adam = torch.optim.Adam(weights, lr=0.02)
    adjacency = dense(model.theta.detach())
    for _ in range(2):
        model(batch)
        for _ in range(3):
            adam.zero_grad()
            logits = outputs(batch.x, adjacency, *weights)
            loss = F.cross_entropy(logits[:4], batch.y[:4]) + 0.005 * weights[0].square().sum()
            loss.backward()
            adam.step()
        # of eps there is another use where gradients are nearly 0
        after = [w.detach() for w in weights]
        torch.testing.assert_close([model.first, model.second], after, rtol=1e-5, atol=1e-6)
    logits = outputs(batch.x, adjacency, *weights)
    torch.testing.assert_close(model.eval()(batch), logits.detach(), rtol=1e-5, atol=1e-6)
    assert model.steps == 6


@pytest.mark.usefixtures("float64")
def test_gradient_of_the_probabilities_is_that_through_the_inner_steps(batch, monkeypatch):
    """Against central differences of a network on the weighted graph theta, steps and all."""
    monkeypatch.setattr("curvlab.models.lds.sampled_graph", dense)
    model = network(batch)
    start = {name: value.clone() for name, value in model.named_buffers()}

    def loss(theta):
        model.load_state_dict({"theta": theta, **start})
        return F.cross_entropy(model(batch)[batch.train_mask], batch.y[batch.train_mask])

    theta = (0.2 + 0.6 * torch.rand(12, 12)).triu(1)
    model.zero_grad()
    loss(theta).backward()
    gradient = model.theta.grad.clone()
    for pair in ((0, 1), (2, 7), (3, 11)):
        step = torch.zeros(12, 12)
        step[pair] = 1e-6
        difference = (loss(theta + step) - loss(theta - step)) / 2e-6
        assert gradient[pair].item() == pytest.approx(difference.item(), rel=1e-4, abs=1e-9)
    assert gradient.triu(1).abs().max() > 1e-4


def test_evaluation_is_the_same_again_and_draws_nothing_from_the_shared_generator(batch):
    model = network(batch).eval()
    with torch.no_grad():
        model.theta.fill_(0.5)
        state = torch.get_rng_state()
        first, second = model(batch), model(batch)
        assert torch.equal(torch.get_rng_state(), state)
        assert torch.equal(first, second)
        model.samples = 1
        assert not torch.equal(model(batch), first)  # of several graphs it is their mean


def test_labels_must_be_one_of_several_classes(batch):
    with pytest.raises(UsageError, match="one of several classes"):
        LDS(5, 1, batch, **OPTIONS)
    batch.y = torch.ones(12, 3)
    with pytest.raises(UsageError, match="one of several classes"):
        LDS(5, 3, batch, **OPTIONS)


def test_validation_nodes_are_halved(batch):
    batch.train_mask = torch.arange(12) < 4
    batch.val_mask = (torch.arange(12) >= 4) & (torch.arange(12) < 9)
    batch.test_mask = torch.arange(12) >= 9
    halved = HalvedValidation()(batch.clone())
    assert torch.equal(halved.inner_mask, batch.train_mask)
    assert (halved.train_mask.sum(), halved.val_mask.sum()) == (2, 3)
    assert torch.equal(halved.train_mask | halved.val_mask, batch.val_mask)
    assert not (halved.train_mask & halved.val_mask).any()
    assert torch.equal(halved.test_mask, batch.test_mask)
    batch.val_mask = torch.arange(12) == 4
    with pytest.raises(UsageError, match="1 validation nodes has no two halves"):
        HalvedValidation()(batch)


def test_propagation_is_that_of_kipf_and_welling(graph):
    found = propagate(dense_adjacency(graph), graph.x)
    torch.testing.assert_close(found, symmetric(graph) @ graph.x)
