"""Runs on two processes: what equals what one process does, and how they end."""

import json
import re
import time

import lightning
import pandas as pd
import pytest
import torch
import two_processes as work
from test_command import kill_after_three_epochs
from tiny_runs import LARGE, TINY, composed

from curvlab.errors import ProcessError, UsageError
from curvlab.run import train
from curvlab.run.group import launch
from curvlab.run.parts import build_data, build_task
from curvlab.tasks import reconstruction, triple_ranking
from drawn import assert_close

PARTS = (*LARGE, "model=gcn", "batching=partition", "batching.size=100")
STEPS = ("trainer.max_steps=20", "trainer.steps_per_epoch=5")
PAIR = (*PARTS, "trainer=ddp", "trainer.devices=2", *STEPS)
SGD = (
    "optimizer._target_=curvlab.optim.optimisers.SGD",
    "optimizer.lr=1",
    "optimizer.weight_decay=0",
)
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
    last = folder / "checkpoints" / "last.ckpt"
    return torch.load(last, weights_only=True)["state_dict"].values()


GCN = ("model.dropout=0",)
HYPFORMER = ("model=hypformer", "model.dim=16", *GCN, "model.graph_branch.dropout=0")


@pytest.mark.sampled(3)
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
    run_here(*words)
    task, losses = one_process(composed(tmp_path, words), steps, processes=2)
    assert_close(weights_of(tmp_path / "run"), task.state_dict().values(), 1e-6)
    curves = pd.read_csv(tmp_path / "run" / "metrics.csv")
    assert curves["loss"].iloc[-1] == pytest.approx(losses[-1], abs=1e-6)


def assert_alike(folder, bound, rtol):
    """The runs `pair` and `alone` have the same weights and losses but for rounding."""
    assert_close(weights_of(folder / "pair"), weights_of(folder / "alone"), bound)
    curves = [pd.read_csv(folder / name / "metrics.csv") for name in ("pair", "alone")]
    pd.testing.assert_series_equal(*(curve["loss"] for curve in curves), rtol=rtol)


@pytest.mark.nightly
@pytest.mark.usefixtures("keeps_last")
def test_two_processes_are_one_with_two_batches_a_step(run_here, tmp_path):
    words = (*PAIR, *HYPFORMER, "trainer.validate_every=5")
    pair = run_here(*words, folder="pair")
    words = (*words, "trainer=early_stopping", "trainer.max_steps=20", "trainer.devices=1")
    alone = run_here(*words, "batching.accumulate=2", folder="alone")
    assert (alone.steps, alone.best_step) == (pair.steps, pair.best_step)
    assert alone.metrics == pair.metrics
    assert_alike(tmp_path, 1e-5, 1e-4)


@pytest.mark.nightly
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
    monkeypatch.setattr(train, "run_process", work.train_and_note)
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
    done = command(*PAIR, *SGD, "optimizer.lr=1e20", "trainer.progress=false", code=1)
    assert re.fullmatch(r"curvlab train: not finite at step \d+: .*\n", done.stderr)
    (result,) = command.results().values()
    assert result["status"] == "diverged"


@pytest.mark.nightly
def test_a_killed_run_goes_on_with_the_random_numbers_of_each_process(command, run_here):
    words = (*PAIR, "model.dropout=0.5", "trainer.max_steps=150")
    kill_after_three_epochs(command, *words)
    assert command.results() == {}
    done = command(*words)
    assert "resuming from the last checkpoint" in done.stdout
    (resumed,) = command.results().values()
    whole = run_here(*words, folder="whole")
    assert resumed["best_step"] == whole.best_step
    assert json.dumps(resumed["metrics"]) == json.dumps(whole.metrics)


@pytest.mark.nightly
def test_the_runs_of_a_sweep_have_several_processes_each_and_one_speaks(command):
    words = (*PAIR, "trainer.max_steps=4", "trainer.steps_per_epoch=2")
    done = command("-m", "seed=0,1", *words)
    assert done.stdout.count("starting in") == done.stdout.count("accuracy") == 2
    lines = [line.split("  ")[1] for line in done.stderr.splitlines() if "loss" in line]
    assert lines == ["step 2/4", "step 4/4"] * 2
    swept = {result["seed"]: result["metrics"] for result in command.results().values()}
    command(*words, "seed=1", "rerun=true")
    alone = [r["metrics"] for name, r in command.results().items() if r["seed"] == 1]
    assert sorted(swept) == [0, 1]
    assert all(metrics == swept[1] for metrics in alone)


def test_nothing_listens_but_on_loopback(tmp_path):
    """The store in this process, and what the processes exchange tensors by."""
    launch(work.note_what_listens, 2, str(tmp_path))
    for rank in range(2):
        addresses = (tmp_path / f"{rank}").read_text().split()
        assert len(addresses) >= 2, "the store and a pair of sockets of gloo"
        assert set(addresses) <= {"127.0.0.1", "::ffff:127.0.0.1"}


@pytest.mark.parametrize("first_waits", [pytest.param(False, marks=pytest.mark.nightly), True])
def test_one_that_fails_ends_all_with_what_it_raised(first_waits):
    start = time.monotonic()
    with pytest.raises(UsageError, match="the second process refuses") as raised:
        launch(work.second_refuses, 2, first_waits)
    assert "in second_refuses" in raised.value.__notes__[0]
    assert time.monotonic() - start < 60


def test_one_that_is_killed_is_named():
    with pytest.raises(ProcessError, match=r"process 1 of 2 of this run was killed, perhaps"):
        launch(work.second_is_killed, 2)


@pytest.mark.parametrize("ranks", [3, pytest.param(2, marks=pytest.mark.nightly)])
def test_every_process_has_the_loss_and_gradients_of_all_pairs(tmp_path, ranks):
    """Also where tiles cannot be shared equally, or there are fewer than processes."""
    launch(work.share_pairs, ranks, str(tmp_path), ranks)
    expected = work.pair_losses(0, 1)
    for rank in range(ranks):
        found = torch.load(tmp_path / f"pairs{rank}.pt", weights_only=True)
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_two_processes_share_an_evaluation_and_find_the_numbers_of_one(tmp_path, monkeypatch):
    """To the last digit: ranks of triples, the precision of a reconstruction, logits of nodes.

    Each makes its share of the blocks.
    """
    for task in (triple_ranking, reconstruction):
        monkeypatch.setattr(task, "EVALUATION_ENTRIES", work.ENTRIES)
    alone = work.evaluations()
    launch(work.evaluate, 2, str(tmp_path))
    shared = [torch.load(tmp_path / f"evaluated{rank}.pt", weights_only=True) for rank in range(2)]
    for name in [name for name in alone if name.endswith(" blocks")]:
        blocks = [one.pop(name) for one in (alone, *shared)]
        assert blocks[0] == sum(blocks[1:]) >= 1
        assert blocks[2] <= blocks[1] <= blocks[2] + 1
    for one in shared:
        assert one["cat"].keys() == alone["cat"].keys() > {"mrr", "head_mrr", "routing_entropy"}
        torch.testing.assert_close(one, alone, rtol=0, atol=0)
