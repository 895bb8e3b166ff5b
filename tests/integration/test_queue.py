"""Any number of workers fill one table: each cell once, none waits while work is left."""

import os
import random
import re
import signal
import time

import pytest
from forked import Process
from hydra.types import RunMode
from tiny_runs import FAST, TINY, Command

from abandoned import abandon
from curvlab.cli.workers import split
from curvlab.errors import UsageError
from curvlab.results.leases import look, take
from curvlab.results.result import read_result
from curvlab.run import sweep

CELL = (
    "-m",
    "table=fpst/fig3",
    "dataset=synthetic_web",
    *TINY,
    "trainer.plots=false",
    "trainer.progress=false",
)
QUEUE = """
import sys, time
from pathlib import Path
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf
from curvlab.results.folder import RunDirectory
from curvlab.results.files import atomic_write
from curvlab.run import sweep

def cell(config):
    folder = RunDirectory(place / str(config.number))
    with folder.claimed(None):
        if (folder.path / "done").exists():
            return
        time.sleep(0.02 + 0.1 * (config.number % 3))
        with (place / "log").open("a") as file:
            file.write(f"{config.number}\\n")
        atomic_write(folder.path / "done", str(config.number**2))

place, cells = Path(sys.argv[1]), int(sys.argv[2])
for number in range(cells):
    sweep.attempt(cell, OmegaConf.create({"number": number}))
began = time.monotonic()
held = len(list(place.glob("*/.lease")))  # before those that are done: a cell may be both
open_cells = cells - held - len(list(place.glob("*/done")))
sweep.finish_held()
print(open_cells, time.monotonic() - began)
"""
"""A worker of a sweep whose cells are no training, so that many of them take little."""


def ended(process):
    output, errors = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), errors
    return output


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


def test_eight_workers_of_whom_three_are_killed_do_every_cell(tmp_path):
    """The queue alone, with processes whose cells are no training."""
    (tmp_path / "queue.py").write_text(QUEUE)
    place, cells = tmp_path / "place", 40
    place.mkdir()
    words = [str(tmp_path / "queue.py"), str(place), str(cells)]
    workers = [Process(words, tmp_path, dict(os.environ)) for _ in range(8)]
    kill_some(workers, 3, lambda: len(list(place.glob("*/done"))), cells, seed=0)
    said = [ended(worker) for worker in workers]
    assert {int(p.parent.name): int(p.read_text()) for p in place.glob("*/done")} == {
        number: number**2 for number in range(cells)
    }
    times = (place / "log").read_text().split()
    assert len(times) - cells <= 3  # what a killed worker had nearly done is done again
    assert not list(place.glob("*/.lease*"))
    waits = [line.split() for line in said[3:]]
    assert all(int(open_cells) <= 0 for open_cells, _ in waits)  # waited for others' cells alone


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
    said = "\n".join(ended(process) for process in started)
    found = scores(many.outputs)
    assert len(found) == cells
    assert len(re.findall(r"^  result   ", said, re.MULTILINE)) <= cells, "none was run twice"
    assert "already" not in said
    assert not list(many.outputs.rglob("*.lease*"))

    one = Command(tmp_path / "one")
    one.folder.mkdir()
    assert one(*words).returncode == 0
    assert found == scores(one.outputs)


def test_what_living_workers_hold_is_theirs_and_failures_are_not_tried_by_each(command):
    words = ("-m", "seed=0,1", "model=gat", "model.heads=3,2", *TINY, "trainer.plots=false")
    first = command(*words)
    assert first.returncode == 1
    results = {path: path.stat().st_mtime for path in command.outputs.rglob("result.json")}
    assert len(results) == 4
    (held, *_) = (p.parent for p in results if read_result(p.parent).status == "finished")
    (held / "result.json").unlink()
    with take(held / ".lease"):
        started = time.monotonic()
        done = command(*words)
        assert time.monotonic() - started < 100
    assert f"held by process {os.getpid()} on " in done.stdout
    assert "1 at work elsewhere" in done.stdout
    assert not (held / "result.json").exists()
    assert look(held / ".lease") is None
    again = [p for p, at in results.items() if p.exists() and p.stat().st_mtime > at]
    assert [read_result(p.parent).status for p in again] == ["failed", "failed"]


def test_a_failed_cell_is_done_for_the_workers_that_were_there(run_here, monkeypatch, tmp_path):
    words = (*FAST, "model=gat", "model.heads=3")
    first = run_here(*words, mode=RunMode.MULTIRUN)
    assert first.status == "failed"
    at = (tmp_path / "run" / "result.json").stat().st_mtime
    monkeypatch.setattr(sweep, "_sweep", sweep._Sweep(began=at - 1))
    assert run_here(*words, mode=RunMode.MULTIRUN).error == first.error
    assert (tmp_path / "run" / "result.json").stat().st_mtime == at
    monkeypatch.setattr(sweep, "_sweep", sweep._Sweep(began=at + 1))  # of one that starts later
    run_here(*words, mode=RunMode.MULTIRUN)
    assert (tmp_path / "run" / "result.json").stat().st_mtime > at


@pytest.mark.nightly
def test_cells_are_tasks_of_ray_and_the_summary_names_what_failed(command):
    pytest.importorskip("hydra_plugins.hydra_ray_launcher")
    options = ("hydra/launcher=ray", "+hydra.launcher.ray.init.num_cpus=2")
    done = command("-m", "model=gat", "model.heads=3,2", *TINY, "trainer.plots=false", *options)
    assert done.returncode == 1
    assert "sweep of 2 cells: 1 failed, 1 finished" in done.stdout


@pytest.mark.nightly
def test_an_array_of_jobs_fills_a_table_though_one_is_interrupted(command):
    """By submitit's own executor for this machine, in place of SLURM's."""
    pytest.importorskip("submitit")
    options = (
        "hydra/launcher=slurm",
        "hydra.launcher.cluster=local",
        "hydra.launcher.n_jobs=2",
    )
    options += ("hydra.launcher.gpus_per_node=0", "hydra.launcher.mem_gb=1")
    words = (*CELL, "model=mlp", "seed=0,1,2", "trainer.max_steps=200", "trainer.steps_per_epoch=5")
    process = command.start(*words, *options)
    deadline = time.monotonic() + 200
    while not (there := list(command.outputs.rglob("seed*/checkpoints/earlier.ckpt"))):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    holder = look(there[0].parents[1] / ".lease")
    os.kill(holder.pid, signal.SIGUSR2)  # as SLURM warns of the end of its time
    output, errors = process.communicate()
    assert process.returncode == 0, output + errors
    assert "sweep of 3 cells: 3 finished" in output
    logs = [path.read_text() for path in command.outputs.rglob("*_log.*")]
    assert any(text.count("Starting with JobEnvironment") == 2 for text in logs), "queued again"
    assert any("going on from the last checkpoint" in text for text in logs)


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("parallel hydra.launcher.jobs=3", "there is no hydra.launcher.jobs; there is n_jobs"),
        ("parallel hydra.launcher.n_jobs=0", "hydra.launcher.n_jobs=0 must be a number of workers"),
        ("parallel hydra.launcher.n_jobs=a", "hydra.launcher.n_jobs=a must be a number of workers"),
        ("slurm hydra.launcher.partion=x", "there is no hydra.launcher.partion; there is n_jobs"),
    ],
)
def test_wrong_options_of_workers_are_refused(words, answer):
    launcher, *options = words.split()
    with pytest.raises(UsageError, match=re.escape(answer)):
        split(["-m", f"hydra/launcher={launcher}", *options, "seed=0,1"])


def test_workers_get_the_words_without_their_launcher():
    words = [
        "-m",
        "seed=0,1",
        "hydra/launcher=parallel",
        "hydra.launcher.n_jobs=3",
        "++model.dim=8",
    ]
    assert split(words) == ("parallel", {"n_jobs": 3}, ["-m", "seed=0,1", "++model.dim=8"])
    assert split(["-m", "seed=0,1"]) == (None, {}, ["-m", "seed=0,1"])
    _, options, _ = split(["hydra/launcher=slurm", "+hydra.launcher.constraint=a100"])
    assert (options["constraint"], options["n_jobs"]) == ("a100", 8)


def test_progress_says_who_is_at_work_what_failed_and_what_is_left(command):
    cells = ("model=gcn,mlp", "seed=0,1", "dataset=synthetic_web", *TINY, "trainer.plots=false")
    assert command("-m", "table=fpst/fig3", *cells).returncode == 0
    results = ("--results", str(command.outputs / "tables"))
    done = command.verb("tables", "status", "fpst/fig3", *cells, *results, "--watch")
    assert "4 of 4 runs done, 0 at work, 0 failed, 0 to do" in done.stdout + done.stderr
    first, second, third = sorted(p.parent for p in command.outputs.rglob("result.json"))[:3]
    (first / "result.json").unlink()
    (second / "result.json").unlink()
    abandon(second / ".lease")
    failed = read_result(third)
    failed.status, failed.error = "failed", "it was too warm"
    failed.save(third)
    with take(first / ".lease"):
        done = command.verb("tables", "status", "fpst/fig3", *cells, *results)
    head, *lines = done.stdout.splitlines()
    assert head == "fpst/fig3: 1 of 4 runs done, 1 at work, 1 failed, 1 to do"
    assert re.match(rf"  at work    gcn, .*seed 0: process {os.getpid()} on \S+$", lines[0])
    assert lines[1] == "  abandoned  gcn, synthetic_web, seed 1: the next worker takes it"
    assert lines[2] == "  failed     mlp, synthetic_web, seed 0: failed: it was too warm"
    assert re.fullmatch(
        r"  about \d\.\d h left with 1 worker, at .* minutes a run \(the median\)", lines[3]
    )
