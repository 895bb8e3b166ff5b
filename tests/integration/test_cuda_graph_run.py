"""Recorded steps: the same run, with a stand-in for CUDA's recording on the processor."""

from functools import partial

import pandas as pd
import pytest
import torch
from tiny_runs import TINY, TREE

from curvlab.callbacks import cuda_graphs
from curvlab.errors import UsageError
from curvlab.run import train

WARM_UPS = 3


def recorded(step, inputs, allow_unused_input, factor=1.0):
    """Replace a step as CUDA's recording does: replays write to one place, after warming up."""
    assert inputs == ()
    assert allow_unused_input
    weights, eager, step.replays = tuple(step.parameters()), step.forward, 0

    def run():
        with torch.enable_grad():
            loss = eager()
            return loss.detach(), torch.autograd.grad(loss, weights, allow_unused=True)

    for _ in range(WARM_UPS):
        kept_loss, kept = run()

    class Replay(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *_):
            loss, gradients = run()
            kept_loss.copy_(factor * loss)
            for place, gradient in zip(kept, gradients, strict=True):
                if place is not None:
                    place.copy_(gradient)
            step.replays += 1
            return kept_loss.detach()

        @staticmethod
        def backward(ctx, grad):
            return tuple(None if place is None else (place * grad).detach() for place in kept)

    step.forward = lambda: Replay.apply(*weights)


@pytest.fixture
def on_a_gpu(monkeypatch):
    """Let a run record its steps by a stand-in; the steps."""

    def use(record):
        steps = []

        def noted(step, *inputs, **others):
            steps.append(step)
            record(step, *inputs, **others)

        monkeypatch.setattr(cuda_graphs, "make_graphed_callables", noted)
        monkeypatch.setattr(train, "_cuda_graphs", lambda *_: [cuda_graphs.CudaGraphs()])
        return steps

    return use


SHORT = ("trainer.plots=false", "trainer.max_steps=20")
CASES = {
    "fpst": (*TINY, "model=fpst", "model.eigenvectors=4", "model.dropout=0.2", *SHORT),
    "gcn": (*TREE, "model=gcn", "model.dropout=0.5", "model.normalisation=batch", *SHORT),
    "clipped": (*TREE, "model=lrn", "trainer.gradient_clip=0.1", *SHORT),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("words", CASES.values(), ids=CASES)
def test_a_recorded_run_is_the_same_run(run_here, on_a_gpu, capsys, words):
    """To the last digit: dropout, averages of norms, the choice of weights."""
    plain = run_here(*words, folder="plain")
    run_here(*words, "trainer.cuda_graph=true", folder="processor")
    assert "changes nothing" in capsys.readouterr().out
    steps = on_a_gpu(recorded)
    replayed = run_here(*words, "trainer.cuda_graph=true", folder="replayed")
    assert steps[0].replays == 20 + cuda_graphs.NUM_TEST_STEPS
    assert (replayed.config_hash, replayed.metrics) == (plain.config_hash, plain.metrics)


def fails(*_, **__):
    raise RuntimeError("operation not permitted when stream is capturing\nand more")


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (fails, r"\(operation .* capturing\)"),
        (partial(recorded, factor=1.01), "differs from the step"),
    ],
)
def test_a_step_that_is_not_recorded_ends_the_run_with_a_sentence(run_here, on_a_gpu, record, says):
    on_a_gpu(record)
    with pytest.raises(UsageError, match=f"cuda_graph=true: CUDA cannot record this step .*{says}"):
        run_here(*CASES["gcn"], "trainer.cuda_graph=true")


@pytest.mark.gpu
@pytest.mark.parametrize("words", CASES.values(), ids=CASES)
def test_a_gpu_replays_the_run(run_here, tmp_path, words):
    """With the same dropout, so that only rounding differs."""
    words = (*words, "trainer.accelerator=cuda")
    run_here(*words, folder="plain")
    run_here(*words, "trainer.cuda_graph=true", folder="replayed")
    curves = [pd.read_csv(tmp_path / name / "metrics.csv") for name in ("plain", "replayed")]
    pd.testing.assert_series_equal(*(curve["loss"] for curve in curves), rtol=1e-2)
