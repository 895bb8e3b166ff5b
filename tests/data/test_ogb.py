"""Archives in OGB's raw format, made by the test; OGB's own functions read the same."""

import gzip
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from curvlab.data.datasets.ogb import mean_of_edges
from curvlab.data.files import disk_graph
from curvlab.data.loaders.datamodule import GraphDataModule
from written import written, zipped

pytestmark = pytest.mark.slow

NODES = 6
EDGES = np.array([[0, 1], [1, 2], [2, 0], [2, 1], [4, 4], [3, 4]])  # directed, 5 has none
FEATURES = np.arange(12.0).reshape(NODES, 2) / 8
LABELS = np.array([[0], [1], [2], [1], [0], [2]])
SPLIT = {"train": [4, 0, 1], "valid": [2], "test": [5, 3]}
PLACES = {
    "ogbn_arxiv": ("ogbn_arxiv/raw/arxiv.zip", "time"),
    "ogbn_proteins": ("ogbn_proteins/raw/proteins.zip", "species"),
    "amazon2m": ("ogbn_products/raw/products.zip", "sales_ranking"),
    "ogbn_papers100m": ("ogbn_papers100M/raw/papers100M-bin.zip", "time"),
}


def table(array):
    """A compressed CSV without a header."""
    rows = "".join(",".join(map(str, row)) + "\n" for row in np.asarray(array).tolist())
    return gzip.compress(rows.encode(), mtime=0)


def contents(name, labels=LABELS, edges=EDGES, features=FEATURES):
    """Paths below the archive's folder, and what is there."""
    files = {"RELEASE_v1.txt": b"", "mapping/README.md": b"# mapping\n"}
    kind = PLACES[name][1]
    for part, nodes in SPLIT.items():
        files[f"split/{kind}/{part}.csv.gz"] = table([[node] for node in nodes])
    if name == "ogbn_papers100m":
        files["raw/data.npz"] = written(
            np.savez_compressed,
            edge_index=edges.T,
            node_feat=features.astype(np.float32),
            node_year=np.full((NODES, 1), 2015),
            num_nodes_list=np.array([NODES]),
            num_edges_list=np.array([len(edges)]),
        )
        files["raw/node-label.npz"] = written(np.savez_compressed, node_label=labels)
        return files
    files["raw/edge.csv.gz"] = table(edges)
    files["raw/num-node-list.csv.gz"] = table([[NODES]])
    files["raw/num-edge-list.csv.gz"] = table([[len(edges)]])
    files["raw/node-label.csv.gz"] = table(labels)
    if name == "ogbn_proteins":
        files["raw/edge-feat.csv.gz"] = table(edge_features(edges))
        files["raw/node_species.csv.gz"] = table([[9606]] * NODES)
    else:
        files["raw/node-feat.csv.gz"] = table(features)
    if name == "ogbn_arxiv":
        files["raw/node_year.csv.gz"] = table([[2015]] * NODES)
    return files


def edge_features(edges=EDGES):
    return np.stack([np.arange(len(edges)) / 4 + 0.25, np.ones(len(edges))], axis=1)


@pytest.fixture
def archived(put):
    """`archived(name, files)` puts an archive into the test's mirror."""

    def write(name, files):
        path = f"OGB/{PLACES[name][0]}"
        return put(path, zipped({f"{Path(path).stem}/{name}": f for name, f in files.items()}))

    return write


SMALL = {
    "num_nodes": NODES,
    "raw_edges": 6,
    "num_edges": 4,
    "num_features": 2,
    "num_classes": 3,
    "class_counts": [2, 2, 2],
    "homophily": 0.1667,  # one loop of six edges
    "given_sizes": [3, 1, 2],
}
UNDIRECTED = [[0, 0, 1, 1, 2, 2, 3, 4], [1, 2, 0, 2, 0, 1, 4, 3]]


def parts(data):
    names = ("given_train", "given_val", "given_test")
    return [data[name][:, 0].nonzero().flatten().tolist() for name in names]


def test_amazon2m_is_the_graph_of_products_with_one_random_split(tiny, archived, split):
    archived("amazon2m", contents("amazon2m"))
    # OGB adds the other direction of every edge, loops included.
    data = tiny("amazon2m", SMALL | {"raw_edges": 12}).load()
    assert data.edge_index.tolist() == UNDIRECTED
    drawn = [split("random_50_25_25")(data, seed) for seed in (0, 1)]
    assert torch.equal(drawn[0].train_mask, drawn[1].train_mask)
    sizes = [int(drawn[0][f"{part}_mask"].sum()) for part in ("train", "val", "test")]
    assert sizes == [2, 2, 2]
    official = split("official")(data, 7)
    assert official.test_mask.nonzero().flatten().tolist() == [3, 5]


def test_proteins_have_the_mean_of_their_edges_and_several_labels(tiny, archived):
    edges = EDGES[[0, 1, 2, 5]]  # each once, no loop
    labels = np.array([[0, 1], [1, 1], [0, 0], [1, 0], [0, 1], [1, 1]])
    archived("ogbn_proteins", contents("ogbn_proteins", labels, edges))
    statistics = SMALL | {"raw_edges": 8, "num_classes": 2, "class_counts": [3, 4]}
    data = tiny("ogbn_proteins", statistics | {"homophily": None}).load()
    values = edge_features(edges)
    for node in range(NODES):
        incident = [value for edge, value in zip(edges, values, strict=True) if node in edge]
        expected = np.mean(incident, axis=0) if incident else np.zeros(2)
        np.testing.assert_allclose(data.x[node].numpy(), expected, rtol=1e-7)
    assert data.y.dtype == torch.int64
    assert data.y.tolist() == labels.tolist()
    assert parts(data) == [[0, 1, 4], [2], [3, 5]]


MISSING = np.array([[0.0], [np.nan], [2], [1], [np.nan], [2]], dtype=np.float32)


def test_papers100m_nodes_without_a_label_are_in_no_part(tiny, archived, split):
    archived("ogbn_papers100m", contents("ogbn_papers100m", MISSING))
    statistics = SMALL | {"class_counts": [1, 1, 2], "homophily": 0.0, "given_sizes": [1, 1, 2]}
    source = tiny("ogbn_papers100m", statistics)
    data = source.load()
    assert data.labelled.tolist() == [True, False, True, True, False, True]
    assert data.y.tolist() == [0, -1, 2, 1, -1, 2]
    assert parts(data) == [[0], [2], [3, 5]]
    official = split("official")(data, 0)
    drawn = split("random_50_25_25")(data, 0)
    for divided in (official, drawn):
        masks = torch.stack([divided[f"{part}_mask"] for part in ("train", "val", "test")])
        assert torch.equal(masks.sum(dim=0) == 1, data.labelled)
    module = GraphDataModule(source, [], steps_per_epoch=1, seed=0, split=split("official"))
    assert (module.num_classes, module.multi_label) == (3, False)


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("piece", [1, 4, 1000])
def test_papers100m_piece_by_piece_is_the_same(tiny, archived, tmp_path, monkeypatch, piece, order):
    monkeypatch.setattr(disk_graph, "CHUNK_EDGES", piece)
    edges = EDGES if order == "F" else np.asfortranarray(EDGES)  # stored transposed
    archived("ogbn_papers100m", contents("ogbn_papers100m", MISSING, edges))
    statistics = SMALL | {"class_counts": [1, 1, 2], "homophily": 0.0, "given_sizes": [1, 1, 2]}
    source = tiny("ogbn_papers100m", statistics)
    data, graph = source.load(), source.to_disk(tmp_path / source.disk_key)
    assert graph.read("neighbours").tolist() == data.edge_index[1].tolist()
    np.testing.assert_array_equal(graph.read("features"), data.x)
    known = data.labelled.nonzero().flatten()
    assert graph.read("nodes").tolist() == known.tolist()
    labelled = graph.labelled_nodes()
    assert labelled.y.tolist() == data.y[known].tolist()
    for name in ("given_train", "given_val", "given_test"):
        assert torch.equal(labelled[name], data[name][known])
    assert not list((tmp_path / "data/OGB/ogbn_papers100M/raw").glob(".unpacked*"))
    assert tiny("ogbn_arxiv", SMALL).to_disk is None


@pytest.mark.parametrize("name", PLACES)
def test_ogbs_own_functions_read_the_same(name, tiny, archived, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "outdated", None)  # which asks the package index
    from ogb.io.read_graph_raw import read_binary_graph_raw, read_csv_graph_raw

    archive = archived(name, contents(name))
    with zipfile.ZipFile(archive) as files:
        files.extractall(tmp_path)
    raw, binary = str(tmp_path / archive.stem / "raw"), name == "ogbn_papers100m"
    inverse = name in ("amazon2m", "ogbn_proteins")
    (expected,) = (read_binary_graph_raw if binary else read_csv_graph_raw)(raw, inverse)
    found = tiny(name, {"num_classes": 3}).read([archive])
    assert found.num_nodes == expected["num_nodes"]
    assert sorted(found.edge_index.T.tolist()) == sorted(expected["edge_index"].T.tolist())
    if name == "ogbn_proteins":
        edges, values = map(torch.from_numpy, (expected["edge_index"], expected["edge_feat"]))
        torch.testing.assert_close(found.x, mean_of_edges(edges, values, NODES))
    else:
        np.testing.assert_allclose(found.x, expected["node_feat"], rtol=1e-7)
