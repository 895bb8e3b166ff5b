"""The check of a GPU: in its smallest form on the processor, and what its page says of faults."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from curvlab.bench.apart import Outcome
from curvlab.cli import gpu_check
from curvlab.cli.bench import BENCHMARKS
from curvlab.cli.gpu_check import Report, examine, main, page
from curvlab.config.folder import CONFIGS
from curvlab.tables import table_names

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("sh") is None, reason="there is no shell")
def test_the_smallest_form_on_the_processor(tmp_path):
    words = ["--reduced", "--device", "cpu", "--output", str(tmp_path)]
    done = subprocess.run(
        [ROOT / "scripts" / "gpu_check.sh", *words],
        check=False,
        env={**os.environ, "PYTHON": sys.executable, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"gpu_check.json", "gpu_check.md"}
    found = json.loads((tmp_path / "gpu_check.json").read_text())
    assert found["failed"] == []
    assert found["tests"]["value"]["failed"] == []
    runs = found["processes"]["value"]
    assert runs["one process"]["score"] == pytest.approx(runs["2 processes"]["score"], abs=1e-3)
    steps = found["recorded"]["fpst"]["value"]
    assert steps["launched"]["losses"] == steps["recorded"]["losses"]
    assert steps["difference"] == 0
    assert found["benchmarks"]["optimizer"]["status"] == "done"
    (cell,) = found["cells"].values()
    assert cell["device"]["value"]["score"] > 0
    assert cell["difference"] == 0
    said = (tmp_path / "gpu_check.md").read_text()
    assert "Failed: nothing." in said
    assert "calibration: 1,024 x 1,024" in said


@pytest.fixture
def ended(monkeypatch):
    """`ended(TEXT=outcome)`: how what has TEXT in its work's arguments ends."""

    def end(**ways):
        def apart(work, seconds):
            assert seconds > 0
            said = " ".join(map(str, (work.func.__name__, *work.args)))
            return next((way for text, way in ways.items() if text in said), Outcome("done", 1.0))

        monkeypatch.setattr(gpu_check, "apart", apart)

    return end


def examined(tmp_path, device="cuda"):
    report = Report(device, False, 20.0, "today")
    plan = replace(gpu_check.reduced(), benchmarks=["sparse", "kg"])
    examine(report, plan, tmp_path)
    assert (tmp_path / "gpu_check.md").read_text() == page(report)
    return report


TWO = Outcome("done", 1.0, {"devices": ["H", "H"], "gpus": 2, "versions": {"torch": "3"}})
SCORE = {"score": 81.0, "error": None, "ms_per_step": 3.0}
NONE = {"score": None, "error": "no | file", "ms_per_step": None}


def test_what_fails_is_named_first(tmp_path, ended):
    ended(
        machine=TWO,
        tests=Outcome("done", 2.0, {"passed": 3, "skipped": 1, "failed": ["of.a.gpu"]}),
        processes=Outcome("done", 2.0, {"one process": SCORE, "2 processes": NONE}),
        recorded=Outcome("done", 2.0, {"launched": SCORE, "recorded": SCORE, "difference": 0.1}),
        sparse=Outcome("failed", 2.0, None, "first\nillegal memory access"),
        kg=Outcome("too long", 180.0, None, "began"),
        cuda=Outcome("done", 1.0, NONE),
        cell=Outcome("done", 1.0, SCORE),
    )
    report = examined(tmp_path)
    steps = "steps of fpst"
    assert report.failed == ["tests", "2 processes", steps, "benchmark sparse", "fpst/fig3 on cuda"]
    said = page(report)
    assert f"Failed: tests, 2 processes, {steps}, benchmark sparse, fpst/fig3 on cuda." in said
    assert "| fpst | 81.0000 | 3.0 |  | 81.0000 | 3.0 |  | 1.0e-01 |" in said
    assert "3 passed, 1 failed, 1 skipped." in said
    assert "- `of.a.gpu`" in said
    assert "illegal memory access" in said
    assert "too long, 180 s" in said
    assert "no / file" in said


def test_scores_of_both_devices_are_compared(tmp_path, ended):
    ended(
        machine=TWO,
        processes=Outcome("done", 1.0),
        recorded=Outcome("done", 1.0),
        cuda=Outcome("done", 1.0, {**SCORE, "score": 80.5}),
        cell=Outcome("done", 1.0, SCORE),
    )
    report = examined(tmp_path)
    assert report.cells["fpst/fig3"]["difference"] == -0.5
    assert "| -0.5000 |" in page(report)


def test_data_that_are_nowhere_are_no_fault_of_a_device(tmp_path, ended):
    ended(machine=TWO, cell=Outcome("done", 1.0, NONE))
    report = examined(tmp_path)
    assert report.failed == []
    assert report.cells["fpst/fig3"]["difference"] is None


def test_one_gpu_has_no_two_processes(tmp_path, ended):
    ended(machine=Outcome("done", 1.0, {**TWO.value, "devices": ["H"], "gpus": 1}))
    assert "There are no two devices." in page(examined(tmp_path))


def test_all_benchmarks_and_tables_are_checked():
    plan = gpu_check.full()
    assert set(plan.benchmarks) == set(BENCHMARKS)
    assert set(plan.cells) == set(table_names(CONFIGS))
    for cells in (plan.cells["fpst/fig3"], plan.cells["cat/table1"]):  # of the papers' own models
        assert len({words[0] for words in cells}) == 1
    assert plan.cells["fpst/fig3"][0] == ("model=fpst", "dataset=web_edu")


def test_wrong_words_get_one_sentence(tmp_path, ended, capsys):
    assert main(["--minutes", "0"]) == 2
    assert capsys.readouterr().err == "gpu_check: --minutes is more than 0\n"
    ended(machine=Outcome("done", 1.0, {"gpus": 0}))
    assert main(["--reduced", "--output", str(tmp_path)]) == 2
    assert "no GPU is at hand" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
