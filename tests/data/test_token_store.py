"""Graphs and tokens on disk: the same as in memory, resumed after a kill, checked when read."""

import os
import shutil

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from curvlab.data.datasets import synthetic_large
from curvlab.data.datasets.synthetic_large import SyntheticLarge
from curvlab.data.files import disk_graph
from curvlab.data.files.cleaning import simple_edges
from curvlab.data.files.disk_graph import DiskGraph, write_disk_graph
from curvlab.data.loaders import token_batches
from curvlab.data.loaders.token_batches import TokenStore
from curvlab.data.transforms.polynomial_tokens import PolynomialTokens
from curvlab.errors import UsageError

pytestmark = pytest.mark.slow

NODES, FEATURES = 60, 7
SPLITS = ("given_train", "given_val", "given_test")
SMALL = ("nodes", "labels", *SPLITS)
SOURCES = ("offsets", "neighbours", "features")


@pytest.fixture
def raw():
    edges = torch.randint(NODES - 5, (2, 150))  # the last have no neighbour
    x = torch.randn(NODES, FEATURES)
    y = torch.randint(3, (NODES,))
    labelled = torch.rand(NODES) < 0.7
    given = {name: torch.rand(NODES, 2) < 0.5 for name in SPLITS}
    return Data(x=x, y=torch.where(labelled, y, -1), edge_index=edges, labelled=labelled,
                num_nodes=NODES, given="official", **given)  # fmt: skip


@pytest.fixture
def graph(raw, tmp_path):
    return write_disk_graph(tmp_path / "graph", raw)


def in_memory(raw, spec):
    data = raw.clone()
    data.edge_index = simple_edges(raw.edge_index, NODES)
    transform = PolynomialTokens(spec.basis, spec.orders, spec.self_loops, spec.dtype, 1, False)
    return transform(data).tokens


def store(graph, tmp_path, **changes):
    spec = {"basis": "mono", "orders": 3, "self_loops": True, "dtype": "float32", **changes}
    return TokenStore(tmp_path / "tokens", graph, PolynomialTokens(**spec))


def flipped(path, place):
    """The file with one bit changed; as long, and of the same type."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_neighbours_are_those_of_the_simple_graph(raw, tmp_path, monkeypatch):
    monkeypatch.setattr(disk_graph, "BUCKET_NODES", 7)
    graph = write_disk_graph(tmp_path / "graph", raw)
    expected = simple_edges(raw.edge_index, NODES)
    counts = np.bincount(expected[0], minlength=NODES)
    assert graph.read("offsets").tolist() == [0, *np.cumsum(counts)]
    assert graph.read("neighbours").tolist() == expected[1].tolist()
    assert (graph.num_nodes, graph.num_edges) == (NODES, expected.shape[1] // 2)
    assert np.array_equal(graph.read("features"), raw.x)
    files = {f"{name}.bin" for name in (*SOURCES, *SMALL)} | {"arrays.json"}
    assert {path.name for path in graph.folder.iterdir()} == files
    labelled = graph.labelled_nodes()
    assert labelled.given == "official"
    for name in ("y", *SPLITS):
        assert torch.equal(labelled[name], raw[name][raw.labelled])


@pytest.mark.parametrize("damage", ["missing", "cut", "flipped"])
@pytest.mark.parametrize("name", [*SOURCES, *SMALL])
def test_a_damaged_graph_is_said_with_the_folder_to_delete(graph, tmp_path, name, damage):
    path = graph.folder / f"{name}.bin"
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        os.truncate(path, path.stat().st_size - 1)
    else:
        flipped(path, -1)
    sentence = rf"{path} is not what was written there: delete the folder {graph.folder} and"
    with pytest.raises(UsageError, match=sentence):
        # The large arrays are compared where tokens are made of them.
        store(DiskGraph.open(graph.folder), tmp_path).compute(1e9)


@pytest.mark.parametrize("y", [torch.arange(3), torch.ones(3, 4).long()])
def test_a_graph_without_edges_or_with_several_labels_a_node_is_whole(tmp_path, y):
    raw = Data(x=torch.ones(3, 2), y=y, edge_index=torch.empty(2, 0).long())
    graph = write_disk_graph(tmp_path / "graph", raw)
    found = DiskGraph.open(graph.folder)
    assert (found.arrays, found.facts, found.num_edges) == (graph.arrays, graph.facts, 0)
    assert torch.equal(found.labelled_nodes().y, y)


def test_the_generated_graph_is_the_same_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(synthetic_large, "DRAWN_EDGES", 300)
    monkeypatch.setattr(synthetic_large, "CHUNK_ROWS", 64)
    source = SyntheticLarge(200, 6.0, 2.5, 3, 0.6, 4, 1.0, seed=1)
    data, graph = source.load(), source.to_disk(tmp_path / source.disk_key)
    assert np.array_equal(graph.read("features"), data.x)
    assert np.array_equal(graph.read("neighbours"), data.edge_index[1])
    assert np.array_equal(graph.read("labels"), data.y)


@pytest.mark.parametrize("columns", [1, 3, 100])
@pytest.mark.parametrize(
    ("basis", "self_loops", "dtype"),
    [("mono", True, "float32"), ("cheb", False, "float32"), ("cheb", True, "float16"),
     ("mono", True, "bfloat16"), ("mono", False, "float32")],
)  # fmt: skip
def test_the_same_as_in_memory(
    raw, graph, tmp_path, monkeypatch, columns, basis, self_loops, dtype
):
    monkeypatch.setattr(token_batches, "BLOCK_ENTRIES", 60)
    monkeypatch.setattr(token_batches, "BLOCK_BYTES", 2000)
    found = store(graph, tmp_path, basis=basis, self_loops=self_loops, dtype=dtype)
    found.compute(memory_bytes=8 * NODES * columns)
    found.arrays.verify()
    expected = in_memory(raw, found.spec)[torch.from_numpy(found.nodes)]
    assert found.tokens().dtype == expected.dtype
    tolerance = {"float32": 1e-6, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
    torch.testing.assert_close(found.tokens(), expected, atol=tolerance, rtol=tolerance)
    assert sorted(found.nodes) == raw.labelled.nonzero().flatten().tolist()
    assert {path.name for path in found.arrays.folder.iterdir()} == {"tokens.bin", "arrays.json"}


def test_an_interrupted_computation_goes_on(raw, graph, tmp_path, monkeypatch):
    """At the second order of the fourth column; a block that was damaged meanwhile is refused."""
    write, compute, seen = TokenStore._write, TokenStore._compute_columns, []

    def interrupted(self, order, first, signals):
        if (order, first) == (2, 3):
            raise KeyboardInterrupt
        return write(self, order, first, signals)

    def noted(self, first, last):
        seen.append((first, last))
        return compute(self, first, last)

    options = {"basis": "cheb", "self_loops": False}
    with monkeypatch.context() as patch:
        patch.setattr(TokenStore, "_write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store(graph, tmp_path, **options).compute(8 * NODES)
    shutil.copytree(tmp_path / "tokens", tmp_path / "kept")
    monkeypatch.setattr(TokenStore, "_compute_columns", noted)
    found = store(graph, tmp_path, **options)
    assert not found.complete
    found.compute(8 * NODES * 2)
    assert seen == [(3, 5), (5, 7)]
    expected = in_memory(raw, found.spec)[torch.from_numpy(found.nodes)]
    torch.testing.assert_close(found.tokens(), expected)
    flipped(tmp_path / "kept" / "1-2.bin", 8)
    spoilt = TokenStore(tmp_path / "kept", graph, found.spec)
    with pytest.raises(UsageError, match=r"1-2\.bin is not what was written there: delete"):
        spoilt.compute(1e6)


def test_damaged_tokens_and_those_of_another_graph_are_refused(raw, graph, tmp_path):
    found = store(graph, tmp_path)
    found.compute(1e6)
    raw.x[0, 0] += 1
    other = write_disk_graph(tmp_path / "other", raw)
    with pytest.raises(UsageError, match=r"arrays\.json is not what was written there"):
        store(other, tmp_path)
    flipped(found.arrays.folder / "tokens.bin", 40)
    with pytest.raises(UsageError, match=r"tokens\.bin is not what was written there: delete"):
        store(graph, tmp_path).arrays.verify()


def test_too_little_memory_is_said(graph, tmp_path):
    with pytest.raises(UsageError, match="tokens of 60 nodes take at least"):
        store(graph, tmp_path).compute(8 * NODES - 1)


def test_numbers_that_half_precision_does_not_hold(raw, tmp_path):
    raw.x *= 1e6
    graph = write_disk_graph(tmp_path / "graph", raw)
    with pytest.raises(UsageError, match="float16 holds no number above"):
        store(graph, tmp_path, dtype="float16").compute(1e6)
