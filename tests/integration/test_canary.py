"""The canary: twenty steps of every model repeat the stored losses and metrics.

A change of a formula or of the random stream moves these numbers. Raise the `revision` of the
class then, and store the new numbers:
`PYTHONPATH=tests python tests/integration/test_canary.py [TASK/MODEL ...]`.
Double precision leaves room for another order of sums, as other processors have it, and for
nothing else; no module, parameter or graph has float32 beside it. (Triples have single precision.)
"""

import json
import math
import sys
import tempfile
from pathlib import Path

import pandas as pd
import pytest
import torch
from tiny_runs import LARGE, TINY, TREE, TRIPLES, composed

import curvlab.run.train
from composing import CONFIGS, different_models, tasks_of
from curvlab.config.folder import choices
from curvlab.config.schema import options_of
from curvlab.run.command import Command
from curvlab.run.train import train

FILE = Path(__file__).with_name("canary.json")
ROUNDING = 1e-6
"""Relative. Another order of sums moves a gradient that is 0 but for rounding, and Adam's first
steps divide it by its own size: 1e-16 becomes 1e-8 in token models. Another mask moves 1e-2."""

STEPS = ("trainer.max_steps=20", "trainer.steps_per_epoch=5", "trainer.precision=64-true")
QUIET = ("trainer.plots=false", "trainer.accelerator=cpu", "recipe=none")
TASKS = {
    "kg_completion": (
        *TRIPLES,
        "trainer.epochs=2",
        "task.negatives=8",
        "trainer.validate_every=${trainer.steps_per_epoch}",
    ),
    "filter_regression": ("dataset=filter_images", "dataset.source.generated=true", *STEPS),
    "link_prediction": (*TREE, *STEPS),
    "node_classification": (*TREE, *STEPS),
    "reconstruction": ("dataset=synthetic_web", *TINY, *STEPS),
}
STORED = json.loads(FILE.read_text()) if FILE.is_file() else {}


def words(case: str) -> tuple[str, ...]:
    """The command of a case `TASK/MODEL`, with dropout wherever the model has it."""
    task, model = case.split("/")
    config = composed(Path(), (*TASKS[task], f"task={task}", f"model={model}"))
    options = options_of(config.model._target_)
    dropped = ["model.dropout=0.3"] if "dropout" in options else []
    few = ["model.eigenvectors=4"] if "sign_flips" in options else []
    return (*TASKS[task], f"task={task}", f"model={model}", *QUIET, *dropped, *few)


def twenty_steps(case: str, folder: Path) -> dict[str, float]:
    """The losses and metrics of a case."""
    train(Command.from_hydra(composed(folder, words(case), folder=case)))
    result = json.loads((folder / case / "result.json").read_text())
    curves = pd.read_csv(folder / case / "metrics.csv")
    numbers = {f"loss/{step}": loss for step, loss in zip(curves.step, curves.loss, strict=True)}
    scores = {part: metrics for part, metrics in result["metrics"].items() if part != "train"}
    return numbers | {f"{part}/{name}": v for part, m in scores.items() for name, v in m.items()}


def repeats(case: str, folder: Path) -> bool:
    """Whether a case gives the stored numbers."""
    return twenty_steps(case, folder) == pytest.approx(STORED[case], rel=ROUNDING, abs=ROUNDING)


@pytest.fixture
def single(monkeypatch):
    """What is of another type of float than float64 in a run, filled while it runs."""
    seen = set()
    build = curvlab.run.train.build_task

    def look(name, tensors):
        floats = [t for t in tensors if isinstance(t, torch.Tensor) and t.is_floating_point()]
        seen.update((name, t.dtype) for t in floats if t.dtype != torch.float64)

    def hook(module, _, output):
        look(type(module).__name__, output if isinstance(output, tuple) else (output,))

    def watched(config, data):
        task = build(config, data)
        for part in task.modules():
            part.register_forward_hook(hook)
        for name, tensor in (*task.state_dict().items(), *data.graph.to_dict().items()):
            look(name, (tensor,))
        return task

    monkeypatch.setattr(curvlab.run.train, "build_task", watched)
    return seen


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", STORED)
def test_twenty_steps_repeat_the_stored_numbers(case, single, tmp_path):
    assert repeats(case, tmp_path)
    assert case.startswith("kg_completion") or not single
    assert torch.get_default_dtype() == torch.float32


DOUBLE = {
    "partition": (*TREE, "model=hypformer", "batching=partition", "batching.size=20", *STEPS),
    "neighbours": (*TREE, "model=sage", "batching=neighbours", "batching.size=8", *STEPS),
    "tokens": (*LARGE, "model=polyformer", "batching=tokens", "batching.workers=0", *STEPS),
} | {
    model: (*TASKS["kg_completion"], f"model={model}", STEPS[-1])
    for model in different_models()
    if "kg_completion" in tasks_of(model)
}
BY_DAY = ("partition", "tokens", "murp")


@pytest.mark.parametrize(
    "name",
    [*BY_DAY, *(pytest.param(n, marks=pytest.mark.nightly) for n in DOUBLE if n not in BY_DAY)],
)
def test_mini_batches_and_triples_are_computed_in_double_precision_too(run_here, single, name):
    assert math.isfinite(run_here(*DOUBLE[name], "trainer.plots=false").score)
    assert {kind for kind, _ in single} <= {"tokens"}  # as they lie on disk


@pytest.mark.nightly
@pytest.mark.parametrize("case", STORED)
@pytest.mark.usefixtures("two_threads")
def test_twenty_steps_on_two_threads_repeat_the_stored_numbers(case, tmp_path):
    assert repeats(case, tmp_path)


@pytest.mark.parametrize("model", choices(CONFIGS, "model"))
def test_every_model_has_a_canary(model):
    if not any(case.split("/")[1] == model for case in STORED):
        pytest.skip(f"store one: PYTHONPATH=tests python {Path(__file__).name} TASK/{model}")


def test_every_canary_is_of_a_model():
    assert {case.split("/")[1] for case in STORED} <= set(choices(CONFIGS, "model"))


if __name__ == "__main__":
    chosen = sys.argv[1:] or list(STORED)
    for case in chosen:
        with tempfile.TemporaryDirectory() as folder:
            STORED[case] = twenty_steps(case, Path(folder))
    FILE.write_text(json.dumps(dict(sorted(STORED.items())), indent=1) + "\n")
