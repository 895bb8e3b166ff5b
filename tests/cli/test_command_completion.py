"""A command is completed once: a run alone, a cell of a sweep and Python build the same."""

from itertools import product
from types import SimpleNamespace

import pytest
from hydra.core.hydra_config import HydraConfig

import curvlab
from curvlab.cli import from_python, train
from curvlab.data.datasets import own_graph
from curvlab.errors import UsageError
from curvlab.run import command

pytestmark = pytest.mark.slow

EDGES = "ann,bob\nbob,cem\ncem,dan\ndan,eve\neve,ann\n"
PEOPLE = "id,label,team,age\nann,x,1,30\nbob,y,1,40\ncem,x,2,20\ndan,y,2,10\neve,x,2,15\n"

GRIDS = {
    "features of a labelled graph": {"dataset": ["mine"], "dataset.features": ["own", "identity"]},
    "more features": {"dataset": ["mine"], "dataset.features": ["own+identity", "none"]},
    "graphs with and without labels": {"dataset": ["mine", "plain"]},
    "files with and without labels": {"dataset": ["mine/edges.csv", "plain/edges.csv"]},
    "splits": {"dataset": ["mine"], "split": ["own", "random_60_20_20", "random_70_15_15"]},
    "labels": {"dataset": ["mine"], "dataset.source.label": ["label", "team"]},
    "batches": {"dataset": ["mine"], "model": ["gcn"], "batching": ["full", "partition"]},
    "tasks": {"dataset": ["mine"], "task": ["nc", "link_prediction", "reconstruction"]},
    "a named task": {"dataset": ["mine", "plain"], "task": ["reconstruction"]},
    "metrics": {"dataset": ["mine"], "dataset.metric": ["accuracy", "f1_macro"]},
    "steps": {"dataset": ["mine"], "trainer.patience": [5, "null"], "seed": [0, 3]},
    "recipes": {"model": ["FPS-T", "gcn"], "dataset": ["cora", "web_edu", "airport__lp"]},
    "splits of a data set": {"dataset": ["cora"], "split": ["public", "random_per_class"]},
}


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """`trained(door, *words)`: the identities of the runs that a door trains, by their seed."""
    for name, nodes in {"mine": PEOPLE, "plain": None}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "edges.csv").write_text(EDGES)
        if nodes:
            (tmp_path / name / "nodes.csv").write_text(nodes)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(own_graph.REPORTED, "")
    monkeypatch.setattr(command, "_LABELS", {})
    monkeypatch.setattr(train.signals, "install", lambda **_: None)
    found = []

    def note(run):
        found.append((run.config.task.name, run.config_hash))
        return SimpleNamespace(objective=0.0)

    monkeypatch.setattr("curvlab.run.train.train", note)
    monkeypatch.setattr(from_python, "train_command", note)
    monkeypatch.setattr(from_python, "load", lambda _, **options: None)

    def run(door, *words):
        found.clear()
        if door == "python":
            curvlab.train(*words)
        elif door == "alone":
            assert train.main(words) == 0
        else:
            with pytest.raises(SystemExit):  # no run leaves a result
                train.main(["-m", *words])
        HydraConfig.instance().cfg = None
        return list(found)

    return run


@pytest.mark.sampled(3)
@pytest.mark.parametrize("grid", GRIDS)
def test_each_door_trains_the_same_run(trained, grid):
    axes = GRIDS[grid]
    cells = [
        [f"{key}={value}" for key, value in zip(axes, values, strict=True)]
        for values in product(*axes.values())
    ]
    alone = [run for cell in cells for run in trained("alone", *cell)]
    swept = trained("sweep", *(f"{key}={','.join(map(str, v))}" for key, v in axes.items()))
    assert swept == alone
    assert [run for cell in cells for run in trained("python", *cell)] == alone
    assert len(alone) == len(cells)
    tasks = {task for task, _ in alone}
    if "task" not in axes and axes["dataset"] == ["mine"]:
        assert tasks == {"node_classification"}
    if axes == {"dataset": ["mine", "plain"]}:
        assert [task for task, _ in alone] == ["node_classification", "reconstruction"]


def test_a_dry_run_and_a_printed_configuration_complete_it_too(trained, capsys, tmp_path):
    words = ["dataset=mine,plain", "split=own", "model=gcn"]
    assert trained("alone", "-m", *words, "print_config=true") == []
    said = capsys.readouterr().out
    assert said.count("curvlab.tasks.node_classification.NodeClassification") == 1
    assert said.count("curvlab.tasks.reconstruction.Reconstruction") == 1
    assert trained("alone", "-m", *words, "--dry-run") == []
    assert "2 runs, 0 finished" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "plain"]


@pytest.mark.parametrize(
    "wrong", ["split=random_60_20_20", "batching=partition", "split=publik", "modle=gcn"]
)
def test_python_refuses_what_the_command_line_refuses(trained, capsys, wrong):
    """And takes both words on a graph with labels, `GRIDS` says."""
    words = ("dataset=plain", "model=gcn", wrong)
    with pytest.raises(SystemExit):
        trained("alone", *words)
    said = capsys.readouterr().err
    with pytest.raises(UsageError) as refused:
        trained("python", *words)
    assert said.rstrip() == f"curvlab train: {refused.value}".rstrip(".") + "." * (said[-2] == ".")
