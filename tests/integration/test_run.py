"""One run: what it leaves, when it is repeated, how it ends when it does not finish."""

from functools import partialmethod

import numpy as np
import pandas as pd
import pytest
import torch
from hydra.types import RunMode
from tiny_runs import FAST, TINY, TREE, TRIPLES

from curvlab import compilation
from curvlab.analysis import plots
from curvlab.callbacks import curves as training_curves
from curvlab.checksums import add_facts, check_archive
from curvlab.compilation import Compilable
from curvlab.errors import UsageError
from curvlab.results.result import read_result
from curvlab.run import train
from curvlab.tasks import reconstruction

FPST = (*TINY, "model=fpst", "model.eigenvectors=4")


@pytest.mark.smoke
def test_a_run_leaves_result_curves_checkpoint_embedding_and_pictures(run_here, folder):
    result = run_here(*FPST)
    assert result == read_result(folder)
    assert result.status == "finished"
    assert result.error is None
    assert result.score == result.objective == result.metrics["test"]["map"]
    assert 50 < result.score <= 100
    assert result.steps == result.best_step == 20
    assert result.config["model"]["eigenvectors"] == 4
    assert (result.model, result.dataset, result.task) == (
        "fpst",
        "synthetic_web",
        "reconstruction",
    )
    assert min(result.ms_per_step, result.wall_seconds, result.peak_memory_mb) > 0

    curves = pd.read_csv(folder / "metrics.csv")
    shares = ["points/beyond_equator", "points/at_rim"]
    assert curves.columns.tolist() == ["step", "loss", "map", *shares, "kappa/0/0", "kappa/0/1"]
    assert curves["step"].tolist() == [5, 10, 15, 20]
    assert curves["loss"].is_monotonic_decreasing
    assert curves["map"].iloc[-1] == pytest.approx(result.score, abs=1e-4)
    assert result.metrics["points"] == {
        name.partition("/")[2]: pytest.approx(curves[name].iloc[-1]) for name in shares
    }
    last = curves[["kappa/0/0", "kappa/0/1"]].iloc[-1].tolist()
    assert result.curvatures == {"kappa/0": pytest.approx(last)}

    with np.load(folder / "embeddings.npz") as file:
        embedding = dict(file)
    assert embedding["embeddings"].shape == (60, 16)
    assert embedding["kappa"].tolist() == pytest.approx(last)

    weights = torch.load(folder / "checkpoints" / "best.ckpt", weights_only=True)["state_dict"]
    assert sum(tensor.numel() for tensor in weights.values()) >= result.parameters > 60 * 16
    pictures = sorted(path.name for path in (folder / "plots").iterdir())
    assert pictures == ["curves.png", "embedding.png"]
    assert not [path for path in folder.rglob(".*") if path.is_file()]


def test_the_mean_of_the_last_steps_is_part_of_the_result(run_here, folder, monkeypatch, capfd):
    """Here of the last 10 of 30 steps, two points of the curve, which has one in 10 before."""
    assert "map_tail" not in run_here(*FAST).metrics["test"]
    for module in (training_curves, reconstruction):
        monkeypatch.setattr(module, "TAIL_STEPS", 10)
    monkeypatch.setattr(training_curves, "TAIL_POINTS", 2)
    monkeypatch.setattr(reconstruction, "CURVE_STEPS", 10)
    result = run_here(*FAST, "trainer.max_steps=30")
    curve = pd.read_csv(folder / "metrics.csv").set_index("step")["map"].dropna()
    assert curve.index.tolist() == [10, 20, 25, 30]
    assert curve.nunique() > 1
    assert read_result(folder).metrics["test"]["map_tail"] == pytest.approx(curve[-2:].mean())
    assert result.score == result.metrics["test"]["map"]
    assert "mean of the last 2,000 steps " in capfd.readouterr().out


def test_pictures_that_cannot_be_drawn_do_not_cost_the_result(run_here, folder, monkeypatch, capfd):
    def fails(*_, **__):
        raise RuntimeError("no fonts")

    monkeypatch.setattr(plots, "plot_run", fails)
    assert run_here(*TINY, "model=mlp").status == "finished"
    assert read_result(folder).status == "finished"
    assert "RuntimeError: no fonts" in capfd.readouterr().out


def test_a_finished_run_is_not_repeated_unless_asked(run_here, folder, monkeypatch):
    first = run_here(*FAST)
    before = (folder / "result.json").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(train, "run", None)  # cannot be called
        assert run_here(*FAST, "trainer.progress=false") == first
    assert (folder / "result.json").read_bytes() == before
    assert run_here(*FAST, "rerun=true").metrics == first.metrics
    assert (folder / "previous" / first.config_hash / "result.json").read_bytes() == before


@pytest.mark.parametrize("words", [("optimizer.lr=-1",), ("model=gat", "model.heads=3")])
def test_a_refused_cell_of_a_sweep_displaces_no_result(run_here, folder, words):
    """Whether it is refused by a look at its words, or only while its model is built."""
    first = run_here(*FAST, mode=RunMode.MULTIRUN)
    wrong = run_here(*FAST, *words, mode=RunMode.MULTIRUN)
    assert (wrong.status, read_result(folder)) == ("failed", first)
    assert words[-1] in wrong.error


class Killed(BaseException):
    """Stands for the end of a process."""


@pytest.mark.parametrize("mode", [RunMode.RUN, RunMode.MULTIRUN])
def test_a_run_that_is_killed_behind_its_result_is_closed_by_the_next(
    run_here, folder, monkeypatch, capfd, mode
):
    def kill(*_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(train.reporting, "draw", kill)
        with pytest.raises(Killed):
            run_here(*TINY, "model=mlp", mode=mode)
    first = (folder / "result.json").read_bytes()
    last = folder / "checkpoints" / "last.ckpt"
    assert last.exists()
    assert not (folder / "plots").exists()
    (folder / "plots").mkdir()
    (folder / "plots" / ".curves.png.0.part").touch()  # as a kill in the middle of drawing leaves
    run_here(*TINY, "model=mlp", mode=mode)
    assert (folder / "result.json").read_bytes() == first
    assert not last.exists()
    assert sorted(path.name for path in (folder / "plots").iterdir())[0] == "curves.png"
    assert "ended before its pictures were drawn" in capfd.readouterr().out


@pytest.mark.usefixtures("keeps_last")
def test_a_damaged_checkpoint_does_not_keep_a_run_from_starting(run_here, folder, capfd):
    first = run_here(*FAST)
    (folder / "result.json").unlink()
    last = folder / "checkpoints" / "last.ckpt"
    last.write_bytes(b"")
    assert run_here(*FAST).metrics == first.metrics
    said = capfd.readouterr().out
    assert "last.ckpt was damaged" in said
    assert "the run resumes from earlier.ckpt" in said

    (folder / "result.json").unlink()
    (folder / "checkpoints" / "earlier.ckpt").unlink()
    last.unlink()
    last.mkdir()
    assert run_here(*FAST).metrics == first.metrics
    assert "last.ckpt was damaged (Is a directory): the run starts over" in capfd.readouterr().out


@pytest.mark.usefixtures("keeps_last")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda state: next(iter(state.values())).fill_(torch.nan), "DivergedError"),
        (lambda state: state.pop(next(iter(state))), "does not fit"),
    ],
)
def test_what_a_checkpoint_ends_is_repeated_from_the_start(run_here, folder, capfd, change, said):
    words = (*FAST, "trainer.max_steps=22")
    first = run_here(*words)
    (folder / "result.json").unlink()
    last, earlier = (folder / "checkpoints" / name for name in ("last.ckpt", "earlier.ckpt"))
    last.unlink()
    facts, state = check_archive(earlier), torch.load(earlier, weights_only=True)
    change(state["state_dict"])  # as a fault before writing would
    torch.save(state, earlier)
    add_facts(earlier, facts)
    second = run_here(*words)
    assert (second.status, second.metrics) == ("finished", first.metrics)
    assert said in capfd.readouterr().out


def test_a_run_whose_last_update_spoils_the_weights_has_diverged(run_here):
    words = ("model=mlp", "optimizer.lr=1e38", "trainer.max_steps=1", "trainer.steps_per_epoch=1")
    ended = run_here(*TREE, *words, "trainer.plots=false", mode=RunMode.MULTIRUN)
    assert (ended.status, ended.score) == ("diverged", None)
    assert "not finite after step 1: parameter" in ended.error


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ((*TREE, "model=hypformer"), "accuracy: not finite after step 1; output of encoder"),
        ((*TREE, "model=hypformer", "task=link_prediction"), "roc_auc: not finite after step 1"),
        ((*TRIPLES, "model=distmult"), "scores of the val triples: not finite after step 1;"),
    ],
)
def test_a_score_of_numbers_that_are_not_finite_is_none(run_here, words, what):
    short = ("optimizer.lr=1e19", "trainer.max_steps=1", "trainer.steps_per_epoch=1")
    short = (*short, "trainer.validate_every=1", "trainer.plots=false")
    ended = run_here(*words, *short, mode=RunMode.MULTIRUN)
    assert (ended.status, ended.score) == ("diverged", None)
    assert what in ended.error


ENDED = ("trainer.plots=false", "trainer.patience=5", "trainer.min_steps=1")


@pytest.mark.usefixtures("keeps_last")
@pytest.mark.parametrize(
    "words", [FAST, (*TREE, *ENDED, "model=gcn", "trainer.max_steps=1000"), (*TREE, "model=hgcn")]
)
def test_a_run_that_only_lacks_its_result_is_evaluated_again(run_here, folder, capfd, words):
    """Killed after the last checkpoint, or after it had decided to end, before the result."""
    first = run_here(*words)
    curves = (folder / "metrics.csv").read_bytes()
    (folder / "result.json").unlink()
    second = run_here(*words)
    assert "resuming from the last checkpoint" in capfd.readouterr().out
    assert (second.metrics, second.steps) == (first.metrics, first.steps)
    assert (folder / "metrics.csv").read_bytes() == curves


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("error", "status"),
    [
        (MemoryError("everything is full"), "out_of_memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "out_of_memory"),
        (torch.OutOfMemoryError("CUDA out of memory"), "out_of_memory"),
        (RuntimeError("a mistake\nin two lines"), "failed"),
        (UsageError("a wrong value."), "failed"),
    ],
)
def test_whatever_ends_a_cell_is_written_and_the_sweep_goes_on(
    run_here, folder, monkeypatch, error, status
):
    def fail(*_):
        raise error

    monkeypatch.setattr(train, "build_task", fail)
    result = run_here(*FAST, mode=RunMode.MULTIRUN)
    assert result == read_result(folder)
    assert result.status == status
    assert "\n" not in result.error
    assert result.error.endswith(" ".join(str(error).split()))
    surprise = status == "failed" and not isinstance(error, UsageError)
    assert (folder / "traceback.txt").exists() == surprise


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize(
    "backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.nightly)]
)
def test_a_compiled_run_is_the_same_run(run_here, monkeypatch, backend):
    """Weights keep their names, so that either goes on with the other's checkpoint."""
    if backend != "inductor":  # whose generated code takes the compiler most of the time
        eager = partialmethod(Compilable.compile, backend=backend, options=None)
        monkeypatch.setattr(Compilable, "compile", eager)
        monkeypatch.setattr(compilation, "_check_compiler", lambda _: None)
    words = (*FAST, "trainer.max_steps=3")  # before rounding, which differs, has grown
    plain = run_here(*words, folder="plain")
    try:
        compiled = run_here(*words, "trainer.compile=true", folder="compiled")
    except UsageError as error:
        pytest.skip(str(error))
    assert compiled.config_hash == plain.config_hash
    assert compiled.score == pytest.approx(plain.score, abs=0.1)
