"""A failure never takes the place of a finished result, whatever fails and whenever."""

from dataclasses import replace

import pytest
from hydra.types import RunMode
from tiny_runs import FAST, composed

import curvlab.study.run as study_run
from curvlab.errors import DivergedError, UsageError
from curvlab.results.folder import RunDirectory
from curvlab.results.result import read_result
from curvlab.run import command, reporting
from curvlab.run import train as training

AFTER = [(reporting, "draw"), (RunDirectory, "drop_last"), (reporting, "report_run")]
BEFORE = [(training, name) for name in ("build_data", "evaluate_parts", "save_best")]
BEFORE.append((command, "validate"))
ERRORS = (RuntimeError("it broke"), OSError(28, "No space left"), DivergedError("NaN"))


def breaks(monkeypatch, owner, name, error):
    def broken(*_, **__):
        raise error

    monkeypatch.setattr(owner, name, broken)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(("owner", "name"), AFTER + BEFORE, ids=str)
def test_a_run_that_fails_leaves_the_finished_result(
    run_here, folder, monkeypatch, owner, name, error
):
    """Of the same run after it was written, of an earlier one when it is repeated."""
    words = (*FAST, "trainer.max_steps=5", "trainer.plots=true")
    finished = run_here(*words) if (owner, name) in BEFORE else None
    with monkeypatch.context() as patched:
        breaks(patched, owner, name, error)
        again = ("rerun=true",) if finished else ()
        if name == "report_run":
            with pytest.raises(type(error)):
                run_here(*words, *again, mode=RunMode.MULTIRUN)
        else:
            run_here(*words, *again, mode=RunMode.MULTIRUN)
    kept = read_result(folder)
    assert kept.status == "finished"
    assert finished is None or kept == finished
    assert run_here(*words) == kept
    assert (folder / "checkpoints" / "best.ckpt").is_file()


@pytest.mark.parametrize("status", ["failed", "out_of_memory", "interrupted", "diverged"])
def test_no_other_end_is_written_over_a_finished_result(run_here, folder, status):
    finished = run_here(*FAST, "trainer.max_steps=5")
    replace(finished, status=status, error="it broke").save(folder)
    assert read_result(folder) == finished
    other = replace(finished, status=status, config_hash="of another run")
    other.save(folder)
    assert read_result(folder) == other


def test_a_study_that_fails_leaves_the_finished_one(tmp_path, monkeypatch):
    words = ("study=spaces", "study.models=[kappa_gcn]", "dataset=balanced_tree")
    for run in (lambda *_: 80.0, lambda *_: 1 / 0):
        monkeypatch.setattr(study_run, "_study", run)
        config = composed(tmp_path, words, RunMode.MULTIRUN, "study")
        study_run.study(command.Command.from_hydra(config))
        assert read_result(tmp_path / "study").score == 80


def test_a_refused_rerun_moves_nothing(run_here, folder, monkeypatch):
    finished = run_here(*FAST, "trainer.max_steps=5")
    breaks(monkeypatch, training, "build_data", UsageError("no such file"))
    with pytest.raises(UsageError):
        run_here(*FAST, "trainer.max_steps=5", "rerun=true")
    assert read_result(folder) == finished
