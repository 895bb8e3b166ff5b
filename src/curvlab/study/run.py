"""A study: some models in several spaces, run as ordinary runs, and its page."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from statistics import mean
from time import monotonic
from typing import Any

import numpy as np
import pandas as pd
import torch
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, open_dict

from curvlab.analysis.graph_facts import graph_facts
from curvlab.config.resolvers import register_resolvers
from curvlab.errors import UsageError
from curvlab.program import in_time
from curvlab.results.folder import TRACEBACK, RunDirectory
from curvlab.results.result import Result
from curvlab.run.ending import conclude
from curvlab.run.group import end_with_parent, start_context
from curvlab.run.hardware import prepare_processor, run_device
from curvlab.run.parts import build_data
from curvlab.run.reporting import shown
from curvlab.run.train import describe, train_in
from curvlab.study.floor import Floor, feature_warnings, floor_of
from curvlab.study.page import console, facts_lines, publish
from curvlab.study.twins import FLAT, Twin, given, number_of_runs, trials_of, twins_of
from curvlab.study.verdict import Report, best_of, compared, recommend

TRIAL_SEED = 10_000
"""Added to the first seed: trials are scored on a draw that the comparison does not see."""

Cell = tuple[DictConfig, Path]


class Progress:
    """Runs of a study that have ended, and the time left.

    Args:
        total: number of all runs.
    """

    def __init__(self, total: int) -> None:
        self.total, self.done, self._started = total, 0, monotonic()

    def line(self, result: Result) -> str:
        """Count a run: `[12/148] fpst, sphere, seed 3: 91.20, about 14 min left`."""
        self.done += 1
        score = f"{result.score:.2f}" if result.score is not None else result.error
        what = f"{result.model}, {result.manifold}, seed {result.seed}: {score}"
        left = (monotonic() - self._started) / self.done * max(0, self.total - self.done)
        return f"[{self.done}/{self.total}] {what}" + (
            f", about {in_time(left)} left" if left else ""
        )


def study(config: DictConfig) -> Result:
    """Run a study and write its page.

    Its runs are ordinary ones, in `runs/MODEL/SPACE_DIM/seedN` of the study's folder: those that
    have a result are not repeated, so that a killed study goes on.

    Args:
        config: the composed configuration, with `study`.

    Returns:
        The study's result: its score is the best mean; an error that ended it is in it too.

    Raises:
        HeldError: another worker is at it.
    """
    hydra = HydraConfig.get()
    folder = RunDirectory(Path(hydra.runtime.output_dir))
    result = describe(config)
    result.experiment = "study"
    with folder.locked(None):
        try:
            words = given([str(word) for word in hydra.overrides.task])
            result.score = _study(config, words, folder.path)
            result.status = "finished"
            (folder.path / TRACEBACK).unlink(missing_ok=True)
            result.write(folder.path)
        except Exception as error:
            conclude(result, error, folder)
    return result


def _study(config: DictConfig, words: Sequence[str], folder: Path) -> float:
    """Do the runs that are left, compare them and write the page; return the best score."""
    options = config.study
    prepare_processor(config.trainer.threads)
    twins = {model: twins_of(model, words, options) for model in options.models}
    first = next(iter(twins.values()))[0].config(config.seed)
    data = build_data(first)
    data.prepare_data()
    facts, warnings = graph_facts(data.graph), tuple(feature_warnings(data.graph))
    dim = max(twin.dim for own in twins.values() for twin in own)
    floor = floor_of(first.task.name, first.task.get("metric"), data, dim)
    for line in facts_lines(facts):
        console.print(f"  {line}")
    for model, own in twins.items():
        spaces = ", ".join(twin.space for twin in own)
        console.print(f"{model} on {config.dataset.label}: {options.seeds} runs in {spaces}")
    console.print("\n".join([f"runs are in {shown(folder / 'runs')}", *warnings]))
    total = sum(number_of_runs(len(own), options) for own in twins.values())
    progress = Progress(total)
    reports = [_report(own, config, folder, floor, progress) for own in twins.values()]
    found = {
        "dataset": config.dataset.name,
        "label": config.dataset.label,
        "task": first.task.name,
        "metric": str(first.task.get("metric") or "map"),
        "seeds": options.seeds,
        "steps": int(first.trainer.max_steps),
        "trials": options.trials,
        "words": list(words),
        "models": list(options.models),
    }
    publish(folder, found, facts, floor, warnings, reports)
    return max(report.score for report in reports)


def _report(
    twins: Sequence[Twin],
    config: DictConfig,
    folder: Path,
    floor: Floor | None,
    progress: Progress,
) -> Report:
    """Run all twins of a model and compare them.

    Raises:
        UsageError: the flat twin, or every other one, has no scores.
    """
    chosen = {twin: best_trial(twin, config, folder, progress) for twin in twins}
    table = _outcomes(chosen, config, folder, progress)
    others = table.iloc[1:].dropna(subset="scores")
    errors = table["error"].dropna()
    if 0 in errors or others.empty:
        error = errors.iloc[0]
        raise UsageError(f"model={twins[0].model} has no flat score to compare with: {error}")
    both = (FLAT, best_of(others)["space"])
    cut = {
        twin.narrower(by): values
        for by in config.study.cuts
        for twin, values in chosen.items()
        if twin.space in both and twin.dim // by
    }
    if cut:
        narrower = _outcomes(cut, config, folder, progress).dropna(subset="scores")
        table = pd.concat([table, narrower], ignore_index=True)
    label = str(twins[0].config(config.seed).model.label)
    return recommend(label, compared(table), floor)


def best_trial(twin: Twin, config: DictConfig, folder: Path, progress: Progress) -> tuple[str, ...]:
    """The combination of values that has the best score, by validation where there is one.

    Raises:
        UsageError: no trial has a score.
    """
    if not (trials := trials_of(config.study)):
        return ()
    seed, place = config.seed + TRIAL_SEED, _folder(folder, twin) / "trials"
    cells = [
        (twin.with_words(values).config(seed), place / str(number))
        for number, values in enumerate(trials)
    ]
    scores = np.array(
        [result.objective for result in run_cells(cells, config, progress)], dtype=float
    )
    if np.isnan(scores).all():
        raise UsageError(f"no trial of {twin.model} in {twin.space} space has a score")
    return trials[int(np.nanargmax(scores))]


def _outcomes(
    chosen: Mapping[Twin, tuple[str, ...]], config: DictConfig, folder: Path, progress: Progress
) -> pd.DataFrame:
    """Run twins with the values of their trials over the seeds: a row each."""
    seeds = range(config.seed, config.seed + config.study.seeds)
    cells = [
        (twin.with_words(values).config(seed), _folder(folder, twin) / f"seed{seed}")
        for twin, values in chosen.items()
        for seed in seeds
    ]
    results = iter(run_cells(cells, config, progress))
    return pd.DataFrame(
        outcome_of(twin, values, [next(results) for _ in seeds]) for twin, values in chosen.items()
    )


def _folder(folder: Path, twin: Twin) -> Path:
    return folder / "runs" / twin.model / f"{twin.space}_{twin.dim}"


def run_cells(cells: Sequence[Cell], config: DictConfig, progress: Progress) -> list[Result]:
    """Run configurations in their folders, a process a core, and return their results in order."""
    if not cells:
        return []
    for cell, _ in cells:
        with open_dict(cell):
            cell.rerun, cell.trainer.threads = bool(config.rerun), 1
    device = run_device(cells[0][0].trainer.accelerator).type
    workers = min(len(cells), torch.get_num_threads()) if device == "cpu" else 1
    results = []
    with ProcessPoolExecutor(workers, start_context(), initializer=end_with_parent) as pool:
        for result in (map if workers == 1 else pool.map)(run_cell, cells):
            results.append(result)
            console.print(progress.line(result))
    return results


def run_cell(cell: Cell) -> Result:
    """Run one configuration; an error that ends it is in its result."""
    register_resolvers()
    config, folder = cell
    with redirect_stdout(StringIO()):
        return train_in(config, RunDirectory(folder), multirun=True)


def outcome_of(twin: Twin, values: tuple[str, ...], results: Sequence[Result]) -> dict[str, Any]:
    """The runs of a twin as a row, see `curvlab.study.verdict`; without scores if one has none."""
    own = {"space": twin.space, "dim": twin.dim, "words": twin.words, "chosen": values}
    failed = next((result for result in results if result.score is None), None)
    if failed is not None:
        error = f"seed {failed.seed} {failed.status}: {failed.error}"
        return own | {"scores": None, "error": error}
    scores = [float(result.score) for result in results if result.score is not None]
    curvatures = pd.DataFrame([result.curvatures for result in results])
    kappas = {str(k): np.mean(curvatures[k].tolist(), axis=0).tolist() for k in curvatures}
    costs = {
        "parameters": "parameters",
        "ms_per_step": "ms_per_step",
        "seconds": "wall_seconds",
        "memory_mb": "peak_memory_mb",
    }
    table = pd.DataFrame([[getattr(r, name) for name in costs.values()] for r in results])
    means = dict(zip(costs, table.astype(float).mean(), strict=True))
    row = {"scores": scores, "error": None, "mean": mean(scores), "curvatures": kappas}
    return own | row | means
