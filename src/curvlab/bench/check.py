"""What a device shows of curvlab: tests, a run by two processes, cells of tables, benchmarks.

Each function here is the work of one process (`curvlab.bench.apart`) and returns what JSON holds.
"""

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import torch

from curvlab.config.compose import compose
from curvlab.config.folder import CONFIGS
from curvlab.errors import UsageError
from curvlab.results.folder import RunDirectory
from curvlab.results.result import git_commit, package_versions
from curvlab.run.train import train_in
from curvlab.tables.planning import planned_cells, sweep_choices
from curvlab.tasks.cost.timing import calibrate

SHORT = ("trainer.max_steps=100", "trainer.progress=false", "trainer.plots=false")
PAIR = (
    "model=gcn", "model.dropout=0", "dataset=synthetic_large", "dataset.source.num_nodes=20000",
    "batching=partition", "batching.size=1000", *SHORT, "trainer.steps_per_epoch=50",
)  # fmt: skip
"""A run that two processes make as one with two batches a step."""

_TREE = ("dataset=disease_synthetic", "split=random_60_20_20", "trainer.steps_per_epoch=20")
RECORDED = {
    "fpst": ("model=fpst", "dataset=synthetic_web", "trainer.steps_per_epoch=20"),
    "gcn": ("model=gcn", *_TREE),
    "hypformer": ("model=hypformer", *_TREE),
}
"""Runs on small graphs, whose steps are recorded."""


def machine(device: str) -> dict[str, Any]:
    """The device, its software and the time of a product."""
    gpus = torch.cuda.device_count() if device == "cuda" else 0
    there = gpus > 0 or device == "cpu"
    return {
        "devices": [torch.cuda.get_device_name(n) for n in range(gpus)] or [platform.machine()],
        "gpus": gpus,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "versions": package_versions(),
        "cuda": torch.version.cuda,
        "commit": git_commit(),
        "product_ms": calibrate(torch.device(device)) if there else None,
    }


def tests(paths: Sequence[str]) -> dict[str, Any]:
    """Run the tests marked `gpu`: how many ended how, and which failed."""
    with TemporaryDirectory() as folder:
        report = Path(folder, "tests.xml")
        words = ["-q", "-m", "gpu", "-o", "addopts=--strict-markers", f"--junitxml={report}"]
        command = [sys.executable, "-m", "pytest", *words, "-p", "no:cacheprovider", *paths]
        subprocess.run(command, check=False)
        cases = list(ElementTree.parse(report).iter("testcase"))
    failed = [c for c in cases if c.find("failure") is not None or c.find("error") is not None]
    skipped = sum(c.find("skipped") is not None for c in cases)
    return {
        "passed": len(cases) - len(failed) - skipped,
        "skipped": skipped,
        "failed": [f"{case.get('classname')}.{case.get('name')}" for case in failed],
    }


def benchmark(name: str, device: str, runs: int, eager: bool) -> None:
    """Run one of `curvlab bench`, which prints its figures."""
    args = argparse.Namespace(device=device, runs=runs, eager=eager, nodes=None, folder=None)
    import_module(f"curvlab.bench.{name}").run(args)


def own_cells(table: str) -> list[tuple[str, ...]]:
    """The choices of some cells of a table: of the paper's own model, or of any, data sets vary."""
    choices = sweep_choices(CONFIGS, table)
    own = f"model={table.partition('/')[0]}"
    cells = [words for words in choices if own in words] or choices
    by_data = {
        next((w for w in words if w.startswith("dataset=")), ""): words for words in cells[::-1]
    }
    return list(by_data.values())[::-1]


def cell(
    table: str, device: str, cells: Sequence[tuple[str, ...]], words: Sequence[str]
) -> dict[str, Any]:
    """A short run of the first cell that has its data: its score, or why there is none.

    Args:
        table: such as `fpst/fig3`.
        device: of Lightning.
        cells: the choices of each.
        words: what else its command says.
    """
    found: dict[str, Any] = {}
    for choices in cells:
        with TemporaryDirectory() as folder:
            said = (*choices, *words, *_on(device, folder), "seed=0")
            (planned,) = planned_cells(CONFIGS, table, Path(folder), said)
            trainer = planned.config.trainer
            if "validate_every" in trainer:  # which may be a whole pass over triples
                trainer.validate_every = min(trainer.validate_every, trainer.max_steps)
            now = {"cell": " ".join(choices), **_result(planned.config, Path(folder))}
        found = found or now
        if now["score"] is not None:
            return now
    return found


def processes(number: int, device: str, words: Sequence[str]) -> dict[str, Any]:
    """The same run by one process with `number` batches a step, or by `number` with one each.

    Args:
        number: of batches a step.
        device: of Lightning.
        words: of the run, see `PAIR`.
    """
    ways = {
        "one process": (f"batching.accumulate={number}",),
        f"{number} processes": (f"trainer.devices={number}",),
    }
    return _by_ways(ways, device, words)


def recorded(model: str, device: str, words: Sequence[str]) -> dict[str, Any]:
    """The same run with every step launched, and with one that is recorded and replayed.

    Args:
        model: one of `RECORDED`.
        device: of Lightning.
        words: what else its command says.

    Returns:
        Each way's result, and the largest relative difference of their losses.
    """
    ways = {"launched": (), "recorded": ("trainer.cuda_graph=true",)}
    found = _by_ways(ways, device, (*RECORDED[model], *words))
    pairs = list(zip(*(run["losses"] for run in found.values()), strict=False))
    differences = [abs(one - other) / abs(one) for one, other in pairs]
    return {**found, "difference": max(differences, default=None)}


def _by_ways(
    ways: Mapping[str, Sequence[str]], device: str, words: Sequence[str]
) -> dict[str, Any]:
    """A run in several ways, whose words follow its own: the result of each."""
    found = {}
    for name, way in ways.items():
        with TemporaryDirectory() as folder:
            config = compose((*words, *way, *_on(device, folder)))
            found[name] = _result(config, Path(folder))
    return found


def _on(device: str, folder: str) -> tuple[str, ...]:
    return f"trainer.accelerator={device}", f"paths.output_dir={folder}"


def _result(config: Any, folder: Path) -> dict[str, Any]:
    """Train, and return the score, the time of a step and losses, or what is wrong."""
    try:
        result = train_in(config, RunDirectory(folder / "run"), multirun=True)
    except UsageError as error:
        print(error, file=sys.stderr)
        return {"score": None, "error": str(error), "ms_per_step": None, "losses": []}
    curves = folder / "run" / "metrics.csv"
    return {
        "score": result.score,
        "error": result.error,
        "ms_per_step": result.ms_per_step,
        "losses": pd.read_csv(curves)["loss"].tolist() if curves.exists() else [],
    }
