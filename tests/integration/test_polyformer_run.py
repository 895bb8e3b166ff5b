"""Runs of PolyFormer and of the models it is compared with: they learn, what cannot be is said."""

import pytest

from curvlab.errors import UsageError

SMALL = (
    "dataset=synthetic_large",
    "dataset.source.num_nodes=300",
    "dataset.source.classes=3",
    "dataset.source.features=8",
    "dataset.source.signal=2.0",
    "recipe=none",
    "trainer.max_steps=40",
    "trainer.steps_per_epoch=20",
    "trainer.accelerator=cpu",
    "trainer.plots=false",
    "model.dim=16",
    "optimizer.lr=0.01",
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "model",
    ["polyformer_cheb", "polyattn_mono", "unifilter_cheb", "gprgnn", "bernnet", "chebnet2",
     "nagphormer", "specformer", "transformer"],
)  # fmt: skip
def test_every_model_learns(run_here, model):
    result = run_here(*SMALL, f"model={model}")
    assert result.status == "finished"
    assert result.metrics["val"]["accuracy"] > 55


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_tokens_of_half_precision(run_here, dtype):
    words = ("model=polyformer", f"model.token_dtype={dtype}", "dataset.source.features=6")
    assert run_here(*SMALL, *words).metrics["val"]["accuracy"] > 55


@pytest.mark.smoke
def test_nagphormer_without_eigenvectors(run_here):
    result = run_here(*SMALL, "model=nagphormer", "model.eigenvectors=0")
    assert result.metrics["val"]["accuracy"] > 55


def test_preparation_is_a_cost(run_here):
    words = [w for w in SMALL if "lr" not in w and "max_steps" not in w]
    cost = ("task=node_classification__preparation", "trainer.max_steps=1", "task.passes=2")
    result = run_here(*words, "model=polyformer", *cost)
    assert result.metrics["test"]["preparation_s"] > 0
    assert result.metrics["test"]["step_ms"] > 0


@pytest.mark.parametrize("family", ["polyformer", "polyattn", "unifilter"])
def test_a_basis_belongs_to_the_model_that_is_named_after_it(run_here, family):
    """Its label says so, and self-loops go with mono alone."""
    mono, cheb = "polyformer" if family == "polyformer" else f"{family}_mono", f"{family}_cheb"
    for model, basis, right in ((mono, "cheb", cheb), (cheb, "mono", mono)):
        with pytest.raises(UsageError, match=f"use model={right}$"):
            run_here(*SMALL, f"model={model}", f"model.basis={basis}")
