"""A table that grows by a row at a time: its bytes, its resumption, and what a row costs."""

import pickle
import random

import pandas as pd
import pytest

from curvlab.callbacks.growing_table import GrowingTable
from curvlab.checksums import DamagedError


def rows_of(number, seed):
    """Rows whose columns come and go, and join late."""
    chance = random.Random(seed)
    late = [("map", 0), ("val/mrr", number // 3), ('odd, "name"', number // 2)]
    return [
        {"step": 5 * i, "loss": chance.gauss(0, 1e3)}
        | {name: chance.random() for name, first in late if i >= first and chance.random() < 0.8}
        for i in range(number)
    ]


def written(path, rows):
    table = GrowingTable(path)
    for row in rows:
        table.append(row)
    return table


@pytest.mark.parametrize("seed", range(4))
def test_the_file_is_what_pandas_writes_of_all_rows(tmp_path, seed):
    rows = rows_of(40, seed)
    written(tmp_path / "metrics.csv", rows)
    assert (tmp_path / "metrics.csv").read_text() == pd.DataFrame(rows).to_csv(index=False)


@pytest.mark.parametrize("at", [0, 1, 9, 10, 25])
@pytest.mark.parametrize("after", [0, 1, 8])
@pytest.mark.parametrize("cut", [0, 7])
def test_a_run_that_resumes_at_any_row_writes_the_file_of_one_that_was_not_killed(
    tmp_path, at, after, cut
):
    """Killed some rows after the checkpoint, in the middle of the last one or not."""
    rows = rows_of(33, seed=at)
    path = tmp_path / "metrics.csv"
    state = written(path, rows[:at]).state_dict()
    written(path.with_name("killed.csv"), rows[: at + after])
    killed = path.with_name("killed.csv")
    if killed.exists():
        content = killed.read_bytes()
        killed.write_bytes(content[: len(content) - cut] if after else content)
        killed.replace(path)
    resumed = GrowingTable(path)
    assert resumed.load_state_dict(state) == rows[:at]
    for row in rows[at:]:
        resumed.append(row)
    whole = written(tmp_path / "whole.csv", rows)
    assert path.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert resumed.state_dict() == whole.state_dict()


@pytest.mark.parametrize("damage", ["flipped", "short", "missing", "binary"])
def test_a_file_that_is_not_that_of_the_checkpoint_is_damaged(tmp_path, damage):
    path = tmp_path / "metrics.csv"
    state = written(path, rows_of(10, 0)).state_dict()
    content = path.read_bytes()
    changes = {
        "flipped": content.replace(b"5,", b"6,", 1),
        "short": content[: len(content) // 2],
        "binary": b"\xff" * 100,
    }
    path.unlink() if damage == "missing" else path.write_bytes(changes[damage])
    with pytest.raises(DamagedError, match=r"metrics\.csv"):
        GrowingTable(path).load_state_dict(state)


def test_a_row_costs_at_the_end_what_it_costs_at_the_start(tmp_path, monkeypatch):
    """No byte is written twice or read, and a checkpoint does not grow."""
    path, row = tmp_path / "metrics.csv", {"step": 1_000_000, "loss": 0.5}
    table = written(path, [row] * 10)
    opened, sizes = path.stat().st_ino, []
    monkeypatch.setattr(table, "_read", None)
    for _ in range(3000):
        before = path.stat().st_size
        table.append(row)
        sizes.append(path.stat().st_size - before)
    assert set(sizes) == {len("1000000,0.5\n")}
    assert path.stat().st_ino == opened
    assert len(pickle.dumps(table.state_dict())) < 100
