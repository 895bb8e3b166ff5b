"""Link prediction: scores and losses by hand, metrics by scikit-learn, what a step may see."""

import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import nn
from torch_geometric.data import Data

from curvlab.data.splits.links import LinkSplit
from curvlab.errors import UsageError
from curvlab.manifolds import Euclidean, Lorentz, Stereographic, lorentz
from curvlab.optim import Adam
from curvlab.tasks.decoders import FermiDirac, LorentzianScore, make_link_decoder
from curvlab.tasks.link_prediction import LinkPrediction, link_scores
from graphs import ring
from placed import Placed


@pytest.mark.parametrize("broken", [torch.nan, torch.inf, -torch.inf])
def test_links_have_no_score_where_a_number_is_not_finite(broken):
    found = link_scores(torch.tensor([1.0, broken]), torch.zeros(3))
    assert all(score.isnan() for score in found.values())


def task(**options):
    """Of forty nodes at drawn places."""
    encoder = Placed(torch.randn(40, 2), Euclidean(conformal_factor=1.0))
    return LinkPrediction(encoder, Adam(lr=0.1, curvature_lr=0.01), **options)


def split_ring():
    return LinkSplit(0.1, 0.2, 0)(Data(x=torch.ones(40, 1), edge_index=ring(40)), 0)


@pytest.mark.parametrize("ties", [False, True])
def test_metrics_are_those_of_scikit_learn(ties):
    edges = 30 * torch.randn(40) + 10
    others = 30 * torch.randn(50)
    if ties:
        edges, others = (edges / 20).round(), (others / 20).round()
    found = link_scores(edges, others)
    joined = [1] * 40 + [0] * 50
    scores = torch.cat([edges, others]).numpy()
    auc, precision = roc_auc_score(joined, scores), average_precision_score(joined, scores)
    assert found["roc_auc"].item() == pytest.approx(100 * auc, abs=1e-4)
    assert found["average_precision"].item() == pytest.approx(100 * precision, abs=1e-4)
    assert found["auc_ap"].item() == pytest.approx(50 * (auc + precision), abs=1e-4)


@pytest.mark.usefixtures("float64")
def test_worked_example_of_the_scores():
    kappa, space = -2.0, Lorentz(-2.0)
    points = (0.898733, 0.498362, -0.243633), (2.488842, 1.819740, 1.543658)
    x, y = (lorentz.project(torch.tensor(point), kappa) for point in points)
    found = LorentzianScore(space, 2.0)(x, y)
    assert found.item() == pytest.approx(-2.412002, abs=1e-5)
    fermi_dirac = torch.sigmoid(FermiDirac(space, 2.0, 1.0)(x, y))
    expected = 1 / (((lorentz.dist(x, y, kappa) ** 2 - 2) / 1.0).exp() + 1)
    torch.testing.assert_close(fermi_dirac, expected)


@pytest.mark.parametrize(("margin", "expected"), [(2.0, 1.7), (0.1, 0.275), (30.0, 29.575)])
def test_worked_example_of_the_margin_loss(margin, expected):
    edges, others = torch.tensor([-0.5, -1.0]), torch.tensor([-3.0, -0.2])
    decoder = LorentzianScore(Lorentz(), margin)
    assert decoder.loss(edges, others).item() == pytest.approx(expected, abs=1e-5)


def test_fermi_dirac_is_a_half_at_its_radius_and_its_loss_is_cross_entropy():
    decoder = FermiDirac(Euclidean(conformal_factor=1.0), 4.0, 0.5)
    x, y = torch.zeros(2, 2), torch.tensor([[2.0, 0.0], [3.0, 0.0]])
    logits = decoder(x, y)
    assert torch.sigmoid(logits)[0].item() == pytest.approx(0.5)
    assert logits[1].item() == pytest.approx(-10.0)
    edges, others = torch.randn(2, 30)
    both = torch.cat([edges, others])
    joined = torch.cat([torch.ones(30), torch.zeros(30)])
    expected = nn.functional.binary_cross_entropy_with_logits(both, joined)
    torch.testing.assert_close(decoder.loss(edges, others), expected)


def test_the_decoder_follows_the_space():
    options = {"margin": 1.0, "radius": 2.0, "temperature": 1.0}
    assert isinstance(make_link_decoder("auto", Lorentz(), **options), LorentzianScore)
    assert isinstance(make_link_decoder("fermi_dirac", Lorentz(), **options), FermiDirac)
    for space in (Euclidean(conformal_factor=1.0), Stereographic(2)):
        assert isinstance(make_link_decoder("auto", space, **options), FermiDirac)
        with pytest.raises(UsageError, match=r"space, which has fermi_dirac"):
            make_link_decoder("lorentzian", space, **options)
    with pytest.raises(UsageError, match=r"which has lorentzian, fermi_dirac"):
        make_link_decoder("dot", Lorentz(), **options)
    with pytest.raises(UsageError, match=r"margin=None: the Lorentzian score"):
        make_link_decoder("auto", Lorentz(), **{**options, "margin": None})


def test_a_step_sees_neither_the_held_out_edges_nor_the_pairs_against_them():
    """Loss and gradients of a graph whose held-out parts are others."""
    data, losses = split_ring(), []
    for change in (False, True):
        torch.manual_seed(0)
        trained = task()
        if change:
            for name in ("val_edges", "test_edges", "val_non_edges", "test_non_edges"):
                data[name] = data[name].flip(1) // 2
        torch.manual_seed(3)
        loss = trained.training_step(data, 0)
        loss.backward()
        losses.append((loss.detach(), trained.encoder.points.grad))
    torch.testing.assert_close(*losses, rtol=0, atol=0)


def test_every_step_draws_as_many_new_pairs_that_are_no_training_edges():
    data, trained = split_ring(), task()
    train = {tuple(pair) for pair in data.train_edges.T.tolist()}
    seen = []
    score_pairs = trained._pair_scores
    trained._pair_scores = lambda points, edges, others: (
        seen.append((edges, others)) or score_pairs(points, edges, others)
    )
    for step in range(30):
        trained.training_step(data, step)
    for edges, others in seen:
        assert torch.equal(edges, data.train_edges)
        assert others.shape == edges.shape
        assert not {tuple(pair) for pair in others.T.tolist()} & train
    assert not torch.equal(seen[0][1], seen[1][1])


@pytest.mark.parametrize("metric", ["roc_auc", "average_precision", "auc_ap"])
def test_weights_are_chosen_by_the_metric_that_is_named(metric):
    data, trained = split_ring(), task(metric=metric)
    edges, others = trained(data, data.val_edges, data.val_non_edges)
    torch.testing.assert_close(trained.validation_score(data), link_scores(edges, others)[metric])
