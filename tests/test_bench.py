"""The benchmarks run, on small data; nothing here asserts a time."""

import pytest
import torch
from benchmarks import __main__ as bench
from benchmarks import timings


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
