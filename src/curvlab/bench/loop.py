"""Cost of the loop: a run by `train.py` against a bare PyTorch loop of the same model."""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

import torch
from lightning import Trainer

from curvlab.bench.runs import build_run, training_step
from curvlab.callbacks import (
    Curves,
    FiniteGuard,
    PointShares,
    RandomState,
    RunProgress,
    StepTimer,
)
from curvlab.config.compose import compose
from curvlab.run.parts import build_data, build_task
from curvlab.run.reporting import quiet
from curvlab.tasks.cost.timing import print_table, verdict

STEPS, ROUNDS = 50, 3
OVERHEAD = 1.15
"""Largest admissible time of a step in the run over that of the bare loop."""

WORDS = ("dataset=web_edu", "trainer.progress=false")


def run(args: argparse.Namespace) -> None:
    """Print milliseconds a step of both, measured in turn."""
    device = args.device
    rows = []
    for model in ("gcn", "tokengt", "fpst"):
        words = (f"model={model}", *WORDS)
        bare, trained = [], []
        for _ in range(ROUNDS):
            bare.append(_bare_loop(device, words))
            trained.append(_lightning_loop(device.type, words))
        ratio = verdict(median(trained) / median(bare), OVERHEAD)
        rows.append([model, f"{median(bare):.2f}", f"{median(trained):.2f}", ratio])
    columns = ("Web-Edu", "bare loop, ms", "run, ms", "ratio")
    print_table(f"A step of training, median of {ROUNDS} times {STEPS} steps", columns, rows)


def _bare_loop(device: torch.device, words: tuple[str, ...]) -> float:
    step = training_step(*build_run(device, *words))
    for _ in range(5):
        step()
    if device.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(STEPS):
        step()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - start) / STEPS


def _lightning_loop(accelerator: str, words: tuple[str, ...]) -> float:
    """A step of the run with every callback of a run; its first epoch warms up."""
    torch.manual_seed(0)
    length = f"trainer.max_steps={2 * STEPS}", f"trainer.steps_per_epoch={STEPS}"
    config = compose([*words, *length])
    data = build_data(config)
    task = build_task(config, data)
    timer = StepTimer()
    with tempfile.TemporaryDirectory() as folder, quiet():
        curves = Curves(Path(folder) / "metrics.csv")
        callbacks = [
            curves,
            timer,
            RandomState(),
            PointShares(),
            FiniteGuard(Path(folder), interval=STEPS),
            RunProgress(curves, "", shown=False),
        ]
        trainer = Trainer(
            max_steps=2 * STEPS,
            max_epochs=-1,
            accelerator=accelerator,
            devices=1,
            callbacks=callbacks,
            logger=False,
            default_root_dir=folder,
            num_sanity_val_steps=0,
            enable_model_summary=False,
            enable_checkpointing=False,
        )
        trainer.fit(task, datamodule=data)
    assert timer.ms_per_step is not None
    return timer.ms_per_step
