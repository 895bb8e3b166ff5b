"""Runs of node classification: what they leave, which weights count, how they resume."""

import pandas as pd
import torch
from tiny_runs import TREE

from curvlab.tasks.node_classification import NodeClassification

METRICS = ("accuracy", "f1_micro", "f1_macro", "f1_binary")


def best_weights(folder):
    return torch.load(folder / "checkpoints" / "best.ckpt", weights_only=True)["state_dict"]


def test_the_test_nodes_are_scored_once_with_the_weights_of_the_best_validation(
    run_here, folder, monkeypatch, watch
):
    """Training goes wrong after some steps, so that the last weights are not the best."""
    scored = []

    def note(task, _, part):
        if part == "test":
            scored.append({name: p.detach().clone() for name, p in task.state_dict().items()})

    step = NodeClassification.training_step

    def worse_after_twenty(task, batch, i):
        if task.global_step == 20:
            with torch.no_grad():
                for parameter in task.encoder.layers[-1].parameters():
                    parameter.neg_()
        loss = step(task, batch, i)
        return -loss if task.global_step >= 20 else loss

    watch(NodeClassification, "forward", note)
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

    monkeypatch.undo()
    until = f"trainer.max_steps={result.best_step}"
    short = run_here(*words, until, folder="until_best")
    assert short.metrics == result.metrics
    for of in (folder, folder.parent / "until_best"):
        left = best_weights(of)
        assert all(torch.equal(weights[name], left[name]) for name in left)


def test_prototypes_stay_on_the_hyperboloid_and_in_the_pictures(run_here, folder):
    words = ("model.dim=8", "model.dropout=0.1", "model.graph_branch.dropout=0.1")
    words = (*words, "model.fusion=midpoint", "optimizer.manifold_lr=0.05")
    run_here("recipe=none", *TREE, "model=hypformer", *words)
    points = best_weights(folder)["decoder.prototypes"].double()
    assert type(points) is torch.Tensor
    square = points[:, 1:].square().sum(1) - points[:, 0].square()
    torch.testing.assert_close(square, torch.full_like(square, -2.0))  # kappa = -1/2
    pictures = sorted(path.name for path in (folder / "plots").iterdir())
    assert pictures == ["curves.png", "embedding.png"]
