"""scripts/bench.py as it is typed; nothing here asserts a time."""

import pkgutil

import pytest
import torch

import curvlab.bench
from curvlab.bench import sparse
from curvlab.errors import UsageError

HELPERS = {"apart", "check", "cost", "estimate", "runs", "timing"}


def test_help_names_every_benchmark(script):
    code, said, _ = script("bench.py", "--help")
    assert code == 0
    modules = {module.name for module in pkgutil.iter_modules(curvlab.bench.__path__)}
    listed = {
        line.split()[0] for line in said.partition("options:")[2].splitlines() if line[:4].strip()
    }
    assert modules - HELPERS <= listed


@pytest.fixture(autouse=True)
def denormals():
    """A benchmark makes them zero for its process; other tests need them."""
    yield
    torch.set_flush_denormal(False)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("sparse", "--runs", "0"), "--runs and --nodes are at least 1"),
        (("tokens", "--nodes", "-5"), "--runs and --nodes are at least 1"),
        (("tokens", "--folder", "nowhere"), "no folder nowhere"),
    ],
)
def test_wrong_words_get_one_sentence(script, words, complaint):
    code, said, complained = script("bench.py", *words)
    assert (code, said) == (2, "")
    assert complaint in complained
    assert complained.count("\n") == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_named(script):
    code, _, complained = script("bench.py", "geometry", "--device", "cuda")
    assert code == 2
    assert "no GPU is at hand" in complained


def test_data_that_cannot_be_had_is_one_sentence(script, monkeypatch):
    def run(arguments):
        raise UsageError("data/graph.csv is missing")

    monkeypatch.setattr(sparse, "run", run)
    code, _, complained = script("bench.py", "sparse")
    assert (code, complained) == (2, "bench.py sparse: data/graph.csv is missing\n")


def test_products_are_measured_at_every_size(script, monkeypatch):
    monkeypatch.setattr(sparse, "SIZES", ((50, 4), (60, 64)))
    monkeypatch.setattr(sparse, "copy_bandwidth", lambda: 1e9)
    code, said, _ = script("bench.py", "sparse", "--runs", "1")
    assert code == 0
    assert "calibration: 1,024 x 1,024" in said
    assert "50 x 4" in said
    assert "60 x 64" in said
