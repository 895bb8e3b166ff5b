"""Runs on mini-batches: `batching=partition` and nothing else."""

from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from hydra.types import RunMode
from test_command import kill_after
from tiny_runs import composed

import curvlab
from curvlab.errors import UsageError
from curvlab.results.identity import built, identity_hash
from curvlab.tasks.node_classification import NodeClassification

LARGE = (
    "dataset=synthetic_large",
    "dataset.source.num_nodes=600",
    "dataset.source.classes=3",
    "dataset.source.features=8",
    "dataset.source.signal=2.0",
    "trainer.max_steps=40",
    "trainer.accelerator=cpu",
    "trainer.plots=false",
)
BATCHES = (*LARGE, "batching=partition", "batching.size=100", "trainer.steps_per_epoch=10")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "model", ["gcn", "sgc", "hypformer", "sgformer", "sign", "dropedge", "nodeformer", "polyformer"]
)
def test_models_learn_from_batches(run_here, tmp_path, model):
    result = run_here(*BATCHES, f"model={model}")
    assert result.status == "finished"
    assert result.metrics["test"]["accuracy"] > 40
    assert result.best_step in (10, 20, 30, 40)
    curves = pd.read_csv(tmp_path / "run" / "metrics.csv")
    assert curves["step"].tolist() == [10, 20, 30, 40]
    assert curves["val/accuracy"].max() == pytest.approx(result.val_score, abs=1e-3)


@pytest.mark.parametrize("batching", ["partition", "neighbours"])
def test_runs_on_batches_do_not_end_early_whatever_the_models_protocol_says(tmp_path, batching):
    config = composed(
        tmp_path, ["model=hypformer", "dataset=cora", f"batching={batching}"], RunMode.RUN
    )
    assert config.trainer.patience is None
    assert config.trainer.validate_every == config.trainer.steps_per_epoch == 100


@pytest.mark.smoke
def test_token_models_take_batches_with_their_rows_of_the_eigenvectors(run_here):
    result = run_here(*BATCHES, "model=tokengt", "model.eigenvectors=4", "trainer.max_steps=10")
    assert result.status == "finished"


def test_scores_are_of_the_whole_graph_not_means_over_batches(run_here, monkeypatch):
    """The numbers of nodes and edges that an evaluation, and a step, has seen."""
    seen = {True: set(), False: set()}
    forward = NodeClassification.forward

    def watched(task, batch, part):
        seen[task.training].add((batch.num_nodes, batch.num_edges, part))
        return forward(task, batch, part)

    monkeypatch.setattr(NodeClassification, "forward", watched)
    run_here(*BATCHES, "model=gcn")
    assert {(nodes, part) for nodes, _, part in seen[True]} == {(100, "train")}
    edges = {edges for _, edges, _ in seen[False]}
    parts = {(nodes, part) for nodes, _, part in seen[False]}
    assert parts == {(600, part) for part in ("train", "val", "test")}
    assert len(edges) == 1
    assert max(edges for _, edges, _ in seen[True]) < max(edges) / 6


def test_a_model_that_can_is_evaluated_in_chunks(run_here, monkeypatch):
    from curvlab.models.graph_network import GraphNetwork

    chunks = []

    def encode_in_chunks(encoder, batch, chunk):
        assert not encoder.training
        chunks.append((batch.num_nodes, chunk))
        return encoder(batch)

    monkeypatch.setattr(GraphNetwork, "encode_in_chunks", encode_in_chunks)
    result = run_here(*BATCHES, "model=gcn")
    # Choosing weights and the curves evaluate after the same step, the test two parts.
    assert chunks == 5 * [(600, 100)]
    monkeypatch.undo()
    whole = run_here(*BATCHES, "model=gcn", folder="whole")
    assert whole.metrics == result.metrics
    run_here(*LARGE, "model=gcn", folder="full")
    assert len(chunks) == 5


def test_parts_of_the_whole_graph_score_as_the_whole_graph(run_here):
    """An MLP sees no edges, so that a node's logits are the same in any subgraph."""
    words = (*BATCHES, "model=mlp", "trainer.max_steps=20")
    whole = run_here(*words, folder="whole")
    parts = run_here(*words, "batching.evaluation=parts", folder="parts")
    assert parts.metrics["test"]["accuracy"] == whole.metrics["test"]["accuracy"]
    assert identity_hash(parts.config) != identity_hash(whole.config)


@pytest.mark.parametrize("batching", ["partition", "neighbours"])
def test_evaluation_in_parts_sees_no_more_than_a_part_and_repeats(run_here, tmp_path, batching):
    words = (*LARGE, f"batching={batching}", "batching.size=100", "model=hypformer")
    words += ("batching.evaluation=parts", "trainer.steps_per_epoch=10", "trainer.max_steps=20")
    result = run_here(*words)
    assert result.status == "finished"
    run = curvlab.load(tmp_path / "run")
    assert run.evaluate()["test"] == result.metrics["test"]
    assert run.embed().shape == (600, run.model.dim_out)
    assert len(run.predict()) == 600


def test_a_whole_graph_that_does_not_fit_is_refused_before_training(run_here, monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=1000))
    with pytest.raises(UsageError, match=r"at least 0\.\d GB.*batching.evaluation=parts"):
        run_here(*BATCHES, "model=gcn")


def test_full_batches_are_what_they_were_and_the_size_is_part_of_a_runs_identity(run_here):
    full = run_here(*LARGE, "model=mlp", "trainer.max_steps=5")
    assert "batching" not in built(full.config)
    parts = run_here(*BATCHES, "model=mlp", "trainer.max_steps=10", folder="parts")
    other = run_here(
        *BATCHES, "model=mlp", "trainer.max_steps=10", "batching.size=90", folder="other"
    )
    hashes = {identity_hash(result.config) for result in (full, parts, other)}
    assert len(hashes) == 3


@pytest.mark.nightly  # two processes with batches are killed in test_ddp_run.py
def test_a_killed_run_started_again_ends_as_if_it_had_not_been_killed(command, run_here):
    words = (*BATCHES, "model=gcn", "trainer.max_steps=120", "trainer.steps_per_epoch=4")
    kill_after(command, command.start(*words), epochs=3)
    done = command(*words)
    assert done.returncode == 0, done.stderr
    assert "going on from the last checkpoint" in done.stdout
    (resumed,) = command.results().values()
    whole = run_here(*words, folder="whole")
    assert resumed["best_step"] == whole.best_step
    for part, scores in whole.metrics.items():
        assert resumed["metrics"][part] == pytest.approx(scores, abs=1e-4)


def test_batches_in_which_numbers_are_not_finite_are_found(run_here, tmp_path, monkeypatch):
    from curvlab.run.train import RunFailedError

    step = NodeClassification.training_step

    def breaks(task, batch, i):
        loss = step(task, batch, i)
        return loss * torch.nan if task.global_step == 6 else loss

    monkeypatch.setattr(NodeClassification, "training_step", breaks)
    with pytest.raises(RunFailedError, match="step 7"):
        run_here(*BATCHES, "model=gcn")
    saved = torch.load(tmp_path / "run" / "diverged.pt", weights_only=True)
    assert saved["batch"]["x"].shape == (100, 8)
