"""Runs of link prediction: every space, what a run leaves, when it is refused."""

import pandas as pd
from tiny_runs import TREE

from curvlab.tasks.link_prediction import LinkPrediction

WORDS = ("task=link_prediction", *TREE, "trainer.max_steps=10", "trainer.plots=false")
WORDS = tuple(word for word in WORDS if "split" not in word)


def test_a_run_trains_and_scores_the_test_edges_once(run_here, folder, watch):
    scored = []
    watch(LinkPrediction, "scores", lambda task, batch, part: scored.append(part))
    words = ("trainer.max_steps=60", "optimizer.lr=0.02", "model=hybonet", "task.margin=20")
    result = run_here(*WORDS, *words)
    assert scored.count("test") == 1
    assert scored[-1] == "test"
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
