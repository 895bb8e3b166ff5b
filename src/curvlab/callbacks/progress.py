"""One progress bar with the last row of the curves."""

import re
import sys
from datetime import timedelta
from multiprocessing import current_process
from time import monotonic
from typing import Any

from lightning import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks.progress.tqdm_progress import Tqdm

from curvlab.callbacks.curves import PREFIX, Curves

LINES_WITHOUT_TERMINAL = 20
FIRST_LINE = 3.0
"""Seconds until a line without a point of the curves; the next one waits twice as long."""
BAR = "{bar} {n_fmt}/{total_fmt}  {desc}  {rate_noinv_fmt}  {remaining}"


class RunProgress(Callback):
    """Shows the last row of the curves and the remaining time: a bar on a terminal, else lines."""

    def __init__(self, curves: Curves, label: str, visible: bool) -> None:
        self.curves = curves
        self.label = label
        self.visible = visible
        self._bar: Any = None
        self._started = (0.0, 0)
        self._wait = FIRST_LINE
        self._said = 0.0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Open the bar, unless other processes of a sweep would draw over it."""
        step = trainer.global_step
        self._started = (monotonic(), step)
        self._wait = FIRST_LINE
        self._said = monotonic()
        is_worker = re.search(r"-\d+$", current_process().name) is not None
        if self.visible and not is_worker and sys.stderr.isatty():
            total = trainer.max_steps
            self._bar = Tqdm(total=total, initial=step, bar_format=BAR, dynamic_ncols=True)

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        if self._bar is not None:
            self._bar.update(trainer.global_step - self._bar.n)
        elif self.visible and monotonic() - self._said >= self._wait:
            self._wait *= 2
            self._print(trainer, "")

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not self.visible or not self.curves.rows:
            return
        numbers = describe(self.curves.rows[-1])
        if self._bar is not None:
            self._bar.set_description_str(numbers)
            return
        steps = trainer.global_step
        every = max(1, trainer.max_steps // LINES_WITHOUT_TERMINAL)
        if steps // every > (steps - trainer.num_training_batches) // every:
            self._print(trainer, f"  {numbers}")

    def _print(self, trainer: Trainer, numbers: str) -> None:
        """Print the step and the remaining time."""
        steps = trainer.global_step
        start, first = self._started
        rate = (monotonic() - start) / max(1, steps - first)
        left = round(rate * max(0, trainer.max_steps - steps))
        line = f"{self.label}  step {steps}/{trainer.max_steps}{numbers}"
        line += f"  {timedelta(seconds=left)} left" if left else ""
        print(line, file=sys.stderr, flush=True)
        self._said = monotonic()

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._bar is not None:
            self._bar.close()

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        self.on_train_end(trainer, pl_module)


def describe(row: dict[str, float]) -> str:
    """Format a row of the curves in one line, as `loss 1.20  mAP 93.1  kappa -1.02 0.13`."""
    further = [name for name in row if name.startswith("val/")][1:]
    kappa = [f"{value:.2f}" for name, value in row.items() if name.startswith("kappa/")]
    parts = [
        f"{'mAP' if name == 'map' else name.replace('/', ' ')} {value:.4g}"
        for name, value in row.items()
        if name not in ("step", *further) and not name.startswith(("kappa/", PREFIX))
    ]
    if kappa:
        parts.append(f"kappa {' '.join(kappa[:4])}{' ...' if len(kappa) > 4 else ''}")
    return "  ".join(parts)
