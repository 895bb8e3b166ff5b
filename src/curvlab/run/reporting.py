"""Report a run: lines on the terminal, values to its logger, pictures in its folder."""

import logging
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lightning.pytorch.loggers import Logger

from curvlab.callbacks import log_picture
from curvlab.process import DOUBLE
from curvlab.program import plain_console
from curvlab.results.folder import TRACEBACK
from curvlab.results.references import format_references, format_score
from curvlab.results.result import FILE, Result, read_result
from curvlab.results.splits import drawn
from curvlab.statistics import FEWEST_SPREAD, Draw, decimals, split_means, summarise

SHOWN_CURVATURES = 16
REPORTED_AT_RIM = 0.01  # share of points at the rim of a ball from which the report mentions it
METRIC_NAMES = {"map": "mAP", "map_tail": "mean of the last 2,000 steps"}

_reported: set[str] = set()
"""Reference points that a sweep has printed."""

_console = plain_console(soft_wrap=True)


# Lightning's advice for other kinds of loops, and deprecated calls of libraries.
_HIDDEN_WARNINGS = (
    ".*does not have many workers.*",
    ".*number of training batches.*",
    ".*Checkpoint directory.*exists and is not empty.*",
    ".*You called `self.log.*",
    ".*Using `DDPStrategy` during `trainer.test.*",
    ".*It is recommended to use `self.log.*sync_dist=True.*",
    ".*GPU available but not used.*",
    r".*isinstance\(treespec, LeafSpec\).*",
    ".*Sparse invariant checks are implicitly disabled.*",
    ".*The `srun` command is available.*",  # on a machine with SLURM
    ".*TensorFloat32 tensor cores .*",
    ".*The AccumulateGrad node's stream does not match.*",  # in recorded CUDA graphs
)


@contextmanager
def quiet() -> Iterator[None]:
    """Hide Lightning's notes within the block; other warnings pass."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    with warnings.catch_warnings():
        for message in _HIDDEN_WARNINGS:
            warnings.filterwarnings("ignore", message)
        yield


def say(line: str) -> None:
    """Print a line."""
    _console.print(line)


def means_over_seeds(folders: Iterable[Path]) -> None:
    """Print mean and interval of the scores of runs that differ only in the seed."""
    names: dict[Path, str] = {}
    runs: dict[Path, dict[Draw, float]] = {}
    for folder in dict.fromkeys(folders):
        result = read_result(folder)
        if folder.name.startswith("seed") and result is not None and result.score is not None:
            names[folder.parent] = f"{result.model} on {result.dataset}"
            draw = drawn(result.config, result.seed)
            runs.setdefault(folder.parent, {})[draw] = result.score
    for place, scores in runs.items():
        if len(scores) == 1:
            continue
        means = split_means(scores)
        summary = summarise(means)
        digits = decimals(means)
        spread = f"± {summary.student_pm:.{digits}f} (95 % interval of the mean, Student's t)"
        if len(means) < FEWEST_SPREAD:
            spread = f"({', '.join(f'{score:.{digits}f}' for score in means)})"
        count = f"{names[place]}, {len(scores)} seeds"
        if len(means) < len(scores):
            count += f" on {len(means)} splits"
        say(f"{count}: {summary.mean:.{digits}f} {spread}, {relative_path(place)}")


def report_run(result: Result, folder: Path, already: bool = False, in_sweep: bool = False) -> None:
    """Print how a run ended, now or in an earlier command (`already`), and where its files are.

    In a sweep, reference points are printed once for each data set and split.
    """
    outcome = f"{result.status.replace('_', ' ')}: {result.error}"
    if result.status == "finished":
        outcome = ", ".join(  # four digits of a fraction, two of a percentage
            f"{METRIC_NAMES.get(name, name)} {value:.{4 if 0 < abs(value) < 1 else 2}f}"
            for name, value in result.metrics["test"].items()
        )
    if already:
        outcome += f" already, {relative_path(folder / FILE)} (rerun=true repeats it)"
    say(f"{result.model} on {result.dataset}, seed {result.seed}: {outcome}")
    if result.status == "finished" and not already:
        kappas = [f"{k:.3g}" for values in result.curvatures.values() for k in values]
        ellipsis = " ..." if len(kappas) > SHOWN_CURVATURES else ""
        listed = f"curvatures {', '.join(kappas[:SHOWN_CURVATURES])}{ellipsis}, " if kappas else ""
        say(
            f"  {listed}{result.parameters:,} parameters, {result.ms_per_step:.1f} ms a step, "
            f"{result.wall_seconds:.0f} s, {result.peak_memory_mb:,.0f} MB"
        )
        share = result.metrics["test"].get("at_rim", 0.0)  # of knowledge graphs
        if share > REPORTED_AT_RIM:
            remedy = "lower optimizer.lr"
            if result.config["trainer"]["precision"] != DOUBLE:
                remedy = f"use trainer.precision=64-true, whose rim is farther out, or {remedy}"
            say(
                f"  {share:.1%} of the test triples' points are stopped at the rim of the ball, "
                f"where distances are wrong: {remedy}"
            )
    if result.status == "finished" and result.references:
        points = format_references(result.references)
        if not in_sweep or points not in _reported:
            say(f"  reference: {points}; {_place_among(result)}")
        _reported.add(points)
    in_folder = read_result(folder)
    if not already and in_folder is not None and in_folder.config_hash == result.config_hash:
        say(f"  result   {relative_path(folder / FILE)}")
    if (folder / TRACEBACK).exists():
        say(f"  details  {relative_path(folder / TRACEBACK)}")
    for picture in sorted((folder / "plots").glob("*.png")):
        say(f"  picture  {relative_path(picture)}")
    if not already and any((folder / "wandb").glob("offline-run-*")):
        say(f"  W&B      offline, {relative_path(folder / 'wandb')}: upload by curvlab wandb_sync")


def _place_among(result: Result) -> str:
    """Name the reference points that a run's score does not exceed, in printed digits."""
    assert result.score is not None
    score = format_score(result.score)
    equal = []
    better = []
    for name, value in result.references.items():
        if format_score(value) == score:
            equal.append(name)
        elif value > result.score:
            better.append(name)
    places = []
    if better:
        places.append(f"below {_in_words(better)}")
    if equal:
        places.append(f"level with {_in_words(equal)}")
    return f"this model {score} is {', '.join(places) or 'above all of them'}"


def _in_words(points: list[str]) -> str:
    *first, last = [f"the {name}" for name in points]
    return f"{', '.join(first)} and {last}" if first else last


def relative_path(path: Path) -> str:
    """A path as seen from the working directory, if it is below it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def log_result(result: Result, logger: Logger) -> None:
    """Log score and cost."""
    assert result.score is not None
    costs = {
        "ms_per_step": result.ms_per_step,
        "seconds": result.wall_seconds,
        "memory_mb": result.peak_memory_mb,
        "parameters": result.parameters,
    }
    metrics = {f"cost/{name}": float(cost) for name, cost in costs.items() if cost is not None}
    logger.log_metrics({"score": result.score, **metrics}, step=result.steps)


def draw(label: str, folder: Path, logger: Logger | None) -> None:
    """Draw the curves and the embedding; a failure is reported and loses no result."""
    from curvlab.analysis.plots import plot_run

    try:
        pictures = plot_run(folder, title=label)
    except Exception as error:
        say(f"no pictures of {relative_path(folder)}: {type(error).__name__}: {error}")
        return
    for picture in pictures:
        log_picture(logger, picture)
