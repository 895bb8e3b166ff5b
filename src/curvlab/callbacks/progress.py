"""One progress bar with the numbers that matter."""

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
BAR = "{bar} {n_fmt}/{total_fmt}  {desc}  {rate_noinv_fmt}  {remaining}"


class RunProgress(Callback):
    """Shows the last row of the curves and the time left: a bar, or lines without a terminal."""

    def __init__(self, curves: Curves, label: str, shown: bool) -> None:
        self.curves = curves
        self.label = label
        self.shown = shown
        self._bar: Any = None
        self._started = (0.0, 0)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Open the bar, unless other processes of a sweep would draw over it."""
        step, total = trainer.global_step, trainer.max_steps
        self._started = (monotonic(), step)
        alone = not re.search(r"-\d+$", current_process().name)
        if self.shown and alone and sys.stderr.isatty():
            self._bar = Tqdm(total=total, initial=step, bar_format=BAR, dynamic_ncols=True)

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        if self._bar is not None:
            self._bar.update(trainer.global_step - self._bar.n)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not self.shown or not self.curves.rows:
            return
        numbers = describe(self.curves.rows[-1])
        if self._bar is not None:
            self._bar.set_description_str(numbers)
            return
        steps, every = trainer.global_step, max(1, trainer.max_steps // LINES_WITHOUT_TERMINAL)
        if steps // every > (steps - trainer.num_training_batches) // every:
            began, first = self._started
            rate = (monotonic() - began) / max(1, steps - first)
            left = round(rate * max(0, trainer.max_steps - steps))
            line = f"{self.label}  step {steps}/{trainer.max_steps}  {numbers}"
            line += f"  {timedelta(seconds=left)} left" if left else ""
            print(line, file=sys.stderr, flush=True)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._bar is not None:
            self._bar.close()

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        self.on_train_end(trainer, pl_module)


def describe(row: dict[str, float]) -> str:
    """A row of the curves in one line, for instance `loss 1.20  mAP 93.1  kappa -1.02 0.13`."""
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
