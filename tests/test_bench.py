"""The benchmarks run, on small data, and the check of a GPU; nothing here asserts a time."""

import argparse
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from benchmarks import __main__ as bench
from benchmarks import authors, gpu_check, timings
from benchmarks.authors.code import Code, Theirs
from benchmarks.gpu_check import main

from composing import ROOT, composed
from curvlab.errors import UsageError


@pytest.fixture(autouse=True)
def denormals():
    """A benchmark makes them zero for its process; other tests need them."""
    yield
    torch.set_flush_denormal(False)


@pytest.mark.nightly
@pytest.mark.slow
def test_all_are_measured(capsys, monkeypatch):
    cell = ("model=gcn", "dataset=disease_synthetic", "split=random_60_20_20")
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
        "murp",
        "both sides of",
        "geoopt dist",
        "sparse",
    ):
        assert row in said


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ([], "name checkouts of the authors' code"),
        (["--code", "{here}"], "no code of a model is known here"),
        (["--code", "{here}/none"], "there is no such folder"),
    ],
)
def test_authors_code_is_asked_for(capsys, tmp_path, words, answer):
    assert bench.main(["authors", *(word.format(here=tmp_path) for word in words)]) == 2
    assert answer in capsys.readouterr().err


def lay_out(code, checkout):
    """Make the file by which a checkout of a code is recognised."""
    file = checkout / code.file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


def test_checkouts_are_found_by_themselves_and_in_a_folder(tmp_path):
    """No checkout is taken for another, whatever their folders are called."""
    for i, code in enumerate(authors.CODES):
        lay_out(code, tmp_path / "together" / f"{len(authors.CODES) - i}")
    expected = {
        code: tmp_path / "together" / f"{len(authors.CODES) - i}"
        for i, code in enumerate(authors.CODES)
    }
    assert authors._find_checkouts([str(tmp_path / "together")]) == expected
    assert authors._find_checkouts([str(place) for place in expected.values()]) == expected


def test_a_table_without_all_models_is_not_written(capsys, tmp_path):
    lay_out(authors.CODES[0], tmp_path)
    page = tmp_path / "page.md"
    words = ["--code", str(tmp_path), "--write", str(page)]
    assert bench.main(["authors", *words]) == 2
    said = capsys.readouterr().err
    assert all(code.address in said for code in authors.CODES[1:])
    assert authors.CODES[0].address not in said


def test_modules_of_authors_are_forgotten_after_the_block(tmp_path):
    """Two codes have modules of one name, and packages that are imported and not called."""
    codes = []
    for name in ("first", "second"):
        lines = (
            "from no_such_package import something",
            f"NAME = {name!r}",
            "def call():",
            "    return something()",
        )
        file = tmp_path / name / "their_models" / "base.py"  # without __init__.py
        file.parent.mkdir(parents=True)
        file.write_text("\n".join(lines))
        codes.append(Code(name, "", "", "their_models", unused=("no_such_package",)))
    for code in codes:
        with code.importable(tmp_path / code.name):
            module = importlib.import_module("their_models.base")
            assert code.name == module.NAME
            with pytest.raises(UsageError, match="install no_such_package"):
                module.call()
    assert not {"their_models", "their_models.base", "no_such_package"} & set(sys.modules)
    assert str(tmp_path / "second") not in sys.path


def test_a_package_that_authors_call_is_named(tmp_path):
    (tmp_path / "their_models.py").write_text("import no_such_package")
    code = Code("Theirs", "", "", "their_models.py")
    error = pytest.raises(UsageError, match="needs the package no_such_package")
    with error, code.importable(tmp_path):
        importlib.import_module("their_models")


class Scaled(torch.nn.Module):
    """A model with dropout whose output in evaluation is its input times a number."""

    def __init__(self, factor):
        super().__init__()
        self.factor, self.dropout = factor, torch.nn.Dropout(0.9)

    def forward(self, x):
        return self.dropout(self.factor * x)


@pytest.mark.parametrize(("factor", "agrees"), [(1.0, True), (1.0005, True), (1.002, False)])
def test_outputs_are_compared_in_evaluation(factor, agrees):
    ours, theirs = Scaled(1.0), Scaled(factor)
    x = torch.ones(50, 3)
    pair = Theirs(theirs, lambda: [theirs(x)], lambda: [ours(x)], lambda: None)
    if agrees:
        authors._check_outputs("Scaled", ours, pair)
        assert ours.training
        assert theirs.training
    else:
        with pytest.raises(UsageError, match="Scaled: outputs differ"):
            authors._check_outputs("Scaled", ours, pair)


def test_each_comparison_is_a_run_of_the_model_that_it_names():
    """CI has no checkouts: the words at least name a model, whose label the row begins with."""
    for each in authors.COMPARISONS:
        config = composed(*each.words, *each.checked)
        assert each.label.split(",")[0] in config.model.label


def test_a_table_of_authors_is_written_between_its_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{authors.BEGIN}\nold\n{authors.END}\nafter\n")
    args = argparse.Namespace(product_ms=10.0, runs=3)
    label, address = authors.COMPARISONS[0].label, authors.COMPARISONS[0].code.address
    authors._write(page, args, [[label, "20.0", "10.0", "2.00", "6 / 5"]])
    text = page.read_text()
    assert text.startswith("before")
    assert text.endswith("after\n")
    assert "old" not in text
    assert f"| [{label}]({address}) | 20.0 | 10.0 | 2.00 | 6 / 5 |" in text


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
