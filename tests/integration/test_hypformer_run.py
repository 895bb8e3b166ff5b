"""Runs of Hypformer: its curvatures are logged, its prototypes stay where they belong."""

import torch
from tiny_runs import TREE

LINEAR = (*TREE, "recipe=none", "model=hypformer", "model.dim=8", "trainer.plots=false")
LINEAR = (*LINEAR, "model.dropout=0.1", "model.graph_branch.dropout=0.1")


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
