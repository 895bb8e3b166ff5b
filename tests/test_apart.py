"""Work in a process of its own ends by itself, by its fault, or by the clock."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from curvlab.bench.apart import apart


def test_what_work_returns_and_prints_is_kept():
    def work():
        print("at work")
        subprocess.run([sys.executable, "-c", "print('below')"], check=True)
        return {"pid": os.getpid(), "figures": [1, 2.5]}

    outcome = apart(work, 60)
    assert outcome.status == "done"
    assert outcome.value["figures"] == [1, 2.5]
    assert outcome.value["pid"] != os.getpid()
    assert "at work\n" in outcome.output
    assert "below\n" in outcome.output


def test_a_fault_costs_the_work_alone():
    def raises():
        raise ArithmeticError("no number")

    outcome = apart(raises, 60)
    assert (outcome.status, outcome.value) == ("failed", None)
    assert "ArithmeticError: no number" in outcome.output
    outcome = apart(lambda: os.kill(os.getpid(), signal.SIGKILL), 60)
    assert (outcome.status, outcome.value) == ("failed", None)
    assert f"killed by signal {signal.SIGKILL}" in outcome.output


def test_what_takes_too_long_ends_with_all_that_it_started(tmp_path):
    def work():
        child = subprocess.Popen(["sleep", "60"])
        (tmp_path / "child").write_text(str(child.pid))
        child.wait()

    outcome = apart(work, 1.5)
    assert outcome.status == "too long"
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 10
    while running(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running(child)
    assert apart(work, 0).status == "no time"


def running(pid):
    """Whether a process is at work, which one that nobody has waited for is not."""
    try:
        stat = Path("/proc", str(pid), "stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
