"""Recorded steps: the run of others, with a stand-in of CUDA's recording on the processor."""

from contextlib import contextmanager, nullcontext

import pandas as pd
import pytest
import torch
from tiny_runs import TINY, TREE

from curvlab.callbacks import ReplaysSteps, replaying
from curvlab.errors import UsageError
from curvlab.run import fit

WARM_UPS = 3


def recorded(step, inputs, allow_unused_input):
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
            kept_loss.copy_(loss)
            for place, gradient in zip(kept, gradients, strict=True):
                if place is not None:
                    place.copy_(gradient)
            step.replays += 1
            return kept_loss.detach()

        @staticmethod
        def backward(ctx, grad):
            return tuple(None if place is None else (place * grad).detach() for place in kept)

    step.forward = lambda: Replay.apply(*weights)


@contextmanager
def refused():
    """What CUDA raises at the first thing that waits for it."""
    raise RuntimeError("called a synchronizing CUDA operation\nand more")
    yield


class Recording:
    """`run_here` with steps that a stand-in records, and what was recorded and said."""

    def __init__(self, run_here, monkeypatch):
        self.run_here, self.monkeypatch, self.steps, self.said = run_here, monkeypatch, [], []

    def __call__(self, *words, record=recorded, waiting=nullcontext, **options):
        def noted(step, *inputs, **others):
            self.steps.append(step)
            record(step, *inputs, **others)

        def build(config, folder, callbacks, *others, make=fit.build_trainer, **of_trainer):
            return make(
                config, folder, [ReplaysSteps(self.said.append), *callbacks], *others, **of_trainer
            )

        with self.monkeypatch.context() as patched:
            patched.setattr(replaying, "make_graphed_callables", noted)
            patched.setattr(replaying, "no_waiting", waiting)
            patched.setattr(fit, "build_trainer", build)
            return self.run_here(*words, **options)


@pytest.fixture
def recording(run_here, monkeypatch):
    """See `Recording`."""
    return Recording(run_here, monkeypatch)


SHORT = ("trainer.plots=false", "trainer.max_steps=20")
GCN = (*TREE, "model=gcn", "model.dropout=0.5", "model.normalisation=batch", *SHORT)
CASES = {
    "fpst": (*TINY, "model=fpst", "model.eigenvectors=4", "model.dropout=0.2", *SHORT),
    "gcn": GCN,
    "hypformer": (*TREE, "model=hypformer", "model.dropout=0.5", *SHORT),
    "links": (*TREE[:3], *TINY[1:], "task=link_prediction", "model=hgcn", *SHORT),
    "clipped": (*TREE, "model=lrn", "trainer.gradient_clip=0.1", *SHORT),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("words", CASES.values(), ids=CASES)
def test_a_recorded_run_is_the_same_run(run_here, recording, tmp_path, words):
    """To the last digit: dropout, averages of norms, the choice of weights."""
    plain = run_here(*words, folder="plain")
    replayed = recording(*words, folder="replayed")
    assert recording.said == []
    assert recording.steps[0].replays == 20 + replaying.COMPARED
    assert replayed.metrics == plain.metrics
    curves = [(tmp_path / name / "metrics.csv").read_bytes() for name in ("plain", "replayed")]
    assert curves[0] == curves[1]


def test_a_step_that_waits_is_made_as_before(run_here, recording):
    waiting = recording(*GCN, waiting=refused, folder="waiting")
    assert recording.said == ["a step waits for the device (called a synchronizing CUDA operation)"]
    assert recording.steps == []
    assert waiting.metrics == run_here(*GCN, folder="plain").metrics


def test_a_step_whose_replay_differs_is_made_as_before(run_here, recording):
    def wrong(made, *inputs, **others):
        recorded(made, *inputs, **others)
        replay = made.forward
        made.forward = lambda: 1.01 * replay()

    differing = recording(*GCN, record=wrong, folder="differing")
    assert recording.said == ["a replayed step differs from the step"]
    assert differing.metrics == run_here(*GCN, folder="plain").metrics


def test_what_cuda_cannot_record_ends_the_run_with_a_sentence(recording):
    def fails(*_, **__):
        raise RuntimeError("operation not permitted when stream is capturing\nand more")

    with pytest.raises(
        UsageError, match=r"cuda_graph=true: CUDA cannot record this step \(oper.*g\)"
    ):
        recording(*GCN, record=fails)


def test_on_a_processor_it_changes_nothing_and_says_so(run_here, capsys):
    plain = run_here(*GCN, folder="plain")
    other = run_here(*GCN, "trainer.cuda_graph=true", folder="other")
    said = "trainer.cuda_graph=true changes nothing: this run is not on a GPU"
    assert capsys.readouterr().out.count(said) == 1
    assert (other.config_hash, other.metrics) == (plain.config_hash, plain.metrics)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((*TREE, "model=gcn", "batching=partition"), "batching=partition cuts it"),
        ((*TINY, "model=fpst", "trainer.devices=2"), "trainer.devices=1, not 2"),
        ((*TINY, "model=fpst", "trainer.precision=bf16-mixed"), "another trainer.precision"),
    ],
)
def test_steps_that_differ_or_cannot_be_recorded_are_refused(run_here, words, why):
    with pytest.raises(UsageError, match=f"trainer.cuda_graph=true: .*{why}"):
        run_here(*words, "trainer.cuda_graph=true")


@pytest.mark.gpu
@pytest.mark.parametrize("words", CASES.values(), ids=CASES)
def test_a_gpu_replays_the_run(run_here, tmp_path, capsys, words):
    """With the same dropout, so that only rounding differs."""
    words = (*words, "trainer.accelerator=cuda")
    run_here(*words, folder="plain")
    run_here(*words, "trainer.cuda_graph=true", folder="replayed")
    assert "changes nothing" not in capsys.readouterr().out
    curves = [pd.read_csv(tmp_path / name / "metrics.csv") for name in ("plain", "replayed")]
    pd.testing.assert_series_equal(*(curve["loss"] for curve in curves), rtol=1e-2)
