"""A study: twins of some models in several spaces, run as ordinary runs, and its page."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from statistics import mean

import torch
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, open_dict

from curvlab.analysis.graph_facts import graph_facts
from curvlab.config.resolvers import register_resolvers
from curvlab.errors import UsageError
from curvlab.results.folder import TRACEBACK, RunDirectory
from curvlab.results.result import Result
from curvlab.run.distributed import end_with_parent, start_context
from curvlab.run.ending import conclude
from curvlab.run.hardware import prepare_processor, run_device
from curvlab.run.parts import build_data
from curvlab.run.train import describe, train_in
from curvlab.study import page
from curvlab.study.floor import Floor, feature_warnings, floor_of
from curvlab.study.twins import Twin, given, trials_of, twins_of
from curvlab.study.verdict import (
    ModelReport,
    Outcome,
    best_curved,
    compared,
    overall,
    verdict,
)

TRIAL_SEED = 10_000
"""Added to the first seed: trials are scored on a draw that the comparison does not see."""

Cell = tuple[DictConfig, Path]


def study(config: DictConfig) -> Result:
    """Run a study and write its page.

    Its runs are ordinary ones, in `runs/MODEL/SPACE_DIM/seedN` of the study's folder: those that
    have a result are not repeated, so that a killed study goes on.

    Args:
        config: the composed configuration, with `study`.

    Returns:
        The study's result: its score is the best mean, whatever ended it is in it too.

    Raises:
        HeldError: another worker is at it.
    """
    hydra = HydraConfig.get()
    folder = RunDirectory(Path(hydra.runtime.output_dir))
    result = describe(config)
    result.experiment = "study"
    with folder.claimed(None):
        try:
            _study(config, [str(word) for word in hydra.overrides.task], result, folder.path)
        except Exception as error:
            conclude(result, error, folder)
    return result


def _study(config: DictConfig, words: Sequence[str], result: Result, folder: Path) -> None:
    """Run what is left and write page and result."""
    words, options = given(words), config.study
    prepare_processor(config.trainer.threads)
    twins = {model: twins_of(model, words, options) for model in options.models}
    first = next(iter(twins.values()))[0].config(config.seed)
    data = build_data(first)
    data.prepare_data()
    facts, warnings = graph_facts(data.graph), tuple(feature_warnings(data.graph))
    dim = max(twin.dim for own in twins.values() for twin in own)
    floor = floor_of(first.task.name, first.task.get("metric"), data, dim)
    page.starting(config, twins, facts, folder)
    page.warn(warnings)
    reports = [
        _model_report(own, options, config.seed, folder, bool(config.rerun), floor)
        for own in twins.values()
    ]
    found = page.Study(
        dataset=config.dataset.name,
        label=config.dataset.label,
        task=first.task.name,
        metric=str(first.task.get("metric") or "map"),
        seeds=options.seeds,
        steps=int(first.trainer.max_steps),
        trials=options.trials,
        words=tuple(words),
        facts=facts,
        floor=floor,
        warnings=warnings,
        reports=tuple(reports),
        answer=overall(reports),
    )
    page.write(found, folder)
    result.status = "finished"
    result.score = max(report.recommended.mean for report in reports)
    (folder / TRACEBACK).unlink(missing_ok=True)
    result.write(folder)
    page.show(found, folder)


def _model_report(
    twins: Sequence[Twin],
    options: DictConfig,
    seed: int,
    folder: Path,
    rerun: bool,
    floor: Floor | None,
) -> ModelReport:
    """Run all twins of a model and compare them.

    Raises:
        UsageError: the flat twin, or every other one, has no scores.
    """
    seeds = range(seed, seed + options.seeds)
    trials = trials_of(options)
    chosen = {
        twin: best_trial(twin, trials, seed + TRIAL_SEED, folder, rerun) if trials else ()
        for twin in twins
    }
    outcomes = _outcomes(chosen, seeds, folder, rerun)
    flat, *others = outcomes
    scored = [outcome for outcome in others if not outcome.error]
    if flat.error or not scored:
        error = flat.error or others[0].error
        raise UsageError(f"model={flat.model} has no {flat.space} score to compare with: {error}")
    comparisons = compared(flat, scored)
    best = best_curved(comparisons)
    assert best is not None
    both = [twin for twin in twins if twin.space in (best.outcome.space, flat.space)]
    cut = {
        twin.narrower(by): chosen[twin] for by in options.cuts for twin in both if twin.dim // by
    }
    narrower = _outcomes(cut, seeds, folder, rerun)
    return ModelReport(
        flat,
        comparisons,
        tuple(outcome for outcome in others if outcome.error),
        compared(flat, [outcome for outcome in narrower if not outcome.error]),
        verdict(flat, comparisons, floor),
    )


def best_trial(
    twin: Twin, trials: Sequence[tuple[str, ...]], seed: int, folder: Path, rerun: bool = False
) -> tuple[str, ...]:
    """The combination of values that has the best score, by validation where there is one.

    Raises:
        UsageError: no trial has a score.
    """
    cells = [
        (twin.with_words(values).config(seed), _folder(folder, twin) / "trials" / str(number))
        for number, values in enumerate(trials)
    ]
    results = run_cells(cells, rerun)
    scored = [
        (result.objective, -number)
        for number, result in enumerate(results)
        if result.objective is not None
    ]
    if not scored:
        raise UsageError(f"no trial of {twin.model} in {twin.space} space has a score")
    return trials[-max(scored)[1]]


def _outcomes(
    chosen: Mapping[Twin, tuple[str, ...]], seeds: Sequence[int], folder: Path, rerun: bool
) -> list[Outcome]:
    """Run twins over the seeds and gather what they came to."""
    cells = [
        (twin.with_words(values).config(seed), _folder(folder, twin) / f"seed{seed}")
        for twin, values in chosen.items()
        for seed in seeds
    ]
    results = run_cells(cells, rerun)
    parts = [results[i : i + len(seeds)] for i in range(0, len(results), len(seeds))]
    return [
        outcome_of(twin, values, part, str(cell[0].model.label))
        for (twin, values), part, cell in zip(
            chosen.items(), parts, cells[:: len(seeds)], strict=True
        )
    ]


def _folder(folder: Path, twin: Twin) -> Path:
    return folder / "runs" / twin.model / f"{twin.space}_{twin.dim}"


def run_cells(cells: Sequence[Cell], rerun: bool = False) -> list[Result]:
    """Run configurations in their folders, a process a core, and return their results in order."""
    if not cells:
        return []
    for config, _ in cells:
        with open_dict(config):
            config.rerun, config.trainer.threads = rerun, 1
    device = run_device(cells[0][0].trainer.accelerator).type
    workers = min(len(cells), torch.get_num_threads()) if device == "cpu" else 1
    done = page.counted(len(cells))
    if workers == 1:
        return [done(run_cell(cell)) for cell in cells]
    with ProcessPoolExecutor(workers, start_context(), initializer=end_with_parent) as pool:
        return [done(result) for result in pool.map(run_cell, cells)]


def run_cell(cell: Cell) -> Result:
    """Run one configuration; an error that ends it is in its result."""
    register_resolvers()
    config, folder = cell
    with redirect_stdout(StringIO()):
        return train_in(config, RunDirectory(folder), multirun=True)


def outcome_of(
    twin: Twin, values: tuple[str, ...], results: Sequence[Result], label: str
) -> Outcome:
    """What a twin's runs came to; without scores if one of them has none."""
    own = Outcome(twin.model, label, twin.space, twin.dim, twin.words, values)
    without = next((result for result in results if result.score is None), None)
    if without is not None:
        return replace(own, error=f"seed {without.seed} {without.status}: {without.error}")
    names = results[0].curvatures
    kappas = {
        name: tuple(
            mean(column) for column in zip(*(r.curvatures[name] for r in results), strict=True)
        )
        for name in names
    }
    every = [kappa for r in results for component in r.curvatures.values() for kappa in component]
    return replace(
        own,
        scores=tuple(result.score for result in results if result.score is not None),
        curvatures=kappas,
        negative=mean(kappa < 0 for kappa in every) if every else None,
        parameters=results[0].parameters,
        ms_per_step=_mean(results, lambda r: r.ms_per_step),
        seconds=_mean(results, lambda r: r.wall_seconds),
        memory_mb=_mean(results, lambda r: r.peak_memory_mb),
    )


def _mean(results: Sequence[Result], read: Callable[[Result], float | None]) -> float | None:
    values = [value for result in results if (value := read(result)) is not None]
    return mean(values) if values else None
