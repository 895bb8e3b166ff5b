"""Runs that time a residual connection."""

import pytest

from curvlab.data.datasets.random_points import RandomPoints

WORDS = (
    "dataset=random_points",
    "dataset.source.num_nodes=50",
    "dataset.source.dim=8",
    "model.dim=8",
    "model.layers=2",
    "task.passes=2",
    "trainer.max_steps=1",
    "trainer.accelerator=cpu",
    "trainer.plots=false",
)


@pytest.mark.smoke
def test_an_addition_is_timed_and_nothing_is_trained(run_here):
    result = run_here(*WORDS, "model=lrn__tangent_space_maps")
    assert (result.status, result.task) == ("finished", "residual_cost")
    assert result.metrics["test"].keys() == {"addition_ms", "addition_mb"}
    assert result.score == result.metrics["test"]["addition_ms"] > 0


def test_points_are_the_seeds_and_have_length_about_one():
    data = RandomPoints(400, 64, 3).load()
    assert data.x.norm(dim=-1).mean().item() == pytest.approx(1, abs=0.02)
    assert (data.x == RandomPoints(400, 64, 3).load().x).all()
    assert data.num_edges == 0
