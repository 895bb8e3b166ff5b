"""Filter regression by train.py: models fit a small generated image."""

import pandas as pd
import pytest
import torch
from tiny_runs import PIXELS

from curvlab.analysis.filters import load_filters
from curvlab.analysis.plots import filter_panel


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("model", "parameters"),
    [("gcn", 5038), ("gat", 5026), ("gprgnn", 5049), ("bernnet", 5049), ("chebnet2", 5049),
     ("polyattn_mono", 5052), ("polyattn_cheb", 5052)],
)  # fmt: skip
def test_models_fit(run_here, model, parameters):
    result = run_here(f"model={model}", *PIXELS)
    assert result.status == "finished"
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
