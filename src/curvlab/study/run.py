"""Run a study: models in several spaces, as ordinary runs, and an answer."""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from io import StringIO
from itertools import islice
from pathlib import Path
from statistics import mean
from time import monotonic
from typing import Any

import numpy as np
import pandas as pd
import torch
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf, open_dict

from curvlab.analysis.graph_facts import graph_facts
from curvlab.config.resolvers import register_resolvers
from curvlab.config.validation import check_keys
from curvlab.errors import UsageError
from curvlab.program import format_time
from curvlab.results.folder import TRACEBACK, RunDirectory
from curvlab.results.references import mean_references
from curvlab.results.result import Result
from curvlab.results.splits import drawn
from curvlab.run.command import Command
from curvlab.run.endings import conclude
from curvlab.run.group import end_with_parent, start_context
from curvlab.run.hardware import choose_device, prepare_process
from curvlab.run.parts import build_data
from curvlab.run.reporting import relative_path
from curvlab.run.sections import seeds_from
from curvlab.run.train import train_in
from curvlab.statistics import split_means
from curvlab.study.flat_counterpart import ModelInSpace, models_in_spaces, run_overrides
from curvlab.study.page import console, publish
from curvlab.study.verdict import Report, compare, recommend

Cell = tuple[DictConfig, Path]

COSTS = {
    "parameters": "parameters",
    "ms_per_step": "ms_per_step",
    "seconds": "wall_seconds",
    "memory_mb": "peak_memory_mb",
}


def study(command: Command) -> Result:
    """Run a study and write its answer; finished runs are not repeated."""
    check_keys(command.config)
    folder = RunDirectory(Path(HydraConfig.get().runtime.output_dir))
    result = command.initial_result()
    result.experiment = "study"
    with folder.locked(None):
        try:
            overrides = run_overrides(command.overrides)
            folder.prepare(result, fresh=False)
            result.score = _study(command.config, overrides, folder.path)
            result.status = "finished"
            (folder.path / TRACEBACK).unlink(missing_ok=True)
            result.write(folder.path)
        except Exception as error:
            conclude(result, error, folder)
    return result


def _study(config: DictConfig, overrides: Sequence[str], folder: Path) -> float:
    options = config.study
    seeds = seeds_from(options.seeds, config.seed)
    device = choose_device(config.trainer.accelerator, config.trainer.precision)
    prepare_process(config.trainer.threads, device)
    models = {name: models_in_spaces(name, overrides, options) for name in options.models}
    first = models[options.models[0]][0].config(config.seed)
    data = build_data(first)
    data.prepare_data()
    facts = graph_facts(data.graph)
    for line in facts.lines():
        console.print(f"  {line}")
    for name, members in models.items():
        spaces = ", ".join(member.space for member in members)
        console.print(f"{name} on {config.dataset.label}: {len(seeds)} runs in {spaces}")
    run_folder = folder / "runs"
    console.print(f"runs are in {relative_path(run_folder)}")
    cells = list[Cell]()
    for name, members in models.items():
        for member in members:
            space_folder = run_folder / name / f"{member.space}_{member.dim}"
            cells += [(member.config(seed), space_folder / f"seed{seed}") for seed in seeds]
    results = run_cells(cells, config)
    remaining = iter(results)
    reports = list[Report]()
    for members in models.values():
        rows = [summarise_runs(member, [*islice(remaining, len(seeds))]) for member in members]
        reports.append(_report(str(members[0].config(0).model.label), rows))
    settings = {
        "dataset": config.dataset.name,
        "label": config.dataset.label,
        "task": first.task.name,
        "metric": str(first.task.get("metric") or "map"),
        "seeds": len(seeds),
        "steps": int(first.trainer.max_steps),
        "overrides": list(overrides),
        "models": list(options.models),
        "spaces": OmegaConf.to_container(options.spaces),
        "defaults": {"dim": options.dim, "overrides": list(options.get("overrides") or ())},
        "references": mean_references(results),
    }
    publish(folder, settings, facts, reports)
    return max(report.score for report in reports)


def _report(label: str, rows: Sequence[dict[str, Any]]) -> Report:
    if rows[0]["scores"] is None or all(row["scores"] is None for row in rows[1:]):
        error = next(row["error"] for row in rows if row["error"])
        raise UsageError(
            f"{label} needs scores in flat space and in another space; the first failure: {error}"
        )
    return recommend(label, compare(pd.DataFrame(rows)))


def run_cells(cells: Sequence[Cell], config: DictConfig) -> list[Result]:
    """Run configurations in their folders, one process per core; return the results in order."""
    for cell, _ in cells:
        with open_dict(cell):
            cell.rerun = bool(config.rerun)
            cell.trainer.threads = 1
    options = cells[0][0].trainer
    workers = 1
    if choose_device(options.accelerator, options.precision).type == "cpu":
        workers = min(len(cells), torch.get_num_threads())
    results: list[Result] = []
    start = monotonic()
    total = len(cells)
    with ProcessPoolExecutor(workers, start_context(), initializer=end_with_parent) as pool:
        run_all = map if workers == 1 else pool.map
        for result in run_all(run_cell, cells):
            results.append(result)
            count = len(results)
            seconds_per_cell = (monotonic() - start) / count
            score = f"{result.score:.2f}" if result.score is not None else result.error
            line = (
                f"[{count}/{total}] {result.model}, {result.manifold}, seed {result.seed}: {score}"
            )
            if count < total:
                line += f", about {format_time(seconds_per_cell * (total - count))} left"
            console.print(line)
    return results


def run_cell(cell: Cell) -> Result:
    """Run one configuration; if it fails, the result has the error."""
    register_resolvers()
    config, folder = cell
    with redirect_stdout(StringIO()):
        return train_in(Command((), config), RunDirectory(folder), multirun=True)


def summarise_runs(model: ModelInSpace, results: Sequence[Result]) -> dict[str, Any]:
    """The runs of a model in a space as a row; see `curvlab.study.verdict`."""
    row: dict[str, Any] = {"space": model.space, "dim": model.dim, "overrides": model.overrides}
    by_draw = {}
    for result in results:
        if result.score is None:
            error = f"seed {result.seed} {result.status}: {result.error}"
            return row | {"scores": None, "error": error}
        by_draw[drawn(result.config, result.seed)] = float(result.score)
    scores = split_means(by_draw)
    kappas = {}
    for layer in results[0].curvatures:
        values = [result.curvatures[layer] for result in results]
        kappas[layer] = np.mean(values, axis=0).tolist()
    row |= {"scores": scores, "error": None, "mean": mean(scores), "curvatures": kappas}
    for column, field in COSTS.items():
        costs = pd.Series([getattr(result, field) for result in results], dtype=float)
        row[column] = costs.mean()
    return row
