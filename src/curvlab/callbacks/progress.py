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

BAR = "{bar} {n_fmt}/{total_fmt}  {desc}  {rate_noinv_fmt}  {remaining}"

LINES_WITHOUT_TERMINAL = 20
"""Number of lines of a run without a terminal."""

FIRST_WAIT = 3.0
"""Seconds until a line without a point of the curves. Each next line waits twice as long."""


class RunProgress(Callback):
    """Shows the last row of the curves and the remaining time: a bar on a terminal, else lines."""

    def __init__(self, curves: Curves, label: str, visible: bool) -> None:
        self.curves = curves
        self.label = label
        self.visible = visible
        self._bar: Any = None
        self._start_time = 0.0
        self._start_step = 0
        self._wait = FIRST_WAIT
        self._line_time = 0.0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Open the bar, unless other processes of a sweep would draw over it."""
        self._start_time = monotonic()
        self._start_step = trainer.global_step
        self._wait = FIRST_WAIT
        self._line_time = monotonic()
        is_worker = re.search(r"-\d+$", current_process().name) is not None
        if self.visible and not is_worker and sys.stderr.isatty():
            self._bar = Tqdm(
                total=trainer.max_steps,
                initial=trainer.global_step,
                bar_format=BAR,
                dynamic_ncols=True,
            )

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        if self._bar is not None:
            self._bar.update(trainer.global_step - self._bar.n)
        elif self.visible and monotonic() - self._line_time >= self._wait:
            self._wait *= 2
            self._print(trainer, "")

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not self.visible or not self.curves.rows:
            return
        numbers = describe(self.curves.rows[-1])
        if self._bar is not None:
            self._bar.set_description_str(numbers)
            return
        step = trainer.global_step
        interval = max(1, trainer.max_steps // LINES_WITHOUT_TERMINAL)
        previous_step = step - trainer.num_training_batches
        if step // interval > previous_step // interval:
            self._print(trainer, f"  {numbers}")

    def _print(self, trainer: Trainer, numbers: str) -> None:
        """Print the step and the remaining time."""
        step = trainer.global_step
        seconds_per_step = (monotonic() - self._start_time) / max(1, step - self._start_step)
        seconds = round(seconds_per_step * max(0, trainer.max_steps - step))
        line = f"{self.label}  step {step}/{trainer.max_steps}{numbers}"
        if seconds:
            line += f"  {timedelta(seconds=seconds)} left"
        print(line, file=sys.stderr, flush=True)
        self._line_time = monotonic()

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._bar is not None:
            self._bar.close()

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        self.on_train_end(trainer, pl_module)


def describe(row: dict[str, float]) -> str:
    """Format a row of the curves in one line, as `loss 1.20  mAP 93.1  kappa -1.02 0.13`."""
    parts = []
    kappas = []
    has_validation = False
    for name, value in row.items():
        if name == "step" or name.startswith(PREFIX):
            continue
        if name.startswith("kappa/"):
            kappas.append(f"{value:.2f}")
            continue
        if name.startswith("val/"):
            if has_validation:  # the first metric is enough
                continue
            has_validation = True
        label = "mAP" if name == "map" else name.replace("/", " ")
        parts.append(f"{label} {value:.4g}")
    if kappas:
        ellipsis = " ..." if len(kappas) > 4 else ""
        parts.append(f"kappa {' '.join(kappas[:4])}{ellipsis}")
    return "  ".join(parts)
