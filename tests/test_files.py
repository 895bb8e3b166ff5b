"""Files arrive whole or not at all; a checkpoint is what was written, or is refused."""

import errno
import os
import random
import subprocess
import sys

import pytest
import torch

from curvlab.checksums import DamagedError, add_facts, check_archive
from curvlab.errors import system_remedy
from curvlab.files import arriving, atomic_write

KILLED = """
import os, pathlib, signal, sys
from curvlab.files import arriving
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


WEIGHT = torch.arange(12.0)


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "state.ckpt"
    torch.save({"weight": WEIGHT, "rows": [{"step": 1}]}, path)
    add_facts(path, {"step": 7})
    return path


@pytest.mark.slow
@pytest.mark.sampled(4)
@pytest.mark.parametrize("first", range(4))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_no_changed_bit_changes_what_is_read(archive, first):
    """Of arrays, of what frames them, of the index: the archive is refused, or means the same."""
    whole, draw = archive.read_bytes(), random.Random(0)
    silent = 0
    for place in range(first, len(whole), 4):
        content = bytearray(whole)
        content[place] ^= 1 << draw.randrange(8)
        archive.write_bytes(content)
        try:
            facts = check_archive(archive)
            state = torch.load(archive, weights_only=True)
        except Exception:
            continue
        silent += 1
        assert facts in ({"step": 7}, {})
        assert torch.equal(state["weight"], WEIGHT)
        assert state["rows"] == [{"step": 1}]
    assert 0 < silent < len(whole) / 4


def test_no_cut_archive_passes(archive):
    whole = archive.read_bytes()
    for length in range(0, len(whole), 13):
        archive.write_bytes(whole[:length])
        with pytest.raises(DamagedError):
            check_archive(archive)


def test_the_array_that_is_damaged_is_named(archive):
    content = archive.read_bytes()
    place = content.index(WEIGHT.numpy().tobytes()) + 5
    archive.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    with pytest.raises(DamagedError, match=r"^the checksum of data/\d in it does not match$"):
        check_archive(archive)


@pytest.mark.parametrize(
    ("number", "remedy"), [(errno.ENOSPC, "Free disk space"), (errno.EMFILE, "ulimit -n")]
)
def test_the_remedy_is_that_of_the_error(number, remedy):
    assert remedy in system_remedy(OSError(number, "why"))
