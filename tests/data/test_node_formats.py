"""Raw files in the formats of their publishers, made by the test and read by the real loaders."""

import io
import logging
import pickle
import re

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf
from scipy.sparse import csr_matrix, random_array, save_npz

from curvlab.data.datasets.hgcn import DiseaseGraph
from curvlab.data.files.pickles import read_pickle
from curvlab.errors import UsageError

EDGES = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [3, 4]])


def ring_with_tail():
    """Both directions of `EDGES`, sorted."""
    both = {(int(a), int(b)) for a, b in [*EDGES, *EDGES[:, ::-1]]}
    return torch.tensor(sorted(both)).T


@pytest.fixture
def put(tmp_path):
    """`put(path, content)` writes a file into the test's mirror."""

    def write(path, content):
        file = tmp_path / "mirror" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        return file

    return write


def arrays(**named):
    file = io.BytesIO()
    np.savez(file, **named)
    return file.getvalue()


def heterophilous(nodes=5, labels=(0, 1, 2, 1, 0), features=None):
    """The arrays of a file of HeterophilousGraphDataset: edges once, one split a row."""
    masks = np.zeros((10, nodes), dtype=bool)
    train, val, test = masks.copy(), masks.copy(), masks.copy()
    train[:, :3], val[:, 3], test[:, 4] = True, True, True
    train[7], val[7], test[7] = train[7][::-1], [0, 1, 0, 0, 0], [1, 0, 0, 0, 0]
    x = np.arange(nodes * 3, dtype=np.float32).reshape(nodes, 3) if features is None else features
    return arrays(
        node_features=x,
        node_labels=np.array(labels),
        edges=EDGES,
        train_masks=train,
        val_masks=val,
        test_masks=test,
    )


def test_classes_that_are_not_counted_are_asked_for():
    with pytest.raises(UsageError, match="statistics lacks num_classes"):
        DiseaseGraph(folder="disease", files=[], statistics={"num_nodes": 3})


@pytest.mark.parametrize("name", ["roman_empire", "questions", "minesweeper", "tolokers"])
def test_heterophilous_files(name, tiny, put):
    put(f"HeterophilousGraphDataset/{name}/raw/{name}.npz", heterophilous())
    data = tiny(name, {"num_nodes": 5, "raw_edges": 10, "num_edges": 5, "num_classes": 3}).load()
    assert torch.equal(data.x, torch.arange(15.0).reshape(5, 3))
    assert data.y.tolist() == [0, 1, 2, 1, 0]
    assert torch.equal(data.edge_index, ring_with_tail())
    assert data.given_train.shape == (5, 10)
    assert data.given_test[:, 7].tolist() == [True, False, False, False, False]
    assert data.given == "given"


def test_wikipedia_files_and_the_switch_between_them(described, source, put, tmp_path):
    put("WikipediaFiltered/chameleon/raw/chameleon_filtered.npz", heterophilous())
    original = heterophilous(labels=(1, 1, 1, 1, 0))
    put("WikipediaFiltered/chameleon/raw/chameleon.npz", original)
    labels = {}
    for filtered in (True, False):
        config = described("chameleon", **{"source.filtered": filtered})
        for version in config.source.versions.values():
            version.file.sha256 = None
            version.statistics = {"num_nodes": 5, "num_classes": 3 if filtered else 2}
        labels[filtered] = source(config, tmp_path / "mirror").load().y.tolist()
    assert labels == {True: [0, 1, 2, 1, 0], False: [1, 1, 1, 1, 0]}


def planetoid(put, name="PubMed", prefix="pubmed", **replaced):
    """Files of Planetoid: 3 training nodes, 503 labelled or not, 4 test nodes out of order."""
    rng = np.random.default_rng(0)
    nodes, features, classes = 507, 6, 3
    x = random_array((nodes, features), density=0.5, rng=rng, format="csr").toarray()
    y = np.eye(classes)[np.arange(nodes) % classes]
    order = np.array([505, 503, 506, 504])  # where row 0, 1, 2, 3 of tx belong
    neighbours = {node: [(node + 1) % nodes, (node - 1) % nodes] for node in range(nodes)}
    neighbours[7].append(7)
    contents = {
        "x": csr_matrix(x[:3]),
        "tx": csr_matrix(x[order]),
        "allx": csr_matrix(x[:503]),
        "y": y[:3],
        "ty": y[order],
        "ally": y[:503],
        "graph": neighbours,
    } | replaced
    for part, content in contents.items():
        put(f"Planetoid/{name}/raw/ind.{prefix}.{part}", pickle.dumps(content, protocol=2))
    index = "".join(f"{node}\n" for node in order)
    put(f"Planetoid/{name}/raw/ind.{prefix}.test.index", index.encode())
    return x, y


def test_planetoid_files(tiny, put):
    x, y = planetoid(put)
    # PyTorch Geometric drops the self-loop; the ring has 507 edges.
    data = tiny("pubmed", {"num_nodes": 507, "raw_edges": 1014, "num_classes": 3}).load()
    np.testing.assert_allclose(data.x.numpy(), x.astype(np.float32))
    assert data.y.tolist() == y.argmax(axis=1).tolist()
    assert data.num_edges == 1014
    assert data.given_train.flatten().nonzero().flatten().tolist() == [0, 1, 2]
    assert data.given_val.sum() == 500
    assert data.given_test.flatten().nonzero().flatten().tolist() == [503, 504, 505, 506]


class Harmful:
    """A pickle that would run a command when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_a_pickle_of_planetoid_that_is_more_than_data_is_refused_and_not_run(tiny, put, tmp_path):
    planetoid(put, graph={0: [Harmful(tmp_path / "written")]})
    with pytest.raises(UsageError, match=r"graph is not unpickled: it asks for \S*open"):
        tiny("pubmed", {"num_nodes": 507, "num_classes": 3}).load()
    assert not (tmp_path / "written").exists()


@pytest.mark.parametrize("allowed", [{}, {"builtins.dict": dict}])
def test_an_airport_pickle_that_is_more_than_data_is_refused(allowed, tmp_path):
    file = tmp_path / "airport.p"
    file.write_bytes(pickle.dumps(Harmful(tmp_path / "written"), protocol=3))
    with pytest.raises(UsageError, match="which its data does not need"):
        read_pickle(file, allowed)
    assert not (tmp_path / "written").exists()


def test_airport_files(tiny, put):
    nx = pytest.importorskip("networkx")
    network = nx.Graph()
    feats = [[0.5, 0.25, -1.0, 0.0, 0.9], [1, 1, 1, 1, 1.1], [2, 2, 2, 2, 1.2], [3, 3, 3, 3, 1.5]]
    for airport, feat in zip([900, 30, 7, 55], feats, strict=True):
        network.add_node(airport, feat=feat)
    network.add_edges_from([(30, 900), (30, 7), (7, 900), (30, 30)])
    put("HGCN/airport/raw/airport.p", pickle.dumps(network, protocol=3))
    statistics = {"num_nodes": 4, "raw_edges": 4, "num_edges": 3, "num_features": 5}
    data = tiny("airport", statistics | {"num_classes": 4, "homophily": 0.25}).load()
    # Numbered as inserted: 900, 30, 7, 55 are 0, 1, 2, 3; the last has no route.
    assert data.edge_index.tolist() == [[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]]
    assert data.y.tolist() == [0, 1, 2, 3]
    assert data.x.tolist() == [feat[:4] for feat in feats]
    graph = tiny("airport", statistics | {"num_classes": 4, "homophily": 0.25})
    graph.population = True  # as where no class is to be told
    assert graph.load().x.tolist() == torch.tensor(feats).tolist()


def disease(put, labels=(1.0, 1.0, 0.0, 0.0, 1.0), features=None):
    put("HGCN/disease_nc/raw/disease_nc.edges.csv", b"4,1\n4,2\n1,3\n1,0\n")
    file = io.BytesIO()
    np.save(file, np.array(labels))
    put("HGCN/disease_nc/raw/disease_nc.labels.npy", file.getvalue())
    if features is not None:
        file = io.BytesIO()
        save_npz(file, csr_matrix(features))
        put("HGCN/disease_nc/raw/disease_nc.feats.npz", file.getvalue())


TREE = {"num_nodes": 5, "raw_edges": 4, "num_edges": 4, "num_classes": 2, "class_counts": [2, 3]}


def test_disease_files(tiny, put):
    x = np.array([[0, 0.5], [1, 0], [0, 0], [3, 0], [0, 2]])
    disease(put, features=x)
    data = tiny("disease", TREE).load()
    # Numbered by first appearance: 4, 1, 2, 3, 0 are 0, 1, 2, 3, 4.
    assert data.edge_index.tolist() == [[0, 0, 1, 1, 1, 2, 3, 4], [1, 2, 0, 3, 4, 0, 1, 1]]
    assert data.y.tolist() == [1, 1, 0, 0, 1]
    np.testing.assert_array_equal(data.x.numpy(), x.astype(np.float32))


ONES = np.ones((5, 2))
HOLE = np.array([[1.0, 1], [1, 1], [np.nan, 1], [1, 1], [1, 1]])


@pytest.mark.parametrize(
    ("labels", "features", "words"),
    [
        ((1.0, 1, 0, 0, 1), HOLE, "1 nodes have features that are NaN.*the first is node 2"),
        ((1.0, 1, 0, 2, 1), ONES, r"1 nodes have labels that are not among 0 \.\.\. 1.*node 3"),
        ((1.0, 1, 0.5, 0, 1), ONES, "1 nodes have labels that are not among.*node 2"),
        ((1.0, 1, 0, -1, -1), ONES, "2 nodes have labels that are not among.*node 3"),
        ((1.0, np.nan, 0, 0, 1), ONES, "1 nodes have labels that are not among.*node 1"),
        ((1.0, 1, 1, 1, 1), ONES, "all 5 nodes are of class 1"),
        ((1.0, 0, 1), ONES, "5 nodes but 3 labels"),
        ((1.0, 1, 0, 0, 1), ONES[:4], "5 nodes but 4 rows"),
        ((0.0, 0, 1, 0, 1), ONES, r"class_counts=\[3, 2\] instead of \[2, 3\]"),
    ],
)
def test_unusable_features_and_labels_are_refused_with_the_datasets_name(
    labels, features, words, tiny, put
):
    disease(put, labels, features)
    with pytest.raises(UsageError, match=f"(?s)disease.*{words}"):
        tiny("disease", TREE).load()


STATED = {"num_nodes": 5, "raw_edges": 10, "num_edges": 5, "num_features": 3, "num_classes": 3}
STATED |= {"homophily": 0.0, "class_counts": [2, 2, 1], "given_sizes": [3, 1, 1]}


@pytest.mark.parametrize("statistic", STATED)
def test_another_graph_than_stated_is_refused(statistic, tiny, put):
    put("HeterophilousGraphDataset/questions/raw/questions.npz", heterophilous())
    wrong = [9, 9, 9] if isinstance(STATED[statistic], list) else 9
    said = re.escape(f"it has {statistic}={STATED[statistic]} instead of {wrong}; ")
    with pytest.raises(UsageError, match=said):
        tiny("questions", STATED | {statistic: wrong}).load()


@pytest.mark.parametrize("content", [b"", b"not a zip", arrays(edges=EDGES)])
def test_a_file_that_is_no_graph_is_named_with_a_remedy(content, tiny, put):
    put("HeterophilousGraphDataset/questions/raw/questions.npz", content)
    with pytest.raises(
        UsageError, match=r"questions in \S+ cannot be read .*delete them"
    ) as caught:
        tiny("questions", {"num_classes": 3}).load()
    assert "\n" not in str(caught.value)


def test_processed_file_is_used_rebuilt_when_damaged_and_not_used_for_another_file(
    tiny, put, tmp_path, caplog
):
    path = "HeterophilousGraphDataset/questions/raw/questions.npz"
    put(path, heterophilous())
    source = tiny("questions", {"num_classes": 3})
    first = source.load()
    folder = tmp_path / "data/HeterophilousGraphDataset/questions/processed"
    (processed,) = folder.iterdir()
    written = processed.stat().st_mtime_ns
    source.load()
    assert processed.stat().st_mtime_ns == written
    processed.write_bytes(processed.read_bytes()[:100])
    with caplog.at_level(logging.INFO):
        again = source.load()
    assert torch.equal(again.x, first.x)
    assert caplog.text.count("computing it again") == 1
    (tmp_path / "data" / path).write_bytes(heterophilous(labels=(2, 1, 0, 1, 2)))
    assert source.load().y.tolist() == [2, 1, 0, 1, 2]


def test_known_checksums_are_stated_for_every_file_but_those_named_here(request):
    unknown = set()
    for path in (request.config.rootpath / "configs" / "dataset").glob("*.yaml"):
        source = OmegaConf.load(path).get("source", {})  # a variant has its base's
        files = list(source.get("files", [])) + [
            v.file for v in source.get("versions", {}).values()
        ]
        unknown |= {file.path.split("/")[-1] for file in files if file.sha256 is None}
        assert all(len(file.sha256) == 64 for file in files if file.sha256)
    assert unknown == {
        "ind.pubmed.allx",
        "ms_academic_cs.npz",
        "ms_academic_phy.npz",
        "roman_empire.npz",
        "questions.npz",
        "disease_nc.feats.npz",
        "mini_imagenet.pkl",
        "arxiv.zip",
        "proteins.zip",
        "products.zip",
        "papers100M-bin.zip",
        "biokg.zip",
        "wikikg-v2.zip",
        "pokec.mat",
        "pokec-splits.npy",
        "twitch_gamers.zip",
        "twitch-gamer-splits.npy",
    }
