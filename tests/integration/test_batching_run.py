"""Runs on mini-batches: `batching=partition` and nothing else."""

from types import SimpleNamespace

import pytest
import torch
from tiny_runs import LARGE

import curvlab
from curvlab.errors import UsageError
from curvlab.memory import PeakBytes
from curvlab.models.graph_network import GraphNetwork
from curvlab.results.identity import identity_hash

BATCHES = (*LARGE, "batching=partition", "batching.size=100")


def test_the_whole_graph_is_embedded_once_per_set_of_weights(run_here, watch):
    sizes = []

    def note(encoder, batch):
        sizes.extend([] if encoder.training else [batch.num_nodes])

    watch(GraphNetwork, "forward", note)
    run_here(*BATCHES, "model=gcn")
    # Choosing weights and the curves evaluate after the same step, the test two parts; two more
    # are of the stored embeddings and the classes' report. Two parts estimate its memory first.
    assert sizes == [100, 50, *7 * [600]]


def test_parts_are_evaluated_once_per_set_of_weights_and_part_of_the_split(run_here, watch):
    sizes = []

    def note(encoder, batch):
        sizes.extend([] if encoder.training else [batch.num_nodes])

    watch(GraphNetwork, "forward", note)
    run_here(*BATCHES, "model=gcn", "batching.evaluation=parts")
    # Four validations, then the three parts of the split; six subgraphs hold nodes of each.
    assert sizes.count(100) == 6 * (4 + 3)


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
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=5e5))
    with pytest.raises(UsageError, match=r"^evaluation .* 0\.\d GB.* batching.evaluation=parts"):
        run_here(*BATCHES, "model=hypformer", "model.dim=64")


def test_the_estimate_is_nearly_what_the_whole_graph_takes(run_here, tmp_path, monkeypatch):
    needed = []
    place = "curvlab.tasks.node_classification.check_memory"
    monkeypatch.setattr(place, lambda _, size, *__: needed.append(size))
    run_here(*BATCHES, "model=hypformer", "model.dim=64")
    run = curvlab.load(tmp_path / "run")
    with torch.no_grad(), PeakBytes() as made:
        run.model(run.prepare())
    assert needed == [pytest.approx(made.peak, rel=0.2)]
    assert needed[0] < made.peak
