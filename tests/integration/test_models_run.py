"""Models learn from batches and from tokens on disk, with options that the canary has not."""

import pytest
from tiny_runs import LARGE, TREE

from curvlab.tasks.node_classification import NodeClassification

CURVED = ("recipe=none", *TREE, "model=hypformer", "model.dim=8", "model.dropout=0.1")
HYPFORMERS = {
    "tangent": (),
    "linear decoder of midpoints": ("model.fusion=midpoint", "task.decoder=linear"),
    "curvatures": ("manifold.kappa=-0.5", "model.kappa_in=-2", "model.curvature_mode=recalibrate"),
    "without transformer": ("model.transformer=false",),
    "without graph": ("model.graph=false", "model.layer_norm=true"),
    "heads": ("model.heads=3",),
    "maps": ("model.graph_branch.batch_norm=true", "model.graph_branch.initial=true"),
    "softmax": ("model=hypformer_softmax",),
}
POLYNOMIALS = ("recipe=none", *LARGE, "dataset.source.num_nodes=300", "model.dim=16")
POLYNOMIALS = (*POLYNOMIALS, "trainer.steps_per_epoch=20", "optimizer.lr=0.01")
BATCHES = ("batching=partition", "batching.size=100")
TOKENS = ("batching=tokens", "batching.size=100", "batching.workers=0")
CASES = {
    **{f"hypformer, {name}": (*CURVED, *words) for name, words in HYPFORMERS.items()},
    **{
        f"{model}, batches": (*LARGE, *BATCHES, f"model={model}")
        for model in ("gcn", "sgc", "hypformer", "sgformer", "sign", "dropedge", "nodeformer")
    },
    "tokengt, batches": (*LARGE, *BATCHES, "model=tokengt", "model.eigenvectors=4"),
    **{
        f"{model}, tokens": (*POLYNOMIALS, *TOKENS, "model.orders=3", f"model={model}")
        for model in ("polyformer", "polyformer_cheb", "unifilter_mono")
    },
}
CASES["no eigenvectors"] = (*POLYNOMIALS, "model=nagphormer", "model.eigenvectors=0")
for dtype in ("float16", "bfloat16"):
    few = (f"model.token_dtype={dtype}", "dataset.source.features=6")
    CASES[f"polyformer, {dtype}"] = (*POLYNOMIALS, "model=polyformer", *few)
SAMPLED = (*LARGE, "batching.size=60", "batching.fan_outs=[4,3]", "model.dropout=0")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("words", CASES.values(), ids=CASES)
def test_every_model_learns(run_here, words):
    result = run_here(*words, "trainer.plots=false")
    assert result.metrics["val"]["accuracy"] > 55


@pytest.mark.parametrize(
    "model", ["model=gcn_nsampler", "model=gat_nsampler", "model=sgc batching=neighbours"]
)
def test_networks_learn_from_sampled_neighbourhoods(run_here, monkeypatch, model):
    """The loss is of the seeds, scores are of the whole graph."""
    seen = {True: set(), False: set()}
    part_of = NodeClassification._part

    def watched(task, batch, part):
        nodes, labels = part_of(task, batch, part)
        seen[task.training].add((len(labels), batch.num_nodes))
        return nodes, labels

    monkeypatch.setattr(NodeClassification, "_part", watched)
    result = run_here(*SAMPLED, *model.split())
    assert result.metrics["test"]["accuracy"] > 40
    # 300 training nodes in five batches; each brings 4 + 4 * 3 others at most.
    assert {seeds for seeds, _ in seen[True]} == {60}
    assert all(60 < nodes < 600 for _, nodes in seen[True])
    assert {nodes for _, nodes in seen[False]} == {600}


POINTS = ("dataset=random_points", "dataset.source.num_nodes=50", "dataset.source.dim=8")
TIMED = ("model.dim=8", "model.layers=2", "task.passes=2", "trainer.max_steps=1")


@pytest.mark.smoke
def test_an_addition_is_timed_and_nothing_is_trained(run_here):
    quiet = ("trainer.accelerator=cpu", "trainer.plots=false")
    result = run_here(*POINTS, *TIMED, *quiet, "model=lrn__tangent_space_maps")
    assert (result.status, result.task) == ("finished", "residual_cost")
    assert result.metrics["test"].keys() == {"addition_ms", "addition_mb"}
    assert result.score == result.metrics["test"]["addition_ms"] > 0


def test_preparation_is_a_cost(run_here):
    words = [w for w in POLYNOMIALS if "lr" not in w and "max_steps" not in w]
    cost = ("task=node_classification__preparation", "trainer.max_steps=1", "task.passes=2")
    result = run_here(*words, "model=polyformer", *cost)
    assert result.metrics["test"]["preparation_s"] > 0
    assert result.metrics["test"]["step_ms"] > 0
