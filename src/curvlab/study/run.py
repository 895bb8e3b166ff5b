"""Run a study, models in several spaces as ordinary runs, and write its answer."""

from collections.abc import Sequence
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
from curvlab.program import format_time
from curvlab.results.folder import TRACEBACK, RunDirectory
from curvlab.results.references import mean_references
from curvlab.results.result import Result
from curvlab.run.command import Command
from curvlab.run.endings import conclude
from curvlab.run.group import end_with_parent, start_context
from curvlab.run.hardware import choose_device, prepare_process
from curvlab.run.parts import build_data
from curvlab.run.reporting import relative_path
from curvlab.run.sections import seeds_from
from curvlab.run.train import train_in
from curvlab.study.flat_counterpart import ModelInSpace, overrides_of_runs, spaces_of
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
    """Run a study and write its answer; runs with a result are not repeated."""
    folder = RunDirectory(Path(HydraConfig.get().runtime.output_dir))
    result = command.initial_result()
    result.experiment = "study"
    with folder.locked(None):
        try:
            overrides = overrides_of_runs(command.overrides)
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
    spaces = {model: spaces_of(model, overrides, options) for model in options.models}
    first = next(iter(spaces.values()))[0].config(config.seed)
    data = build_data(first)
    data.prepare_data()
    facts = graph_facts(data.graph)
    for line in facts.lines():
        console.print(f"  {line}")
    for model, models in spaces.items():
        names = ", ".join(one.space for one in models)
        console.print(f"{model} on {config.dataset.label}: {len(seeds)} runs in {names}")
    console.print(f"runs are in {relative_path(folder / 'runs')}")
    cells = [
        (one.config(seed), folder / "runs" / model / f"{one.space}_{one.dim}" / f"seed{seed}")
        for model, models in spaces.items()
        for one in models
        for seed in seeds
    ]
    all_results = run_cells(cells, config)
    results = iter(all_results)
    rows = {
        model: [row_of(one, [next(results) for _ in seeds]) for one in models]
        for model, models in spaces.items()
    }
    labels = {model: str(models[0].config(0).model.label) for model, models in spaces.items()}
    reports = [_report(labels[model], rows[model]) for model in spaces]
    stored = {
        "dataset": config.dataset.name,
        "label": config.dataset.label,
        "task": first.task.name,
        "metric": str(first.task.get("metric") or "map"),
        "seeds": len(seeds),
        "steps": int(first.trainer.max_steps),
        "overrides": list(overrides),
        "models": list(options.models),
        "references": mean_references(all_results),
    }
    publish(folder, stored, facts, reports)
    return max(report.score for report in reports)


def _report(label: str, rows: Sequence[dict[str, Any]]) -> Report:
    if rows[0]["scores"] is None or all(row["scores"] is None for row in rows[1:]):
        error = next(row["error"] for row in rows if row["error"])
        raise UsageError(f"{label} has no scores in flat space and another to compare: {error}")
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
    started = monotonic()
    with ProcessPoolExecutor(workers, start_context(), initializer=end_with_parent) as pool:
        for result in (map if workers == 1 else pool.map)(run_cell, cells):
            results.append(result)
            done = len(results)
            total = len(cells)
            score = f"{result.score:.2f}" if result.score is not None else result.error
            left = format_time((monotonic() - started) / done * (total - done))
            console.print(
                f"[{done}/{total}] {result.model}, {result.manifold}, seed {result.seed}: {score}"
                + (f", about {left} left" if done < total else "")
            )
    return results


def run_cell(cell: Cell) -> Result:
    """Run one configuration; its result holds an error that ends it."""
    register_resolvers()
    config, folder = cell
    with redirect_stdout(StringIO()):
        return train_in(Command((), config), RunDirectory(folder), multirun=True)


def row_of(one: ModelInSpace, results: Sequence[Result]) -> dict[str, Any]:
    """The runs of a model in a space as a row; see `curvlab.study.verdict`."""
    names = {"space": one.space, "dim": one.dim, "overrides": one.overrides}
    failed = next((result for result in results if result.score is None), None)
    if failed is not None:
        error = f"seed {failed.seed} {failed.status}: {failed.error}"
        return names | {"scores": None, "error": error}
    scores = [float(result.score) for result in results if result.score is not None]
    curvatures = pd.DataFrame([result.curvatures for result in results])
    kappas = {str(k): np.mean(curvatures[k].tolist(), axis=0).tolist() for k in curvatures}
    table = pd.DataFrame([[getattr(r, name) for name in COSTS.values()] for r in results])
    means = dict(zip(COSTS, table.astype(float).mean(), strict=True))
    row = {"scores": scores, "error": None, "mean": mean(scores), "curvatures": kappas}
    return names | row | means
