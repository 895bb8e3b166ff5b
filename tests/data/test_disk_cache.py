"""The disk cache returns what was computed, and computes again what was damaged."""

import logging

import pytest
import torch
from torch_geometric.data import Data

from curvlab.data.files.cache import fingerprint, get_or_compute
from curvlab.data.transforms.graph import LaplacianEigenvectors, apply_transform
from curvlab.graph.sparse_matrix import sparse_rows
from curvlab.process import default_dtype

TENSORS = {"a": torch.arange(1000.0), "b": torch.tensor([[1, 2], [3, 4]])}


def same(left, right):
    return left.keys() == right.keys() and all(torch.equal(left[key], right[key]) for key in left)


def flip_a_bit(content):
    middle = content.index(torch.arange(1000.0).numpy().tobytes()) + 2000
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize(
    "damage",
    [lambda content: b"", lambda content: content[: len(content) // 2], flip_a_bit, lambda _: b"x"],
    ids=["empty", "truncated", "one bit flipped", "rubbish"],
)
def test_damaged_entry_is_rebuilt_with_one_log_line(tmp_path, caplog, damage):
    calls = []

    def compute():
        calls.append(0)
        return dict(TENSORS)

    get_or_compute(tmp_path, "key", compute)
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(damage(entry.read_bytes()))
    with caplog.at_level(logging.INFO):
        assert same(get_or_compute(tmp_path, "key", compute), TENSORS)
    assert len(calls) == 2
    assert len(caplog.records) == 1
    assert str(entry) in caplog.text
    get_or_compute(tmp_path, "key", compute)
    assert len(calls) == 2


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path, caplog):
    (tmp_path / "file").write_text("not a folder")
    assert same(get_or_compute(tmp_path / "file" / "sub", "key", lambda: TENSORS), TENSORS)
    assert "cannot write" in caplog.text


def test_fingerprint_sees_what_it_is_told_to_and_nothing_else():
    graph = Data(x=torch.zeros(3, 2), edge_index=torch.tensor([[0, 1], [1, 0]]))
    other = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 0]]))
    assert fingerprint(graph, ["edge_index"]) == fingerprint(other, ["edge_index"])
    assert fingerprint(graph, ["x"]) != fingerprint(other, ["x"])
    wider = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=4)
    assert fingerprint(graph, ["edge_index"]) != fingerprint(wider, ["edge_index"])


def test_another_revision_of_a_transform_computes_again(tmp_path, monkeypatch):
    graph = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
    first = apply_transform(LaplacianEigenvectors(2), graph, tmp_path).eigenvectors

    def other(_, data):
        data.eigenvectors = -first
        return data

    monkeypatch.setattr(LaplacianEigenvectors, "forward", other)
    again = apply_transform(LaplacianEigenvectors(2), graph, tmp_path)
    assert torch.equal(again.eigenvectors, first)
    newer = LaplacianEigenvectors.revision + 1
    monkeypatch.setattr(LaplacianEigenvectors, "revision", newer)
    new = apply_transform(LaplacianEigenvectors(2), graph, tmp_path)
    assert torch.equal(new.eigenvectors, -first)


def test_a_type_of_numbers_has_an_entry_of_its_own(tmp_path):
    graph = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
    single = apply_transform(LaplacianEigenvectors(2), graph, tmp_path).eigenvectors
    with default_dtype("64-true"):
        double = apply_transform(LaplacianEigenvectors(2), graph, tmp_path).eigenvectors
    assert (single.dtype, double.dtype) == (torch.float32, torch.float64)
    assert not torch.equal(double.float().double(), double)


def test_the_fingerprint_of_a_sparse_matrix_tells_its_entries():
    def of(value, column):
        entries = torch.tensor([0, 1]), torch.tensor([1, column]), torch.tensor([1.0, value])
        return fingerprint(Data(adj=sparse_rows(*entries, (3, 3)), num_nodes=3), ["adj"])

    assert of(2.0, 2) == of(2.0, 2)
    assert len({of(2.0, 2), of(-2.0, 2), of(2.0, 0)}) == 3
