"""One's own graph on the command line: labels choose the task, counts are said once."""

import pytest

from curvlab.cli.aliases import add_task_of_labels, resolve_aliases
from curvlab.cli.init_graph import main as init_graph
from curvlab.data.datasets import own_graph
from curvlab.errors import UsageError

pytestmark = pytest.mark.slow

EDGES = "ann,bob\nbob,cem\ncem,dan\n"
LABELS = "id,label\nann,x\nbob,y\ncem,x\ndan,y\n"
FOUND = "4 nodes, 3 edges"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The words of a folder with labels, with one of `data` in an empty place."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(own_graph.REPORTED, "")
    monkeypatch.delenv("CURVLAB_MIRROR", raising=False)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "edges.csv").write_text(EDGES)
    (tmp_path / "mine" / "nodes.csv").write_text(LABELS)
    return ["dataset=graph_folder", "dataset.path=mine", "paths.data_dir=data"]


@pytest.mark.parametrize("others", [["model=gcn"], ["-m", "seed=0,1"], ["-m", "study=spaces"]])
def test_labels_choose_the_task(folder, capsys, others):
    assert add_task_of_labels([*folder, *others]) == [*folder, *others, "task=node_classification"]
    first, *_, last = capsys.readouterr().out.splitlines()
    assert FOUND in first
    assert last == "task=node_classification, since its nodes have labels"
    add_task_of_labels([*folder, *others])
    assert FOUND not in capsys.readouterr().out  # as a run of this command


def test_without_labels_it_is_the_data_sets_own(folder, capsys, tmp_path):
    assert add_task_of_labels(folder, only_shown=True)[-1] == "task=node_classification"
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "data").exists()
    (tmp_path / "mine" / "nodes.csv").unlink()
    assert add_task_of_labels(folder)[-1] == "task=reconstruction"
    assert "since its nodes have no labels" in capsys.readouterr().out


def test_a_task_that_is_said_stays_and_counts_are_said(folder, capsys):
    words = [*folder, "task=link_prediction"]
    assert add_task_of_labels(words) == words
    said = capsys.readouterr().out
    assert FOUND in said
    assert "since" not in said


def test_what_is_malformed_ends_the_command_in_a_sentence(folder, tmp_path):
    (tmp_path / "mine" / "edges.csv").write_text("ann,bob\nann\n")
    with pytest.raises(UsageError, match=r"edges.csv, line 2, column 'target': '' is not an id"):
        add_task_of_labels([*folder, "model=gcn"])
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
        "mine: 4 nodes, 3 edges, 1 features",
        "nodes.csv: id 'name', label 'team'; features age",
        "column 'amount' is not used",
        "age: 1 missing",
        "2 classes: x 2, y 2",
        "direction: 0 of 3 edges are given both ways",
        "1 component, degree 1.5 on average and 2 at most",
        "delta: 0 at a diameter of 3 (0 of a tree), tree-like",
        "curvlab train model=hypformer dataset=mine dataset.source.label=team",
    ):
        assert line in said
    assert init_graph(["nowhere"]) == 2
    assert init_graph(["nowhere.pt", "--label", "x"]) == 2
    assert "needs tables" in capsys.readouterr().err
