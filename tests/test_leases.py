"""Leases: one holder at a time, living ones are left alone, abandoned ones are taken over once."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from curvlab import files, leases
from curvlab.leases import HeldError, acquire, find_holder

pytestmark = pytest.mark.slow

HOLDING = """
import os, pathlib, sys, time
from curvlab import leases
leases.RENEWAL, leases.EXPIRY = map(float, sys.argv[2:])
lease = leases.acquire(pathlib.Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""
WRITING = """
import pathlib, sys
from curvlab.files import atomic_write
from curvlab import leases
from curvlab.results.folder import RunDirectory
leases.RENEWAL, leases.EXPIRY = map(float, sys.argv[2:])
leases.WATCH_INTERVAL = float(sys.argv[4]) if sys.argv[4:] else 3600.0  # else nothing but the fence
folder = pathlib.Path(sys.argv[1])
with RunDirectory(folder).locked(None):
    print("held", flush=True)
    while True:
        atomic_write(folder / "result.json", "of the suspended process")
"""
RACING = """
import pathlib, sys, time
from curvlab.leases import HeldError, acquire
path, log = map(pathlib.Path, sys.argv[1:])
taken = 0
end = time.monotonic() + 30
while taken < 40 and time.monotonic() < end:
    try:
        lease = acquire(path)
    except HeldError:
        continue
    with lease, log.open("a") as file:
        file.write("+")
        file.flush()
        file.write("-")
    taken += 1
print(taken)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".lease"


def started(script, *words):
    line = [sys.executable, "-c", script, *map(str, words)]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def elsewhere(monkeypatch):
    """As seen from another machine, which waits less long."""
    monkeypatch.setattr(leases, "_machine", lambda: "another one")
    for name, seconds in {"RENEWAL": 0.05, "SILENCE": 0.2, "EXPIRY": 0.8}.items():
        monkeypatch.setattr(leases, name, seconds)


@pytest.fixture
def holding(path):
    """A process that holds the lease."""
    with started(HOLDING, path, leases.RENEWAL, leases.EXPIRY) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_lease_is_held_by_one_and_leaves_nothing(path):
    with acquire(path) as lease:
        assert find_holder(path).pid == os.getpid()
        with pytest.raises(HeldError, match=rf"held by process {os.getpid()} on \S+$") as refused:
            acquire(path)
        assert refused.value.holder.alive
        assert lease.is_locked
    assert find_holder(path) is None
    assert list(path.parent.iterdir()) == []
    with acquire(path):
        pass


def test_a_process_of_this_machine_that_is_killed_holds_nothing(path, holding):
    with pytest.raises(HeldError):
        acquire(path)
    holding.kill()
    os.waitid(os.P_PID, holding.pid, os.WEXITED | os.WNOWAIT)  # it stays as a zombie
    with acquire(path):
        assert find_holder(path).pid == os.getpid()
    assert list(path.parent.iterdir()) == []


def test_another_process_with_its_number_is_not_it(path):
    with acquire(path):
        assert find_holder(path).alive
        os.utime(path, (1, 1))  # last renewed long before this process was started
        assert find_holder(path) is None


def test_on_another_machine_what_is_renewed_is_alive_and_what_is_not_is_abandoned(
    path, elsewhere, holding
):
    deadline = time.monotonic() + 30
    time.sleep(1.0)
    assert find_holder(path).alive, "it is renewed"
    holding.send_signal(signal.SIGSTOP)
    seen = set()
    while (holder := find_holder(path)) is not None:
        seen.add(holder.alive)
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert False in seen, "it may be dead"
    with acquire(path):
        holding.send_signal(signal.SIGCONT)  # its lease is lost: it must not write any more
        assert holding.wait(timeout=30) == leases.LOSS_EXIT_CODE
        assert re.fullmatch(
            r"curvlab: \S+\.lease was deleted or acquired by another process, .*\n",
            holding.stderr.read(),
        )
        assert find_holder(path).pid == os.getpid()


@pytest.mark.parametrize("content", ["", "{"])
def test_a_lease_that_nobody_has_finished_writing_is_held_for_a_while(path, content, monkeypatch):
    """As of a process that was killed while it made it."""
    monkeypatch.setattr(leases, "EMPTY_EXPIRY", 0.4)
    path.write_text(content)
    with pytest.raises(HeldError, match="held by another process"):
        acquire(path)
    time.sleep(0.5)
    with acquire(path):
        assert find_holder(path).pid == os.getpid()
    assert list(path.parent.iterdir()) == []


def test_of_many_that_race_for_an_abandoned_lease_one_has_it_at_a_time(path, holding, tmp_path):
    holding.kill()
    holding.wait()
    log = tmp_path / "log"
    racing = [started(RACING, path, log) for _ in range(3)]
    assert [process.communicate(timeout=60)[0] for process in racing] == ["40\n"] * 3
    assert log.read_text() == "+-" * 120


def test_a_suspended_process_writes_nothing_into_the_folder_of_the_next(path, elsewhere):
    """Nor does it go on for long: filelock alone lets it for two renewals, here 20 seconds."""
    renewed, abandoned = 10.0, 12.0
    leases.RENEWAL, leases.SILENCE, leases.EXPIRY = renewed, 0.1, abandoned
    with started(WRITING, path.parent, renewed, abandoned) as process:
        assert process.stdout.readline() == "held\n"
        result = path.parent / "result.json"
        deadline = time.monotonic() + 30
        while not result.exists():
            assert time.monotonic() < deadline
        process.send_signal(signal.SIGSTOP)
        os.utime(path, (1, 1))  # long ago
        with acquire(path):
            result.write_text("of the next")
            process.send_signal(signal.SIGCONT)
            begun = time.monotonic()
            assert process.wait(timeout=60) == leases.LOSS_EXIT_CODE
            assert time.monotonic() - begun < 5
            assert result.read_text() == "of the next"
            assert "was deleted or acquired by another process" in process.stderr.read()


def test_a_suspended_process_that_writes_nothing_ends_at_once(path, elsewhere):
    leases.RENEWAL, leases.SILENCE, leases.EXPIRY = 10.0, 0.1, 12.0
    with started(HOLDING, path, 10.0, 12.0) as process:
        assert process.stdout.readline() == "held\n"
        process.send_signal(signal.SIGSTOP)
        os.utime(path, (1, 1))
        with acquire(path):
            process.send_signal(signal.SIGCONT)
            begun = time.monotonic()
            assert process.wait(timeout=60) == leases.LOSS_EXIT_CODE
            assert time.monotonic() - begun < 5


def test_a_lease_dated_in_the_future_is_not_held_for_ever(path, elsewhere, holding):
    holding.kill()
    holding.wait()
    os.utime(path, (time.time() + 1e6,) * 2)
    deadline = time.monotonic() + 30
    while find_holder(path) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with acquire(path):
        assert find_holder(path).pid == os.getpid()


def test_a_moved_or_deleted_file_is_fenced_too(tmp_path, monkeypatch):
    calls = []
    (tmp_path / "a").mkdir()
    with files.fence(tmp_path, lambda: calls.append(1)):
        files.atomic_write(tmp_path / "a" / "file", "text")
        files.remove(tmp_path / "a" / "file")
        files.atomic_write(tmp_path.parent / "outside", "text")
    files.remove(tmp_path.parent / "outside")
    assert len(calls) == 2
