"""Runs of node classification, link prediction, filter regression: what they leave and learn."""

import pandas as pd
import pytest
import torch
from tiny_runs import PIXELS, TREE

from curvlab.analysis.filters import load_filters
from curvlab.analysis.plots import filter_panel
from curvlab.tasks.link_prediction import LinkPrediction
from curvlab.tasks.node_classification import NodeClassification

METRICS = ("accuracy", "f1_micro", "f1_macro", "f1_binary")


def test_the_test_nodes_are_scored_once_by_the_metric_that_is_named(run_here, watch):
    parts = []
    watch(NodeClassification, "forward", lambda task, batch, part: parts.append(part))
    words = ("recipe=none", *TREE, "model=mlp", "dataset.metric=roc_auc", "trainer.plots=false")
    result = run_here(*words)
    assert (parts.count("test"), parts[-1]) == (1, "test")
    assert list(result.metrics["val"]) == ["roc_auc", *METRICS]
    assert result.score == result.metrics["test"]["roc_auc"]


def test_prototypes_stay_on_the_hyperboloid_and_in_the_pictures(run_here, folder):
    words = ("model.dim=8", "model.dropout=0.1", "model.graph_branch.dropout=0.1")
    words = (*words, "model.fusion=midpoint", "optimizer.manifold_lr=0.05")
    run_here("recipe=none", *TREE, "model=hypformer", *words)
    weights = torch.load(folder / "checkpoints" / "best.ckpt", weights_only=True)["state_dict"]
    points = weights["decoder.prototypes"].double()
    assert type(points) is torch.Tensor
    square = points[:, 1:].square().sum(1) - points[:, 0].square()
    torch.testing.assert_close(square, torch.full_like(square, -2.0))  # kappa = -1/2
    pictures = sorted(path.name for path in (folder / "plots").iterdir())
    assert pictures == ["curves.png", "embedding.png"]


WORDS = ("task=link_prediction", *TREE, "trainer.max_steps=10", "trainer.plots=false")
WORDS = tuple(word for word in WORDS if "split" not in word)


def test_a_run_trains_and_scores_the_test_edges_once(run_here, folder, watch):
    scored = []
    watch(LinkPrediction, "scores", lambda task, batch, part: scored.append(part))
    words = ("trainer.max_steps=60", "optimizer.lr=0.02", "model=hybonet", "task.margin=20")
    result = run_here(*WORDS, *words)
    assert (scored.count("test"), scored[-1]) == (1, "test")
    assert 1 <= result.best_step <= result.steps == 60
    curves = pd.read_csv(folder / "metrics.csv")
    assert curves["val/auc_ap"].max() <= result.metrics["val"]["auc_ap"] + 1e-4
    assert curves["loss"].iloc[-1] < 0.95 * curves["loss"].iloc[0]


def test_airports_population_is_a_feature_where_no_class_is_to_be_told(mirror, run_here):
    places = (f"paths.mirror={mirror}", "trainer.max_steps=1", "trainer.validate_every=1")
    fast = ("trainer.accelerator=cpu", "trainer.plots=false", "model=lrn")
    fast = (*fast, "manifold.learnable=false")
    links = run_here("dataset=airport", "task=link_prediction", *fast, *places, folder="links")
    assert links.parameters == 771  # of the specification: 12 features
    classes = run_here("dataset=airport", *fast, *places, folder="classes")
    assert classes.parameters == 1642  # likewise: 11 features, six layers and the decoder


def test_hybonet_finds_the_links_of_disease(mirror, run_here):
    """97 % after 400 steps."""
    words = ("dataset=disease_lp", f"paths.mirror={mirror}", "trainer.max_steps=200")
    values = ("model=hybonet", "task.margin=30", "optimizer.lr=0.01", "optimizer.weight_decay=0")
    fast = ("trainer.accelerator=cpu", "trainer.plots=false", "trainer.validate_every=20")
    assert run_here(*words, *values, *fast).metrics["test"]["roc_auc"] > 93


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("model", "parameters"),
    [("gcn", 5038), ("gat", 5026), ("gprgnn", 5049), ("bernnet", 5049), ("chebnet2", 5049),
     ("polyattn_mono", 5052), ("polyattn_cheb", 5052)],
)  # fmt: skip
def test_models_fit(run_here, model, parameters):
    result = run_here(f"model={model}", *PIXELS)
    assert result.metrics["val"] == result.metrics["test"]
    assert 0 < result.score == result.metrics["test"]["r2"] <= 1
    assert result.parameters == parameters


def test_a_filter_for_each_node_fits_what_one_for_all_cannot(run_here):
    """Low-pass for dark pixels and high-pass for bright ones."""
    words = (*PIXELS, "trainer.max_steps=400", "trainer.patience=null")
    scores = [
        run_here(f"model={model}", *words, folder=model).metrics["test"]["sse"]
        for model in ("unifilter_cheb", "polyattn_cheb")
    ]
    assert scores[1] < 0.5 * scores[0]


@pytest.mark.smoke
@pytest.mark.usefixtures("keeps_last")
def test_the_rate_is_halved_when_the_fit_does_not_improve(run_here, tmp_path):
    words = ("task=filter_regression__decay", "trainer.max_steps=20", "trainer.steps_per_epoch=1")
    run_here("model=polyattn_cheb", *PIXELS, *words, "trainer.patience=null", "optimizer.lr=0.5")
    best, bad, rate = -torch.inf, 0, 0.5
    scores = pd.read_csv(tmp_path / "run" / "metrics.csv")["val/r2"]
    for score in scores[:-1]:  # the last checkpoint is written before the last one counts
        best, bad = (score, 0) if score > best else (best, bad + 1)
        if bad == 2:
            rate, bad = rate / 2, 0
    last = tmp_path / "run" / "checkpoints" / "last.ckpt"
    (state,) = torch.load(last, weights_only=True)["optimizer_states"]
    assert rate < 0.5
    assert {group["lr"] for group in state["param_groups"]} == {rate}


def test_the_filters_that_nodes_have_learned_are_written_and_drawn(run_here, tmp_path):
    words = [word for word in PIXELS if "plots" not in word]
    run_here("model=polyattn_cheb", *words)
    filters = load_filters(tmp_path / "run" / "filters.npz")
    assert filters["coefficients"].shape == (144, 11)
    assert (tmp_path / "run" / "plots" / "filters.png").exists()
    clusters, true = filter_panel(tmp_path / "run")
    assert len(true) == 2
    assert sum(cluster.share for cluster in clusters) == pytest.approx(1)
    run_here("model=gcn", *words, folder="gcn")
    assert not (tmp_path / "gcn" / "filters.npz").exists()
