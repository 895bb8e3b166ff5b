"""A command is completed once: a run alone, a cell of a sweep and Python build the same."""

import re
import shlex
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest
from hydra.core.hydra_config import HydraConfig

import curvlab
from curvlab.cli import from_python, init_graph, train
from curvlab.config import folder
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


ARROWS = "ann -> bob\nbob -> cem\ncem -> dan\ndan -> eve\neve -> ann\n"
FLIGHTS = "\n".join(
    ["airline|from|to", *(f"LH|{line.replace(',', '|')}" for line in EDGES.split())]
)
TRIPLES = "ann\tknows\tbob\nbob\tknows\tcem\ncem\tlikes\tann\nann\tlikes\tcem\nbob\tlikes\tann\n"

PRINTED = {
    "edges": ({"net.txt": ARROWS}, ["net.txt"]),
    "a path with a blank": ({"my net.csv": EDGES}, ["my net.csv"]),
    "a folder": ({"net/edges.csv": EDGES, "net/nodes.csv": PEOPLE}, ["net", "label=team"]),
    "options": (
        {"net/edges.csv": FLIGHTS, "net/nodes.csv": PEOPLE.replace("team", "it's a team")},
        ["net", "separator=bar", "ends=[to,from]", "label=it's a team", "ignore=[label]"],
    ),
    "nodes elsewhere": ({"net.csv": EDGES, "p.csv": PEOPLE}, ["net.csv", "nodes=p.csv"]),
    "one file of triples": (
        {"facts.tsv": TRIPLES},
        ["facts.tsv", "test_share=0.2", "valid_share=0.2"],
    ),
    "three files of triples": (
        {f"facts/{part}.txt": TRIPLES for part in ("train", "valid", "test")},
        ["facts"],
    ),
}
"""Files of a user, and what `init-graph` is asked about them."""

QUICK = ("options", "one file of triples", "three files of triples")
OTHERS = sorted(PRINTED.keys() - QUICK)
NIGHTLY = pytest.mark.nightly


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
    monkeypatch.setenv(folder.ADDED, "")
    monkeypatch.setattr(folder, "_ADDED", [])
    monkeypatch.setattr(command, "_LABELS", {})
    monkeypatch.setattr(train.signals, "install", lambda **_: None)
    found = []

    def note(run):
        assert Path.cwd() == tmp_path
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
    said = re.sub(
        r"(?m)^.* \.\.\.( \(\d+ s\))?\n", "", capsys.readouterr().err
    )  # of a slow machine
    with pytest.raises(UsageError) as refused:
        trained("python", *words)
    assert said.rstrip() == f"curvlab train: {refused.value}".rstrip(".") + "." * (said[-2] == ".")


@pytest.mark.parametrize("door", ["alone", "sweep", "python"])
def test_paths_are_relative_to_the_folder_of_the_command(trained, door, capsys):
    words = ["dataset=mine", "model=gcn"]
    (run,) = trained("alone", *words)
    assert trained(door, *words, "hydra.job.chdir=true") == [run]
    assert "hydra.job.chdir is left out" in capsys.readouterr().err


@pytest.mark.parametrize("door", [(), ("-m",)])
def test_a_file_that_changes_the_folder_is_refused(trained, capsys, tmp_path, door):
    file = tmp_path / "own" / "experiment" / "moved.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("# @package _global_\nhydra:\n  job:\n    chdir: true\n")
    words = ("--config-dir", str(tmp_path / "own"), "+experiment=moved")
    with pytest.raises(SystemExit):
        trained("alone", *door, "dataset=mine", "model=gcn", *words)
    assert "sets hydra.job.chdir=true: take it out there" in capsys.readouterr().err


@pytest.mark.parametrize("case", [*QUICK, *(pytest.param(c, marks=NIGHTLY) for c in OTHERS)])
def test_each_door_takes_what_init_graph_prints_or_writes(trained, capsys, monkeypatch, case):
    files, words = PRINTED[case]
    for name, text in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    printed = _printed(capsys, words)
    written = _printed(capsys, [*words, "--yaml", "own/dataset/my_net.yaml"])
    assert written[-3:] == ["--config-dir", "own", "dataset=my_net"]
    runs = []
    for overrides, door in product([printed, written], ["alone", "sweep", "python"]):
        monkeypatch.setenv(own_graph.REPORTED, "")
        monkeypatch.setattr(command, "_LABELS", {})
        runs += trained(door, *overrides)
        said = capsys.readouterr().out
        assert said.count("  triples: " if "facts" in words[0] else "  edges: ") == 1
    assert len(runs) == 6
    assert len({*runs}) == 1


def _printed(capsys, words):
    """Overrides of the first command that `init-graph` prints."""
    assert init_graph.main(words) == 0
    said = capsys.readouterr().out
    return shlex.split(re.search(r"^curvlab train (.*)$", said, re.MULTILINE)[1])
