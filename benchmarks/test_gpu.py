"""What `python -m benchmarks.gpu_check` compares on a GPU, besides the tests marked `gpu`."""

import argparse
import os
import signal
from itertools import product

import pandas as pd
import pytest
import torch

from benchmarks.__main__ import BENCHMARKS, measure
from curvlab.cli.forecast import Forecast
from curvlab.config.compose import compose
from curvlab.config.folder import CONFIGS
from curvlab.errors import UsageError
from curvlab.results.folder import RunDirectory
from curvlab.run.command import Command
from curvlab.run.train import train_in
from curvlab.tables.spec import load_table, table_names

DEVICE = os.environ.get("GPU_CHECK_DEVICE", "cuda")
REDUCED = "GPU_CHECK_REDUCED" in os.environ

SECONDS = 180
"""Of a check, at most: the signal ends its process."""

SHORT = ("trainer.max_steps=20", "trainer.progress=false", "trainer.plots=false")
PAIR = (
    "model=gcn", "model.dropout=0", "dataset=synthetic_large", "dataset.source.num_nodes=20000",
    "batching=partition", "batching.size=1000", *SHORT, "trainer.steps_per_epoch=10",
)  # fmt: skip
"""A run that two processes make as one with two batches a step."""

TINY = ("dataset.source.num_nodes=60", "trainer.max_steps=5", "trainer.steps_per_epoch=5")
TINY_PAIR = (
    "dataset.source.num_nodes=600", "batching.size=100", "trainer.max_steps=4",
    "trainer.steps_per_epoch=2",
)  # fmt: skip


@pytest.fixture(autouse=True)
def time_limit():
    """End a check that hangs, with its process."""
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)


@pytest.fixture
def trained(tmp_path, record_property):
    """Train, note the score and the time of a step, and return score and losses."""

    def train(name, config):
        try:
            result = train_in(Command((), config), RunDirectory(tmp_path / name), multirun=True)
        except UsageError as error:  # of data that cannot be had
            record_property(name, str(error))
            return None, []
        said = result.error or f"score {result.score}, {result.ms_per_step} ms per step"
        record_property(name, said)
        curves = tmp_path / name / "metrics.csv"
        return result.score, pd.read_csv(curves)["loss"].tolist() if curves.exists() else []

    return train


@pytest.mark.skipif(DEVICE == "cuda" and torch.cuda.device_count() < 2, reason="one GPU")
def test_two_processes(trained, record_property, tmp_path):
    found = {}
    for name, way in {"one": "batching.accumulate=2", "two": "trainer.devices=2"}.items():
        on = (f"trainer.accelerator={DEVICE}", f"paths.output_dir={tmp_path}")
        found[name] = trained(name, compose((*PAIR, *(TINY_PAIR if REDUCED else ()), way, *on)))
    (one, losses), (two, others) = found.values()
    pairs = zip(losses, others, strict=False)
    difference = max((abs(a - b) / abs(a) for a, b in pairs), default=None)
    record_property("difference of losses", difference)
    assert None not in (one, two)


@pytest.mark.parametrize("name", ["pairwise"] if REDUCED else BENCHMARKS)
def test_benchmark(name):
    runs = 1 if REDUCED else 10
    measure(name, argparse.Namespace(device=torch.device(DEVICE), runs=runs, eager=REDUCED))


def own_cells(table):
    """The choices of a cell for each data set of a table: of the paper's own model, or of any."""
    spec = load_table(CONFIGS, table)[0]
    row, column = (path.removesuffix(".name") for path in (spec.report.rows, spec.report.columns))
    pairs = product(spec.planned_rows, spec.planned_columns)
    choices = [(f"{row}={one}", f"{column}={other}") for one, other in pairs]
    cells = [words for words in choices if f"model={table.partition('/')[0]}" in words] or choices
    by_data = {}
    for words in cells:
        by_data.setdefault(next((w for w in words if w.startswith("dataset=")), ""), words)
    return list(by_data.values())


@pytest.mark.parametrize("table", ["fpst/fig3"] if REDUCED else table_names(CONFIGS))
def test_cell(trained, tmp_path, table):
    """The first cell whose data are at hand has a score on the device and on the processor."""
    words = (*SHORT, *(TINY if REDUCED else ()), "seed=0", f"paths.output_dir={tmp_path}")
    for choices in [("model=fpst", "dataset=synthetic_web")] if REDUCED else own_cells(table):
        score = {}
        for place, on in (("processor", "cpu"), ("device", DEVICE)):
            given = (*choices, *words, f"trainer.accelerator={on}")
            forecast = Forecast([f"table={table}", *given])
            config = forecast.complete(forecast.cells[0]).config
            trainer = config.trainer
            if "validate_every" in trainer:  # which may be a whole pass over triples
                trainer.validate_every = min(trainer.validate_every, trainer.max_steps)
            score[place], _ = trained(f"{place}: {' '.join(choices)}", config)
            if score["processor"] is None:
                break
        else:
            assert score["device"] is not None
            return
    pytest.skip("no data are at hand")
