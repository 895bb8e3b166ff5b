"""How runs end that are sent a signal: with a checkpoint, a sentence and a code that says so."""

import re
import signal
from signal import SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1

import pytest
from fault_trials import RUNS
from tiny_runs import FAST

LONG = ("trainer.max_steps=100000", "trainer.steps_per_epoch=5")
KINDS = {
    "one": (*FAST, *LONG),
    "seeds": ("-m", "seed=0,1", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2", *FAST, *LONG),
    "group": (*RUNS["group"], *LONG),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [SIGTERM, SIGINT])
def test_a_signal_ends_every_kind_of_run_with_one_sentence_and_its_code(command, kind, number):
    runs = 2 if kind == "seeds" else 1  # a worker that still starts has no handlers yet
    code, _, errors = command.ended_by(number, *KINDS[kind], runs=runs)
    assert code == {SIGTERM: 143, SIGINT: 130}[number]
    assert re.fullmatch(rf"curvlab train: ended by {signal.Signals(number).name}; .*\.\n", errors)
    results = list(command.results().values())
    if number == SIGTERM or kind != "seeds":
        assert {result["status"] for result in results} == {"interrupted"}
        assert all(result["steps"] % 5 == 0 for result in results)
        assert any(result["steps"] for result in results)
        assert not list(command.outputs.rglob(".last.ckpt*"))


@pytest.mark.parametrize(("number", "expected"), [(SIGHUP, 129), (SIGQUIT, 131)])
def test_a_closed_terminal_and_a_request_to_quit_end_a_run_as_sigterm_does(
    command, number, expected
):
    code, _, errors = command.ended_by(number, *KINDS["one"])
    assert code == expected
    assert re.fullmatch(rf"curvlab train: ended by {signal.Signals(number).name}; .*\.\n", errors)
    (result,) = command.results().values()
    assert result["status"] == "interrupted"
    assert result["steps"]


def test_a_run_that_a_signal_ended_goes_on_and_ends_as_if_none_had(command):
    words = (*FAST, "trainer.steps_per_epoch=5")
    command(*words, "trainer.max_steps=400")
    (first,) = command.results().values()
    code, _, _ = command.ended_by(SIGUSR1, *words, "trainer.max_steps=400", "rerun=true")
    assert code == 143
    (between,) = (r for r in command.results().values() if r["status"] == "interrupted")
    assert 0 < between["steps"] < 400
    assert between["error"].endswith(f"resumes from step {between['steps']}")
    done = command(*words, "trainer.max_steps=400")
    assert "resuming from the last checkpoint" in done.stdout
    last = [r for name, r in command.results().items() if "previous" not in name]
    assert [r["metrics"] for r in last] == [first["metrics"]]


@pytest.mark.nightly
def test_after_the_warning_of_slurm_the_code_asks_for_another_try(command):
    job = {"JOB_ID": "1", "NTASKS": "2", "JOB_NAME": "a", "PROCID": "0", "LOCALID": "0"}
    command.environment |= {f"SLURM_{name}": value for name, value in job.items()}
    assert command.ended_by(SIGUSR1, *FAST, *LONG)[0] == 75
    assert not list(command.folder.rglob("hpc_ckpt*")), "Lightning's own answer"
    (ended,) = command.results().values()
    assert ended["status"] == "interrupted"


def test_a_sweep_stops_after_its_cell_and_sums_up(command):
    code, said, errors = command.ended_by(SIGTERM, "-m", "seed=0,1,2", *FAST, *LONG)
    assert code == 143
    assert "sweep of 3 cells: 1 interrupted, 2 not started" in said
    assert re.fullmatch(r"curvlab train: ended by SIGTERM; .*\.\n", errors)
    assert [result["seed"] for result in command.results().values()] == [0]
    assert not list(command.outputs.rglob("*.lease*"))
