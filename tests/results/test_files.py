"""Files arrive whole or not at all, and what killed processes have left is collected."""

import errno
import os
import subprocess
import sys

import pytest

from curvlab.results.files import arriving, atomic_write

KILLED = """
import os, pathlib, signal, sys
from curvlab.results.files import arriving
with arriving(pathlib.Path(sys.argv[1])) as partial:
    partial.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_next_to_write_a_file_collects_what_a_killed_one_has_left(tmp_path):
    target = tmp_path / "file[1]"
    subprocess.run([sys.executable, "-c", KILLED, str(target)], check=False)
    (left,) = tmp_path.iterdir()
    os.utime(left, (1, 1))  # an hour later
    atomic_write(target, "whole")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["whole"]
    assert target.stat().st_mode & 0o777 == 0o644, "others can read it"


def test_what_a_living_one_writes_is_left_alone(tmp_path):
    target = tmp_path / "file"
    with arriving(target) as first:
        first.write_text("first")
        atomic_write(target, "second")
        assert first.read_text() == "first"
        assert target.read_text() == "second"
    assert target.read_text() == "first"


@pytest.mark.parametrize("function", ["fsync", "open"])
def test_what_the_system_refuses_names_the_file_and_leaves_the_old_one(
    tmp_path, monkeypatch, function
):
    target = tmp_path / "file"
    atomic_write(target, "old")
    true = getattr(os, function)

    def refuse(*words, **options):
        if function == "fsync" or str(words[0]).startswith(str(tmp_path / ".file")):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return true(*words, **options)

    monkeypatch.setattr(os, function, refuse)
    with pytest.raises(OSError, match="No space left on device") as refused:
        atomic_write(target, "new")
    assert refused.value.filename == str(target)
    monkeypatch.undo()
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]
