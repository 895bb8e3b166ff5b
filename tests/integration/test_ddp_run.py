"""Runs on two processes: what equals what one process does, and how they end."""

import json
import re

import lightning
import pandas as pd
import pytest
import torch
import two_processes as work
from hydra.types import RunMode
from test_command import kill_after_three_epochs
from tiny_runs import LARGE, TINY, composed

from curvlab.run import train
from curvlab.run.parts import build_data, build_task

PAIR = (
    *LARGE,
    "model=gcn",
    "trainer=ddp",
    "batching=partition",
    "batching.size=100",
    "trainer.devices=2",
    "trainer.max_steps=20",
    "trainer.steps_per_epoch=5",
)
SGD = ("optimizer._target_=curvlab.optim.options.SGD", "optimizer.lr=1", "optimizer.weight_decay=0")
PLAIN = (*PAIR, *SGD, "model.dropout=0")


def one_process(config, steps, processes):
    """Steps on the mean of the losses of a round's batches; the task, and the losses."""
    lightning.seed_everything(config.seed, verbose=False)
    data = build_data(config)
    task = build_task(config, data)
    optimizer = task.configure_optimizers()
    rounds = data.rounds(0, processes)
    losses = []
    for parts in rounds[:steps]:
        optimizer.zero_grad()
        loss = sum(task.training_step(data.batch(part), 0) for part in parts) / len(parts)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return task, losses


def weights_of(folder):
    """The weights of a run's last checkpoint."""
    return torch.load(folder / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]


def assert_close(found, expected, bound):
    """Each tensor is the other but for a bound, times its largest entry if that exceeds 1."""
    for name, weight in expected.items():
        atol = bound * weight.abs().max().clamp_min(1)  # a bias before a mean has gradient 0
        assert torch.allclose(found[name], weight, rtol=0, atol=atol), name


GCN = ("model.dropout=0",)
HYPFORMER = ("model=hypformer", "model.dim=16", *GCN, "model.graph_branch.dropout=0")


@pytest.mark.usefixtures("keeps_last")
@pytest.mark.parametrize(
    ("model", "optimizer", "steps"), [(GCN, SGD, 3), (GCN, (), 3), (HYPFORMER, SGD, 1)]
)
def test_two_processes_are_one_with_the_mean_of_the_losses_of_their_batches(
    run_here, tmp_path, model, optimizer, steps
):
    """SGD with rate 1: parameters differ by the gradient; three steps are a pass of six parts."""
    words = (*PAIR, *model, *optimizer, f"trainer.max_steps={steps}")
    words = (*words, f"trainer.steps_per_epoch={steps}")
    result = run_here(*words)
    assert result.status == "finished"
    config = composed(tmp_path / "other", (*words, f"paths.data_dir={tmp_path}"), RunMode.RUN)
    task, losses = one_process(config, steps, processes=2)
    assert_close(weights_of(tmp_path / "run"), task.state_dict(), 1e-6)
    curves = pd.read_csv(tmp_path / "run" / "metrics.csv")
    assert curves["loss"].iloc[-1] == pytest.approx(losses[-1], abs=1e-6)


def assert_alike(folder, bound, rtol):
    """The runs `pair` and `alone` have the same weights and losses but for rounding."""
    assert_close(weights_of(folder / "pair"), weights_of(folder / "alone"), bound)
    curves = [pd.read_csv(folder / name / "metrics.csv") for name in ("pair", "alone")]
    pd.testing.assert_series_equal(*(curve["loss"] for curve in curves), rtol=rtol)


@pytest.mark.usefixtures("keeps_last")
def test_two_processes_are_one_with_two_batches_a_step(run_here, tmp_path):
    words = (*PAIR, *HYPFORMER, "trainer.validate_every=5")
    pair = run_here(*words, folder="pair")
    words = (*words, "trainer=early_stopping", "trainer.max_steps=20", "trainer.devices=1")
    alone = run_here(*words, "batching.accumulate=2", folder="alone")
    assert (alone.steps, alone.best_step) == (pair.steps, pair.best_step)
    assert alone.metrics == pair.metrics
    assert_alike(tmp_path, 1e-5, 1e-4)


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.usefixtures("keeps_last")
@pytest.mark.parametrize(
    ("model", "optimizer", "steps"), [("gcn", SGD, 1), ("fpst", SGD, 1), ("gcn", (), 10)]
)
def test_two_processes_that_share_the_loss_of_all_pairs_are_one(
    run_here, tmp_path, model, optimizer, steps
):
    """With the same dropout; one step of SGD with rate 1 moves the weights by the gradient."""
    words = (*TINY, f"model={model}", "model.dropout=0.5", "trainer.precision=64-true", *optimizer)
    words = (*words, "trainer.plots=false", f"trainer.max_steps={steps}")
    run_here(*words, folder="alone")
    run_here(*words, "trainer.devices=2", folder="pair")
    assert_alike(tmp_path, 1e-6, 1e-6)


def test_no_process_sees_a_node_of_another_and_together_they_see_all(prepared, monkeypatch):
    config, result, folder = prepared(*PLAIN, "trainer.max_steps=6", "trainer.steps_per_epoch=6")
    monkeypatch.setattr(train, "_run_process", work.train_and_note)
    train.run(config, result, folder, None)
    first, second = (
        torch.load(folder.path / f"seen{rank}.pt", weights_only=True) for rank in range(2)
    )
    assert len(first) == len(second) == 6
    everything = build_data(config).graph.x
    for steps in (slice(0, 3), slice(3, 6)):  # the two passes
        mine, theirs = torch.cat(first[steps]), torch.cat(second[steps])
        assert len(mine) + len(theirs) == 600
        assert torch.equal(torch.cat([mine, theirs]).unique(dim=0), everything.unique(dim=0))
    assert not torch.equal(torch.cat(first[:3]), torch.cat(first[3:]))


def test_all_processes_end_when_patience_does(run_here):
    words = ("trainer.max_steps=1000", "trainer.patience=10", "trainer.min_steps=1")
    result = run_here(*PAIR, *words, "optimizer.lr=1e-9")
    assert result.steps < 100


def test_a_run_that_diverges_in_all_processes_says_so(command):
    done = command(*PAIR, *SGD, "optimizer.lr=1e20", "trainer.progress=false")
    assert done.returncode == 1
    assert re.fullmatch(r"curvlab train: not finite at step \d+: .*\n", done.stderr)
    (result,) = command.results().values()
    assert result["status"] == "diverged"


def test_a_killed_run_goes_on_with_the_random_numbers_of_each_process(command, run_here):
    words = (*PAIR, "model.dropout=0.5", "trainer.max_steps=150")
    kill_after_three_epochs(command, *words)
    assert command.results() == {}
    done = command(*words)
    assert done.returncode == 0, done.stderr
    assert "going on from the last checkpoint" in done.stdout
    (resumed,) = command.results().values()
    whole = run_here(*words, folder="whole")
    assert resumed["best_step"] == whole.best_step
    assert json.dumps(resumed["metrics"]) == json.dumps(whole.metrics)


def test_the_runs_of_a_sweep_have_several_processes_each_and_one_speaks(command):
    words = (*PAIR, "trainer.max_steps=4", "trainer.steps_per_epoch=2")
    done = command("-m", "seed=0,1", *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("starting in") == done.stdout.count("accuracy") == 2
    lines = [line.split("  ")[1] for line in done.stderr.splitlines()]
    assert lines == ["step 2/4", "step 4/4"] * 2
    swept = {result["seed"]: result["metrics"] for result in command.results().values()}
    assert command(*words, "seed=1", "rerun=true").returncode == 0
    alone = [r["metrics"] for name, r in command.results().items() if r["seed"] == 1]
    assert sorted(swept) == [0, 1]
    assert all(metrics == swept[1] for metrics in alone)
