"""Runs of node classification: what they leave, which weights count, how they resume."""

import pandas as pd
import pytest
import torch
from tiny_runs import TREE

from curvlab.tasks.node_classification import NodeClassification

METRICS = ("accuracy", "f1_micro", "f1_macro", "f1_binary")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


def best_checkpoint(folder):
    return torch.load(folder / "checkpoints" / "best.ckpt", weights_only=True)


def test_the_test_nodes_are_scored_once_with_the_weights_of_the_best_validation(
    run_here, folder, monkeypatch
):
    """Training goes wrong after some steps, so that the last weights are not the best."""
    scored = []
    forward = NodeClassification.forward

    def watched(task, batch, part):
        if part == "test":
            scored.append({name: p.detach().clone() for name, p in task.state_dict().items()})
        return forward(task, batch, part)

    step = NodeClassification.training_step

    def worse_after_twenty(task, batch, i):
        if task.global_step == 20:
            with torch.no_grad():
                for parameter in task.encoder.layers[-1].parameters():
                    parameter.neg_()
        loss = step(task, batch, i)
        return -loss if task.global_step >= 20 else loss

    monkeypatch.setattr(NodeClassification, "forward", watched)
    monkeypatch.setattr(NodeClassification, "training_step", worse_after_twenty)
    words = ("recipe=none", *TREE, "model=mlp", "model.dropout=0.2", "trainer.plots=false")
    words = (*words, "dataset.source.depth=4", "dataset.metric=roc_auc")
    result = run_here(*words)
    assert list(result.metrics["val"]) == ["roc_auc", *METRICS]
    assert result.score == result.metrics["test"]["roc_auc"]
    assert 1 <= result.best_step <= 20 < result.steps == 40
    curves = pd.read_csv(folder / "metrics.csv")
    assert curves["val/roc_auc"].iloc[-1] < result.metrics["val"]["roc_auc"] - 10
    (weights,) = scored

    monkeypatch.setattr(NodeClassification, "training_step", step)
    monkeypatch.setattr(NodeClassification, "forward", forward)
    until = f"trainer.max_steps={result.best_step}"
    short = run_here(*words, until, folder="until_best")
    assert short.metrics == result.metrics
    for of in (folder, folder.parent / "until_best"):
        left = best_checkpoint(of)["state_dict"]
        assert all(torch.equal(weights[name], left[name]) for name in left)
