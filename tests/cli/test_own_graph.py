"""One's own graph on the command line: labels choose the task, counts are said once."""

import re
import shlex
from pathlib import Path
from textwrap import dedent

import networkx as nx
import pytest
import torch
from torch_geometric.data import Data

from composing import ROOT
from curvlab.cli.aliases import READERS, resolve_aliases
from curvlab.cli.init_graph import main as init_graph
from curvlab.cli.overrides import check_overrides, read_overrides
from curvlab.config import folder as configurations
from curvlab.config.compose import compose
from curvlab.config.folder import CONFIGS, choices
from curvlab.data.datasets import own_graph
from curvlab.errors import UsageError
from curvlab.run import command
from curvlab.run.command import Command, complete

pytestmark = pytest.mark.slow

EDGES = "ann,bob\nbob,cem\ncem,dan\n"
LABELS = "id,label\nann,x\nbob,y\ncem,x\ndan,y\n"
FOUND = "4 nodes, 3 edges"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The words of a folder with labels, with one of `data` in an empty place."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(own_graph.REPORTED, "")
    monkeypatch.setattr(command, "_LABELS", {})
    monkeypatch.delenv("CURVLAB_MIRROR", raising=False)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "edges.csv").write_text(EDGES)
    (tmp_path / "mine" / "nodes.csv").write_text(LABELS)
    return ["dataset=graph_folder", "dataset.path=mine", "paths.data_dir=data"]


@pytest.mark.parametrize("others", [["model=gcn"], ["seed=1"], ["study=spaces"]])
def test_labels_choose_the_task(folder, capsys, others):
    labelled = (*folder, *others, "task=node_classification")
    assert complete([*folder, *others]).overrides == labelled
    first, *_, last = capsys.readouterr().out.splitlines()
    assert FOUND in first
    assert last == "task=node_classification, since its nodes have labels"
    assert complete([*folder, *others, "seed=2"]).config.task.name == "node_classification"
    assert capsys.readouterr().out == ""  # it is said once


def test_without_labels_it_is_the_data_sets_own(folder, capsys, tmp_path):
    assert complete(folder, keep=False).config.task.name == "node_classification"
    assert not (tmp_path / "data").exists()
    (tmp_path / "mine" / "nodes.csv").unlink()
    assert complete(folder).overrides[-1] == "task=reconstruction"
    assert "since its nodes have no labels" in capsys.readouterr().out


def test_a_task_that_is_said_stays_and_counts_are_said(folder, capsys):
    words = (*folder, "task=link_prediction")
    assert complete(words).overrides == words
    said = capsys.readouterr().out
    assert FOUND in said
    assert "since" not in said


def test_what_is_malformed_ends_the_command_in_a_sentence(folder, tmp_path):
    (tmp_path / "mine" / "edges.csv").write_text("ann,bob\nann\n")
    with pytest.raises(UsageError, match=r"edges.csv, line 2, column 'target': '' is not an id"):
        complete([*folder, "model=gcn"])
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["dataset=mine"], ["dataset=graph_folder", "dataset.path=mine"]),
        (["dataset=mine/edges.csv"], ["dataset=graph_folder", "dataset.path=mine/edges.csv"]),
        (["dataset=a.csv,b.csv"], ["dataset=graph_folder", "dataset.path=a.csv,b.csv"]),
        (["dataset=my graph.csv"], ["dataset=graph_folder", "dataset.path='my graph.csv'"]),
        (["dataset=x.pt"], ["dataset=pyg", "dataset.path=x.pt"]),
        (["dataset=x.gml.gz"], ["dataset=networkx", "dataset.path=x.gml.gz"]),
        (["dataset=triples"], ["dataset=kg_folder", "dataset.source.path=triples"]),
        (
            ["dataset=graph_folder,pyg", "dataset.features=own,identity"],
            ["dataset=graph_folder,pyg", "dataset.features.kind=own,identity"],
        ),
        (["dataset=cora"], ["dataset=cora"]),
        (["dataset=cora", "dataset.features=null"], ["dataset=cora", "dataset.features=null"]),
        (["dataset=corra"], ["dataset=corra"]),
        (["model=gcn"], ["model=gcn"]),
        (
            ["dataset=mine", "dataset.features=own+identity"],
            ["dataset.features.kind=own+identity", "dataset=graph_folder", "dataset.path=mine"],
        ),
    ],
)
def test_a_path_is_a_data_set(folder, tmp_path, words, expected):
    (tmp_path / "triples").mkdir()
    (tmp_path / "triples" / "train.txt").write_text("a\tr\tb\n")
    assert resolve_aliases(words) == expected


def test_init_graph_prints_columns_shape_and_the_command(folder, capsys, tmp_path):
    (tmp_path / "mine" / "edges.csv").write_text("a,b,amount\nann,bob,2\nbob,cem,5\ncem,dan,1\n")
    people = "name,team,age\nann,x,1\nbob,y,2\ncem,x,\ndan,y,4\n"
    (tmp_path / "mine" / "nodes.csv").write_text(people)
    assert init_graph(["mine", "--label", "team"]) == 0
    said = capsys.readouterr().out
    for line in (
        "mine: 4 nodes, 3 edges, 1 feature",
        "edges: 'a' - 'b' (header read; separator comma); weight: none; not used: amount",
        "nodes: id 'name', label 'team' (separator comma); features age",
        "age: 1 missing",
        "2 classes: x 2, y 2",
        "direction: 0 of 3 edges are given both ways",
        "1 component, degree 1.5 on average and 2 at most",
        "delta: 0 at a diameter of 3 (0 of a tree), tree-like",
        "curvlab train model=hypformer dataset=./mine dataset.source.label=team",
    ):
        assert line in said
    assert init_graph(["nowhere"]) == 2
    assert init_graph(["nowhere.pt", "label=x"]) == 2
    assert "does not exist" in capsys.readouterr().err


def command_of(capsys, *words):
    """The overrides of the first command that `init-graph` prints, as train takes them."""
    assert init_graph([*words]) == 0
    line = re.search(r"^curvlab train (.*)$", capsys.readouterr().out, re.MULTILINE)[1]
    return resolve_aliases(shlex.split(line))


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("texas", "label"),
        ("facebook", "a label"),
        ("pyg", "true"),
        ("Texas", "1"),
        ("my graph", "a,b"),
        ("one,two", "it's"),
        ("a=b (1)", "label"),
    ],
)
def test_the_printed_command_trains_on_the_folder_that_was_read(
    tmp_path, monkeypatch, capsys, name, label
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).mkdir()
    (tmp_path / name / "edges.csv").write_text(EDGES)
    table = LABELS.replace("label", f'"{label}"')
    (tmp_path / name / "nodes.csv").write_text(table)
    config = compose(command_of(capsys, name, "--label", label))
    assert Path(config.dataset.source.path) == Path(name)
    assert config.dataset.source.label == label
    assert config.dataset.name == "graph_folder"
    assert Path(compose(command_of(capsys, str(tmp_path / name))).dataset.path) == tmp_path / name


def test_a_folder_with_triples_too_and_a_table_without_an_ending(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("edges.csv", "train.txt", "plain"):
        (tmp_path / name).write_text(EDGES)
    for name in (".", "plain"):
        config = compose(command_of(capsys, name))
        assert (config.dataset.name, Path(config.dataset.path)) == ("graph_folder", Path(name))


@pytest.mark.parametrize("name", [*READERS, *choices(CONFIGS, "dataset")])
def test_train_says_which_of_a_folder_and_a_data_set_it_takes(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).mkdir()
    words = [f"dataset={name}"]
    assert resolve_aliases(words) == words
    assert capsys.readouterr().out == ""  # nothing to train on is in it
    (tmp_path / name / "edges.csv").write_text(EDGES)
    assert resolve_aliases(words) == words
    assert f"your folder is dataset=./{name}\n" in capsys.readouterr().out
    assert resolve_aliases([f"dataset=./{name}"]) == [
        "dataset=graph_folder",
        f"dataset.path=./{name}",
    ]
    assert capsys.readouterr().out == ""
    resolve_aliases([*words, "print_config=true"])
    assert "your folder" in capsys.readouterr().err


def test_a_folder_that_is_spelt_nearly_as_a_data_set_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Web-Edu").mkdir()
    (tmp_path / "Web-Edu" / "edges.csv").write_text(EDGES)
    assert resolve_aliases(["dataset=Web-Edu"])[-1] == "dataset.path=Web-Edu"
    assert "curvlab's data set is dataset=web_edu" in capsys.readouterr().out


PAGE = ROOT / "docs" / "your_graph.md"


def test_the_page_on_own_graphs_shows_what_is_printed_and_its_commands_are_taken(
    tmp_path, monkeypatch, capsys
):
    page = PAGE.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(configurations.ADDED, "")
    monkeypatch.setattr(configurations, "_ADDED", [])
    code = r"\n\n((?:    .*\n|\n(?=    ))+)"
    files = re.findall(rf"`((?:friends/)?\w+\.[ct]sv)`[^:`]*:?{code}", page)
    assert [name for name, _ in files] == [
        "friends/edges.csv", "friends/nodes.csv", "flights.csv", "facts.tsv"
    ]  # fmt: skip
    Path("friends").mkdir()
    for name, text in files:
        Path(name).write_text(dedent(text))
    nx.write_graphml(nx.karate_club_graph(), "karate.graphml")
    torch.save(Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), num_nodes=3), "graph.pt")
    printed = re.findall(rf"`curvlab init-graph ([^`\n]+)` prints{code}", page)
    assert len(printed) == 3
    for words, text in printed:
        assert init_graph(shlex.split(words)) == 0
        assert dedent(text).rstrip() in capsys.readouterr().out
    for verb, line in re.findall(r"^    curvlab (init-graph|train) (.*)$", page, re.MULTILINE):
        words = shlex.split(line)
        if verb == "init-graph":
            assert init_graph(words) == 0
        elif "dataset=pyg" in words:  # it would download
            check_overrides(read_overrides(words), False, Command.from_overrides)
        else:
            check_overrides(read_overrides(words), False)
