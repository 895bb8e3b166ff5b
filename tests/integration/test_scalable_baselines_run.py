"""Runs of the transformers and the scalable graph networks that Hypformer is compared with."""

import pytest
from tiny_runs import TREE

from curvlab.errors import UsageError
from curvlab.tasks.node_classification import NodeClassification

SMALL = (
    *TREE,
    "trainer.plots=false",
)
LARGE = (
    "dataset=synthetic_large",
    "dataset.source.num_nodes=600",
    "dataset.source.classes=3",
    "dataset.source.features=8",
    "dataset.source.signal=2.0",
    "trainer.max_steps=40",
    "trainer.steps_per_epoch=10",
    "trainer.accelerator=cpu",
    "trainer.plots=false",
)
SAMPLED = (*LARGE, "batching.size=60", "batching.fan_outs=[4,3]", "model.dropout=0")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("model", ["sgformer", "nodeformer", "sign", "dropedge", "idgl", "lds"])
def test_every_model_learns(run_here, model):
    result = run_here(*SMALL, f"model={model}")
    assert result.status == "finished"
    assert result.metrics["val"]["accuracy"] > 60


@pytest.mark.parametrize("model", ["gcn_nsampler", "gat_nsampler"])
def test_networks_learn_from_sampled_neighbourhoods(run_here, monkeypatch, model):
    """The loss is of the seeds, scores are of the whole graph."""
    seen = {True: set(), False: set()}
    forward = NodeClassification.forward

    def watched(task, batch, part):
        logits, labels = forward(task, batch, part)
        seen[task.training].add((len(labels), batch.num_nodes))
        return logits, labels

    monkeypatch.setattr(NodeClassification, "forward", watched)
    result = run_here(*SAMPLED, f"model={model}")
    assert result.status == "finished"
    assert result.metrics["test"]["accuracy"] > 40
    # 300 training nodes in five batches; each brings 4 + 4 * 3 others at most.
    assert {seeds for seeds, _ in seen[True]} == {60}
    assert all(60 < nodes < 600 for _, nodes in seen[True])
    assert {nodes for _, nodes in seen[False]} == {600}


def test_neighbours_are_drawn_for_other_models_too(run_here):
    """With a matrix of nodes by nodes, made anew of the drawn edges."""
    words = ("model=sgc", "batching=neighbours", "trainer.max_steps=10")
    result = run_here(*(word for word in SAMPLED if "max_steps" not in word), *words)
    assert result.status == "finished"


def test_nodeformer_may_have_heads_that_do_not_divide_its_width(run_here):
    words = ("model=nodeformer", "model.dim=8", "model.heads=3", "trainer.max_steps=2")
    assert run_here(*SMALL, *words, "trainer.validate_every=1").status == "finished"


def test_impossible_fan_outs_are_refused(run_here):
    with pytest.raises(UsageError, match="fan_outs="):
        run_here(*LARGE, "model=gcn_nsampler", "batching.fan_outs=[4,0]")
