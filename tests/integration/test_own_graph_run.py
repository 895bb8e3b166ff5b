"""A user's own graph from its files to its ids in what a run leaves: the example of the docs."""

import re
import shutil

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

import curvlab
from composing import ROOT
from curvlab.cli.export import geometry
from curvlab.errors import UsageError

DOCS = ROOT / "docs" / "your_graph.md"
SHORT = ("trainer.max_steps=4", "trainer.plots=false", "trainer.accelerator=cpu")


@pytest.fixture
def friends(tmp_path):
    """The folder of the docs."""
    place = tmp_path / "friends"
    place.mkdir()
    for name, text in re.findall(
        r"`friends/(\w+\.csv)`.*?:\n\n((?:    .*\n)+)", DOCS.read_text(encoding="utf-8")
    ):
        text = text.replace("    ", "").replace("team", "label")
        (place / name).write_text(text, encoding="utf-8")
    return place


def words(folder, *others):
    return ("dataset=graph_folder", f"dataset.path={folder}", *SHORT, *others)


def test_ids_and_classes_come_back_with_the_embeddings(run_here, friends, tmp_path, caplog):
    caplog.set_level("INFO")
    result = run_here(*words(friends, "model=gcn", "task=node_classification"))
    assert "6 nodes, 7 edges, 3 features" in caplog.text
    stored = np.load(tmp_path / "run" / "embeddings.npz")
    assert stored["ids"].tolist() == ["ann", "bob", "cem", "dan", "eva", "fay"]
    assert stored["class_names"].tolist() == ["blue", "red"]
    assert stored["classes"].tolist() == [1, 1, 1, 0, 0, 0]
    assert result.dataset == "friends"
    with pytest.raises(UsageError, match="each of these nodes has a label"):
        curvlab.load(tmp_path / "run").predict(unlabelled=True)


def test_nodes_without_a_label_are_predicted_alone(run_here, friends, tmp_path):
    nodes = (friends / "nodes.csv").read_text()
    (friends / "nodes.csv").write_text(nodes + "gus,,,30,Rome\n")
    run_here(*words(friends, "model=gcn", "task=node_classification"))
    run = curvlab.load(tmp_path / "run")
    found = run.predict().set_index("node")
    assert found.loc["ann", ["label", "part"]].tolist() == ["red", "train"]
    assert found.loc["gus", ["label", "part"]].tolist() == ["", "unlabelled"]
    alone = run.predict(unlabelled=True)
    assert alone["node"].tolist() == ["gus"]
    assert alone["p_red"].item() == pytest.approx(found.loc["gus", "p_red"])
    assert "flat: GCN has no curved layer" in geometry(run)


def test_without_a_task_it_is_reconstructed_and_another_content_is_another_run(run_here, friends):
    first = run_here(*words(friends, "model=gcn"))
    again = run_here(*words(friends, "model=gcn"))
    assert (first.task, again.config_hash) == ("reconstruction", first.config_hash)
    assert again.wall_seconds == first.wall_seconds  # the finished one
    with (friends / "edges.csv").open("a") as stream:
        stream.write("ann,eva\n")
    assert run_here(*words(friends, "model=gcn")).config_hash != first.config_hash


def test_a_graph_is_never_answered_with_the_score_of_another(friends, tmp_path, monkeypatch):
    """The folder is named by another key, and edited; from Python, as on the command line."""
    monkeypatch.chdir(tmp_path)
    places = (f"paths.output_dir={tmp_path}", f"paths.data_dir={tmp_path / 'data'}")
    common = (*places, "model=gcn", *SHORT)
    other = tmp_path / "others"
    shutil.copytree(friends, other)
    (other / "edges.csv").write_text("ann,bob\nbob,cem\ndan,eva\neva,fay\n")

    def train(folder):
        return curvlab.train(*common, "dataset=graph_folder", f"dataset.source.path={folder}")

    first = train(friends)
    second = train(other)
    assert (first.result.dataset, second.result.dataset) == ("friends", "others")
    assert first.folder != second.folder
    assert second.data.num_nodes == 6
    assert train(friends).result.wall_seconds == first.result.wall_seconds  # the finished one
    text = (friends / "nodes.csv").read_text()
    (friends / "nodes.csv").write_text(text.replace("24", "25"))
    with pytest.raises(UsageError, match="friends has changed since this run"):
        curvlab.load(first.folder).predict()
    assert train(friends).result.config_hash != first.result.config_hash


def test_a_sweep_counts_graphs_of_one_name_and_repeated_seeds(friends, command):
    for version, edges in (("v1", "ann,bob\nbob,cem\n"), ("v2", "ann,bob\nann,cem\n")):
        (command.folder / version).mkdir()
        (command.folder / version / "net.csv").write_text(edges)
    graphs = "dataset=v1/net.csv,v2/net.csv"
    words = ("-m", graphs, "seed=0,1,1,0", "model=mlp", *SHORT)
    done = command(*words)
    assert "4 runs, 0 finished" in done.stdout
    assert "sweep of 4 cells: 4 finished" in done.stdout
    found = command.results()
    assert len({result["config_hash"] for result in found.values()}) == len(found) == 4
    assert not any("previous" in folder for folder in found)
    assert "4 runs, 4 finished" in command(*words, "--dry-run").stdout
    assert done.stdout.count("mlp on net, 2 seeds: ") == 2
    shutil.copy(command.folder / "v1" / "net.csv", command.folder / "copy.csv")
    again = command("-m", "dataset=copy.csv", "seed=0,2", "model=mlp", *SHORT)
    assert "copying the same run" in again.stdout
    assert "mlp on copy, 2 seeds: " in again.stdout


TOKENS = (
    "batching=tokens",
    "batching.workers=0",
    "dataset.features=null",
    "trainer.validate_every=2",
)


def test_tokens_on_disk_refuse_weights_and_a_graph_without_features(run_here, tmp_path):
    task = ("model=polyformer", "task=node_classification", *TOKENS)
    (tmp_path / "edges.csv").write_text("a,b,2\nb,c,3\nc,a,1\na,d,1\n")
    nodes = [f"{node},{i % 2}" for i, node in enumerate("abcd")]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,label", *nodes]))
    with pytest.raises(UsageError, match="needs features and labels"):
        run_here(*words(tmp_path, *task))
    wider = [f"{line},{i}" for i, line in enumerate(nodes)]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,label,size", *wider]))
    with pytest.raises(UsageError, match="edges are weighted"):
        run_here(*words(tmp_path, *task, "dataset.source.weighted=true"))


@pytest.mark.nightly
def test_a_class_of_pyg_from_words_to_a_score(command):
    """Its labels choose the task; a sweep says its counts once."""
    club = "dataset.target=torch_geometric.datasets.KarateClub"
    few = ("trainer.steps_per_epoch=5", "optimizer.lr=0.05", "trainer.max_steps=30", *SHORT[1:])
    done = command("-m", "dataset=pyg", club, "model=gcn,mlp", "seed=0,1", *few)
    assert done.stdout.count("34 nodes, 78 edges") == 1
    assert done.stdout.count("task=node_classification, since its nodes have labels") == 1
    found = command.results().values()
    assert [result["status"] for result in found] == ["finished"] * 4
    assert {result["task"] for result in found} == {"node_classification"}
    fake = "dataset.target=torch_geometric.datasets.FakeDataset"
    options = "dataset.options={num_graphs: 1, task: node, num_channels: 4}"
    done = command("dataset=pyg", fake, options, "model=gcn", *SHORT)


DIRECTED = ("hypformer", "sgformer", "lrn_sgformer", "gprgnn")


@pytest.fixture
def cited(tmp_path):
    """Papers of two kinds: one half cites the other, which holds the kind of those that cite it."""
    place = tmp_path / "cited"
    place.mkdir()
    count, generator = 120, np.random.default_rng(0)
    kinds = generator.integers(0, 2, count)
    lines = ["id,label,a,b"]
    for i in range(2 * count):
        kind, citing = kinds[i % count], i >= count
        lines.append(f"{i},{kind},{int(citing) * (2 * kind - 1)},{generator.normal():.3f}")
    (place / "nodes.csv").write_text("\n".join(lines))
    (place / "edges.csv").write_text("".join(f"{i + count},{i}\n" for i in range(count)))
    return place


@pytest.mark.parametrize("model", DIRECTED)
def test_direction_reaches_the_models_that_use_it(run_here, cited, tmp_path, model):
    """What a node receives changes with the direction of its edges, and with it alone."""
    own = (*words(cited, f"model={model}", "task=node_classification"), "split=random_60_20_20")
    run_here(*own, "dataset.source.directed=true")
    run = curvlab.load(tmp_path / "run")
    graph = run.data.source.load()
    with pytest.raises(UsageError, match="has no edge_forward"):
        run.embed(Data(x=graph.x, edge_index=graph.edge_index))
    before = run.embed(graph)
    torch.testing.assert_close(before, run.embed())
    run.model.graph_weight = 1.0  # of the two branches the one without attention, which sees all
    alone = run.embed(graph)
    graph.x[:120] += 1  # of those that are cited, which point at nobody
    changed = ~torch.isclose(run.embed(graph), alone).all(1)
    assert changed[:120].all()
    if model in ("sgformer", "gprgnn"):  # in the others attention stands beside it
        assert not changed[120:].any()
    graph.edge_forward = ~graph.edge_forward
    assert not torch.isclose(run.embed(graph), alone).all(1)[120:].any()


def test_tokens_on_disk_keep_the_ids(run_here, friends, tmp_path):
    task = ("model=polyformer", "task=node_classification")
    assert run_here(*words(friends, *task, *TOKENS)).status == "finished"
    run = curvlab.load(tmp_path / "run")
    assert run.predict()["node"].tolist() == ["ann", "bob", "cem", "dan", "eva", "fay"]
    stored = np.load(tmp_path / "run" / "embeddings.npz")
    by_id = dict(zip(stored["ids"].tolist(), stored["classes"].tolist(), strict=True))
    assert by_id == {"ann": 1, "bob": 1, "cem": 1, "dan": 0, "eva": 0, "fay": 0}


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
