"""Runs of Hypformer: its curvatures are logged, its prototypes stay where they belong."""

import pandas as pd
import torch
from tiny_runs import TREE

LINEAR = (*TREE, "recipe=none", "model=hypformer", "model.dim=8", "trainer.plots=false")
LINEAR = (*LINEAR, "model.dropout=0.1", "model.graph_branch.dropout=0.1")


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
    assert pictures == ["curves.png", "embedding.png"]
