"""Runs whose nodes coincide: no order of lines changes the score, and a warning says so."""

from itertools import pairwise

import pytest
import torch
from tiny_runs import FAST

SMALL = (*FAST[1:], "recipe=none", "task=reconstruction", "dataset.features.kind=none")


@pytest.fixture
def star(tmp_path):
    """`star(order)`: a folder of a star of 60 nodes, whose hub is `n0`, listed in this order."""

    def write(order):
        folder = tmp_path / f"star{len(list(tmp_path.glob('star*')))}"
        folder.mkdir()
        lines = "".join(f"n0,n{leaf}\n" for leaf in order if leaf)
        (folder / "edges.csv").write_text(f"from,to\n{lines}")
        (folder / "nodes.csv").write_text("id\n" + "".join(f"n{node}\n" for node in order))
        return folder

    return write


@pytest.mark.parametrize("model", ["mlp", "gat", "lrn"])
def test_a_star_of_nodes_without_features_has_the_harmonic_number(run_here, star, model, caplog):
    """These models see a constant; sums along edges leave nodes that differ by rounding."""
    orders = [range(60), torch.randperm(60, generator=torch.Generator().manual_seed(0)).tolist()]
    words = (*SMALL, f"model={model}", "trainer.max_steps=2")
    folders = [star(order) for order in orders]
    found = [
        run_here(*words, "dataset=graph_folder", f"dataset.path={folder}", folder=folder.name)
        for folder in folders
    ]
    expected = 100 * (sum(1 / rank for rank in range(1, 60)) + 1) / 60
    for result in found:
        if model != "lrn":
            assert result.score == pytest.approx(expected, abs=1e-5)
            assert "the model has collapsed: all nodes have the same embedding" in caplog.text
    for one, other in pairwise(found):
        assert one.score == pytest.approx(other.score, abs=1e-4)
