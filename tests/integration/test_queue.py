"""Any number of workers fill one table: each cell once, none waits while work is left."""

import os
import random
import re
import signal
import time

import pytest
from forked import Process
from tiny_runs import FAST, ROOT, TINY, Command

from curvlab.leases import acquire, find_holder
from curvlab.results.result import read_result

CELL = (
    "-m",
    "table=fpst/fig3",
    "dataset=synthetic_web",
    *TINY,
    "trainer.plots=false",
    "trainer.progress=false",
)


CELLS = [
    f"tables/fpst/fig3/synthetic_web/{model}/seed{s}" for model in ("gcn", "mlp") for s in (0, 1)
]


def scores(outputs):
    found = {p.parent: read_result(p.parent) for p in sorted(outputs.rglob("result.json"))}
    assert {result.status for result in found.values()} == {"finished"}
    return {str(f.relative_to(outputs)): (r.score, r.metrics) for f, r in found.items()}


def kill_some(processes, victims, done, cells, seed):
    """Kill processes at random moments of the first two thirds of the work."""
    chance = random.Random(seed)
    moments = sorted(chance.randrange(0, 2 * cells // 3) for _ in range(victims))
    deadline = time.monotonic() + 500
    for process, moment in zip(processes, moments, strict=False):
        while done() < moment:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        time.sleep(chance.random() / 20)
        process.send_signal(signal.SIGKILL)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("workers", "victims", "seeds"),
    [(3, 1, 3), pytest.param(8, 3, 20, marks=pytest.mark.nightly, id="whole")],
)
def test_a_table_that_many_workers_fill_has_the_scores_of_one(tmp_path, workers, victims, seeds):
    words = (*CELL, "model=mlp,gcn", f"seed={','.join(map(str, range(seeds)))}")
    many, cells = Command(tmp_path / "many"), 2 * seeds
    many.folder.mkdir()
    started = [many.start(*words) for _ in range(workers)]
    done = lambda: len(list(many.outputs.rglob("result.json")))  # noqa: E731
    kill_some(started, victims, done, cells, seed=workers)
    ended = [process.done() for process in started]
    assert {done.returncode for done in ended} <= {0, -signal.SIGKILL}
    said = "\n".join(done.stdout for done in ended)
    found = scores(many.outputs)
    assert len(found) == cells
    assert len(re.findall(r"^  result   ", said, re.MULTILINE)) <= cells, "none was run twice"
    assert not list(many.outputs.rglob("*.lease*"))

    one = Command(tmp_path / "one")
    one.folder.mkdir()
    one(*words)
    assert found == scores(one.outputs)


def test_what_living_workers_hold_is_theirs(command):
    words = ("-m", "seed=0,1", "model=gat", "model.heads=3,2", *TINY, "trainer.plots=false")
    command(*words, code=1)
    results = list(command.outputs.rglob("result.json"))
    assert len(results) == 4
    (held, *_) = (p.parent for p in results if read_result(p.parent).status == "finished")
    (held / "result.json").unlink()
    with acquire(held / ".lease"):
        started = time.monotonic()
        done = command(*words, code=1)
        assert time.monotonic() - started < 100
    assert f"held by process {os.getpid()} on " in done.stdout
    assert "1 at work elsewhere" in done.stdout
    assert not (held / "result.json").exists()
    assert find_holder(held / ".lease") is None


@pytest.mark.parametrize(
    "launcher", ["joblib", pytest.param("submitit_local", marks=pytest.mark.nightly)]
)
def test_launchers_of_hydra_run_the_cells_and_the_summary_counts_files(command, launcher):
    """The wrong cell comes first; cells that are finished are left out."""
    words = ("-m", "model=gat", "model.heads=3,2,4", *TINY, "trainer.plots=false")
    command(*words[:2], "model.heads=4", *words[3:])
    done = command(*words, f"hydra/launcher={launcher}", "hydra.sweeper.minutes=5", code=1)
    assert "sweep of 3 cells: 1 failed, 2 finished" in done.stdout
    (reason,) = (line for line in done.stdout.splitlines() if line.startswith("  outputs"))
    assert "heads=3" in reason
    assert "model.heads=3 does not divide model.dim=16" in reason
    assert "heads=4" not in done.stdout
    statuses = {r["config"]["model"]["heads"]: r["status"] for r in command.results().values()}
    assert statuses == {3: "failed", 2: "finished", 4: "finished"}


def test_after_the_time_of_a_sweep_no_cell_starts(command):
    done = command("-m", "seed=0,1", *FAST, "hydra.sweeper.minutes=0")
    assert command.results() == {}
    assert "sweep of 2 cells: 2 not started" in done.stdout


def test_progress_says_who_is_at_work_what_failed_and_what_is_left(command):
    cells = ("model=gcn,mlp", "seed=0,1", "dataset=synthetic_web", *TINY, "trainer.plots=false")
    command("-m", "table=fpst/fig3", *cells)
    results = ("--results", str(command.outputs / "tables"))
    first, second, third = sorted(p.parent for p in command.outputs.rglob("result.json"))[:3]
    (first / "result.json").unlink()
    (second / "result.json").unlink()
    child = os.fork()
    if child == 0:  # which takes a lease and gives nothing back, as if it were killed
        lease = acquire(second / ".lease")
        os._exit(0 if lease.lock.is_locked else 1)
    assert os.waitpid(child, 0)[1] == 0
    failed = read_result(third)
    failed.status, failed.error = "failed", "it was too warm"
    (third / "result.json").unlink()  # a failure replaces no finished result
    failed.save(third)
    with acquire(first / ".lease"):
        done = command.verb("tables", "status", "fpst/fig3", *cells, *results)
    at_work, abandoned, last, left = done.stdout.splitlines()
    assert re.match(rf"  at work    \S*gcn\S*/seed0: process {os.getpid()} on \S+$", at_work)
    assert re.match(r"  abandoned  \S*gcn\S*/seed1: the next worker takes it$", abandoned)
    assert re.match(r"  failed     \S*mlp\S*/seed0: it was too warm$", last)
    assert left.startswith("4 runs, 1 finished, about ")


def test_a_table_is_filled_once_and_rendered(command):
    words = (*CELL, "model=mlp,gcn", "seed=0,1")
    done = command(*words)
    results = command.results()
    assert list(results) == CELLS
    assert {result["experiment"] for result in results.values()} == {"fpst/fig3"}
    assert "sweep of 4 cells: 4 finished" in done.stdout
    changed = {word.partition("=")[0] for result in results.values() for word in result["changed"]}
    assert "trainer.max_steps" in changed
    assert not changed & {"table", "model", "dataset", "seed", "trainer.plots", "paths.output_dir"}
    hint = re.search(r"its table: curvlab (.*)", done.stdout)

    again = command(*words)
    assert again.stdout.count("already") == 4
    assert command.results() == results

    line = ["-m", "curvlab", *hint[1].split(), "--format", "csv"]
    table, _ = Process(line, ROOT, os.environ).communicate()
    for model in ("mlp", "gcn"):
        scores = [results[cell]["score"] for cell in CELLS if f"/{model}/" in cell]
        assert f"{sum(scores) / 2:.2f}"[:4] in table
    assert not list(command.outputs.rglob("*.lease*"))


SEEDED = (*TINY, "trainer.plots=false", "model=fpst", "model.dropout=0.3", "trainer.threads=1")
JOBLIB = ("-m", "hydra/launcher=joblib", "hydra.launcher.n_jobs=3")


@pytest.mark.nightly
def test_every_seed_is_the_run_that_it_is_alone(command):
    """To the last bit: the same random numbers, in the same folder, under the same hash."""
    done = command(*SEEDED, *JOBLIB, "seed=1,2,3", "trainer.max_steps=15")
    together = command.results()
    scores = [result["score"] for result in together.values()]
    assert [result["seed"] for result in together.values()] == [1, 2, 3]
    assert len(set(scores)) == 3
    assert f"3 seeds: {sum(scores) / 3:.2f} ±" in done.stdout

    again = command(*SEEDED, "-m", "seed=1,2", "trainer.max_steps=15")
    assert again.stdout.count("already") == 2
    low, high = scores[:2]
    assert f"2 seeds: {(low + high) / 2:.2f} ({low:.2f}, {high:.2f})" in again.stdout
    command(*SEEDED, "seed=2", "trainer.max_steps=15", "rerun=true")
    (folder,) = [name for name in together if name.endswith("seed2")]
    alone, beside = command.results()[folder], together[folder]
    for key in ("config_hash", "metrics", "score", "best_step", "curvatures", "steps"):
        assert alone[key] == beside[key], key
