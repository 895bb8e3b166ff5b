"""The benchmarks run, on small data; nothing here asserts a time."""

import pytest
import torch
from benchmarks import __main__ as bench
from benchmarks import timings

from curvlab.errors import UsageError


@pytest.fixture(autouse=True)
def denormals():
    """A benchmark makes them zero for its process; other tests need them."""
    yield
    torch.set_flush_denormal(False)


@pytest.mark.slow
def test_all_are_measured(capsys, monkeypatch):
    cell = timings.Cell(("model=gcn", "dataset=disease_synthetic", "split=random_60_20_20"), 284, 2)
    monkeypatch.setattr(timings, "CELLS", (cell,))
    monkeypatch.setattr(timings, "CURVED", ("synthetic_web",))
    monkeypatch.setattr(timings, "TRIPLES", ("synthetic_kg",))
    monkeypatch.setattr(timings, "RANKED_GRAPH", "synthetic_kg")
    assert bench.main(["all", "--eager", "--runs", "1"]) == 0
    said = capsys.readouterr().out
    assert said.count("calibration: 1,024 x 1,024") == 4
    for row in (
        "gcn, disease_synthetic",
        "FPS-T, ms",
        "CAT",
        "both sides of",
        "geoopt dist",
        "sparse",
    ):
        assert row in said


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("steps", "--runs", "0"), "--runs is at least 1"),
        pytest.param(
            ("pairwise", "--device", "cuda"),
            "no GPU is at hand",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU"),
        ),
    ],
)
def test_wrong_words_get_one_sentence(capsys, words, complaint):
    assert bench.main(words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert complaint in said.err
    assert said.err.count("\n") == 1


def test_data_that_cannot_be_had_is_one_sentence(capsys, monkeypatch):
    def run(arguments):
        """Needs data."""
        raise UsageError("data/graph.csv is missing")

    monkeypatch.setattr(timings, "steps", run)
    assert bench.main(["steps"]) == 2
    assert capsys.readouterr().err == "benchmarks steps: data/graph.csv is missing\n"
