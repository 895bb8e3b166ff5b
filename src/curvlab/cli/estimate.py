"""Estimate the cost of a table's unfinished cells from a few steps of each."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch
from omegaconf import DictConfig
from rich.console import Console
from rich.progress import track

from curvlab.config.rules import validate
from curvlab.errors import UsageError
from curvlab.run.ending import one_sentence
from curvlab.run.hardware import run_device
from curvlab.run.parts import build_data, build_task
from curvlab.run.reporting import quiet
from curvlab.tables.planning import PlannedCell, check_cells, planned_cells
from curvlab.tasks.cost.timing import median_ms, training_step


@dataclass(frozen=True)
class Cost:
    """The cost of a run of a cell, at most.

    Attributes:
        step_ms: one optimiser step.
        look_ms: one validation, which may choose the weights or only is a point of the curve.
        seconds: of a run that patience does not end early.
    """

    step_ms: float
    look_ms: float
    seconds: float


def cost(config: DictConfig, device: torch.device, runs: int = 3) -> Cost:
    """Build a run, take a few steps of it, and multiply.

    Raises:
        UsageError: what the run itself would say, such as which file is missing.
    """
    validate(config)
    torch.manual_seed(config.seed)
    data = build_data(config)
    data.prepare_data()
    data.setup()
    task = build_task(config, data).to(device)
    batch = data.transfer_batch_to_device(next(iter(data.train_dataloader())), device, 0)
    seen = data.evaluation_batch(batch)

    @torch.no_grad()
    def look() -> None:
        task.on_train_batch_start(seen, 0)
        if task.selects_checkpoint:
            task.validation_score(seen)
        else:
            task.validation_step(seen, 0)

    step_ms = data.accumulate * median_ms({"": training_step(task, batch)}, device, runs)[""]
    task.eval()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*You are trying to `self.log.*")  # without a trainer
        look_ms = median_ms({"": look}, device, runs)[""]
    trainer = config.trainer
    if task.selects_checkpoint:
        looks = trainer.max_steps / trainer.validate_every
    else:  # after each epoch, and the test
        looks = trainer.max_steps / min(trainer.steps_per_epoch, trainer.max_steps) + 1
    return Cost(step_ms, look_ms, (trainer.max_steps * step_ms + looks * look_ms) / 1e3)


def parse_budget(text: str) -> float:
    """Seconds of `90s`, `30m`, `2h` or `1.5d`.

    Raises:
        UsageError: it is none of these, or less than a second.
    """
    try:
        seconds = float(pd.Timedelta(text.replace("d", "D")).total_seconds())
    except ValueError:
        seconds = 0.0
    if not seconds >= 1:
        raise UsageError(f"--budget={text} must be more than 0, such as 90s, 30m, 2h or 1.5d")
    return seconds


def within_budget(
    cells: Sequence[tuple[PlannedCell, Cost]], budget: float
) -> list[tuple[PlannedCell, list[int]]]:
    """Which cells and seeds to run within a budget, so that the table fills evenly.

    Every cell gets a first seed before any gets a second, counting those that are done, the
    cheapest first; what no longer fits is left out. What is only copied costs nothing.

    Returns:
        Cells with their seeds, in the order of `cells`.
    """
    offers = []
    for i, (cell, of_cell) in enumerate(cells):
        copied_first = sorted(cell.seeds, key=lambda seed: seed not in cell.copies)
        for k, seed in enumerate(copied_first, start=cell.done):
            offers.append((k, 0.0 if seed in cell.copies else of_cell.seconds, i, seed))
    chosen: dict[int, list[int]] = {}
    left = budget
    for _, seconds, i, seed in sorted(offers):
        if seconds <= left:
            left -= seconds
            chosen.setdefault(i, []).append(seed)
    return [(cells[i][0], sorted(seeds)) for i, seeds in sorted(chosen.items())]


def obstacles(cells: Sequence[tuple[PlannedCell, str]]) -> list[str]:
    """Reasons why cells cannot run, with their number and some names."""
    names: dict[str, list[str]] = {}
    for cell, reason in cells:
        names.setdefault(reason, []).append(cell.name)
    lines = []
    for reason, own in names.items():
        some = own if len(own) <= 3 else [own[0], "...", own[-1]]
        which = f"{len(own)} cells ({'; '.join(some)})" if len(own) > 1 else own[0]
        lines.append(f"not here, {which}: {reason}")
    return lines


def estimate(
    configs: Path, table: str, results: Path, words: Sequence[str], device: str, budget: str | None
) -> Iterator[str]:
    """Lines of the output of `curvlab tables estimate`, each as soon as it is known.

    Ctrl-C ends the timing; the sum, or the commands, are of the cells timed until then.

    Args:
        configs: the folder of configurations.
        table: for instance `fpst/fig3`.
        results: the folder of all tables' runs.
        words: which cells, and what is different in them.
        device: of Lightning: auto, cpu, cuda, mps.
        budget: see `parse_budget`; None prints costs instead of commands.

    Raises:
        UsageError: the words name no cells, the device or the budget are wrong, or nothing fits
            into it.
    """
    limit = None if budget is None else parse_budget(budget)
    check_cells(configs, table, words)
    known: list[tuple[PlannedCell, Cost]] = []
    kept: list[tuple[PlannedCell, str]] = []
    hours, planned = 0.0, planned_cells(configs, table, results, words)
    width = max((len(cell.name) for cell in planned), default=0)
    if limit is None:
        yield f"{'cell':<{width}}  runs  ms a step  ms a look  hours a run    hours"
    screen, ended = Console(stderr=True), ""
    try:
        for cell in track(planned, f"timing steps of {table}", console=screen, transient=True):
            try:
                with quiet():
                    found = cost(cell.config, run_device(device))
            except (UsageError, RuntimeError, ArithmeticError, MemoryError) as error:
                kept.append((cell, one_sentence(error)))  # as its result would say
                continue
            known.append((cell, found))
            own = found.seconds / 3600 * (len(cell.seeds) - len(cell.copies))
            hours += own
            if limit is None:
                yield (
                    f"{cell.name:<{width}}  {len(cell.seeds):>4}  {found.step_ms:>9.1f}  "
                    f"{found.look_ms:>9.1f}  {found.seconds / 3600:>11.2f}  {own:>7.2f}"
                )
    except KeyboardInterrupt:
        ended = f"Interrupted after {len(known) + len(kept)} of {len(planned)} cells. "
    if limit is not None:
        fitting = within_budget(known, limit)
        yield from (cell.command(table, seeds) for cell, seeds in fitting)
        if fitting:
            return
        least = min((found.seconds for _, found in known), default=None)
        if least is None:
            raise UsageError(f"--budget={budget}: no unfinished cell of {table} can run here")
        raise UsageError(f"--budget={budget}: the cheapest run of {table} takes {least:,.0f} s")
    runs = sum(len(cell.seeds) for cell, _ in known)
    yield f"{'all that can run here':<{width}}  {runs:>4}  {hours:>41.2f}"
    yield from (f"\n{line}" for line in obstacles(kept))
    yield (
        f"\n{ended}On {run_device(device)}, {torch.get_num_threads()} threads. At most: runs that "
        "patience ends early take less; looks are validations. Runs that are only copied cost "
        "nothing."
    )
