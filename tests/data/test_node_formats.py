"""Raw files in the formats of their publishers, made by the test and read by the real loaders."""

import io
import pickle
import re

import numpy as np
import pytest
from scipy.sparse import csr_matrix, save_npz

from curvlab.errors import UsageError

EDGES = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [3, 4]])


def arrays(**named):
    file = io.BytesIO()
    np.savez(file, **named)
    return file.getvalue()


def heterophilous(nodes=5, labels=(0, 1, 2, 1, 0)):
    """The arrays of a file of HeterophilousGraphDataset: edges once, one split a row."""
    masks = np.zeros((10, nodes), dtype=bool)
    train, val, test = masks.copy(), masks.copy(), masks.copy()
    train[:, :3], val[:, 3], test[:, 4] = True, True, True
    train[7], val[7], test[7] = train[7][::-1], [0, 1, 0, 0, 0], [1, 0, 0, 0, 0]
    return arrays(
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
    labels, features = io.BytesIO(), io.BytesIO()
    np.save(labels, np.array([1.0, 1.0, 0.0, 0.0, 1.0]))
    save_npz(features, csr_matrix(x))
    raw = "HGCN/disease_nc/raw/disease_nc"
    put(f"{raw}.edges.csv", b"4,1\n4,2\n1,3\n1,0\n")
    put(f"{raw}.labels.npy", labels.getvalue())
    put(f"{raw}.feats.npz", features.getvalue())
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


@pytest.mark.parametrize("content", [b"", b"not a zip", arrays(edges=EDGES)])
def test_a_file_that_is_no_graph_is_named_with_a_remedy(content, tiny, put):
    put("HeterophilousGraphDataset/questions/raw/questions.npz", content)
    with pytest.raises(
        UsageError, match=r"questions in \S+ cannot be read .*delete them"
    ) as caught:
        tiny("questions", {"num_classes": 3}).load()
    assert "\n" not in str(caught.value)
