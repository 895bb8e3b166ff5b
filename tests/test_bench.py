"""The benchmarks run, on small data, and the check of a GPU; nothing here asserts a time."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from benchmarks import __main__ as bench
from benchmarks import authors, gpu_check, timings
from benchmarks.gpu_check import main

from composing import ROOT


@pytest.fixture(autouse=True)
def denormals():
    """A benchmark makes them zero for its process; other tests need them."""
    yield
    torch.set_flush_denormal(False)


@pytest.mark.nightly
@pytest.mark.slow
def test_all_are_measured(capsys, monkeypatch):
    cell = timings.Cell(("model=gcn", "dataset=disease_synthetic", "split=random_60_20_20"), 284, 2)
    monkeypatch.setattr(timings, "CELLS", (cell,))
    monkeypatch.setattr(timings, "CURVED", ("synthetic_web",))
    monkeypatch.setattr(timings, "TRIPLES", ("synthetic_kg",))
    monkeypatch.setattr(timings, "RANKED_GRAPH", "synthetic_kg")
    assert bench.main(["all", "--eager", "--runs", "1"]) == 0
    said = capsys.readouterr().out
    assert said.count("calibration: 1,024 x 1,024") == len(bench.BENCHMARKS)
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
    ("words", "answer"),
    [([], "name a checkout"), (["--code", "{here}"], "no code of a model is known here")],
)
def test_authors_code_is_asked_for(capsys, tmp_path, words, answer):
    assert bench.main(["authors", *(word.format(here=tmp_path) for word in words)]) == 2
    assert answer in capsys.readouterr().err


def test_a_table_of_authors_is_written_between_its_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{authors.BEGIN}\nold\n{authors.END}\nafter\n")
    args = argparse.Namespace(product_ms=10.0, runs=3)
    authors._write(page, args, [["LRN", "20.0", "10.0", "2.00", "6 / 5"]])
    text = page.read_text()
    assert text.startswith("before")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| LRN | 20.0 | 10.0 | 2.00 | 6 / 5 |" in text


@pytest.mark.nightly
def test_the_smallest_form_on_the_processor(tmp_path):
    words = ["--reduced", "--device", "cpu", "--output", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu_check", *words],
        check=False,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = (tmp_path / "gpu_check.md").read_text()
    assert "Failed: nothing." in said
    assert "- difference of losses: " in said
    assert "calibration: 1,024 x 1,024" in said
    for name in ("two_processes", "cell[fpst/fig3]"):
        assert f"## test_{name}\n\npassed" in said


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_named(tmp_path, capsys):
    assert main(["--output", str(tmp_path / "new")]) == 2
    assert "no GPU is at hand" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    assert Path(gpu_check.CHECKS).is_file()
