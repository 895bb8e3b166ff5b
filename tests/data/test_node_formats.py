"""Raw files in the formats of their publishers, made by the test and read by the real loaders."""

import pickle
import re

import numpy as np
import pytest
import torch
from scipy.io import savemat
from scipy.sparse import csr_matrix, save_npz

from curvlab.errors import UsageError
from written import written, zipped

EDGES = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [3, 4]])


def heterophilous(nodes=5, labels=(0, 1, 2, 1, 0)):
    """The arrays of a file of HeterophilousGraphDataset: edges once, one split a row."""
    masks = np.zeros((10, nodes), dtype=bool)
    train, val, test = masks.copy(), masks.copy(), masks.copy()
    train[:, :3], val[:, 3], test[:, 4] = True, True, True
    train[7], val[7], test[7] = train[7][::-1], [0, 1, 0, 0, 0], [1, 0, 0, 0, 0]
    return written(
        np.savez,
        node_features=np.arange(nodes * 3, dtype=np.float32).reshape(nodes, 3),
        node_labels=np.array(labels),
        edges=EDGES,
        train_masks=train,
        val_masks=val,
        test_masks=test,
    )


def test_a_pickle_of_planetoid_that_is_more_than_data_is_refused_and_not_run(tiny, put, harmful):
    for part in ("x", "tx", "allx", "y", "ty", "ally", "graph"):
        content = pickle.dumps({0: [harmful]}, protocol=2)
        put(f"Planetoid/PubMed/raw/ind.pubmed.{part}", content if part == "graph" else b"N.")
    put("Planetoid/PubMed/raw/ind.pubmed.test.index", b"")
    with pytest.raises(UsageError, match=r"pubmed in .* cannot be read .*it asks for \S*open"):
        tiny("pubmed", {"num_nodes": 507, "num_classes": 3}).load()


TREE = {"num_nodes": 5, "raw_edges": 4, "num_edges": 4, "num_classes": 2, "class_counts": [2, 3]}


def test_disease_files(tiny, put):
    x = np.array([[0, 0.5], [1, 0], [0, 0], [3, 0], [0, 2]])
    raw = "HGCN/disease_nc/raw/disease_nc"
    put(f"{raw}.edges.csv", b"4,1\n4,2\n1,3\n1,0\n")
    put(f"{raw}.labels.npy", written(np.save, np.array([1.0, 1.0, 0.0, 0.0, 1.0])))
    put(f"{raw}.feats.npz", written(save_npz, csr_matrix(x)))
    data = tiny("disease", TREE).load()
    # Numbered by first appearance: 4, 1, 2, 3, 0 are 0, 1, 2, 3, 4.
    assert data.edge_index.tolist() == [[0, 0, 1, 1, 1, 2, 3, 4], [1, 2, 0, 3, 4, 0, 1, 1]]
    assert data.y.tolist() == [1, 1, 0, 0, 1]
    np.testing.assert_array_equal(data.x.numpy(), x.astype(np.float32))


STATED = {"num_nodes": 5, "raw_edges": 10, "num_edges": 5, "num_features": 3, "num_classes": 3}
STATED |= {"homophily": 0.0, "class_counts": [2, 2, 1], "given_sizes": [3, 1, 1]}


@pytest.mark.parametrize("statistic", STATED)
def test_another_graph_than_stated_is_refused(statistic, tiny, put):
    put("HeterophilousGraphDataset/questions/raw/questions.npz", heterophilous())
    wrong = [9, 9, 9] if isinstance(STATED[statistic], list) else 9
    said = re.escape(f"it has {statistic}={STATED[statistic]} instead of {wrong}; ")
    with pytest.raises(UsageError, match=said):
        tiny("questions", STATED | {statistic: wrong}).load()


@pytest.mark.parametrize("content", [b"", b"not a zip", written(np.savez, edges=EDGES)])
def test_a_file_that_is_no_graph_is_named_with_a_remedy(content, tiny, put):
    put("HeterophilousGraphDataset/questions/raw/questions.npz", content)
    with pytest.raises(
        UsageError, match=r"questions in \S+ cannot be read .*delete them"
    ) as caught:
        tiny("questions", {"num_classes": 3}).load()
    assert "\n" not in str(caught.value)


LINKX_SPLITS = [
    {"train": np.array([0, 1]), "valid": np.array([2]), "test": np.array([3])},
    {"train": np.array([3, 2]), "valid": np.array([1]), "test": np.array([0])},
]
TWITCH = """views,mature,life_time,created_at,updated_at,numeric_id,dead_account,language,affiliate
10,1,5,2018-01-02,2018-10-12,1,0,EN,1
30,0,7,2016-11-30,2018-10-12,0,0,DE,0
20,1,9,2017-05-05,2018-09-01,3,1,EN,0
40,0,3,2015-12-31,2018-10-12,2,0,FR,1
"""
LINKX = {"num_nodes": 4, "num_edges": 3, "num_features": 7, "num_classes": 2}
PARTS = ("given_train", "given_val", "given_test")


def put_splits(put, path):
    put(f"LINKX/{path}", written(np.save, np.array(LINKX_SPLITS, dtype=object), allow_pickle=True))


def test_twitch_gamers(put, tiny):
    put_splits(put, "twitch_gamers/raw/twitch-gamer-splits.npy")
    files = {"features": TWITCH, "edges": "numeric_id_1,numeric_id_2\n0,1\n2,1\n3,0\n"}
    archive = zipped({f"twitch_gamers/large_twitch_{n}.csv": text for n, text in files.items()})
    put("LINKX/twitch_gamers/raw/twitch_gamers.zip", archive)
    data = tiny("twitch_gamers", LINKX).load()
    assert data.y.tolist() == [0, 1, 0, 1]
    assert data.edge_index.tolist() == [[0, 0, 1, 1, 2, 3], [1, 3, 0, 2, 1, 0]]
    torch.testing.assert_close(data.x.mean(0), torch.zeros(7), atol=1e-6, rtol=0)
    torch.testing.assert_close(data.x.std(0), torch.ones(7))
    views, language = data.x[:, 0], data.x[:, 5]  # 30, 10, 40, 20 and DE, EN, FR, EN by number
    assert views.argsort().tolist() == [1, 3, 0, 2]
    assert language[1] == language[3] != language[0] != language[2]
    assert [data[name][:, 0].nonzero().flatten().tolist() for name in PARTS] == [[0, 1], [2], [3]]
    assert [data[name][:, 1].nonzero().flatten().tolist() for name in PARTS] == [[2, 3], [1], [0]]


def test_pokec(put, tiny):
    put_splits(put, "pokec/raw/pokec-splits.npy")
    matrices = {
        "edge_index": np.array([[0, 1, 4], [1, 2, 3]]),
        "node_feat": np.arange(10.0).reshape(5, 2),
        "label": np.array([[0, 1, 1, 0, -1]]),
        "num_nodes": 5,
    }
    put("LINKX/pokec/raw/pokec.mat", written(savemat, matrices))
    data = tiny("pokec", {**LINKX, "num_nodes": 5, "num_features": 2}).load()
    assert data.labelled.tolist() == [True] * 4 + [False]
    assert data.y.tolist() == [0, 1, 1, 0, -1]
    assert data.x.tolist()[4] == [8, 9]
    assert (data.num_edges, data.given) == (6, "given")
