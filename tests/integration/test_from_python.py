"""`curvlab.train` in a program of one's own."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

import curvlab
from curvlab.errors import UsageError

SHORT = ("trainer.max_steps=6", "trainer.steps_per_epoch=3", "trainer.plots=false")


@pytest.fixture
def graph():
    torch.manual_seed(0)
    edges = to_undirected(torch.randint(30, (2, 90)))
    return Data(x=torch.randn(30, 4), edge_index=edges, y=torch.randint(3, (30,)))


def test_a_run_on_ones_own_graph_is_the_run_that_load_returns(tmp_path, monkeypatch, graph, capfd):
    monkeypatch.chdir(tmp_path)
    state = torch.get_rng_state(), torch.get_num_threads()
    run = curvlab.train("model=kappa_gcn", *SHORT, data=graph)
    assert torch.equal(torch.get_rng_state(), state[0])
    assert torch.get_num_threads() == state[1]
    again = curvlab.load(run.folder)
    torch.testing.assert_close(again.embed(), run.embed())
    assert repr(again) == repr(run)
    for said in ("accuracy=", "space=Stereographic(kappa=", f"folder={run.folder}"):
        assert said in repr(run)
    assert run.evaluate()["test"]["accuracy"] == run.result.score
    capfd.readouterr()
    curvlab.train("model=kappa_gcn", *SHORT, data=graph)
    assert "rerun=true repeats it" in capfd.readouterr().out
    with pytest.raises(UsageError, match="pass a graph as data="):
        curvlab.train("model=kappa_gcn", graph)
