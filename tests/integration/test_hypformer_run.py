"""Runs of Hypformer: its variants learn, its curvatures are logged, its prototypes resume."""

import sys

import pandas as pd
import pytest
import torch
from test_command import kill_after
from tiny_runs import TREE

from curvlab.errors import UsageError

SMALL = (
    *TREE,
    "recipe=none",
    "model.dim=8",
    "model.dropout=0.1",
    "model.graph_branch.dropout=0.1",
)
LINEAR = (*SMALL, "model=hypformer", "trainer.plots=false")
VARIANTS = {
    "tangent": (),
    "midpoint": ("model.fusion=midpoint",),
    "linear decoder of midpoints": ("model.fusion=midpoint", "task.decoder=linear"),
    "curvatures": ("manifold.kappa=-0.5", "model.kappa_in=-2", "model.curvature_mode=recalibrate"),
    "without transformer": ("model.transformer=false",),
    "without graph": ("model.graph=false", "model.layer_norm=true"),
    "heads": ("model.heads=3",),
    "maps": ("model.graph_branch.batch_norm=true", "model.graph_branch.initial=true"),
    "softmax": ("model=hypformer_softmax",),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("words", VARIANTS.values(), ids=VARIANTS)
def test_every_variant_learns(run_here, words):
    result = run_here(*LINEAR, *words)
    assert result.status == "finished"
    assert result.manifold == "lorentz"
    assert result.metrics["val"]["accuracy"] > 60


def test_curvatures_are_constants_by_default_and_are_logged_where_they_are_learned(
    run_here, tmp_path
):
    words = ("manifold.kappa=-0.5", "model.fusion=midpoint")
    fixed = run_here(*LINEAR, *words)
    assert fixed.curvatures == {"kappa/0": [-1.0], "kappa/1": [-0.5]}
    learned = run_here(*LINEAR, *words, "manifold.learnable=true", folder="learned")
    assert learned.parameters == fixed.parameters + 2
    curves = pd.read_csv(tmp_path / "learned" / "metrics.csv")
    for i, (name, start) in enumerate((("kappa/0/0", -1.0), ("kappa/1/0", -0.5))):
        assert curves[name].iloc[0] != curves[name].iloc[-1] != start
        assert (
            abs(learned.curvatures[f"kappa/{i}"][0] - start) < 40 * 1e-4
        )  # the rate of curvatures


def test_prototypes_stay_on_the_hyperboloid_and_in_the_pictures(run_here, tmp_path):
    words = ("model.fusion=midpoint", "trainer.plots=true", "optimizer.manifold_lr=0.05")
    run_here(*LINEAR, *words)
    state = torch.load(tmp_path / "run" / "checkpoints" / "best.ckpt", weights_only=True)
    points = state["state_dict"]["decoder.prototypes"].double()
    assert type(points) is torch.Tensor
    square = points[:, 1:].square().sum(1) - points[:, 0].square()
    torch.testing.assert_close(square, torch.full_like(square, -2.0))  # kappa = -1/2
    pictures = sorted(path.name for path in (tmp_path / "run" / "plots").iterdir())
    names = ("calibration", "confusion", "curves", "embedding", "poincare")
    assert pictures == [f"{name}.png" for name in names]


@pytest.mark.nightly
def test_a_killed_run_with_prototypes_ends_as_if_it_had_not_been_killed(command, run_here):
    words = (*LINEAR, "model.fusion=midpoint", "trainer.max_steps=60", "trainer.steps_per_epoch=2")
    kill_after(command, command.start(*words), epochs=3)
    assert command.results() == {}
    done = command(*words)
    assert done.returncode == 0, done.stderr
    assert "going on from the last checkpoint" in done.stdout
    (resumed,) = command.results().values()
    whole = run_here(*words)
    assert resumed["metrics"] == {
        part: pytest.approx(scores, abs=1e-5) for part, scores in whole.metrics.items()
    }
    assert resumed["best_step"] == whole.best_step


@pytest.mark.parametrize("fusion", ["tangent", "midpoint"])
def test_reconstruction_has_a_distance_for_either_fusion(run_here, tmp_path, fusion):
    result = run_here(
        "dataset.source.num_nodes=60",
        "trainer.max_steps=60",
        "trainer.steps_per_epoch=20",
        "trainer.accelerator=cpu",
        "trainer.plots=false",
        "model=hypformer",
        f"model.fusion={fusion}",
    )
    losses = pd.read_csv(tmp_path / "run" / "metrics.csv")["loss"]
    assert result.status == "finished"
    assert losses.iloc[-1] < losses.iloc[0]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("manifold=euclidean", "cannot be built with manifold=euclidean; it can with lorentz"),
        ("model.graph=false model.transformer=false", "keep one of the two"),
        ("task.decoder=prototype", "prototype: there is none on Euclidean space"),
        ("task.decoder=stereographic model.fusion=midpoint", "there is none on Lorentz space"),
        ("model.fusion=midpoint optimizer=adam", "use optimizer=adam_classification"),
    ],
)
def test_what_cannot_be_is_one_sentence(run_here, words, answer):
    with pytest.raises(UsageError, match=answer) as refused:
        run_here(*LINEAR, *words.split())
    assert "\n" not in str(refused.value)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("model", "batching"),
    [("hypformer_softmax", ()), ("hypformer", ("batching=partition", "batching.size=40"))],
)
def test_what_a_step_costs(run_here, model, batching):
    words = ("dataset=synthetic_large", "dataset.source.num_nodes=100", *batching, "model.dim=8")
    task = ("task=node_classification__cost", "trainer.max_steps=2", "trainer.validate_every=1")
    result = run_here(f"model={model}", *words, *task, "trainer.accelerator=cpu")
    assert result.status == "finished"
    expected = {"step_ms", "inference_ms"}
    if sys.platform == "linux":
        expected |= {"step_mb", "inference_mb"}
    assert set(result.metrics["test"]) == expected
    assert result.score == result.metrics["test"]["step_ms"] > 0
