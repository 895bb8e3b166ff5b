"""Runs of node classification: what they leave, which weights count, how they resume."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from test_command import kill_after
from tiny_runs import TREE

from curvlab.errors import UsageError
from curvlab.results.result import read_result
from curvlab.tasks.node_classification import NodeClassification

SMALL = TREE
GCN = ("recipe=none", *SMALL, "model=gcn", "model.dropout=0.2", "trainer.plots=false")
FPST = (*SMALL, "model=fpst", "model.eigenvectors=4", "model.layers=1")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


def best_checkpoint(folder):
    return torch.load(folder / "checkpoints" / "best.ckpt", weights_only=True)


@pytest.mark.smoke
def test_a_run_leaves_result_curves_checkpoint_embedding_and_pictures(run_here, folder):
    result = run_here(*FPST)
    assert result == read_result(folder)
    assert (result.status, result.task) == ("finished", "node_classification")
    assert result.metrics.keys() == {"train", "val", "test", "points"}
    for part in ("val", "test"):
        assert result.metrics[part].keys() == {"accuracy", "f1_micro", "f1_macro", "f1_binary"}
    assert result.score == result.metrics["test"]["accuracy"]
    assert result.objective == result.val_score == result.metrics["val"]["accuracy"]
    assert 1 <= result.best_step <= result.steps == 40
    curves = pd.read_csv(folder / "metrics.csv")
    metrics = ["val/accuracy", "val/f1_micro", "val/f1_macro", "val/f1_binary"]
    shares = ["points/beyond_equator", "points/at_rim"]
    names = [*metrics, *shares, "kappa/0/0", "kappa/0/1"]
    assert curves.columns.tolist() == ["step", "loss", *names]
    assert curves["step"].tolist() == list(range(5, 41, 5))
    assert curves["loss"].iloc[-1] < curves["loss"].iloc[0]
    assert curves["val/accuracy"].max() <= result.metrics["val"]["accuracy"] + 1e-4
    assert set(np.load(folder / "embeddings.npz")["classes"].tolist()) == {0, 1}
    pictures = sorted(path.name for path in (folder / "plots").iterdir())
    disk = ["poincare"] if min(np.load(folder / "embeddings.npz")["kappa"]) < 0 else []
    names = ("calibration", "confusion", "curves", "embedding", *disk)
    assert pictures == [f"{name}.png" for name in names]
    tested = pd.read_csv(folder / "classes.csv")["nodes"].sum()
    assert tested == pd.read_csv(folder / "confusion.csv")[["0", "1"]].sum().sum() > 0


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
    words = (*GCN, "model=mlp", "dataset.source.depth=4", "dataset.metric=roc_auc")
    result = run_here(*words)
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


def test_a_run_ends_when_patience_does(run_here):
    words = ("trainer.max_steps=1000", "trainer.patience=10", "trainer.min_steps=1")
    result = run_here(*GCN, *words)
    assert result.best_step + 10 <= result.steps < result.best_step + 10 + 5
    assert result.steps < 1000
    assert run_here(*GCN, *words, "trainer.min_steps=120", folder="longer").steps >= 120


@pytest.mark.parametrize("model", ["mlp", "gat", "sgc"])
def test_models_learn(run_here, model):
    result = run_here(*SMALL, f"model={model}", "trainer.plots=false")
    assert result.status == "finished"
    assert result.metrics["val"]["accuracy"] > 60


def test_gat_has_as_many_heads_as_it_says(run_here):
    """Two of width 8 make the 16 dimensions that the decoder reads."""
    run_here(*SMALL, "model=gat", "trainer.plots=false", "trainer.max_steps=5")
    result = run_here(*SMALL, "model=gat", "model.heads=4", "trainer.max_steps=5", folder="four")
    assert result.status == "finished"


def test_roc_auc_chooses_where_the_dataset_says_so(run_here, folder):
    result = run_here(*GCN, "dataset.metric=roc_auc")
    assert list(result.metrics["val"]) == [
        "roc_auc",
        "accuracy",
        "f1_micro",
        "f1_macro",
        "f1_binary",
    ]
    assert result.score == result.metrics["test"]["roc_auc"]
    curves = pd.read_csv(folder / "metrics.csv")
    assert curves["val/roc_auc"].max() <= result.metrics["val"]["roc_auc"] + 1e-4
    weights = best_checkpoint(folder)["state_dict"]
    assert weights["encoder.layers.1.lin.weight"].shape == (1, 16)
    assert not any(name.startswith("decoder.") for name in weights)


@pytest.mark.nightly  # by day one of reconstruction, in test_command.py
def test_a_killed_run_started_again_ends_as_if_it_had_not_been_killed(command, run_here):
    words = (*GCN, "trainer.max_steps=200", "trainer.steps_per_epoch=2", "trainer.patience=20")
    words = (*words, "trainer.min_steps=60")
    kill_after(command, command.start(*words), epochs=3)
    assert command.results() == {}
    done = command(*words)
    assert done.returncode == 0
    assert "going on from the last checkpoint" in done.stdout
    (resumed,) = command.results().values()
    whole = run_here(*words, folder="whole")
    assert resumed["metrics"] == {
        part: pytest.approx(scores, abs=1e-5) for part, scores in whole.metrics.items()
    }
    assert (resumed["best_step"], resumed["steps"]) == (whole.best_step, whole.steps)


@pytest.mark.usefixtures("keeps_last")
def test_a_run_that_only_lacks_its_result_is_evaluated_again(run_here, folder):
    """Killed after it had decided to end."""
    words = (*GCN, "trainer.patience=5", "trainer.min_steps=1", "trainer.max_steps=1000")
    first = run_here(*words)
    (folder / "result.json").unlink()
    second = run_here(*words)
    assert (second.metrics, second.steps) == (first.metrics, first.steps)


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("task.metric=recall", "recall.*accuracy, f1_micro, f1_macro"),
        ("model.last_activation=true model.skip_average=true", "set one of them to false"),
        ("trainer.validate_every=41", "validate_every=41 exceeds trainer.max_steps=40"),
        ("trainer=default", "chooses its weights by validation: use trainer=early_stopping"),
        ("split=none", "needs a split of the nodes"),
    ],
)
def test_what_cannot_be_is_one_sentence(run_here, words, answer):
    with pytest.raises(UsageError, match=answer) as refused:
        run_here(*GCN, *words.split())
    assert "\n" not in str(refused.value)


def test_the_command_says_what_it_scored_and_exits_with_2_for_wrong_input(command):
    done = command(*GCN)
    assert done.returncode == 0
    assert "gcn on disease_synthetic, seed 0: accuracy " in done.stdout
    assert "val accuracy" in done.stderr
    done = command(*GCN, "split=none")
    assert done.returncode == 2
    assert "needs a split of the nodes" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert json.dumps(command.results())
