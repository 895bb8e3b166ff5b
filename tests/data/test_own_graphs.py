"""A user's own graph: counted, named, cached by content; what is malformed is one sentence."""

import gzip
import logging
import pickle

import networkx as nx
import numpy as np
import psutil
import pytest
import torch
from scipy.sparse import csr_array, save_npz
from torch_geometric.data import Data, HeteroData
from torch_geometric.datasets import WebKB

from curvlab.checksums import checksum_of
from curvlab.data.datasets import own_graph
from curvlab.data.datasets.graph_folder import GraphFolder
from curvlab.data.datasets.networkx_graph import NetworkXGraph
from curvlab.data.datasets.pyg_object import PyGObject
from curvlab.data.datasets.reading import read_graph
from curvlab.data.loaders.datamodule import GraphDataModule
from curvlab.data.splits.links import LinkSplit
from curvlab.data.splits.nodes import OwnSplit
from curvlab.data.transforms.features import OwnFeatures
from curvlab.data.transforms.graph import NormalisedAdjacency
from curvlab.data.vocabulary import Vocabulary, vocabulary_of
from curvlab.errors import UsageError

EDGES = "from,to\nann,bob\nbob,cem\ncem,ann\ncem,dan\n"
NODES = "id,label,split,age\nann,x,train,1\nbob,y,val,2\ncem,x,test,3.5\ndan,y,train,-4\n"


@pytest.fixture
def folder(tmp_path):
    """`folder({name: text or bytes}, key=value, ...)`: the source of a folder of these files."""

    def make(files, **options):
        place = tmp_path / "own"
        place.mkdir(exist_ok=True)
        for name, content in files.items():
            raw = content if isinstance(content, bytes) else content.encode()
            (place / name).write_bytes(raw)
        return GraphFolder(str(place), data_dir=tmp_path / "data", **options)

    return make


def edges_by_id(data):
    names = data.vocabulary.nodes
    return {frozenset((names[a], names[b])) for a, b in data.edge_index.T.tolist()}


TRIANGLE = {frozenset(pair) for pair in (("ann", "bob"), ("bob", "cem"), ("cem", "ann"))}


def test_a_folder_keeps_ids_classes_split_and_features(folder):
    data = folder({"edges.csv": EDGES, "nodes.csv": NODES}).load()
    assert data.vocabulary == Vocabulary(
        nodes=("ann", "bob", "cem", "dan"), classes=("x", "y"), features=("age",)
    )
    assert edges_by_id(data) == TRIANGLE | {frozenset(("cem", "dan"))}
    assert data.x.flatten().tolist() == [1, 2, 3.5, -4]
    assert data.y.tolist() == [0, 1, 0, 1]
    assert data.given_train.flatten().tolist() == [True, False, False, True]


def test_a_first_line_of_no_ids_is_a_header_where_the_nodes_are_known(folder):
    plain = folder({"edges.csv": EDGES.replace("from,to", "who,whom"), "nodes.csv": NODES})
    assert edges_by_id(plain.load()) == TRIANGLE | {frozenset(("cem", "dan"))}


def test_the_cache_gives_the_same_graph_and_follows_the_content(folder, tmp_path):
    source = folder({"edges.csv": EDGES, "nodes.csv": NODES})
    first, again = source.load(), source.load()
    (entry,) = (tmp_path / "data" / "processed").iterdir()
    assert first.vocabulary == again.vocabulary
    assert first.to_dict().keys() == again.to_dict().keys()
    for name, value in first:
        assert torch.equal(value, again[name]) if isinstance(value, torch.Tensor) else True
    changed = folder({"edges.csv": EDGES + "eva,ann\n", "nodes.csv": NODES + "eva,x,,0\n"}).load()
    assert changed.num_nodes == 5
    assert entry in (tmp_path / "data" / "processed").iterdir()


def test_a_changed_file_is_another_run(tmp_path):
    (tmp_path / "edges.csv").write_text("a,b\n")
    before = checksum_of(str(tmp_path), "edges.csv", "nodes.csv")
    assert before == checksum_of(str(tmp_path), "edges.csv")
    (tmp_path / "edges.csv").write_text("a,c,d\n")
    assert checksum_of(str(tmp_path), "edges.csv") != before
    assert checksum_of(str(tmp_path), "nodes.csv") is checksum_of(None) is None
    assert checksum_of(str(tmp_path / "edges.csv")) == checksum_of(str(tmp_path), "edges.csv")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("edges.csv", "ann,bob\nbob,cem\ncem,ann\n"),
        ("edges.csv", b"\xef\xbb\xbfann,bob\r\nbob,cem\r\ncem,ann\r\n"),
        ("edges.csv", "# of friends\n\nsource,target\nann,bob\n\nbob,cem\ncem,ann\n\n"),
        ("edges.csv", "id,source,target\n7,ann,bob\n8,bob,cem\n9,cem,ann\n"),
        ("edges.csv", '"ann", bob\nbob , cem\ncem,ann,\n'.replace("ann,\n", "ann\n")),
        ("edges.tsv", "ann\tbob\nbob\tcem\ncem\tann\n"),
        ("edges.csv.gz", gzip.compress(b"ann,bob\nbob,cem\ncem,ann\n", mtime=0)),
        ("edges.csv", "ann,bob,1\nbob,cem,2\ncem,ann,3\n"),
        ("edges.csv", "who,whom,weight\nann,bob,1\nbob,cem,2\ncem,ann,3\n"),
        ("edges.csv", "ann,bob\nbob,cem\ncem,ann\nann,ann\nbob,ann\nann,bob\n"),
    ],
)
def test_forms_of_edges(folder, name, content):
    assert edges_by_id(folder({name: content}).load()) == TRIANGLE


def test_numbers_below_names_of_columns_are_a_header(folder):
    assert folder({"edges.csv": "a,b\n1,2\n2,3\n"}).load().num_nodes == 3
    assert folder({"edges.csv": "a,b\n1,2\n2,3\n"}, header=False).load().num_nodes == 5
    assert folder({"edges.csv": "a,b\nb,c\n"}).load().num_nodes == 3


def test_counts_are_told_once_with_what_was_left_out(folder, caplog, monkeypatch):
    monkeypatch.setattr(own_graph, "_SAID", set())
    caplog.set_level(logging.INFO)
    text = EDGES + "ann,ann\nbob,ann\nann,bob\n"
    folder({"edges.csv": text, "nodes.csv": NODES}).load()
    (line,) = [r.getMessage() for r in caplog.records if "4 nodes" in r.getMessage()]
    left = "1 from a node to itself, 1 repeated, 1 given in both directions"
    assert f"4 edges (merged or left out: {left}), 1 features" in line
    assert "2 classes: x 2, y 2" in caplog.text
    assert "split: its own, 2 / 1 / 1" in caplog.text
    monkeypatch.setattr(own_graph, "_SAID", set())  # as another process
    for _ in range(2):  # from the cache
        folder({}).load()
    assert caplog.text.count("4 nodes") == 2
    assert [r.getMessage() for r in caplog.records].count(line) == 2
    monkeypatch.setenv(own_graph.SAID, "")
    own_graph.tell_processes()
    monkeypatch.setattr(own_graph, "_SAID", set())  # as a process of the same command
    folder({}).load()
    assert caplog.text.count("4 nodes") == 2


def test_weights_are_added_over_repeated_lines_and_equal_both_ways(folder):
    data = folder({"edges.csv": "a,b,1.5\nb,a,2\nb,c,4\n"}, weighted=True).load()
    weights = dict(zip(map(tuple, data.edge_index.T.tolist()), data.edge_weight, strict=True))
    assert weights == {(0, 1): 3.5, (1, 0): 3.5, (1, 2): 4, (2, 1): 4}


def test_mutual_edges_stand_in_both_directions(folder):
    data = folder({"edges.csv": "a,b\nb,a\nb,c\nc,d\nc,d\n"}, mutual=True).load()
    assert data.edge_index.T.tolist() == [[0, 1], [1, 0]]
    assert data.num_nodes == 4


def test_features_of_a_file_follow_the_nodes_or_number_them(folder, tmp_path):
    (tmp_path / "own").mkdir()
    np.save(tmp_path / "own" / "features.npy", np.arange(8).reshape(4, 2))
    data = folder({"edges.csv": "3,0\n0,1\n"}).load()
    assert (data.num_nodes, data.vocabulary.nodes) == (4, ("0", "1", "2", "3"))
    assert data.edge_index.T.tolist() == [[0, 1], [0, 3], [1, 0], [3, 0]]
    data = folder({"edges.csv": EDGES, "nodes.csv": "id\ndan\ncem\nbob\nann\n"}).load()
    assert data.x[data.vocabulary.nodes.index("ann")].tolist() == [6, 7]
    (tmp_path / "own" / "features.npy").unlink()
    save_npz(tmp_path / "own" / "features.npz", csr_array(np.eye(4)))
    assert torch.equal(folder({}).load().x, torch.eye(4))


def test_parquet_tables(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pd.DataFrame({"a": [10, 11, 12], "b": [11, 12, 10]}).to_parquet(tmp_path / "edges.parquet")
    nodes = pd.DataFrame({"id": [12, 10, 11], "label": ["x", "y", "x"], "f": [0.5, 1, 2]})
    nodes.to_parquet(tmp_path / "nodes.parquet")
    data, names = read_graph(tmp_path)
    assert names.nodes == ("12", "10", "11")
    assert (data.num_edges, data.x.flatten().tolist()) == (6, [0.5, 1, 2])


def test_nodes_without_label_part_or_edge_stay(folder):
    nodes = "id,label,split\nann,x,train\nbob,y,valid\ncem,x,TEST\ndan,,\neva,y,-\n"
    data = folder({"edges.csv": EDGES, "nodes.csv": nodes}).load()
    assert data.labelled.tolist() == [True, True, True, False, True]
    assert data.num_nodes == 5
    split = OwnSplit()(data, seed=3)
    assert [int(split[f"{p}_mask"].sum()) for p in ("train", "val", "test")] == [1, 1, 1]


@pytest.mark.parametrize("name", ["nan", "<NA>"])
def test_what_means_no_number_is_a_name_among_names(folder, name):
    """Of a node and of a class; among numbers it is a class that is missing."""
    nodes = f"id,label\nann,x\nbob,{name}\ncem,x\n{name},x\n"
    data = folder({"edges.csv": f"ann,bob\n{name},cem\n", "nodes.csv": nodes}).load()
    names = vocabulary_of(data)
    assert name in names.nodes
    assert sorted(names.classes) == sorted(["x", name])
    assert "labelled" not in data
    nodes = f"id,label\nann,0\nbob,{name}\ncem,1\ndan,0\neva,1\n"
    data = folder({"edges.csv": EDGES, "nodes.csv": nodes}).load()
    assert data.labelled.tolist() == [True, False, True, True, True]


def test_without_a_split_one_is_drawn_in_proportion(folder):
    ids = range(50)
    edges = "".join(f"{i},{(i + 1) % 50}\n" for i in ids)
    nodes = "id,label\n" + "".join(f"{i},{i % 2}\n" for i in ids)
    data = OwnSplit()(folder({"edges.csv": edges, "nodes.csv": nodes}).load(), seed=0)
    for mask, size in (("train_mask", 30), ("val_mask", 10), ("test_mask", 10)):
        assert torch.bincount(data.y[data[mask]]).tolist() == [size / 2, size / 2]


def test_a_new_graph_takes_the_numbers_of_the_trained_one(folder, tmp_path):
    known = Vocabulary(classes=("y", "x", "z"), features=("size", "age"))
    nodes = "id,age,size,label\nann,1,10,x\nbob,2,20,y\ncem,3,30,x\ndan,4,40,x\n"
    folder({"edges.csv": EDGES, "nodes.csv": nodes})
    data, names = read_graph(tmp_path / "own", known=known)
    assert data.x[0].tolist() == [10, 1]
    assert (data.y.tolist(), names.classes) == ([1, 0, 1, 1], ("y", "x", "z"))
    with pytest.raises(UsageError, match="has no column 'height'"):
        read_graph(tmp_path / "own", known=Vocabulary(features=("height",)))
    with pytest.raises(UsageError, match="class 'x', which the model was not trained on"):
        read_graph(tmp_path / "own", known=Vocabulary(classes=("y",)))


def test_features_are_made_where_there_are_none(folder):
    source = folder({"edges.csv": EDGES})
    data = GraphDataModule(source, [OwnFeatures()])
    torch.testing.assert_close(data.graph.x, torch.eye(4), atol=0.02, rtol=0)
    assert GraphDataModule(source, [OwnFeatures(dim=7, identity_up_to=3)]).num_features == 7
    own = folder({"nodes.csv": NODES})
    standard = GraphDataModule(own, [OwnFeatures("standard")]).graph.x
    assert standard.mean() == pytest.approx(0, abs=1e-6)
    assert standard.std(correction=0) == pytest.approx(1, abs=1e-6)


NUL = b"ann,bob\x00\n"
BAD_FOLDERS = [
    ({}, {}, "has no edges.csv"),
    ({"edges.csv": ""}, {}, "is empty"),
    ({"edges.csv": "\n\n# nothing\n"}, {}, "no line but blank ones"),
    ({"edges.csv": "from,to\n"}, {}, "has no edges"),
    ({"edges.csv": "ann\nbob\n"}, {}, "one column, where two ids"),
    ({"edges.csv": "ann;bob\nbob;cem\n"}, {}, "separator="),
    ({"edges.csv": "ann,bob\nbob,cem,1,2\n"}, {}, "line 2 has 4 fields, where 2"),
    ({"edges.csv": "ann,bob\nbob\n"}, {}, "line 2: an id is missing"),
    ({"edges.csv": "1,2\n\nNaN,2\n"}, {}, "line 3: an id is missing"),
    ({"edges.csv": "ann,bob\n,bob\n"}, {}, "line 2: an id is missing"),
    ({"edges.csv": "1,2\n01,3\n"}, {}, "ids '1' and '01' are the same number"),
    ({"edges.csv": "1,2\n1.0,3\n"}, {}, "same number"),
    ({"edges.csv": 'ann,"bob\nbob,cem\n'}, {}, "quote is opened and not closed"),
    ({"edges.csv": "a,b,c,d\nb,c,d,e\n"}, {}, "4 columns without names"),
    ({"edges.csv": "source,source\na,b\n"}, {"header": True}, "two columns 'source'"),
    ({"edges.csv": "head,relation,tail\na,r,b\n"}, {"header": True}, "dataset=kg_folder"),
    ({"edges.csv": "ann,bob\nbob,\xe9va\n".encode("latin1")}, {}, "line 2 is not UTF-8"),
    ({"edges.csv": "ann,bob\n".encode("utf-16")}, {}, "is in UTF-16"),
    ({"edges.csv": NUL}, {}, "is no text"),
    ({"edges.csv": b"\x89PNG\r\n\x1a\n\x00\x00"}, {}, "not UTF-8|no text"),
    ({"edges.csv.gz": b"ann,bob\n"}, {}, "cannot be decompressed"),
    ({"edges.csv.gz": gzip.compress(b"a,b\n" * 999, mtime=0)[:30]}, {}, "cannot be decompressed"),
    ({"edges.csv": EDGES, "edges.tsv": "a\tb\n"}, {}, "take one of them away"),
    ({"edges.parquet": b"PAR1 rubbish"}, {}, "no Parquet table|needs pyarrow"),
    ({"edges.csv": "ann,ann\nbob,bob\n"}, {}, "none of the graph's 2 edges join two nodes"),
    ({"edges.csv": "ann,bob\nbob,cem\n"}, {"mutual": True}, "stand in both directions"),
    ({"edges.csv": EDGES}, {"weighted": True}, "no third column"),
    ({"edges.csv": "a,b,1\nb,c,-2\n"}, {"weighted": True}, "line 2: weight -2 must be positive"),
    ({"edges.csv": "a,b,1\nb,c,0\n"}, {"weighted": True}, "weight 0 must be positive"),
    ({"edges.csv": "a,b,1\nb,c,nan\n"}, {"weighted": True}, "line 2.*'nan' is not a finite"),
    ({"edges.csv": "a,b,1\nb,c,heavy\nc,d,\n"}, {"weighted": True}, "'heavy' is not a finite"),
    ({"train.txt": "a\tb\tc\n"}, {}, "use dataset=kg_folder"),
    ({"edges.csv": EDGES, "nodes.csv": ""}, {}, "nodes.csv is empty"),
    ({"edges.csv": EDGES, "nodes.csv": "id,label\n"}, {}, "no nodes below its header"),
    ({"edges.csv": EDGES, "nodes.csv": "ann,x\nbob,y\n"}, {}, "has no column id"),
    ({"edges.csv": EDGES, "nodes.csv": "id,f,f\nann,1,2\n"}, {}, "two columns 'f'"),
    ({"edges.csv": EDGES, "nodes.csv": "id,,f\nann,1,2\n"}, {}, "a column without a name"),
    ({"edges.csv": EDGES, "nodes.csv": "id,f\nann,1,2\n"}, {}, "line 2 has more fields"),
    ({"edges.csv": EDGES, "nodes.csv": "id,f\nann,1\nbob,1,2\n"}, {}, "line 3 has 3 fields"),
    ({"edges.csv": EDGES, "nodes.csv": NODES + "ann,x,,1\n"}, {}, "line 6: id 'ann' is there a"),
    ({"edges.csv": EDGES + "dan,eva\n", "nodes.csv": NODES}, {}, "line 6: 'eva' is no id of the"),
    ({"edges.csv": EDGES, "nodes.csv": NODES.replace("2\n", "\n")}, {}, "line 3, column 'age': ''"),
    ({"edges.csv": EDGES, "nodes.csv": NODES.replace("2\n", "NaN\n")}, {}, "'NaN' is not a finite"),
    ({"edges.csv": EDGES, "nodes.csv": NODES.replace("2\n", "1e99\n")}, {}, "is not a finite"),
    ({"edges.csv": EDGES, "nodes.csv": NODES.replace("2\n", "old\n")}, {}, r"ignore=\[age\]"),
    ({"edges.csv": EDGES, "nodes.csv": NODES}, {"ignore": ["wage"]}, "ignore=.wage. names a"),
    ({"edges.csv": EDGES, "nodes.csv": NODES.replace(",y,", ",x,")}, {}, "the one class 'x'"),
    ({"edges.csv": EDGES, "nodes.csv": "id,y\nann,\nbob,\ncem,\ndan,\n"}, {}, "no class in any"),
    ({"edges.csv": EDGES, "nodes.csv": "id,y\nann,1\nbob,2\ncem,3\ndan,4\n"}, {}, "one node each"),
    ({"edges.csv": EDGES, "nodes.csv": NODES.replace("val", "train")}, {}, "no node into val"),
    ({"edges.csv": EDGES, "nodes.csv": NODES.replace("val", "eval")}, {}, "'eval' is no part"),
    ({"edges.csv": EDGES, "nodes.csv": NODES + "eva,,test,1\n"}, {}, "'test' has no label"),
    ({"edges.csv": EDGES, "nodes.csv": "id,label\n\xe9,1\n".encode("latin1")}, {}, "not UTF-8"),
    ({"edges.csv": EDGES, "features.npy": b"rubbish"}, {}, "is no array of numbers"),
]  # fmt: skip


def sentence(make):
    """What is said of malformed input: one sentence, nothing else."""
    with pytest.raises(UsageError) as refused:
        make()
    said = " ".join(str(refused.value).split())
    assert len(said) <= 400
    assert "Traceback" not in said
    return refused


@pytest.mark.parametrize(("files", "options", "answer"), BAD_FOLDERS)
def test_what_is_wrong_with_a_folder_is_one_sentence(folder, tmp_path, files, options, answer):
    refused = sentence(folder(files, **options).load)
    assert refused.match(answer)
    assert not (tmp_path / "data").exists()


def saved_arrays(**arrays):
    return lambda path: np.savez(path.with_suffix(".npz"), **arrays)


BAD_FEATURES = [
    (lambda path: np.save(path, np.zeros((3, 2))), EDGES, "'ann' and .* more is no row"),
    (lambda path: np.save(path, np.zeros(4)), "0,1\n", r"of shape \[4\]"),
    (lambda path: np.save(path, np.array([[1.0, np.inf]])), "0,1\n", "row 0, column 1"),
    (lambda path: np.save(path, np.array([[1j]])), "0,1\n", "complex"),
    (lambda path: np.save(path, np.array([["a"]])), "0,1\n", "features are numbers"),
    (lambda path: np.save(path, np.zeros((2, 0))), "0,1\n", "there are no features"),
    (lambda path: np.save(path, np.zeros((2, 3))), "0,2\n", "'2' is no row of the feat.* 0 to 1"),
    (lambda path: np.save(path, np.array([{}]), allow_pickle=True), "0,1\n", "no array of num"),
    (saved_arrays(a=np.zeros((2, 1)), b=np.zeros((2, 1))), "0,1\n", "2 arrays"),
]  # fmt: skip


@pytest.mark.parametrize(("save", "edges", "answer"), BAD_FEATURES)
def test_what_is_wrong_with_a_file_of_features_is_one_sentence(
    folder, tmp_path, save, edges, answer
):
    source = folder({"edges.csv": edges})
    save(tmp_path / "own" / "features.npy")
    assert sentence(source.load).match(answer)
    assert not (tmp_path / "data").exists()


def test_features_and_nodes_must_agree(folder, tmp_path):
    source = folder({"edges.csv": EDGES, "nodes.csv": "id\nann\nbob\ncem\ndan\n"})
    np.save(tmp_path / "own" / "features.npy", np.zeros((3, 2)))
    assert sentence(source.load).match("has 3 rows, but .* has 4 nodes")
    assert sentence(folder({"nodes.csv": NODES}).load).match("keep features in one of them")


def test_places_that_are_no_folder(tmp_path):
    (tmp_path / "edges.csv").mkdir()
    for path, answer in (
        (None, "path=FOLDER"),
        (tmp_path / "nowhere", "is not there"),
        (tmp_path, "edges.csv is a folder"),
        (__file__, "is a file: dataset=graph_folder takes a folder"),
    ):
        source = GraphFolder(None if path is None else str(path))
        assert sentence(source.load).match(answer)


def test_files_that_do_not_fit_into_memory_are_not_read(folder, monkeypatch):
    source = folder({"edges.csv": EDGES})
    free = psutil.virtual_memory()._replace(available=40)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)
    assert sentence(source.load).match("of memory to read")


def square(**changes):
    """Attributes of a ring of four nodes."""
    mask = torch.tensor([1, 0, 0, 0]).bool()
    plain = {
        "x": torch.eye(4),
        "edge_index": torch.tensor([[0, 1, 2, 3, 3], [1, 2, 3, 0, 3]]),
        "y": torch.tensor([0, 1, 0, 1]),
        "train_mask": mask,
        "val_mask": mask.roll(1),
        "test_mask": mask.roll(2),
    }
    return {name: value for name, value in {**plain, **changes}.items() if value is not None}


@pytest.mark.parametrize("wrap", [Data.from_dict, dict, lambda d: (d, None), lambda d: [Data(**d)]])
def test_a_saved_graph_brings_its_masks(tmp_path, wrap):
    torch.save(wrap(square(node_ids=["a", "b", "c", "d"])), tmp_path / "graph.pt")
    data = PyGObject(str(tmp_path / "graph.pt"), data_dir=tmp_path / "data").load()
    assert data.vocabulary == Vocabulary(nodes=("a", "b", "c", "d"))
    assert data.num_edges == 8
    split = OwnSplit()(data, seed=5)
    assert split.test_mask.tolist() == [False, False, True, False]


def test_one_mask_is_no_split(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    torch.save(square(val_mask=None), tmp_path / "graph.pt")
    assert "given" not in PyGObject(str(tmp_path / "graph.pt")).load()
    assert "train_mask, test_mask alone" in caplog.text


def test_labels_that_are_missing_are_no_class(tmp_path):
    for y in (torch.tensor([0, 1, -1, 1]), torch.tensor([[0.0], [1.0], [torch.nan], [1.0]])):
        torch.save(Data(**square(y=y, test_mask=None, val_mask=None, train_mask=None)),
                   tmp_path / "graph.pt")  # fmt: skip
        data = PyGObject(str(tmp_path / "graph.pt")).load()
        assert (data.labelled.tolist(), data.y.tolist()) == (
            [True, True, False, True],
            [0, 1, -1, 1],
        )


class Evil:
    def __reduce__(self):
        return print, ("code has run",)


EDGE = torch.tensor([[0], [1]])
BAD_OBJECTS = [
    (square(edge_index=None), "no tensor edge_index"),
    (square(edge_index=torch.zeros(4, 2).long()), r"\[4, 2\] instead of \[2, edges\]"),
    (square(edge_index=torch.rand(2, 3)), "make them whole"),
    (square(edge_index=torch.zeros(2, 0).long()), "has no edge"),
    (square(edge_index=torch.tensor([[0], [9]])), "names node 9, but the nodes are 0 to 3"),
    (square(edge_index=torch.tensor([[0], [-1]])), "names node -1"),
    (square(edge_index=torch.zeros(2, 3).long()), "none of the graph's 3 edges"),
    (square(x=torch.full((4, 1), torch.nan)), "NaN or infinite"),
    (square(x=torch.zeros(3, 2), num_nodes=4), r"\[3, 2\] instead of \[4, features\]"),
    (square(y=torch.tensor([0.5, 1, 0, 1])), "not whole"),
    (square(y=torch.tensor([0, 2, 0, 2])), "no node is of class 1"),
    (square(y=torch.tensor([1])), r"y has the shape \[1\] instead of \[4\]"),
    (square(y=torch.zeros(4).long()), "all 4 nodes are of class 0"),
    (square(test_mask=torch.zeros(4).bool()), "test_mask has no node"),
    (square(test_mask=torch.ones(4).bool()), "a node is in two of"),
    (square(train_mask=torch.ones(3).bool()), r"train_mask is not \[4\]"),
    ("a text", "is a str, not a graph"),
    (torch.zeros(3), "is a Tensor, not a graph"),
    (({"x": torch.zeros(2, 1)}, {"x": torch.tensor([0, 1, 2])}), "several graphs"),
    (HeteroData(), "HeteroData"),
    (Evil(), "could run code"),
]


@pytest.mark.parametrize(("content", "answer"), BAD_OBJECTS)
def test_what_is_wrong_with_a_saved_graph_is_one_sentence(tmp_path, content, answer, capsys):
    path = tmp_path / "graph.pt"
    torch.save(Data(**content) if isinstance(content, dict) else content, path)
    assert sentence(PyGObject(str(path), data_dir=tmp_path / "data").load).match(answer)
    assert not (tmp_path / "data").exists()
    assert "code has run" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("raw", "answer"),
    [(b"rubbish", "torch.save"), (b"", "is empty"), (pickle.dumps(Evil()), "torch.save|run code")],
)
def test_files_that_are_not_of_torch(tmp_path, raw, answer, capsys):
    (tmp_path / "graph.pt").write_bytes(raw)
    assert sentence(PyGObject(str(tmp_path / "graph.pt")).load).match(answer)
    assert "code has run" not in capsys.readouterr().out


def test_a_class_of_pyg_is_named_with_its_options(tmp_path):
    options = {"num_graphs": 1, "num_channels": 5, "is_undirected": True}
    fake = "torch_geometric.datasets.FakeDataset"
    source = PyGObject(target=fake, options=options, data_dir=tmp_path)
    source.arguments["task"] = "node"
    assert (source.load().num_features, source.load().num_features) == (5, 5)
    for target, given, answer in (
        ("torch_geometric.datasets.Planetoit", {}, "did you mean Planetoid"),
        ("os.system", {}, "is no data set class"),
        (fake, {"num_graphs": "many"}, "correct the options"),
        (fake, {"num_graphs": 3}, "several graphs"),
    ):
        wrong = PyGObject(target=target, options=given, data_dir=tmp_path / "wrong")
        assert sentence(wrong.load).match(answer)
    assert sentence(PyGObject().load).match("either path=graph.pt")
    assert not (tmp_path / "wrong").exists()


def webkb(root):
    """A graph of ten nodes in the files that PyTorch Geometric's class of WebKB downloads."""
    raw = root / "cornell" / "raw"
    raw.mkdir(parents=True)
    rows = [f"{i}\t{i % 3},{i % 2}\t{i % 2}" for i in range(10)]
    edges = [f"{i}\t{(i + 1) % 10}" for i in range(10)]
    (raw / "out1_node_feature_label.txt").write_text("\n".join(["id\tx\ty", *rows, ""]))
    (raw / "out1_graph_edges.txt").write_text("\n".join(["a\tb", *edges, ""]))
    for number in range(10):
        part = np.roll(np.repeat([0, 1, 2], [6, 2, 2]), number)
        masks = {f"{name}_mask": part == i for i, name in enumerate(("train", "val", "test"))}
        np.savez(raw / f"cornell_split_0.6_0.2_{number}.npz", **masks)
    return root


def test_a_class_of_pyg_reads_files_that_lie_ready(tmp_path, monkeypatch):
    """By content, without a download, and without a trace in the folder."""
    monkeypatch.setattr(WebKB, "download", lambda _: pytest.fail("there is a network"))
    root = webkb(tmp_path / "ready")
    before = sorted(root.rglob("*"))
    ready = {"target": "torch_geometric.datasets.WebKB", "options": {"name": "cornell"}}
    source = PyGObject(str(root), **ready, data_dir=tmp_path / "data")
    first = source.load()
    assert (first.num_nodes, first.num_edges, first.num_features) == (10, 20, 2)
    assert first.given_train.shape == (10, 10)
    assert first.given_val[:, 0].sum() == 2
    assert sorted(root.rglob("*")) == before
    checksum, entries = checksum_of(str(root)), [*(tmp_path / "data" / "processed").iterdir()]
    source.load()
    assert [*(tmp_path / "data" / "processed").iterdir()] == entries
    (root / "cornell" / "processed").mkdir()
    (root / "cornell" / "processed" / "data.pt").write_bytes(b"of another version")
    assert checksum_of(str(root)) == checksum
    with (root / "cornell" / "raw" / "out1_graph_edges.txt").open("a") as file:
        file.write("0\t5\n")
    assert checksum_of(str(root)) != checksum
    assert source.load().num_edges == 22


def test_what_is_wrong_with_files_of_a_class_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(WebKB, "download", lambda _: 1 / 0)
    (tmp_path / "empty").mkdir()
    root = webkb(tmp_path / "ready")
    (root / "cornell" / "raw" / "out1_graph_edges.txt").unlink()
    named = {"target": "torch_geometric.datasets.WebKB", "options": {"name": "cornell"}}
    karate = {"target": "torch_geometric.datasets.KarateClub"}
    for path, given, answer in (
        ("nowhere", named, "nowhere is no folder"),
        ("empty", named, "has no raw files"),
        ("ready", named, "correct the options, or the files in"),
        ("ready", karate, "KarateClub reads no files"),
    ):
        source = PyGObject(str(tmp_path / path), **given, data_dir=tmp_path / "data")
        assert sentence(source.load).match(answer)
    assert not (tmp_path / "data").exists()


def test_the_karate_club_has_four_classes_and_no_split(tmp_path):
    data = PyGObject(target="torch_geometric.datasets.KarateClub", data_dir=tmp_path).load()
    assert (data.num_nodes, data.num_edges, int(data.y.max())) == (34, 156, 3)
    assert "given_train" not in data


@pytest.mark.parametrize("ending", ["graphml", "gml", "edgelist", "edgelist.gz", "adjlist"])
def test_networkx_reads_by_the_ending(tmp_path, ending):
    graph = nx.Graph([("ann", "bob"), ("bob", "cem"), ("cem", "ann")])
    path = tmp_path / f"friends.{ending}"
    getattr(nx, f"write_{ending.split('.')[0]}")(graph, path)
    data, names = read_graph(path)
    assert set(names.nodes) == {"ann", "bob", "cem"}
    assert edges_by_id(data) == TRIANGLE


def test_attributes_of_nodes_are_classes_parts_and_features(tmp_path):
    graph = nx.DiGraph([(0, 1), (1, 0), (1, 2), (2, 3)])
    nx.set_node_attributes(graph, {i: float(i) for i in graph}, "age")
    nx.set_node_attributes(graph, {i: "ab"[i % 2] for i in graph}, "class")
    nx.write_graphml(graph, tmp_path / "g.graphml")
    data = NetworkXGraph(str(tmp_path / "g.graphml"), data_dir=tmp_path / "data").load()
    assert (data.y.tolist(), data.x.flatten().tolist()) == ([0, 1, 0, 1], [0, 1, 2, 3])
    assert data.num_edges == 6
    assert NetworkXGraph(str(tmp_path / "g.graphml"), mutual=True).load().num_edges == 2


@pytest.mark.parametrize(
    ("name", "content", "answer"),
    [
        ("g.graphml", "<graphml", "is not read as graphml"),
        ("g.gml", "graph [ node [ id", "is not read as gml"),
        ("g.edgelist", "a\n", "has no edges|one column"),
        ("g.edgelist", "a b {\n", "is not read as edgelist"),
        ("g.edgelist", b"\xff\xfe\xe9 b\n", "is not read as edgelist"),
        ("g.xlsx", "a", "ends in .xlsx"),
        ("g.graphml", "", "is empty"),
    ],
)
def test_what_is_wrong_with_a_file_of_networkx(tmp_path, name, content, answer):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert sentence(NetworkXGraph(str(path), data_dir=tmp_path / "data").load).match(answer)
    assert not (tmp_path / "data").exists()


WEIGHTED = "a,b,1.5\nb,c,4\nc,a,2\na,d,1\nd,e,3\n"


@pytest.mark.parametrize("self_loops", [False, True])
def test_weights_are_in_the_normalised_adjacency(folder, self_loops):
    source = folder({"edges.csv": WEIGHTED}, weighted=True)
    data = GraphDataModule(source, [OwnFeatures(), NormalisedAdjacency(self_loops)]).graph
    adjacency = torch.zeros(5, 5)
    adjacency[tuple(data.edge_index)] = data.edge_weight
    adjacency += torch.eye(5) * self_loops
    scale = adjacency.sum(dim=1).rsqrt()
    torch.testing.assert_close(
        data.normalised_adj.to_dense(), scale[:, None] * adjacency * scale[None]
    )


def test_weights_stay_with_their_edges_where_links_are_taken_out(folder):
    source = folder({"edges.csv": WEIGHTED}, weighted=True)
    whole = source.load()
    weights = dict(zip(map(tuple, whole.edge_index.T.tolist()), whole.edge_weight, strict=True))
    data = LinkSplit(val=0.2, test=0.2)(whole, seed=0)
    assert data.num_edges == 6
    kept = zip(map(tuple, data.edge_index.T.tolist()), data.edge_weight, strict=True)
    assert all(weights[edge] == weight for edge, weight in kept)


def test_weights_that_a_model_does_not_read_are_refused(folder):
    source = folder({"edges.csv": WEIGHTED}, weighted=True)
    data = GraphDataModule(source, [OwnFeatures()])
    assert sentence(lambda: data.graph).match("drop weighted=True")


ARCS = "a,b,2\nb,a,1\nb,c,3\nd,c,4\nb,c,3\n"


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("self_loops", [False, True])
def test_a_directed_graph_is_the_mean_of_those_that_point_at_a_node(folder, self_loops, weighted):
    """Rows of its matrix are `D^-1 A`, A[v, u] of the edge from u to v."""
    source = folder({"edges.csv": ARCS}, directed=True, weighted=weighted)
    data = GraphDataModule(source, [OwnFeatures(), NormalisedAdjacency(self_loops)]).graph
    expected = torch.zeros(4, 4)
    for u, v, weight in ((0, 1, 2.0), (1, 0, 1.0), (1, 2, 6.0), (3, 2, 4.0)):
        expected[v, u] = weight if weighted else 1
    expected += torch.eye(4) * self_loops
    expected /= expected.sum(1, keepdim=True).clamp(min=1e-9)
    torch.testing.assert_close(data.normalised_adj.to_dense(), expected)
    assert data.num_edges == 6  # tasks see pairs, whatever their direction


def test_a_directed_graph_says_so_and_its_directions_stay_with_its_edges(folder, caplog):
    caplog.set_level(logging.INFO)
    lines = [f"{i},{(i + step) % 20}" for i in range(20) for step in (1, 3)]
    whole = folder({"edges.csv": "\n".join(lines)}, directed=True).load()
    assert "20 nodes, 40 directed edges" in caplog.text
    pairs = {tuple(map(int, line.split(","))) for line in lines}
    for data in (whole, LinkSplit(val=0.2, test=0.2)(whole, seed=0)):
        names = [int(name) for name in data.vocabulary.nodes]
        for (u, v), forward in zip(data.edge_index.T.tolist(), data.edge_forward, strict=True):
            assert bool(forward) == ((names[u], names[v]) in pairs)
    assert data.num_edges == 48


def test_a_direction_that_a_model_does_not_see_is_refused(folder, tmp_path):
    source = folder({"edges.csv": EDGES}, directed=True)
    data = GraphDataModule(source, [OwnFeatures()])
    assert sentence(lambda: data.graph).match("drop directed=True")
    assert sentence(lambda: folder({}, directed=True, mutual=True)).match("none has a direction")
    nx.write_graphml(nx.path_graph(3), tmp_path / "g.graphml")
    undirected = NetworkXGraph(str(tmp_path / "g.graphml"), directed=True)
    assert sentence(undirected.load).match("drop directed=True")
    ring = Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), num_nodes=3)
    torch.save(ring, tmp_path / "ring.pt")
    read, _ = read_graph(tmp_path / "ring.pt", directed=True)
    assert read.edge_index[:, read.edge_forward].T.tolist() == [[0, 1], [1, 2], [2, 0]]
