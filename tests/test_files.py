"""Files arrive whole or not at all; a checkpoint is what was written, or is refused."""

import errno
import os
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch

from curvlab.analysis.plots import run_curves
from curvlab.callbacks.growing_table import GrowingTable
from curvlab.checksums import DamagedError, add_facts, check_archive
from curvlab.cli.verbs import deliver
from curvlab.cli.wandb_files import read_offline
from curvlab.cli.wandb_sync import offline_runs
from curvlab.data.files.cache import get_or_compute
from curvlab.data.files.disk_graph import ArrayFolder, DiskGraph
from curvlab.errors import UsageError, system_remedy
from curvlab.files import atomic_path, atomic_write, find_below
from curvlab.results.folder import folders_by_hash
from curvlab.results.result import result_files
from curvlab.results.run_tables import runs_in_tables
from curvlab.run.load import load
from curvlab.study.grid import answers

KILLED = """
import os, pathlib, signal, sys
from curvlab.files import atomic_path
with atomic_path(pathlib.Path(sys.argv[1])) as partial:
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
    with atomic_path(target) as first:
        first.write_text("first")
        atomic_write(target, "second")
        assert first.read_text() == "first"
        assert target.read_text() == "second"
    assert target.read_text() == "first"


NAMES = ["a", "b[1]", ".c", "d.part", "result.json", "previous"]
PATTERNS = ["result.json", "*.part", ".*", "previous/*/result.json", "*/d.part", "b[[]1]/*", "*"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_search_finds_what_pathlib_finds(tmp_path, pattern):
    chance = random.Random(pattern)
    top = tmp_path / "previous" / "top"  # what is above the folder does not count
    top.mkdir(parents=True)
    for _ in range(60):
        path = top.joinpath(*chance.choices(NAMES, k=chance.randint(1, 4)))
        if not path.exists() and not any(above.is_file() for above in path.parents):
            path.parent.mkdir(parents=True, exist_ok=True)
            if chance.random() < 0.5:
                path.mkdir()
            else:
                path.touch()
    (top / "link").symlink_to(top)
    found = sorted(path for path in top.rglob(pattern) if path.parent.name != "link")
    assert find_below(top, pattern) == found
    assert found


READERS = {
    "results": result_files,
    "hashes": folders_by_hash,
    "tables": runs_in_tables,
    "curves": lambda folder: run_curves([folder], "val/score"),
    "offline runs": offline_runs,
    "curves of offline runs": read_offline,
    "checkpoints": load,
    "studies": answers,
}


@pytest.mark.parametrize("reader", READERS)
def test_a_folder_that_another_process_deletes_meanwhile_is_passed_over(
    tmp_path, monkeypatch, reader
):
    (tmp_path / "runs" / "seed0" / "checkpoints").mkdir(parents=True)
    (tmp_path / "runs" / "seed1").mkdir()
    list_folder = os.scandir
    gone = []

    def delete_and_list(path):
        if Path(path).name in ("checkpoints", "seed1"):
            Path(path).rmdir()
            gone.append(path)
        return list_folder(path)

    monkeypatch.setattr(os, "scandir", delete_and_list)
    with suppress(UsageError):  # there are no runs
        READERS[reader](tmp_path)
    assert len(gone) == 2


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


def _write_array(folder):
    with ArrayFolder(folder).writing("x", np.float32) as append:
        append(np.zeros(9))


def _write_edges(folder):
    DiskGraph(folder).write_edges([np.array([[0], [1]])], 2)


def _append_row(folder):
    (folder / "curves.csv").unlink()
    table = GrowingTable(folder / "curves.csv")
    table.append({"loss": 1.0})
    (folder / "curves.csv").unlink()
    (folder / "curves.csv").symlink_to("/dev/full")
    table.append({"loss": 0.5})


WRITERS = {
    "x.bin": _write_array,
    "edges.0": _write_edges,
    "curves.csv": _append_row,
    "table.md": lambda folder: deliver("a table", folder / "table.md"),
}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_is_reported_with_the_file(name, tmp_path):
    (tmp_path / name).symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as refused:
        WRITERS[name](tmp_path)
    assert str(refused.value.filename).startswith(str(tmp_path))
    assert refused.value.errno == errno.ENOSPC


def test_a_cache_that_cannot_be_written_is_not_needed(tmp_path, monkeypatch, caplog):
    def refuse(*_args, **_kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(torch, "save", refuse)
    entry = get_or_compute(tmp_path, "key", lambda: {"x": torch.ones(2)})
    assert entry["x"].tolist() == [1, 1]
    assert "No space left on device" in caplog.text
    assert not [*tmp_path.iterdir()]


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
