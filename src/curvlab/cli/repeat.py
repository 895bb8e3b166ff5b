"""Repeat stored runs of tables and compare their scores."""

import io
import logging
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from omegaconf import open_dict

from curvlab.config.compose import compose
from curvlab.results.folder import RunDirectory
from curvlab.run.command import Command
from curvlab.run.hardware import prepare_process
from curvlab.run.train import train_in
from curvlab.tables.planning import cell_words
from curvlab.tables.repeat import Stored, repeat_row

log = logging.getLogger(__name__)


def repeat(configs: Path, runs: Sequence[Stored]) -> Iterator[dict[str, Any]]:
    """Repeat stored runs with one thread, outside of their folder; yield a row for each run."""
    for run in runs:
        overrides = cell_words(configs, run.table, run.result)
        quiet = ["trainer.threads=1", "trainer.progress=false", "trainer.plots=false"]
        with TemporaryDirectory(prefix="curvlab-repeat-") as folder:
            where = [f"paths.output_dir='{folder}'", "rerun=true"]
            command = Command((), compose([*overrides, *quiet, *where], configs))
            if command.config_hash != run.result["config_hash"]:
                continue  # today's command builds something else: the run is in outdated.csv
            with open_dict(command.config):
                command.config.experiment = run.table
            prepare_process(1, torch.device("cpu"))
            with redirect_stdout(io.StringIO()):
                result = train_in(command, RunDirectory(Path(folder, "run")), multirun=True)
        if result.score is None:  # for instance without its data
            error = f"{run.table}/{run.run} ended as {result.status}: {result.error}"
            log.warning("not repeated: %s", error)
            continue
        yield repeat_row(run, result.score)
