"""Several seeds at once: each is the run that it is alone, and no other's misfortune ends it."""

import json
import signal
import time

import pytest
from hydra.types import RunMode
from tiny_runs import FAST, TINY, Command, composed

from curvlab.errors import UsageError
from curvlab.run.seeds import train_seeds

WORDS = (*TINY, "trainer.plots=false", "model=fpst", "model.dropout=0.3", "trainer.threads=1")
FOLDER = "runs/reconstruction/synthetic_web"


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    return Command(tmp_path_factory.mktemp("seeds"))


def test_every_seed_is_the_run_that_it_is_alone(command):
    """To the last bit: the same random numbers, in the same folder, under the same hash."""
    done = command(*WORDS, "seed=1", "trainer.parallel_seeds=3", "trainer.max_steps=15")
    assert done.returncode == 0, done.stderr
    together = command.results()
    assert [result["seed"] for result in together.values()] == [1, 2, 3]
    assert len({result["score"] for result in together.values()}) == 3
    scores = [result["score"] for result in together.values()]
    assert f"3 seeds: {sum(scores) / 3:.2f} ±" in done.stdout

    repeated = command(*WORDS, "seed=2", "trainer.max_steps=15", "rerun=true")
    assert repeated.returncode == 0, repeated.stderr
    (folder,) = [name for name in together if name.endswith("seed2")]
    alone, beside = command.results()[folder], together[folder]
    for key in ("config_hash", "metrics", "score", "best_step", "curvatures", "steps"):
        assert alone[key] == beside[key], key


def test_two_seeds_show_both_scores_and_no_interval(command):
    done = command(*FAST, "trainer.parallel_seeds=2", "seed=5")
    assert done.returncode == 0, done.stderr
    low, high = sorted(r["score"] for r in command.results().values() if r["seed"] in (5, 6))
    (line,) = (line for line in done.stdout.splitlines() if " 2 seeds: " in line)
    mean = f"2 seeds: {(low + high) / 2:.2f} ("
    assert mean in line
    assert {f"{low:.2f}", f"{high:.2f}"} == set(line.partition(mean)[2].rstrip(")").split(", "))


def test_seeds_that_have_a_result_are_not_repeated_and_a_sweep_counts_all(command):
    words = (*FAST, "trainer.parallel_seeds=2", "trainer.threads=1")
    first = command("-m", *words, "seed=0")
    assert first.returncode == 0, first.stderr
    assert "sweep of 2 cells: 2 finished" in first.stdout
    before = {name: json.dumps(result) for name, result in command.results().items()}
    second = command(*words, "seed=1")
    assert second.returncode == 0, second.stderr
    after = {name: json.dumps(result) for name, result in command.results().items()}
    assert before.items() <= after.items()
    assert len(after) == len(before) + 1


def test_a_seed_without_a_score_is_named_and_the_others_finish(command):
    """A learning rate of 1e30 diverges for every seed: each says so in its own result."""
    done = command(
        *FAST, "trainer.parallel_seeds=2", "optimizer.lr=1e20", "model.layers=2", "model.dim=4"
    )
    assert done.returncode == 1
    assert "no score of seed 0, 1" in done.stderr
    ended = [r["status"] for r in command.results().values() if r["config"]["model"]["dim"] == 4]
    assert ended == ["diverged", "diverged"]


def test_seeds_end_with_the_command_that_is_killed(tmp_path):
    command = Command(tmp_path)
    words = ("trainer.parallel_seeds=2", "trainer.threads=2", "trainer.max_steps=20000")
    process = command.start(*FAST, *words, "trainer.steps_per_epoch=1")
    deadline = time.monotonic() + 60
    while not (rows := rows_of_curves(command)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert rows
    process.send_signal(signal.SIGTERM)
    process.communicate()
    before, rows = rows, rows_of_curves(command)
    while rows > before and time.monotonic() < deadline:
        time.sleep(1)
        before, rows = rows, rows_of_curves(command)
    assert rows == before
    assert {result["status"] for result in command.results().values()} == {"interrupted"}


def rows_of_curves(command):
    return sum(
        len(path.read_text().splitlines()) - 1 for path in command.outputs.rglob("metrics.csv")
    )


def test_a_folder_that_is_not_named_after_the_seed_is_refused(tmp_path):
    config = composed(tmp_path / "here", (*FAST, "trainer.parallel_seeds=2"), RunMode.RUN)
    with pytest.raises(UsageError, match=r"hydra\.run\.dir"):
        train_seeds(config)
