"""The disk cache returns what was computed, and computes again what was damaged."""

import logging

import pytest
import torch
from torch_geometric.data import Data

from curvlab.data.datasets.labelled import LabelledGraph
from curvlab.data.datasets.synthetic_large import SyntheticLarge
from curvlab.data.files.cache import cached, fingerprint
from curvlab.data.loaders.token_batches import TokenDataModule
from curvlab.data.transforms.graph import LaplacianEigenvectors, apply_transform
from curvlab.data.transforms.polynomial_tokens import PolynomialTokens
from curvlab.layers.sparse_graph import sparse_rows
from curvlab.process import default_dtype

TENSORS = {"a": torch.arange(1000.0), "b": torch.tensor([[1, 2], [3, 4]])}


class Counter:
    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return dict(TENSORS)


def same(left, right):
    return left.keys() == right.keys() and all(torch.equal(left[key], right[key]) for key in left)


def test_computes_once(tmp_path):
    compute = Counter()
    assert same(cached(tmp_path, "key", compute), TENSORS)
    assert same(cached(tmp_path, "key", compute), TENSORS)
    assert compute.calls == 1
    cached(tmp_path, "other", compute)
    assert compute.calls == 2


def flip_a_bit(content):
    middle = content.index(torch.arange(1000.0).numpy().tobytes()) + 2000
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize(
    "damage",
    [lambda content: b"", lambda content: content[: len(content) // 2], flip_a_bit, lambda _: b"x"],
    ids=["empty", "truncated", "one bit flipped", "rubbish"],
)
def test_damaged_entry_is_rebuilt_with_one_log_line(tmp_path, caplog, damage):
    compute = Counter()
    cached(tmp_path, "key", compute)
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(damage(entry.read_bytes()))
    with caplog.at_level(logging.INFO):
        assert same(cached(tmp_path, "key", compute), TENSORS)
    assert compute.calls == 2
    assert len(caplog.records) == 1
    assert str(entry) in caplog.text
    cached(tmp_path, "key", compute)
    assert compute.calls == 2


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path, caplog):
    (tmp_path / "file").write_text("not a folder")
    assert same(cached(tmp_path / "file" / "sub", "key", Counter()), TENSORS)
    assert "cannot write" in caplog.text


def test_fingerprint_sees_what_it_is_told_to_and_nothing_else():
    graph = Data(x=torch.zeros(3, 2), edge_index=torch.tensor([[0, 1], [1, 0]]))
    other = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 0]]))
    assert fingerprint(graph, ["edge_index"]) == fingerprint(other, ["edge_index"])
    assert fingerprint(graph, ["x"]) != fingerprint(other, ["x"])
    wider = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=4)
    assert fingerprint(graph, ["edge_index"]) != fingerprint(wider, ["edge_index"])


class Pairs(LabelledGraph):
    """A ring whose features are what the reader says."""

    feature = 1.0

    def read(self, paths):
        nodes = torch.arange(4)
        ring = torch.stack([nodes, (nodes + 1) % 4])
        x = torch.full((4, 1), self.feature)
        return Data(x=x, y=torch.tensor([0, 1, 0, 1]), edge_index=ring, num_nodes=4)


def raised(monkeypatch, kind, feature, by=1):
    """The reader returns something else, and says so or not."""
    monkeypatch.setattr(kind, "feature", feature)
    monkeypatch.setattr(kind, "revision", kind.revision + by)


def test_another_revision_of_a_reader_reads_again(tmp_path, monkeypatch):
    raw = tmp_path / "pairs" / "raw" / "pairs.txt"
    raw.parent.mkdir(parents=True)
    raw.write_text("the same file")
    files = [{"path": "pairs.txt", "sha256": None}]
    source = Pairs(
        folder="pairs/raw", files=files, statistics={"num_classes": 2}, data_dir=tmp_path
    )

    def found():
        return source.load().x[0, 0].item()

    first = source.disk_key
    assert found() == 1
    raised(monkeypatch, Pairs, 2.0, by=0)
    assert found() == 1  # why a revision is needed
    raised(monkeypatch, Pairs, 2.0)
    assert found() == 2
    assert source.disk_key != first  # of the graph that batching=tokens writes
    raised(monkeypatch, Pairs, 3.0, by=-1)
    assert found() == 1  # the entries of an earlier revision are still there


def test_another_revision_of_a_transform_computes_again(tmp_path, monkeypatch):
    graph = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
    first = apply_transform(LaplacianEigenvectors(2), graph, tmp_path).eigenvectors

    def other(_, data):
        data.eigenvectors = -first
        return data

    monkeypatch.setattr(LaplacianEigenvectors, "forward", other)
    again = apply_transform(LaplacianEigenvectors(2), graph, tmp_path)
    assert torch.equal(again.eigenvectors, first)
    monkeypatch.setattr(LaplacianEigenvectors, "revision", 2)
    new = apply_transform(LaplacianEigenvectors(2), graph, tmp_path)
    assert torch.equal(new.eigenvectors, -first)


def test_a_type_of_numbers_has_an_entry_of_its_own(tmp_path):
    graph = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
    single = apply_transform(LaplacianEigenvectors(2), graph, tmp_path).eigenvectors
    with default_dtype("64-true"):
        double = apply_transform(LaplacianEigenvectors(2), graph, tmp_path).eigenvectors
    assert (single.dtype, double.dtype) == (torch.float32, torch.float64)
    assert not torch.equal(double.float().double(), double)


def test_graph_and_tokens_on_disk_are_of_a_revision(tmp_path, monkeypatch):
    source = SyntheticLarge(40, 3.0, 2.5, 2, 0.5, 2, 1.0, 0)
    tokens = PolynomialTokens("mono", 2, True, "float32", 4, False)

    def folder():
        options = {"transforms": [tokens], "steps_per_epoch": 1, "seed": 0}
        return TokenDataModule(
            8, 0, 1.0, accumulate=1, source=source, cache_dir=tmp_path, **options
        )._store().arrays.folder  # fmt: skip

    first = folder()
    assert folder() == first
    monkeypatch.setattr(PolynomialTokens, "revision", 2)
    second = folder()
    assert second.parent == first.parent
    assert second != first
    monkeypatch.setattr(SyntheticLarge, "revision", 2)
    assert folder().parent != first.parent


def test_the_fingerprint_of_a_sparse_matrix_tells_its_entries():
    def of(value, column):
        entries = torch.tensor([0, 1]), torch.tensor([1, column]), torch.tensor([1.0, value])
        return fingerprint(Data(adj=sparse_rows(*entries, (3, 3)), num_nodes=3), ["adj"])

    assert of(2.0, 2) == of(2.0, 2)
    assert len({of(2.0, 2), of(-2.0, 2), of(2.0, 0)}) == 3
