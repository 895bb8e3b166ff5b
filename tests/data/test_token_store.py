"""Tokens on disk: the same as in memory, resumed after a kill, checked when read."""

import errno
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from curvlab.data.datasets.synthetic_large import SyntheticLarge
from curvlab.data.files import disk_graph
from curvlab.data.files.cleaning import simple_edges
from curvlab.data.files.disk_graph import DiskGraphWriter, open_disk_graph, write_disk_graph
from curvlab.data.loaders import token_store
from curvlab.data.loaders.token_store import TokenSpec, TokenStore
from curvlab.data.transforms.polynomial_tokens import PolynomialTokens
from curvlab.errors import UsageError

pytestmark = pytest.mark.slow

NODES, FEATURES = 60, 7


@pytest.fixture
def raw():
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(NODES - 5, (2, 150), generator=generator)  # the last have no neighbour
    x = torch.randn(NODES, FEATURES, generator=generator)
    y = torch.randint(3, (NODES,), generator=generator)
    labelled = torch.rand(NODES, generator=generator) < 0.7
    return Data(x=x, y=torch.where(labelled, y, -1), edge_index=edges, labelled=labelled,
                num_nodes=NODES)  # fmt: skip


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
    return TokenStore(tmp_path / "tokens", graph, TokenSpec(**spec))


def test_neighbours_are_those_of_the_simple_graph(raw, tmp_path, monkeypatch):
    monkeypatch.setattr(disk_graph, "BUCKET_EDGES", 40)
    graph = write_disk_graph(tmp_path / "graph", raw)
    expected = simple_edges(raw.edge_index, NODES)
    counts = np.bincount(expected[0], minlength=NODES)
    assert graph.array("offsets").tolist() == [0, *np.cumsum(counts)]
    assert graph.array("neighbours").tolist() == expected[1].tolist()
    assert (graph.num_nodes, graph.num_edges) == (NODES, expected.shape[1] // 2)
    assert np.array_equal(graph.array("features"), raw.x)
    assert sorted(path.name for path in graph.folder.iterdir()) == [
        "features.npy", "graph.json", "labels.npy", "neighbours.npy", "nodes.npy", "offsets.npy",
    ]  # fmt: skip


def test_half_a_graph_is_none(raw, tmp_path):
    writer = DiskGraphWriter(tmp_path / "graph", NODES)
    writer.edges(iter([raw.edge_index.numpy()]))
    assert open_disk_graph(tmp_path / "graph") is None
    with pytest.raises(UsageError, match=r"got 7 numbers instead of 420"):
        writer.features(iter([raw.x[:1].numpy()]), FEATURES)


FILES = ("offsets", "neighbours", "features", "nodes", "labels")
SPLITS = ("given_train", "given_val", "given_test")


@pytest.fixture
def divided(raw, tmp_path):
    """A graph with every file that there can be."""
    for name in SPLITS:
        raw[name] = torch.rand(NODES, 2) < 0.5
    raw.given = "official"
    graph = write_disk_graph(tmp_path / "divided", raw)
    assert open_disk_graph(graph.folder) == graph
    return graph


@pytest.mark.parametrize("damage", ["missing", "cut", "empty", "rubbish", "others"])
@pytest.mark.parametrize("name", [*FILES, *SPLITS])
def test_a_damaged_graph_is_said_with_the_folder_to_delete(divided, name, damage):
    path = divided.folder / f"{name}.npy"
    whole = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "others":
        np.save(path, np.load(path)[:-1])
    else:
        path.write_bytes({"cut": whole[:-1], "empty": b"", "rubbish": b"rubbish"}[damage])
    blamed = "[a-z_]+" if (name, damage) == ("nodes", "others") else name
    sentence = rf"{divided.folder}/{blamed}\.npy is not .* delete the folder {divided.folder} and"
    with pytest.raises(UsageError, match=sentence):
        open_disk_graph(divided.folder)


@pytest.mark.parametrize("text", ["", "[]", '{"num_nodes": 60}', "\0"])
def test_a_damaged_description_of_a_graph_is_said(graph, text):
    (graph.folder / "graph.json").write_text(text)
    with pytest.raises(UsageError, match=r"graph\.json is not what was written there: delete"):
        open_disk_graph(graph.folder)


@pytest.mark.parametrize("y", [torch.arange(3), torch.ones(3, 4).long()])
def test_a_graph_without_edges_or_with_several_labels_a_node_is_whole(tmp_path, y):
    raw = Data(x=torch.ones(3, 2), y=y, edge_index=torch.empty(2, 0).long())
    graph = write_disk_graph(tmp_path / "graph", raw)
    assert open_disk_graph(graph.folder) == graph


def test_edges_to_nowhere(tmp_path):
    with pytest.raises(UsageError, match="edges to nodes outside 0"):
        DiskGraphWriter(tmp_path / "graph", 4).edges([np.array([[0], [4]])])


def test_the_generated_graph_is_the_same_on_disk(tmp_path, monkeypatch):
    from curvlab.data.datasets import synthetic_large

    monkeypatch.setattr(synthetic_large, "DRAWN_EDGES", 300)
    monkeypatch.setattr(synthetic_large, "CHUNK_ROWS", 64)
    source = SyntheticLarge(200, 6.0, 2.5, 3, 0.6, 4, 1.0, seed=1)
    data, graph = source.load(), source.to_disk(tmp_path / source.disk_key)
    assert np.array_equal(graph.array("features"), data.x)
    assert np.array_equal(graph.array("neighbours"), data.edge_index[1])
    assert np.array_equal(graph.array("labels"), data.y)
    assert open_disk_graph(tmp_path / source.disk_key) == graph


@pytest.mark.parametrize("columns", [1, 3, 100])
@pytest.mark.parametrize(
    ("basis", "self_loops", "dtype"),
    [("mono", True, "float32"), ("cheb", False, "float32"), ("cheb", True, "float16"),
     ("mono", True, "bfloat16"), ("mono", False, "float32")],
)  # fmt: skip
def test_the_same_as_in_memory(
    raw, graph, tmp_path, monkeypatch, columns, basis, self_loops, dtype
):
    monkeypatch.setattr(token_store, "BLOCK_ENTRIES", 60)
    monkeypatch.setattr(token_store, "BLOCK_BYTES", 2000)
    found = store(graph, tmp_path, basis=basis, self_loops=self_loops, dtype=dtype)
    found.compute(memory_bytes=8 * NODES * columns)
    found.verify()
    expected = in_memory(raw, found.spec)[torch.from_numpy(found.nodes)]
    assert found.tokens().dtype == expected.dtype
    tolerance = {"float32": 1e-6, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
    torch.testing.assert_close(found.tokens(), expected, atol=tolerance, rtol=tolerance)
    assert sorted(found.nodes) == raw.labelled.nonzero().flatten().tolist()


def test_a_killed_computation_goes_on(raw, graph, tmp_path, monkeypatch):
    compute, seen = TokenStore._compute_columns, []

    def killed(self, first, last):
        if first == 4:
            raise KeyboardInterrupt
        seen.append(first)
        return compute(self, first, last)

    monkeypatch.setattr(TokenStore, "_compute_columns", killed)
    one = store(graph, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        one.compute(8 * NODES * 2)
    assert (seen, one.complete) == ([0, 2], False)
    monkeypatch.setattr(TokenStore, "_compute_columns", compute)
    again = store(graph, tmp_path)
    again.compute(8 * NODES)
    assert again.complete
    expected = in_memory(raw, again.spec)[torch.from_numpy(again.nodes)]
    torch.testing.assert_close(again.tokens(), expected)
    assert not (tmp_path / "tokens" / "progress.json").exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from curvlab.data.files.disk_graph import open_disk_graph
from curvlab.data.loaders.token_store import TokenSpec, TokenStore

def write(self, order, first, signals, original=TokenStore._write):
    if (order, first) == (2, 3):
        os.kill(os.getpid(), signal.SIGKILL)
    return original(self, order, first, signals)

TokenStore._write = write
folder = Path(sys.argv[1])
spec = TokenSpec("cheb", 3, False, "float32")
store = TokenStore(folder / "tokens", open_disk_graph(folder / "graph"), spec)
store.compute(8 * store.graph.num_nodes)
"""
"""Computes tokens one column after the other, and is killed at the second order of the fourth."""


@pytest.mark.slow
def test_a_process_that_is_killed_loses_the_column_it_was_at(raw, graph, tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    again = store(graph, tmp_path, basis="cheb", self_loops=False)
    assert not again.complete
    parts = json.loads((again.folder / "progress.json").read_text())["parts"]
    assert [part["columns"] for part in parts] == [[0, 1], [1, 2], [2, 3]]
    again.compute(1e9)
    again.verify()
    expected = in_memory(raw, again.spec)[torch.from_numpy(again.nodes)]
    torch.testing.assert_close(again.tokens(), expected)


@pytest.fixture
def interrupted(graph, tmp_path, monkeypatch):
    """Tokens of which four of seven columns are there, in two parts."""
    compute = TokenStore._compute_columns

    def stopped(self, first, last):
        if first == 4:
            raise KeyboardInterrupt
        return compute(self, first, last)

    monkeypatch.setattr(token_store, "BLOCK_BYTES", 1000)  # several blocks of rows
    monkeypatch.setattr(TokenStore, "_compute_columns", stopped)
    found = store(graph, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        found.compute(8 * NODES * 2)
    seen = []

    def noted(self, first, last):
        seen.append(first)
        return compute(self, first, last)

    monkeypatch.setattr(TokenStore, "_compute_columns", noted)
    return found, seen


def damaged(path, offset, content):
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)


ROW, LAST_ROW = 4 * 4 * FEATURES, 4 * 4 * FEATURES * 35


@pytest.mark.parametrize("offset", [0, ROW * 5 + 4 * 7 * 3 + 12, LAST_ROW])
def test_columns_damaged_during_an_interruption_are_computed_anew(raw, interrupted, caplog, offset):
    found, seen = interrupted
    damaged(found.folder / "tokens.bin", offset, b"\0\0\0\0")
    found.compute(8 * NODES * 2)
    assert seen == [0, 2, 4, 6]
    assert f"{found.folder} is not what was written there: computing" in caplog.text
    found.verify()
    torch.testing.assert_close(
        found.tokens(), in_memory(raw, found.spec)[torch.from_numpy(found.nodes)]
    )


def test_columns_that_are_not_there_yet_may_be_anything(interrupted, caplog):
    found, seen = interrupted
    damaged(found.folder / "tokens.bin", ROW * 5 + 4 * 4, b"abcd")  # the fifth column
    found.compute(8 * NODES * 2)
    assert (seen, caplog.text) == ([4, 6], "")
    found.verify()


@pytest.mark.parametrize("change", ["spec", "columns", "empty", "no list", "tokens"])
def test_progress_of_something_else_is_not_gone_on_with(interrupted, change):
    found, seen = interrupted
    path = found.folder / "progress.json"
    state = json.loads(path.read_text())
    texts = {
        "spec": json.dumps(state | {"orders": 2}),
        "columns": json.dumps(state | {"parts": None, "columns": 4}),  # of an earlier version
        "empty": "",
        "no list": "[]",
    }
    if change == "tokens":
        (found.folder / "tokens.bin").unlink()
    else:
        path.write_text(texts[change])
    found.compute(8 * NODES * 2)
    assert seen == [0, 2, 4, 6]
    found.verify()


def test_damage_during_the_last_columns_is_not_certified(interrupted, monkeypatch):
    found, _ = interrupted
    compute = TokenStore._compute_columns

    def damaging(self, first, last):
        damaged(self.folder / "tokens.bin", 0, b"\0\0\0\0")
        return compute(self, first, last)

    monkeypatch.setattr(TokenStore, "_compute_columns", damaging)
    with pytest.raises(UsageError, match="is not what was written there"):
        found.compute(8 * NODES * 2)
    assert not found.complete


DAMAGES = {
    "changed": ("tokens.bin", lambda path: damaged(path, 40, b"\xff")),
    "cut": ("tokens.bin", lambda path: os.truncate(path, 100)),
    "missing": ("tokens.bin", lambda path: path.unlink()),
    "no checksums": ("tokens.json", lambda path: path.write_text("")),
    "a list": ("tokens.json", lambda path: path.write_text("[]")),
    "other tokens": ("tokens.json", lambda path: path.write_text('{"basis": "cheb"}')),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_noticed(graph, tmp_path, damage):
    found = store(graph, tmp_path)
    found.compute(1e6)
    name, harm = DAMAGES[damage]
    harm(found.folder / name)
    sentence = f"{found.folder / name} is not what was written there: delete the folder"
    with pytest.raises(UsageError, match=sentence):
        found.verify()


def test_too_little_memory_is_said(graph, tmp_path):
    with pytest.raises(UsageError, match="tokens of 60 nodes take at least"):
        store(graph, tmp_path).compute(8 * NODES - 1)


def test_a_disk_without_room_is_said_and_left_as_it_was(graph, tmp_path, monkeypatch):
    def full(file, start, size):
        os.pwrite(file, b"some", start)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    found = store(graph, tmp_path)
    sentence = rf"0\.00 GB of tokens cannot be kept in {found.folder} \(No space .*paths.data_dir"
    with pytest.raises(UsageError, match=sentence):
        found.compute(1e6)
    assert list(found.folder.iterdir()) == []


def test_all_room_is_taken_before_the_first_column(graph, tmp_path, monkeypatch):
    monkeypatch.setattr(TokenStore, "_compute_columns", lambda *_: pytest.fail("computed"))
    found = store(graph, tmp_path)
    with pytest.raises(pytest.fail.Exception):
        found.compute(1e6)
    stat = (found.folder / "tokens.bin").stat()
    assert stat.st_size == 4 * np.prod(found.shape)
    assert 512 * stat.st_blocks >= stat.st_size


def test_numbers_that_half_precision_does_not_hold(raw, tmp_path):
    raw.x *= 1e6
    graph = write_disk_graph(tmp_path / "graph", raw)
    with pytest.raises(UsageError, match="float16 holds no number above"):
        store(graph, tmp_path, dtype="float16").compute(1e6)


def test_what_is_written_says_which_tokens_they_are(graph, tmp_path):
    found = store(graph, tmp_path, orders=1)
    found.compute(1e6)
    written = json.loads((tmp_path / "tokens" / "tokens.json").read_text())
    assert (written["basis"], written["orders"], len(written["crc32"])) == ("mono", 1, 1)


def flipped(path, place):
    """The file with one bit changed; as long, and of the same type."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["nodes", "labels", *SPLITS])
def test_no_changed_number_beside_the_tokens_passes(divided, name):
    flipped(divided.folder / f"{name}.npy", -1)
    with pytest.raises(UsageError, match=rf"{name}\.npy is not what was written there: delete"):
        open_disk_graph(divided.folder)


@pytest.mark.parametrize("name", ["offsets", "neighbours", "features"])
def test_tokens_are_made_of_nothing_that_was_changed(graph, tmp_path, name):
    flipped(graph.folder / f"{name}.npy", -1)
    with pytest.raises(UsageError, match=rf"{name}\.npy is not what was written there: delete"):
        store(graph, tmp_path).compute(1e9)


def test_no_changed_byte_of_the_manifest_passes(graph):
    path = graph.folder / "graph.json"
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole)
        flipped(path, place)
        with pytest.raises(UsageError, match=r"graph\.json is not what was written there"):
            open_disk_graph(graph.folder)


def test_tokens_of_another_graph_are_refused(raw, graph, tmp_path):
    store(graph, tmp_path).compute(1e9)
    raw.x[0, 0] += 1
    other = write_disk_graph(tmp_path / "other", raw)
    with pytest.raises(UsageError, match=r"tokens\.json is not what was written there"):
        store(other, tmp_path).verify()
