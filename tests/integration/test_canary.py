"""The canary: twenty steps of every model repeat the stored losses and metrics.

A change of a formula or of the random stream moves these numbers. Raise the `revision` of the
class then, and store the new numbers: `python tests/integration/test_canary.py [TASK/MODEL ...]`.
Double precision leaves room for another order of sums, as other processors have it, and for
nothing else.
"""

import json
import sys
import tempfile
from pathlib import Path

import pandas as pd
import pytest
from hydra.types import RunMode
from tiny_runs import TINY, TREE, TRIPLES, composed

from composing import CONFIGS
from curvlab.config.folder import choices
from curvlab.config.schema import options_of
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
    config = composed(Path(), (*TASKS[task], f"task={task}", f"model={model}"), RunMode.RUN)
    options = options_of(config.model._target_)
    dropped = ["model.dropout=0.3"] if "dropout" in options else []
    few = ["model.eigenvectors=4"] if "eigenvectors" in options else []
    return (*TASKS[task], f"task={task}", f"model={model}", *QUIET, *dropped, *few)


def twenty_steps(case: str, folder: Path) -> dict[str, float]:
    """The losses and metrics of a case."""
    places = (f"paths.data_dir={folder / 'data'}", f"paths.output_dir={folder}")
    train(composed(folder / case, (*places, *words(case)), RunMode.RUN))
    result = json.loads((folder / case / "result.json").read_text())
    curves = pd.read_csv(folder / case / "metrics.csv")
    numbers = {f"loss/{step}": loss for step, loss in zip(curves.step, curves.loss, strict=True)}
    scores = {part: metrics for part, metrics in result["metrics"].items() if part != "train"}
    return numbers | {f"{part}/{name}": v for part, m in scores.items() for name, v in m.items()}


def repeats(case: str, folder: Path) -> bool:
    """Whether a case gives the stored numbers."""
    return twenty_steps(case, folder) == pytest.approx(STORED[case], rel=ROUNDING, abs=ROUNDING)


@pytest.mark.parametrize("case", STORED)
def test_twenty_steps_repeat_the_stored_numbers(case, tmp_path):
    assert repeats(case, tmp_path)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("case", STORED)
@pytest.mark.usefixtures("two_threads")
def test_twenty_steps_on_two_threads_repeat_the_stored_numbers(case, tmp_path):
    assert repeats(case, tmp_path)


def test_every_model_has_a_canary():
    assert set(choices(CONFIGS, "model")) == {case.split("/")[1] for case in STORED}


if __name__ == "__main__":
    chosen = sys.argv[1:] or list(STORED)
    for case in chosen:
        with tempfile.TemporaryDirectory() as folder:
            STORED[case] = twenty_steps(case, Path(folder))
    FILE.write_text(json.dumps(dict(sorted(STORED.items())), indent=1) + "\n")
