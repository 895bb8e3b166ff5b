"""One progress bar with the numbers that matter."""

import re
import sys
from datetime import timedelta
from multiprocessing import current_process
from time import monotonic
from typing import Any

from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import ProgressBar
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from curvlab.callbacks.curves import Curves
from curvlab.callbacks.point_shares import PREFIX

LINES_WITHOUT_TERMINAL = 20


class _Speed(TextColumn):
    """Steps per second."""

    def render(self, task: Task) -> Text:
        """Render the rate, once it is known."""
        return Text(f"{task.speed:.1f} it/s" if task.speed else "")


class RunProgress(ProgressBar):
    """Loss, metrics, curvatures, steps per second and time left, from the last row of the curves.

    Without a terminal it prints about twenty lines a run instead.

    Args:
        curves: where the numbers come from.
        label: what is being run, for the lines; the bar stands below the line that says it.
        shown: False for silence.
    """

    def __init__(self, curves: Curves, label: str, shown: bool) -> None:
        super().__init__()
        self.curves = curves
        self.label = label
        self._enabled = shown
        self._bar: Progress | None = None
        self._task: Any = None
        self._started = (0.0, 0)

    def disable(self) -> None:
        """Lightning silences all processes but the first."""
        self._enabled = False

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Open the bar."""
        self._started = (monotonic(), trainer.global_step)
        console = Console(stderr=True)
        # The processes of a parallel launcher would draw their bars over each other.
        alone = not re.search(r"-\d+$", current_process().name)
        if not (self._enabled and console.is_terminal and alone):
            return
        self._bar = Progress(
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}"),
            _Speed(""),
            TimeRemainingColumn(),
            console=console,
            expand=True,
        )
        self._task = self._bar.add_task(
            "", total=trainer.max_steps, completed=trainer.global_step, numbers=""
        )
        self._bar.start()

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        """Advance the bar."""
        if self._bar is not None:
            self._bar.update(self._task, completed=trainer.global_step)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Show the newest numbers."""
        if not self._enabled or not self.curves.rows:
            return
        numbers = describe(self.curves.rows[-1])
        if self._bar is not None:
            self._bar.update(self._task, numbers=numbers)
            return
        steps, every = trainer.global_step, max(1, trainer.max_steps // LINES_WITHOUT_TERMINAL)
        if steps // every > (steps - trainer.num_training_batches) // every:
            print(
                f"{self.label}  step {steps}/{trainer.max_steps}  {numbers}{self._left(trainer)}",
                file=sys.stderr,
                flush=True,
            )

    def _left(self, trainer: Trainer) -> str:
        """Words for the time that the steps that are left take, at the mean rate so far."""
        time, step = self._started
        rate = (monotonic() - time) / max(1, trainer.global_step - step)
        seconds = round(rate * max(0, trainer.max_steps - trainer.global_step))
        return f"  {timedelta(seconds=seconds)} left" if seconds else ""

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Close the bar."""
        self._close()

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """Leave the terminal in order."""
        self._close()
        if isinstance(exception, KeyboardInterrupt):
            print(
                f"{self.label}: interrupted at step {trainer.global_step}; the same command, "
                "without rerun=true, goes on from the last checkpoint",
                file=sys.stderr,
            )

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def describe(row: dict[str, float]) -> str:
    """A row of the curves in one line, for instance `loss 1.20  mAP 93.1  kappa -1.02 0.13`.

    Of several metrics of validation the first, which chooses the weights, is shown.
    """
    others = [name for name in row if name.startswith("val/")][1:]
    kappa = [f"{value:.2f}" for name, value in row.items() if name.startswith("kappa/")]
    parts = [
        f"{'mAP' if name == 'map' else name.replace('/', ' ')} {value:.4g}"
        for name, value in row.items()
        if name not in ("step", *others) and not name.startswith(("kappa/", PREFIX))
    ]
    if kappa:
        parts.append(f"kappa {' '.join(kappa[:4])}{' ...' if len(kappa) > 4 else ''}")
    return "  ".join(parts)
