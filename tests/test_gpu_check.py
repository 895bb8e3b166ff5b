"""The check of a GPU: in its smallest form on the processor, and what its page says of faults."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from benchmarks import gpu_check
from benchmarks.gpu_check import BENCHMARKS, apart, checks, main

from curvlab.config.folder import CONFIGS
from curvlab.tables import table_names

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
    found = json.loads((tmp_path / "gpu_check.json").read_text())
    assert found["failed"] == []
    value = {name: outcome["value"] for name, outcome in found["checks"].items()}
    assert value["tests"]["failed"] == []
    runs = value["two processes"]
    assert runs["one process"]["score"] == pytest.approx(runs["2 processes"]["score"], abs=1e-3)
    assert value["fpst/fig3"]["device"]["score"] > 0
    assert value["fpst/fig3"]["difference"] == 0
    said = (tmp_path / "gpu_check.md").read_text()
    assert "Failed: nothing." in said
    assert "calibration: 1,024 x 1,024" in said


def outcome(status, value=None, output=""):
    return {"status": status, "seconds": 1.0, "value": value, "output": output}


SCORE = {"score": 81.0, "error": None, "ms_per_step": 3.0, "losses": [1.0]}
NONE = {"score": None, "error": "no file", "ms_per_step": None, "losses": []}
ENDS = {
    "the machine": outcome("done", {"gpus": 2}),
    "tests": outcome("done", {"passed": 3, "skipped": 1, "failed": ["of.a.gpu"]}),
    "two processes": outcome("done", {"one process": SCORE, "2 processes": NONE}),
    "benchmark steps": outcome("failed", None, "first\nillegal memory access"),
    "benchmark ranking": outcome("too long"),
    "lrn/table1": outcome("done", {"device": NONE, "processor": SCORE, "difference": None}),
    "cat/table1": outcome("done", {"device": NONE, "processor": NONE, "difference": None}),
}


def test_what_fails_is_named_first(tmp_path, monkeypatch):
    """A device without a score fails where the processor has one; missing data fail nowhere."""
    monkeypatch.setattr(
        gpu_check, "apart", lambda words, _: ENDS.get(words[-1], outcome("no time"))
    )
    assert main(["--output", str(tmp_path)]) == 1
    failed = ["tests", "two processes", "benchmark steps", "lrn/table1"]
    assert json.loads((tmp_path / "gpu_check.json").read_text())["failed"] == failed
    said = (tmp_path / "gpu_check.md").read_text()
    assert f"Failed: {', '.join(failed)}." in said
    for found in ("of.a.gpu", "illegal memory access", "too long, 1 s", "no file"):
        assert found in said


def test_all_benchmarks_and_tables_are_checked():
    found = checks("cuda", 1, reduced=False)
    assert {f"benchmark {name}" for name in BENCHMARKS} < set(found)
    assert set(table_names(CONFIGS)) < set(found)
    assert "two processes" not in found
    cells = found["fpst/fig3"][0].args[2]
    assert cells[0] == ("model=fpst", "dataset=web_edu")
    assert len({words[0] for words in cells}) == 1  # of the paper's own model


def test_a_gpu_that_is_not_there_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(gpu_check, "apart", lambda *_: outcome("done", {"gpus": 0}))
    assert main(["--output", str(tmp_path)]) == 2
    assert "no GPU is at hand" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seconds", "status"), [(0, "no time"), (0.5, "too long"), (60, "done"), (60, "failed")]
)
def test_a_check_ends_in_its_own_process(seconds, status):
    name = "no such check" if status == "failed" else gpu_check.MACHINE
    found = apart(["--device", "cpu", "--check", name], seconds)
    assert found["status"] == status
    assert (found["value"] or {}).get("devices") == (["processor"] if status == "done" else None)
    assert ("KeyError" in found["output"]) == (status == "failed")


def test_what_a_check_started_ends_with_it(tmp_path, monkeypatch):
    """Of a program that starts another one and waits."""
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\nsleep 60 & echo $! > {tmp_path}/child; wait\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    assert apart([], 1.0)["status"] == "too long"
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 10
    while running(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running(child)


def running(pid):
    """Whether a process is at work, which one that nobody has waited for is not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
