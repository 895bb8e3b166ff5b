"""Cells of tables as runs fill them, in the table that is made of them."""

import dataclasses
import shutil
from pathlib import Path

import pytest
from hydra.types import RunMode
from tiny_runs import TREE

from composing import ROOT
from curvlab.results.result import read_result
from curvlab.tables.add import add_runs

CLASSIFICATION = ("table=fpst/table1", *TREE, "split.draw=0", "trainer.max_steps=5")
CLASSIFICATION = (*CLASSIFICATION, "trainer.plots=false")


@pytest.fixture
def cell(run_here):
    """Run one cell of a table's sweep, in the folder of that table."""

    def run(*words):
        name = words[0].partition("=")[2]
        model, seed = words[-2:]
        return run_here(*words, folder=f"tables/{name}/{model}/{seed}", mode=RunMode.MULTIRUN)

    return run


def test_a_sweep_goes_on_from_a_table_of_runs(cell, tmp_path, monkeypatch):
    words = (*CLASSIFICATION, "model=gcn", "seed=0")
    first, tables = cell(*words), tmp_path / "tables"
    added = add_runs(tables, tmp_path / "kept").added
    assert added == ["fpst/table1/model=gcn/seed=0"]
    shutil.rmtree(tables)
    (tmp_path / "kept").rename(tables)
    monkeypatch.setattr("curvlab.run.train.run", None)
    assert cell(*words) == first


def test_a_cell_of_two_tables_is_run_once(cell, tmp_path, capsys, monkeypatch):
    words = (*CLASSIFICATION[1:], "model=gcn", "seed=0")
    first = cell("table=fpst/table1", *words)
    monkeypatch.setattr("curvlab.run.train.run", None)
    second = cell("table=hypformer/table2", *words)
    assert second.config_hash == first.config_hash
    assert second == dataclasses.replace(first, experiment="hypformer/table2")
    own = tmp_path / "tables/hypformer/table2/model=gcn/seed=0"
    assert read_result(own) == second
    assert (own / "metrics.csv").read_bytes()
    assert "copying the same run from" in capsys.readouterr().out
    again = cell("table=hypformer/table2", "rerun=true", *words)
    assert "'NoneType' object is not callable" in again.error


TABLES = ROOT / "docs" / "results" / "tables"
BY_DAY = [
    ("fpst/table1", "gcn", "texas", 8),
    ("fpst/table1", "kappa_gcn", "texas", 1),
    ("fpst/table1", "tokengt", "texas", 3),
]
BY_NIGHT = [
    ("fpst/table1", "fpst", "cornell", 1),
    ("hypformer/table2", "hybonet", "citeseer__per_class", 3),
    ("polyformer/table3", "unifilter_mono", "citeseer__quota", 3),
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("table", "model", "dataset", "seed"),
    [*BY_DAY, *(pytest.param(*cell, marks=pytest.mark.nightly) for cell in BY_NIGHT)],
)
def test_a_stored_cell_repeats(table, model, dataset, seed, command, mirror):
    """Rounding, which differs between processors, may move one test node of these small graphs."""
    words = (f"table={table}", f"model={model}", f"dataset={dataset}", f"seed={seed}")
    command("-m", *words, f"paths.mirror={mirror}", "trainer.plots=false")
    cell = Path(table, dataset, model, f"seed{seed}")
    stored, found = read_result(TABLES / cell), read_result(command.outputs / "tables" / cell)
    assert found.config_hash == stored.config_hash
    node = 100 / stored.config["dataset"]["source"]["statistics"]["num_nodes"] * 5
    assert found.score == pytest.approx(stored.score, abs=node + 1e-4)
    assert found.best_step == pytest.approx(stored.best_step, abs=1)
