"""The check of a GPU: in its smallest form on the processor, and what its page says of faults."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from benchmarks import gpu_check
from benchmarks.gpu_check import main, page

ROOT = Path(__file__).resolve().parents[1]


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


REPORT = """<testsuites><testsuite>
<testcase name="test_cell[cat/table1]" time="3">
<properties><property name="device" value="score 81"/></properties></testcase>
<testcase name="test_benchmark[steps]" time="2"><system-out>12 ms</system-out></testcase>
<testcase name="test_two_processes" time="0"><skipped message="one GPU"/></testcase>
<testcase name="test_cell[lrn/table1]" time="180"><failure>first
worker 'gw0' crashed</failure></testcase>
</testsuite></testsuites>
"""


def test_what_fails_is_named_first(tmp_path):
    (tmp_path / "checks.xml").write_text(REPORT)
    said, failed = page("cpu", [tmp_path / "checks.xml"])
    assert failed == ["test_cell[lrn/table1]"]
    assert said.index("Failed: test_cell[lrn/table1].") < said.index("## test_cell[cat/table1]")
    for found in ("- device: score 81", "12 ms", "skipped, 0 s", "worker 'gw0' crashed"):
        assert found in said


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_named(tmp_path, capsys):
    assert main(["--output", str(tmp_path / "new")]) == 2
    assert "no GPU is at hand" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    assert Path(gpu_check.CHECKS).is_file()
