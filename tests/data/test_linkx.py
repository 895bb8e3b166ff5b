"""Twitch-gamers and Pokec, from small files of their formats."""

import io
import zipfile

import numpy as np
import torch
from scipy.io import savemat

SPLITS = [
    {"train": np.array([0, 1]), "valid": np.array([2]), "test": np.array([3])},
    {"train": np.array([3, 2]), "valid": np.array([1]), "test": np.array([0])},
]
NODES = """views,mature,life_time,created_at,updated_at,numeric_id,dead_account,language,affiliate
10,1,5,2018-01-02,2018-10-12,1,0,EN,1
30,0,7,2016-11-30,2018-10-12,0,0,DE,0
20,1,9,2017-05-05,2018-09-01,3,1,EN,0
40,0,3,2015-12-31,2018-10-12,2,0,FR,1
"""
STATISTICS = {"num_nodes": 4, "num_edges": 3, "num_features": 7, "num_classes": 2}
PARTS = ("given_train", "given_val", "given_test")


def put_splits(put, path):
    file = io.BytesIO()
    np.save(file, np.array(SPLITS, dtype=object), allow_pickle=True)
    put(f"LINKX/{path}", file.getvalue())


def test_twitch_gamers(put, tiny):
    put_splits(put, "twitch_gamers/raw/twitch-gamer-splits.npy")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr("twitch_gamers/large_twitch_features.csv", NODES)
        files.writestr(
            "twitch_gamers/large_twitch_edges.csv", "numeric_id_1,numeric_id_2\n0,1\n2,1\n3,0\n"
        )
    put("LINKX/twitch_gamers/raw/twitch_gamers.zip", archive.getvalue())
    data = tiny("twitch_gamers", STATISTICS).load()
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
    matrices = io.BytesIO()
    savemat(
        matrices,
        {
            "edge_index": np.array([[0, 1, 4], [1, 2, 3]]),
            "node_feat": np.arange(10.0).reshape(5, 2),
            "label": np.array([[0, 1, 1, 0, -1]]),
            "num_nodes": 5,
        },
    )
    put("LINKX/pokec/raw/pokec.mat", matrices.getvalue())
    data = tiny("pokec", {**STATISTICS, "num_nodes": 5, "num_features": 2}).load()
    assert data.labelled.tolist() == [True] * 4 + [False]
    assert data.y.tolist() == [0, 1, 1, 0, -1]
    assert data.x.tolist()[4] == [8, 9]
    assert (data.num_edges, data.given) == (6, "given")
