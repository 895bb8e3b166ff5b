"""A user's own graph: counted, named, cached by content; what is malformed is one sentence."""

import gzip
import logging
from functools import partial

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.sparse import csr_array, save_npz
from torch_geometric.data import Data
from torch_geometric.datasets import WebKB
from torch_geometric.utils import from_networkx

from curvlab.data.datasets import own_graph
from curvlab.data.datasets.graph_folder import GraphFolder
from curvlab.data.datasets.networkx_graph import NetworkXGraph
from curvlab.data.datasets.pyg_object import PyGObject
from curvlab.data.datasets.reading import read_graph
from curvlab.data.datasets.triple_folder import TripleFolder
from curvlab.data.loaders.datamodule import GraphDataModule
from curvlab.data.splits.links import LinkSplit
from curvlab.data.splits.nodes import OwnSplit
from curvlab.data.transforms import features as features_module
from curvlab.data.transforms.features import OwnFeatures
from curvlab.data.transforms.graph import NormalisedAdjacency
from curvlab.data.vocabulary import Vocabulary, vocabulary_of
from curvlab.errors import UsageError, format_error
from written import saved, written

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
        ("nodes.csv", "id\nann\nbob\ncem\n"),
        ("edges.csv", "who,whom,weight\nann,bob,1\nbob,cem,2\ncem,ann,3\n"),
        ("edges.csv", "ann,bob\nbob,cem\ncem,ann\nann,ann\nbob,ann\nann,bob\n"),
    ],
)
def test_forms_of_edges(folder, name, content):
    plain = {"edges.csv": "who,whom\nann,bob\nbob,cem\ncem,ann\n"} if name == "nodes.csv" else {}
    assert edges_by_id(folder({**plain, name: content}).load()) == TRIANGLE


@pytest.mark.parametrize(
    ("edges", "options", "nodes"),
    [
        ("a,b\n1,2\n2,3\n", {}, 3),
        ("a,b\n1,2\n2,3\n", {"header": False}, 5),
        ("a,b\nb,c\n", {}, 3),
        ("a,b\nb,c\n", {"header": True}, 2),
        ("u,v\nv,w\n", {}, 3),
    ],
)
def test_a_first_line_that_can_only_name_columns_is_a_header(folder, edges, options, nodes):
    assert folder({"edges.csv": edges}, **options).load().num_nodes == nodes


def test_counts_are_told_once_with_what_was_left_out(folder, caplog, monkeypatch):
    monkeypatch.setenv(own_graph.REPORTED, "")
    caplog.set_level(logging.INFO)
    text = EDGES + "ann,ann\nbob,ann\nann,bob\n"
    for _ in range(2):  # the second time from the cache
        folder({"edges.csv": text, "nodes.csv": NODES}).load()
    left = "1 from a node to itself, 1 repeated, 1 given in both directions"
    assert f"4 edges (merged or left out: {left}), 1 feature" in caplog.text
    assert "2 classes: x 2, y 2" in caplog.text
    assert "split: its own, 2 / 1 / 1" in caplog.text
    assert caplog.text.count("4 nodes") == 1


def test_weights_are_added_over_repeated_lines_and_equal_both_ways(folder):
    data = folder({"edges.csv": "a,b,1.5\nb,a,2\nb,c,4\n"}, weighted=True).load()
    weights = dict(zip(map(tuple, data.edge_index.T.tolist()), data.edge_weight, strict=True))
    assert weights == {(0, 1): 3.5, (1, 0): 3.5, (1, 2): 4, (2, 1): 4}


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
    nodes["day"] = pd.to_datetime(["2020-01-01", "2020-01-03", None])
    nodes.to_parquet(tmp_path / "nodes.parquet")
    data, names = read_graph(tmp_path)
    assert names.nodes == ("12", "10", "11")
    assert (data.num_edges, data.x[:, 0].tolist()) == (6, [0.5, 1, 2])
    assert data.x[2, 1] == pytest.approx(float(data.x[:2, 1].mean()))


def test_nodes_without_label_part_or_edge_stay(folder):
    nodes = "id,label,split\nann,x,train\nbob,y,valid\ncem,x,TEST\ndan,,\neva,y,-\n"
    data = folder({"edges.csv": EDGES, "nodes.csv": nodes}).load()
    assert data.labelled.tolist() == [True, True, True, False, True]
    assert data.num_nodes == 5
    split = OwnSplit()(data, seed=3)
    assert [int(split[f"{p}_mask"].sum()) for p in ("train", "val", "test")] == [1, 1, 1]


@pytest.mark.parametrize("name", ["nan", "<NA>", "NA", "N/A", "NULL", "None", r"\N", ".", "-"])
@pytest.mark.parametrize("classes", ["xy", "01"])
def test_a_missing_value_is_no_class_and_no_number_but_an_id(folder, name, classes):
    one, two = classes
    rows = f"ann,{one},1\nbob,{name},{name}\ncem,{two},3\n{name},{one},2\ndan,{two},6\n"
    source = folder({"edges.csv": f"ann,bob\n{name},cem\n", "nodes.csv": f"id,label,v\n{rows}"})
    data = source.load()
    names = vocabulary_of(data)
    assert (names.nodes[3], names.classes) == (name, (one, two))
    assert data.labelled.tolist() == [True, False, True, True, True]
    assert data.x.flatten().tolist() == [1, 3, 3, 2, 6]


def test_a_hyphen_is_a_class_next_to_plus(folder):
    nodes = "id,label\nann,+\nbob,-\ncem,+\ndan,-\n"
    data = folder({"edges.csv": EDGES, "nodes.csv": nodes}).load()
    assert (data.vocabulary.classes, data.y.tolist()) == (("+", "-"), [0, 1, 0, 1])


@pytest.mark.parametrize("ids", [("01", "1", "1e5"), ("1e5", "100000", "1E5"), ("0x1", "1.0", "1")])
@pytest.mark.parametrize("column", ["id", "fips", "Name"])
def test_ids_are_what_is_written(folder, ids, column):
    """Leading zeros and exponents, whatever the column of ids is called."""
    one, two, three = ids
    nodes = "".join(f"{i},{n}\n" for n, i in enumerate(ids))
    edges = f"{one},{two}\n{two},{three}\n"
    data = folder({"edges.csv": edges, "nodes.csv": f"{column},pop\n{nodes}"}).load()
    assert data.vocabulary.nodes == ids
    assert data.x.flatten().tolist() == [0, 1, 2]


def test_a_class_is_what_is_written(folder):
    nodes = "who,county,f\nann,01,1\nbob,1,2\ncem,01,3\ndan,1,4\n"
    data = folder({"edges.csv": EDGES, "nodes.csv": nodes}, label="county").load()
    assert sorted(data.vocabulary.classes) == ["01", "1"]


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ({"label": "team", "features": ["team", "age"]}, "features names it, too"),
        ({"label": "team", "ignore": ["team"]}, "ignore names it, too"),
        ({"features": ["age"], "ignore": ["age"]}, "both name 'age'"),
    ],
)
def test_a_column_has_one_use(folder, options, answer):
    source = folder({"edges.csv": EDGES, "nodes.csv": PEOPLE}, **options)
    assert answer in str(sentence(source.load).value)


def test_a_copy_of_the_classes_among_the_features_is_said(folder):
    nodes = "id,label,code,age\nann,x,7,1\nbob,y,8,2\ncem,x,7,3\ndan,,9,4\n"
    source = folder({"edges.csv": EDGES, "nodes.csv": nodes})
    source.load()
    (said,) = [line for line in source.remarks if "one value for each class" in line]
    assert said.startswith("code: ")


@pytest.mark.parametrize("marks", [("True", "False"), ("1", "0"), ("TRUE", ""), ("true", "false")])
@pytest.mark.parametrize("val", ["val_mask", "valid_mask"])
def test_masks_are_a_split(folder, marks, val):
    yes, no = marks
    rows = (
        f"{who},{kind},{yes if who in 'ad' else no},{yes if who == 'b' else no},"
        f"{yes if who == 'c' else no},{age}"
        for age, (who, kind) in enumerate(zip("abcd", "xyxy", strict=True))
    )
    nodes = "\n".join([f"id,label,train_mask,{val},test_mask,age", *rows])
    data = folder({"edges.csv": "a,b\nb,c\nc,d\n", "nodes.csv": nodes}).load()
    assert data.given_train.flatten().tolist() == [True, False, False, True]
    assert data.given_val.flatten().tolist() == [False, True, False, False]
    assert data.given_test.flatten().tolist() == [False, False, True, False]
    assert data.vocabulary.features == ("age",)
    lacking = nodes.replace(val, "other")
    assert sentence(folder({"nodes.csv": lacking}).load).match(".*none that is called val_mask")


def test_numbers_are_standardised_before_they_are_rounded_and_by_the_training_nodes(folder):
    """Twenty milliseconds of 2023 are one number in float32."""
    stamps = 1_700_000_000_000 + 1000 * np.arange(20)
    rows = [
        f"n{i},{'ab'[i % 2]},{'train' if i < 12 else 'val' if i < 16 else 'test'},{t}"
        for i, t in enumerate(stamps)
    ]
    edges = "\n".join(f"n{i},n{(i + 1) % 20}" for i in range(20))
    source = folder({"edges.csv": edges, "nodes.csv": "\n".join(["id,label,split,t", *rows])})
    train = stamps[:12]
    expected = torch.tensor((stamps - train.mean()) / train.std(), dtype=torch.float32)
    graph = GraphDataModule(source, [OwnFeatures()], split=OwnSplit()).graph
    torch.testing.assert_close(graph.x.flatten(), expected)
    whole = GraphDataModule(source, [OwnFeatures()]).graph
    expected = torch.tensor((stamps - stamps.mean()) / stamps.std(), dtype=torch.float32)
    torch.testing.assert_close(whole.x.flatten(), expected)
    (said,) = [r for r in OwnFeatures(scale="none").remarks(source.load()) if "float32" in r]
    assert said.startswith("1 columns have values that float32 does not distinguish")
    assert GraphDataModule(source).graph.x.dtype == torch.float32


PEOPLE = """name,city,team,age,email,role
ann,Rome,x,30,a@x,
bob,Oslo,y,,b@x,boss
cem,Rome,x,50,c@x,boss
dan,,y,40,d@x,
"""


def test_a_new_graph_takes_the_numbers_of_the_trained_one(folder, tmp_path):
    """Of classes and columns, one-hot ones too."""
    folder({"edges.csv": EDGES, "nodes.csv": PEOPLE})
    known = Vocabulary(features=("city=Bonn", "city=Rome", "age"))
    data, names = read_graph(tmp_path / "own", known=known)
    assert names.features == known.features
    assert data.x.tolist() == [[0, 1, 30], [0, 0, 40], [0, 1, 50], [0, 0, 40]]
    known = Vocabulary(classes=("y", "x", "z"), features=("size", "age"))
    nodes = "id,age,size,label\nann,1,10,x\nbob,2,20,y\ncem,3,30,x\ndan,4,40,x\n"
    folder({"edges.csv": EDGES, "nodes.csv": nodes})
    data, names = read_graph(tmp_path / "own", known=known)
    assert data.x[0].tolist() == [10, 1]
    assert (data.y.tolist(), names.classes) == ([1, 0, 1, 1], ("y", "x", "z"))
    with pytest.raises(UsageError, match="has no column 'height'"):
        read_graph(tmp_path / "own", known=Vocabulary(features=("height",)))
    with pytest.raises(UsageError, match=r"'x' .* is a class that the model was not trained on"):
        read_graph(tmp_path / "own", known=Vocabulary(classes=("y",)))


@pytest.mark.parametrize(
    ("options", "columns"),
    [
        ({}, ["city=Oslo", "city=Rome", "team=x", "team=y", "age", "role=boss"]),
        ({"label": "team", "ignore": ["role"]}, ["city=Oslo", "city=Rome", "age"]),
        ({"features": ["age"]}, ["age"]),
        ({"features": ["email"], "id": "name"}, [f"email={who}@x" for who in "abcd"]),
        ({"features": []}, None),
    ],
)
def test_columns_are_named_found_and_encoded(folder, options, columns):
    """Ids are the column that has the ends of the edges; texts are one-hot, e-mails are not."""
    source = folder({"edges.csv": EDGES, "nodes.csv": PEOPLE}, **options)
    data = source.load()
    assert data.vocabulary.nodes == ("ann", "bob", "cem", "dan")
    assert data.vocabulary.features == (None if columns is None else tuple(columns))
    assert data.vocabulary.classes == (("x", "y") if "label" in options else None)
    assert source.remarks[0].startswith("edges: 'from' - 'to' (header read; separator comma)")
    assert source.remarks[1].startswith("nodes: id 'name'")
    if columns and "age" in columns:
        assert data.x[:, columns.index("age")].tolist() == [30, 40, 50, 40]
    if columns and "city=Rome" in columns:
        assert data.x[:, columns.index("city=Rome")].tolist() == [1, 0, 1, 0]
        remarks = " ".join(source.remarks)
        assert "email: 4 different texts, left out" in remarks
        assert "city: 2 texts as one-hot columns, 1 nodes without one" in remarks
        assert "age: 1 missing, filled by the mean 40" in remarks


@pytest.mark.parametrize("separator", [",", "\t", ";", " "])
def test_names_of_columns_may_be_in_a_comment(folder, separator):
    """As those of the ends of edges may."""
    nodes = NODES.replace(",", separator)
    plain = folder({"edges.csv": EDGES, "nodes.csv": nodes}).load()
    for start in ("#", "# ", "# of people\n#"):
        data = folder({"nodes.csv": start + nodes}).load()
        assert data.vocabulary == plain.vocabulary
        assert (data.y.tolist(), data.x.tolist()) == (plain.y.tolist(), plain.x.tolist())


@pytest.mark.parametrize(
    ("nodes", "word"),
    [
        ("ann,x,1\nbob,y,2\ncem,x,3\ndan,y,4\n", "'ann' in its first line is an id in edges.csv"),
        ("1,ann,x\n2,bob,y\n3,cem,x\n4,dan,y\n", "'ann' in its first line is an id in edges.csv"),
        ("zoe,x,1\nann,x,1\nbob,y,2\ncem,x,3\ndan,y,4\n", "'x' in its first line is also a value"),
    ],
)
def test_a_table_of_nodes_without_names_is_refused(folder, nodes, word):
    refused = sentence(folder({"edges.csv": EDGES, "nodes.csv": nodes}).load)
    assert refused.match(f".*nodes.csv does not name its columns: {word}")


@pytest.mark.parametrize("header", ["id,x,1", "dan,class,3", "word,0,1", "node,red,blue"])
def test_names_of_columns_may_be_values_where_they_cannot_be_a_node(folder, header):
    """An id below may have the name of its column, and a number may name numbers."""
    nodes = f"{header}\nann,0,1\nbob,1,0\ncem,0,1\ndan,1,1\n"
    data = folder({"edges.csv": EDGES, "nodes.csv": nodes}).load()
    assert data.vocabulary.nodes == ("ann", "bob", "cem", "dan")


def test_a_column_called_name_is_an_id_only_with_the_ids_of_the_edges(folder):
    nodes = "name,key\nAnn A,ann\nBob B,bob\nCem C,cem\nDan D,dan\n"
    assert folder({"edges.csv": EDGES, "nodes.csv": nodes}).load().vocabulary.nodes[0] == "ann"
    source = folder({"nodes.csv": nodes.replace("ann", "a1").replace("bob", "b1")}, id="name")
    assert sentence(source.load).match("not in the table of nodes")


def test_all_faults_of_the_files_are_in_one_answer(folder):
    nodes = "id,label,split,age,city\nann,x,train,1,Rome\nbob,y,eval,inf,Oslo\nann,x,,2,\n"
    edges = "a,b,w\nann,bob,-1\nbob,zoe,1\n,ann,2\n"
    source = folder({"edges.csv": edges, "nodes.csv": nodes}, weighted=True, ignore=["wage"])
    with pytest.raises(UsageError) as refused:
        source.load()
    faults = format_error(refused.value).splitlines()
    assert faults[0] == "7 faults:"
    of_nodes = ("'ann' is a second", "'zoe'", "'eval'", "'inf'")
    for fault in ("wage", "'' is not an id", "'-1'", *of_nodes):
        assert sum(fault in line for line in faults) == 1


def test_a_table_of_edges_may_have_any_name_and_the_nodes_another_place(tmp_path):
    (tmp_path / "sales.csv").write_text("buyer,seller,amount\nann,bob,5\nbob,cem,7\n")
    (tmp_path / "people.csv").write_text("name,age\nann,1\nbob,2\ncem,3\n")
    data = GraphFolder(str(tmp_path / "sales.csv"), nodes=str(tmp_path / "people.csv")).load()
    assert (data.num_edges, data.x.flatten().tolist()) == (4, [1, 2, 3])
    assert GraphFolder(str(tmp_path / "sales.csv")).load().x is None


@pytest.mark.parametrize(
    ("options", "width", "remark"),
    [
        ({}, 3, "1 of 3 columns standardised"),
        ({"scale": "none"}, 3, "deviations are 0.43 to 7.1: dataset.features.scale=standard"),
        ({"kind": "identity"}, 4, "features: identity (dataset.features=identity)"),
        ({"kind": "own+identity"}, 7, "1 of 3 columns standardised"),
        ({"kind": "none"}, 1, "a constant 1"),
        ({"kind": "identity", "up_to": 3}, 256, "256 random columns"),
    ],
)
def test_kinds_of_features(folder, options, width, remark, monkeypatch):
    options = {**options}
    monkeypatch.setattr(features_module, "IDENTITY_UP_TO", options.pop("up_to", 10_000))
    chosen = {"features": ["city", "age"]}
    source = folder({"edges.csv": EDGES, "nodes.csv": PEOPLE}, **chosen)
    features = OwnFeatures(**options)
    module = GraphDataModule(source, [features])
    x = module.graph.x
    assert x.shape == (4, width)
    assert any(remark in line for line in OwnFeatures(**options).remarks(source.load()))
    if options.get("scale") != "none" and width in (3, 7):
        assert x[:, 2].mean() == pytest.approx(0, abs=1e-6)
        assert x[:, 2].std(correction=0) == pytest.approx(1, abs=1e-6)
        assert x[:, 1].tolist() == [1, 0, 1, 0]  # one-hot columns stay
    assert bool(features.transductive_reason) == ("identity" in options.get("kind", ""))


class Evil:
    def __reduce__(self):
        return print, ("code has run",)


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


npy, TWO = partial(written, np.save), written(np.savez, a=np.eye(4), b=np.eye(4))
REFUSED = [
    ({}, {}, "has no edges.csv.*dataset=kg_folder"),
    ({"edges.csv": "ann\nbob\n"}, {}, "has no edges.*separator="),
    ({"edges.csv": "ann,bob\n\nbob\n"}, {}, "line 3, column 'target': '' is not an id"),
    ({"edges.csv": "head,relation,tail\na,r,b\n"}, {"header": True}, "dataset=kg_folder"),
    ({"edges.csv": b"bob,\0va\n"}, {}, "is not a text: write a table in UTF-8"),
    ({"edges.csv": EDGES}, {"weighted": True}, "no third column"),
    ({"edges.csv": "a,b,1\nb,c,-2\n"}, {"weighted": True}, "line 2.*'-2' is a weight"),
    ({"edges.csv": EDGES, "nodes.csv": "who,x\nbob,y\n"}, {}, "has no column id"),
    ({"edges.csv": EDGES, "nodes.csv": NODES + "ann,x,,1\n"}, {}, "line 6, .*is a second line"),
    ({"edges.csv": EDGES + "dan,eva\n", "nodes.csv": NODES}, {}, "'eva' not in the table"),
    ({"edges.csv": EDGES, "nodes.csv": NODES.replace("2\n", "old\n")}, {}, "'old'.*ignore=.age"),
    ({"edges.csv": EDGES, "nodes.csv": NODES.replace("val", "eval")}, {}, "'eval' is not a part"),
    ({"edges.csv": EDGES, "nodes.csv": NODES, "features.npy": npy(np.eye(4))}, {}, "keep one"),
    *(
        ({"edges.csv": edges, "features.npy": features}, {}, answer)
        for edges, features, answer in (
            (EDGES, npy(np.zeros((3, 2))), "'ann' .and 3 more. not a row of the features, 0 to 2"),
            ("0,1\n", npy(np.zeros(4)), r"of shape \[4\]"),
        )
    ),
    *(
        ({"graph.pt": saved(Data(**content) if isinstance(content, dict) else content)}, {}, answer)
        for content, answer in (
            (square(edge_index=None), "edge_index .* must have numbers of nodes, 0 to 3"),
            (square(x=torch.zeros(3, 2), num_nodes=4), "has 4 nodes but 3 rows of features"),
            (square(y=torch.tensor([0.5, 1, 0, 1])), "not whole"),
            (square(test_mask=torch.ones(4).bool()), "a node in two parts"),
            ((square(), {"x": torch.tensor([0, 1, 2])}), "is a tuple, not one graph"),
            (Evil(), "could run code"),
        )
    ),
    ({"edges.csv": EDGES, "features.npz": TWO}, {}, "2 arrays"),
    ({"graph.pt": b"rubbish"}, {}, "torch.save"),
    ({"g.graphml": "<graphml"}, {}, "is not read as graphml"),
    ({"g.xlsx": "a"}, {}, "save the sheet with the edges as CSV"),
    ({"g.gml": "graph [ node [ id 0 ] ]"}, {"directed": True}, "is undirected: drop"),
]  # fmt: skip


def sentence(make):
    """What is said of malformed input: one sentence, nothing else."""
    with pytest.raises(UsageError) as refused:
        make()
    said = " ".join(str(refused.value).split())
    assert len(said) <= 500
    assert "Traceback" not in said
    return refused


@pytest.mark.parametrize(("files", "options", "answer"), REFUSED)
def test_what_is_wrong_is_one_sentence(folder, tmp_path, files, options, answer, capsys):
    folder(files)
    single = next((name for name in files if name.startswith("g")), "")
    refused = sentence(lambda: read_graph(tmp_path / "own" / single, **options))
    assert refused.match(answer)
    assert "code has run" not in capsys.readouterr().out


@pytest.mark.parametrize("path", [None, "nowhere", "nowhere.csv"])
def test_places_that_are_no_folder(path):
    assert sentence(GraphFolder(path).load).match("is not there: dataset=graph_folder takes")


@pytest.fixture
def stored(tmp_path):
    """`stored(attributes, key=value, ...)`: the graph of a file with a square that has these."""

    def make(changes, **options):
        torch.save(Data(**square(**changes)), tmp_path / "graph.pt")
        return PyGObject(str(tmp_path / "graph.pt"), data_dir=tmp_path / "data", **options).load()

    return make


def test_a_saved_graph_brings_its_masks(stored):
    data = stored({"node_ids": ["a", "b", "c", "d"]})
    assert data.vocabulary == Vocabulary(nodes=("a", "b", "c", "d"), classes=("0", "1"))
    assert data.num_edges == 8
    split = OwnSplit()(data, seed=5)
    assert split.test_mask.tolist() == [False, False, True, False]


NO_MASKS = dict.fromkeys(("train_mask", "val_mask", "test_mask"))


def test_classes_keep_their_numbers(stored, tmp_path):
    changes = {**NO_MASKS, "class_names": ["y", "x"], "edge_weight": torch.arange(1, 6)}
    data = stored(changes, weighted=True)
    assert "given" not in data
    assert (data.y.tolist(), data.vocabulary.classes) == ([0, 1, 0, 1], ("y", "x"))
    assert data.edge_weight.sum() == 20  # each edge of the ring is given in one direction
    known, _ = read_graph(tmp_path / "graph.pt", known=Vocabulary(classes=("x", "y")))
    assert known.y.tolist() == [1, 0, 1, 0]


def test_labels_that_are_missing_are_no_class(stored):
    for y in (torch.tensor([0, 1, -1, 1]), torch.tensor([[0.0], [1.0], [torch.nan], [1.0]])):
        data = stored({"y": y, **NO_MASKS})
        assert data.labelled.tolist() == [True, True, False, True]
        assert data.y.tolist() == [0, 1, -1, 1]


@pytest.mark.parametrize(
    "masks",
    [
        {"train_mask": [0, 1], "val_mask": [2], "test_mask": [3]},
        {"train_mask": [1, 1, 0, 0], "val_mask": [0, 0, 1, 0], "test_mask": [0, 0, 0, 1]},
        {"train_mask": [1, 0], "val_mask": [2], "test_mask": [3]},
        {"train_mask": [0, 1, 1, 0, 1], "val_mask": [2, 2], "test_mask": [3]},
        {"train_mask": [True, True, False, False], "val_mask": [2], "test_mask": [3]},
    ],
)
@pytest.mark.parametrize("kind", [torch.tensor, list])
def test_masks_may_be_the_numbers_of_their_nodes(stored, masks, kind):
    data = stored({name: kind(values) for name, values in masks.items()})
    nodes = [
        data[f"given_{part}"].flatten().nonzero().flatten() for part in ("train", "val", "test")
    ]
    assert [part.tolist() for part in nodes] == [[0, 1], [2], [3]]


@pytest.mark.parametrize("lacking", NO_MASKS)
def test_a_table_and_a_saved_graph_refuse_a_split_without_one_of_its_masks(stored, folder, lacking):
    said = f"and none that is called {lacking}: add it, or drop the split by"
    assert sentence(lambda: stored({lacking: None})).match(f".*{said} deleting")
    columns = [name for name in NO_MASKS if name != lacking]
    rows = [
        f"{who},{kind},1,0" for who, kind in zip(("ann", "bob", "cem", "dan"), "xyxy", strict=True)
    ]
    nodes = "\n".join([f"id,label,{','.join(columns)}", *rows])
    assert sentence(folder({"edges.csv": EDGES, "nodes.csv": nodes}).load).match(f".*{said} ignore")


def test_a_class_of_pyg_with_one_mask_says_that_it_is_not_used(tmp_path):
    source = PyGObject(target="torch_geometric.datasets.KarateClub", data_dir=tmp_path)
    assert "given" not in source.load()
    said = "split: train_mask not used, since there is no val_mask or test_mask"
    assert said in source.remarks


@pytest.mark.parametrize("ids", [torch.tensor([5, 6, 7, 9]), [5, 6, 7, 9], ("5", "6", "7", "9")])
def test_names_of_nodes_may_be_numbers(stored, ids):
    assert stored({"node_ids": ids}).vocabulary.nodes == ("5", "6", "7", "9")


def test_a_list_of_texts_is_classes(stored):
    assert stored({"y": [0, 1, 10, 1]}).y.tolist() == [0, 1, 10, 1]
    data = stored({"y": ["b", "a", "b", "a"]})
    assert (data.vocabulary.classes, data.y.tolist()) == (("a", "b"), [1, 0, 1, 0])


TWO_WAYS = [(0, 1, 2.0), (1, 2, 3.0), (2, 3, 0.5)]
WEIGHTS = {
    "once": (TWO_WAYS, [2.0, 3.0, 0.5], ""),
    "both ways": (
        [*TWO_WAYS, *((b, a, w) for a, b, w in reversed(TWO_WAYS))],
        [2.0, 3.0, 0.5],
        "weights: all edges are given both ways with one weight, which counts once",
    ),
    "other weights": (
        [*TWO_WAYS, *((b, a, w + 1) for a, b, w in TWO_WAYS)],
        [5.0, 7.0, 2.0],
        "weights: the two of 3 edges that are given both ways are added (dataset.source.directed",
    ),
    "repeated": (
        [*TWO_WAYS, (0, 1, 4.0), (3, 2, 1.0)],
        [6.0, 3.0, 1.5],
        "weights: those of 1 repeated edges are added; the two of 1 edges",
    ),
}


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("form", ["csv", "graphml", "pt"])
def test_all_readers_add_the_same_weights_and_say_so(tmp_path, name, form):
    rows, expected, said = WEIGHTS[name]
    path = tmp_path / f"graph.{form}"
    if form == "csv":
        path.write_text("\n".join(["source,target,weight", *(f"{a},{b},{w}" for a, b, w in rows)]))
    elif form == "graphml":
        graph = nx.MultiDiGraph()
        graph.add_weighted_edges_from(rows)
        nx.write_graphml(graph, path)
    else:
        ends, weight = torch.tensor([row[:2] for row in rows]).T, torch.tensor([r[2] for r in rows])
        torch.save(Data(edge_index=ends, edge_weight=weight, num_nodes=4), path)
    data, names = read_graph(path, weighted=True)
    place = [int(node) for node in names.nodes]
    arcs = [(place[a], place[b]) for a, b in data.edge_index.T.tolist()]
    weights = dict(zip(arcs, data.edge_weight.tolist(), strict=True))
    assert weights == {(i + d, i + 1 - d): w for i, w in enumerate(expected) for d in (0, 1)}
    source = {"csv": GraphFolder, "graphml": NetworkXGraph, "pt": PyGObject}[form](
        str(path), weighted=True
    )
    source.load()
    assert [line for line in source.remarks if line.startswith("weights:")] == [
        line for line in source.remarks if said and line.startswith(said)
    ]
    assert bool(said) == any(line.startswith("weights:") for line in source.remarks)


FIVE = torch.arange(1.0, 6.0)


@pytest.mark.parametrize(
    ("changes", "options", "answer"),
    [
        ({"train_mask": torch.tensor([0, 9])}, {}, "train_mask .2. must be true or false for each"),
        ({"val_mask": torch.ones(3).bool()}, {}, "val_mask .3. must be true or false for each"),
        ({"test_mask": torch.tensor([0.5, 0, 0, 0])}, {}, "test_mask .4. must be"),
        ({"test_mask": "none"}, {}, "test_mask .* must be true or false"),
        ({"edge_weight": FIVE[:3]}, {"weighted": True}, "edge_weight is .3. for 5 edges"),
        ({"edge_weight": torch.ones(5, 2)}, {"weighted": True}, "edge_weight is .5, 2. for 5"),
        ({"edge_weight": FIVE - 1}, {"weighted": True}, "edge_weight has a number that is not pos"),
        ({"edge_weight": FIVE / 0}, {"weighted": True}, "edge_weight has a number that is not pos"),
        ({"edge_weight": [1.0] * 5}, {"weighted": True}, "edge_weight is a list, not a tensor"),
        ({}, {"weighted": True}, "has no edge_weight"),
        ({"edge_index": [[0, 1], [1, 0]]}, {}, "edge_index is a list, not a tensor"),
        ({"x": [[1.0]] * 4, "num_nodes": 4}, {}, "x is a list, not a tensor"),
        ({"node_ids": ["a", "b"]}, {}, "node_ids has 2 names for 4 nodes"),
        ({"node_ids": ["a", "b", "a", "c"]}, {}, "node_ids has 'a' twice for 4 nodes"),
        ({"class_names": ["a"]}, {}, "class_names has 1 names for 2 classes"),
        ({"y": torch.tensor([0, 1])}, {}, "y has 2 values for 4 nodes"),
        ({"y": ["a", "b"]}, {}, "label=y names no attribute with a value for each node"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_saved_graph_is_one_sentence(stored, changes, options, answer):
    assert sentence(lambda: stored(changes, **options)).match(f".*{answer}")


def test_a_class_that_a_trained_model_has_not_is_refused(stored):
    known = Vocabulary(classes=("0", "1"))
    changes = {"y": torch.tensor([0, 1, 5, 1])}
    assert sentence(lambda: stored(changes, known=known)).match(".*5 is a class that the model")


def test_a_class_of_pyg_is_named_with_its_options(tmp_path):
    options = {"num_graphs": 1, "num_channels": 5, "is_undirected": True}
    fake = "torch_geometric.datasets.FakeDataset"
    source = PyGObject(target=fake, options=options, data_dir=tmp_path)
    source.options["task"] = "node"
    assert (source.load().num_features, source.load().num_features) == (5, 5)
    for target, given, answer in (
        ("torch_geometric.datasets.Planetoit", {}, "did you mean Planetoid"),
        ("os.system", {}, "there is no data set class"),
        ("torch_geometric.datasets.KarateClub", {"name": "x"}, "correct the options, the files"),
        (fake, {"num_graphs": "many"}, "correct the options"),
        (fake, {"num_graphs": 3}, "not one graph"),
    ):
        wrong = PyGObject(target=target, options=given, data_dir=tmp_path / "wrong")
        assert sentence(wrong.load).match(answer)
    assert sentence(PyGObject().load).match("path=None is not there: .* or name a class by target=")
    assert not (tmp_path / "wrong").exists()


def test_a_class_of_pyg_reads_files_that_lie_ready(tmp_path, monkeypatch):
    """Without a download, and without a trace in the folder."""
    monkeypatch.setattr(WebKB, "download", lambda _: pytest.fail("there is a network"))
    raw = tmp_path / "ready" / "cornell" / "raw"
    raw.mkdir(parents=True)
    rows = [f"{i}\t{i % 3},{i % 2}\t{i % 2}" for i in range(10)]
    edges = [f"{i}\t{(i + 1) % 10}" for i in range(10)]
    (raw / "out1_node_feature_label.txt").write_text("\n".join(["id\tx\ty", *rows, ""]))
    (raw / "out1_graph_edges.txt").write_text("\n".join(["a\tb", *edges, ""]))
    masks = dict(zip(("train_mask", "val_mask", "test_mask"), np.eye(10, dtype=bool), strict=False))
    for number in range(10):
        np.savez(raw / f"cornell_split_0.6_0.2_{number}.npz", **masks)
    before = sorted((tmp_path / "ready").rglob("*"))
    ready = {"target": "torch_geometric.datasets.WebKB", "options": {"name": "cornell"}}
    data = PyGObject(str(tmp_path / "ready"), **ready).load()
    assert (data.num_nodes, data.num_edges, data.num_features) == (10, 20, 2)
    assert data.given_train.shape == (10, 10)
    assert sorted((tmp_path / "ready").rglob("*")) == before


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


ARCS = "a,b,2\nb,a,1\nb,c,3\nd,c,4\nb,c,3\n"


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("self_loops", [False, True])
def test_the_matrix_of_a_graph_has_its_weights_and_directions(
    folder, directed, weighted, self_loops
):
    """`D^-1 A` with directions, A[v, u] of the edge from u to v; else `D^-1/2 (A + A^T) D^-1/2`."""
    source = folder({"edges.csv": ARCS}, directed=directed, weighted=weighted)
    data = GraphDataModule(source, [OwnFeatures(), NormalisedAdjacency(self_loops)]).graph
    matrix = torch.zeros(4, 4)
    for u, v, weight in ((0, 1, 2.0), (1, 0, 1.0), (1, 2, 6.0), (3, 2, 4.0)):
        matrix[v, u] = weight
    matrix = matrix if directed else matrix + matrix.T
    matrix = (matrix if weighted else matrix.sign()) + torch.eye(4) * self_loops
    degrees = matrix.sum(1, keepdim=True).clamp(min=1e-9)
    expected = matrix / degrees if directed else matrix / (degrees * degrees.T).sqrt()
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


def test_a_direction_or_weight_that_a_model_does_not_see_is_refused(folder, tmp_path):
    source = folder({"edges.csv": EDGES}, directed=True)
    data = GraphDataModule(source, [OwnFeatures()])
    assert sentence(lambda: data.graph).match("drop directed=True")
    weighted = GraphDataModule(folder({"edges.csv": ARCS}, weighted=True), [OwnFeatures()])
    assert sentence(lambda: weighted.graph).match("drop weighted=True")
    ring = Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), num_nodes=3)
    torch.save(ring, tmp_path / "ring.pt")
    read, _ = read_graph(tmp_path / "ring.pt", directed=True)
    assert read.edge_index[:, read.edge_forward].T.tolist() == [[0, 1], [1, 2], [2, 0]]


@pytest.mark.parametrize("separator", ["\t", ",", "; ", " ", "|"])
@pytest.mark.parametrize("form", ["{}", "node{:02d}"])
@pytest.mark.parametrize("header", ["", "source target", "parent child", "FromNodeId ToNodeId"])
def test_one_graph_in_forty_dialects(tmp_path, separator, form, header):
    """With a mark of byte order, comments, each separator, and headers over texts and numbers."""
    pairs = nx.gnm_random_graph(30, 90, seed=0).edges
    names = [tuple(map(form.format, pair)) for pair in pairs]
    lines = ["# a comment", "% bip", header.replace(" ", separator), *map(separator.join, names)]
    path = tmp_path / "graph.txt"
    path.write_bytes(b"\xef\xbb\xbf" + "\n".join(lines).encode())
    data, _ = read_graph(path)
    assert edges_by_id(data) == {frozenset(pair) for pair in names}


PAIRS = ("ab", "bc", "cd", "de", "ea", "ac")
NUMBERS = tuple(f"{ord(a) - 97} {ord(b) - 97}" for a, b in PAIRS)
COMMAS = "\n".join(map(",".join, PAIRS))
TABS = "source\ttarget\n" + "\n".join(map("\t".join, PAIRS))
R_ROWS = "\n".join(f'"{i}" "{a}" "{b}"' for i, (a, b) in enumerate(PAIRS, 1))
PANDAS = "\n".join(f"{i},{a},{b}" for i, (a, b) in enumerate(PAIRS))
DIALECTS = {
    "UTF-16 without a mark": TABS.encode("utf-16-le"),
    "UTF-16 of the other order": b"\xfe\xff" + COMMAS.encode("utf-16-be"),
    "UTF-32": COMMAS.encode("utf-32"),
    "Windows": COMMAS.replace("a", "ä").encode("cp1252"),
    "carriage returns": COMMAS.replace("\n", "\r").encode(),
    "MS-DOS": COMMAS.replace("\n", "\r\n").encode() + b"\r\n\x1a",
    "packed twice": gzip.compress(COMMAS.encode(), mtime=0),
    "Excel": b"\xef\xbb\xbfsep=;\r\n" + COMMAS.replace(",", ";").encode(),
    "separators at ends": "\n".join(
        f"{line},"[: 4 - i % 2] for i, line in enumerate(COMMAS.split())
    ),
    "header without the last separator": "from,to\n" + COMMAS.replace("\n", ",\n") + ",",
    "pandas with its index": f",source,target\n{PANDAS}",
    "pandas with its index, read again": f"Unnamed: 0,x,y\n{PANDAS}",
    "R's write.csv": '"","from","to"\n' + R_ROWS.replace(" ", ","),
    "R's write.table": f'"from" "to"\n{R_ROWS}',
    "KONECT": "% sym unweighted\n% 6 5 5\n" + "\n".join(NUMBERS),
    "KONECT with weights": "% asym positive\n" + "\n".join(f"{line} 1 1004" for line in NUMBERS),
    "KONECT with tabs": "% asym\n" + "\n".join(f"{x}\t{y} 1 7" for x, y in map(str.split, NUMBERS)),
    "SNAP": "# Directed\n# Nodes: 5 Edges: 6\n# FromNodeId\tToNodeId\n"
    + "\n".join(NUMBERS).replace(" ", "\t"),
    "counts first": "5 6\n" + "\n".join(NUMBERS),
    "decimal commas": "von;nach;gewicht\n" + "\n".join(f"{a};{b};1,5" for a, b in PAIRS),
    "decimal commas and blanks": "\n".join(f"{a} {b} 1,5" for a, b in PAIRS),
    "quoted lines": "source,target,note\n" + "\n".join(f'{a},{b},"x\ny"' for a, b in PAIRS),
    "arrows": "\n".join(f"{a} -> {b}" for a, b in PAIRS),
    "dates": "\n".join(f"{line} 2020-01-03 12:00:00" for line in NUMBERS),
    "kinds": "\n".join(f"{a} {b} friend" for a, b in PAIRS),
    "padded": "\n".join(f"   {line.replace(' ', '     ')}  " for line in NUMBERS),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", DIALECTS)
def test_one_graph_in_the_dialects_of_programs(tmp_path, name, packed):
    content = DIALECTS[name]
    raw = content if isinstance(content, bytes) else content.encode()
    path = tmp_path / f"graph.txt{'.gz' * packed}"
    path.write_bytes(gzip.compress(raw, mtime=0) if packed else raw)
    data, _ = read_graph(path)
    letters = {
        text: "abcde"[int(text)] if text.isdigit() else text for text in data.vocabulary.nodes
    }
    found = {
        frozenset(letters[name].replace("ä", "a") for name in pair) for pair in edges_by_id(data)
    }
    assert found == {frozenset(pair) for pair in PAIRS}


MATRIX = "0 1 0 0\n1 0 1 0\n0 1 0 1\n0 0 1 0\n"


@pytest.mark.parametrize(
    ("name", "content", "answer"),
    [
        ("g.mtx", "%%MatrixMarket\n", r"scipy.io.mmread"),
        ("g.txt", "%%MatrixMarket matrix coordinate\n2 2 1\n1 2\n", r"scipy.io.mmread"),
        ("g.json", "{}", "networkx.node_link_graph"),
        ("g.txt", '{"nodes": [], "edges": []}', "networkx.node_link_graph"),
        ("g.csv", "[[0, 1], [1, 2]]", "one line per edge"),
        ("g.xlsx", "PK", "save the sheet with the edges as CSV"),
        ("g.zip", "PK", "unpack it"),
        ("g.csv.bz2", "BZ", "unpack it"),
        ("g.npz", "PK", "write the edges as edges.csv"),
        ("g.csv", "<!DOCTYPE html>\n<html>", "web page"),
        ("g.csv", "version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        ("g.txt", MATRIX, "4 rows and 4 columns, as an adjacency matrix has"),
        ("g.csv", ",a,b,c,d\n" + "".join(f"{'abcd'[i]},{row.replace(' ', ',')}\n" for i, row in
         enumerate(MATRIX.splitlines())), "as an adjacency matrix has"),
        ("g.txt", "a\nb\nc\n", "write two ids in every line"),
        ("g.txt", "id\n1\n2\n", "write two ids in every line"),
        ("g.txt", "# a comment\n\n", "write two ids in every line"),
        ("g.txt", "\n\n", "write two ids in every line"),
        ("g.txt", "", "is empty"),
        ("g.csv", "source,target\n", "write two ids in every line"),
        ("g.csv", "source,target,age,age\na,b,1,2\n", "two columns 'age'"),
        ("g.csv", "source,target\na,b\n,c\n", "line 3, column 'source': '' is not an id"),
        ("g.txt", "Ann Lee Bob Ray\nBob Ray Cem Oz\n", "names with blanks in quotes"),
        ("g.gz", gzip.compress(b"a,b\n", mtime=0)[:-9], "not a complete .gz"),
    ],
)  # fmt: skip
def test_files_that_are_no_lists_of_edges_name_the_way_out(tmp_path, name, content, answer):
    raw = content if isinstance(content, bytes) else content.encode()
    (tmp_path / name).write_bytes(raw)
    assert sentence(lambda: read_graph(tmp_path / name)).match(f".*{answer}")


@pytest.mark.parametrize("address", ["https://x.org/edges.csv", "s3://bucket/edges.csv.gz"])
def test_an_address_is_refused(address):
    assert sentence(lambda: read_graph(address)).match(".*is an address: download the file")


def test_missing_values_are_one_list_that_can_be_named_and_is_said(folder):
    rows = "ann,x,1\nbob,?,-9\ncem,y,NA\ndan,x,4\neva,y,-9\n"
    files = {"edges.csv": EDGES + "dan,eva\n", "nodes.csv": f"id,label,v\n{rows}"}
    source = folder(files, missing=["?", "-9", "NA"])
    data = source.load()
    assert data.labelled.tolist() == [True, False, True, True, True]
    assert data.x.flatten().tolist() == [1, 2.5, 2.5, 4, 2.5]
    said = " ".join(source.remarks)
    assert "label: texts that are no label: (?)" in said
    assert "v: 3 missing (-9, NA), filled by the mean 2.5" in said
    assert sentence(folder(files, missing=["?"]).load).match(".*'NA' is not a finite number")


FLIGHTS = "airline,from airport,to airport,km\nLH,FRA,MUC,300\nLH,MUC,CDG,700\nAF,CDG,FRA,450\n"


@pytest.mark.parametrize(
    ("text", "options", "ends"),
    [
        (FLIGHTS, {}, {"FRA", "MUC", "CDG"}),
        (FLIGHTS, {"ends": ["airline", "to airport"]}, {"LH", "AF", "MUC", "CDG", "FRA"}),
        (FLIGHTS, {"ends": [1, 3], "header": True}, {"LH", "AF", "MUC", "CDG", "FRA"}),
        (FLIGHTS.partition("\n")[2], {"ends": [2, 3]}, {"FRA", "MUC", "CDG"}),
        (FLIGHTS.partition("\n")[2], {}, {"FRA", "MUC", "CDG"}),  # two columns that share values
    ],
)
def test_ends_are_chosen_by_name_number_or_shared_values(folder, text, options, ends):
    source = folder({"edges.csv": text}, **options)
    assert {*source.load().vocabulary.nodes} == ends
    assert "km" in source.remarks[0] or "column 4" in source.remarks[0]


@pytest.mark.parametrize("ends", [["airline", "airport"], ["airline", "airline"], [1, 9]])
def test_ends_that_are_no_columns_are_refused(folder, ends):
    assert sentence(folder({"edges.csv": FLIGHTS}, ends=ends).load).match(".*ends=")


@pytest.mark.parametrize("separator", [";", " ", "\t"])
def test_decimal_commas_are_weights(folder, separator):
    text = "\n".join(separator.join(row) for row in (("a", "b", "1,5"), ("b", "c", "2,25")))
    data = folder({"edges.txt": text}, weighted=True).load()
    assert data.edge_weight.sum() == 2 * 3.75
    assert data.num_nodes == 3


def test_a_graph_of_networkx_saved_as_data_keeps_classes_and_weights(tmp_path):
    graph = nx.karate_club_graph()
    torch.save(from_networkx(graph), tmp_path / "karate.pt")
    source = PyGObject(str(tmp_path / "karate.pt"), label="club", weighted=True)
    data = source.load()
    assert data.vocabulary.classes == ("Mr. Hi", "Officer")
    clubs = [graph.nodes[node]["club"] for node in graph]
    assert [data.vocabulary.classes[y] for y in data.y] == clubs
    assert data.edge_weight.sum() == 2 * sum(w for *_, w in graph.edges(data="weight"))
    plain = PyGObject(str(tmp_path / "karate.pt"))
    plain.load()
    assert "not used: club" in " ".join(plain.remarks)
    assert "weighted=true" in " ".join(plain.remarks)
    wrong = PyGObject(str(tmp_path / "karate.pt"), label="team")
    assert sentence(wrong.load).match("label=team names no attribute")


@pytest.mark.parametrize("given", ["", "edges.csv"])
def test_data_files_of_the_folder_that_are_not_read_are_named(tmp_path, given):
    texts = {
        "edges.csv": "source,target\na,b\nb,c\n",
        "nodes.csv": "id,age\na,1\nb,2\nc,3\n",
        "labels.csv": "node,team\na,0\nb,1\nc,1\n",
        "more.xlsx": "",
        "notes.md": "not data",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    said = []
    GraphFolder(str(tmp_path / given)).load(said.append)
    assert "not read: labels.csv, more.xlsx (dataset.source.nodes=FILE names" in said[0]


def test_files_of_a_folder_of_triples_that_are_not_read_are_named(tmp_path):
    for name in ("train.txt", "valid.txt", "test.txt", "dev.txt", "entities.tsv"):
        (tmp_path / name).write_text("a r b\nb r c\nc r a\n")
    source = TripleFolder(str(tmp_path))
    assert "not read: dev.txt, entities.tsv (triples are in" in source.report(source.read())
