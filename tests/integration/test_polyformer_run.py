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


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("model.heads=3", "model.heads=3 does not divide model.dim=16"),
        ("model.basis=legendre", "basis=legendre must be one of mono, cheb"),
        ("model.orders=-1", "orders=-1 must be a whole number"),
        ("model.attention_dropout=1", "dropout=1 must be a number from 0"),
        ("model.attention_lr=0", "attention_lr=0 must be a number greater than 0"),
        ("model.ffn_dim=0", "ffn_dim=0 must be a whole number of at least 1"),
        ("model.token_dtype=int8", "token_dtype=int8 must be one of float32"),
        ("model=specformer model.smallest=abc", "smallest=abc must be a whole number"),
        ("model=specformer model.smallest=0", "smallest=0 must be a whole number of at least 1"),
        ("model=specformer model.largest=abc", "largest is a whole number.* not abc"),
        ("model=nagphormer model.basis=cheb", "basis=cheb must be one of mono"),
        ("model=nagphormer model.eigenvectors=-1", "eigenvectors=-1 must be a whole number"),
        ("model=fpst model.eigenvectors=0", "eigenvectors=0 must be a whole number of at least 1"),
    ],
)
def test_what_cannot_be_is_one_sentence(run_here, words, answer):
    with pytest.raises(UsageError, match=answer) as refused:
        run_here(*SMALL, "model=polyformer", *words.split())
    assert "\n" not in str(refused.value)
