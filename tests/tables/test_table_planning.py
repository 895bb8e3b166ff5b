"""What a sweep still has to run, and what of it fits into a budget."""

import json
from pathlib import Path

import pytest
import torch

from curvlab.cli.estimate import Cost, cost, obstacles, parse_budget, within_budget
from curvlab.errors import UsageError
from curvlab.results.identity import identity_hash, revisions_of, stored
from curvlab.tables.planning import PlannedCell, planned_cells

SOME = ("model=gcn,mlp", "dataset=texas", "seed=0,1,2")


def finish(cell, seed, folder, status="finished"):
    """Write the result of one run of a cell."""
    cell.config.seed = seed
    result = {
        "status": status, "model": "gcn", "dataset": "texas", "task": "", "manifold": "",
        "seed": seed, "experiment": None, "config": stored(cell.config),
        "config_hash": identity_hash(stored(cell.config)),
        "revisions": revisions_of(stored(cell.config)),
    }  # fmt: skip
    path = folder / "fpst/table1/texas/gcn" / f"seed{seed}" / "result.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(result))
    (path.parent / "config.yaml").write_text(f"config_hash: {result['config_hash']}\n")


def test_a_table_without_results_has_all_its_cells(configs, tmp_path):
    cells = planned_cells(configs, "fpst/table1", tmp_path, SOME)
    assert [(cell.name, cell.seeds) for cell in cells] == [
        ("gcn, texas", (0, 1, 2)),
        ("mlp, texas", (0, 1, 2)),
    ]
    assert cells[0].command("fpst/table1", (0, 2)) == (
        "curvlab train -m table=fpst/table1 model=gcn dataset=texas seed=0,2"
    )


@pytest.mark.slow
def test_runs_of_this_very_configuration_are_done(configs, tmp_path):
    gcn, _ = planned_cells(configs, "fpst/table1", tmp_path, SOME)
    finish(gcn, 1, tmp_path)
    finish(gcn, 2, tmp_path, status="failed")
    gcn, mlp = planned_cells(configs, "fpst/table1", tmp_path, SOME)
    assert (gcn.seeds, mlp.seeds) == ((0, 2), (0, 1, 2))
    other, _ = planned_cells(configs, "fpst/table1", tmp_path, (*SOME, "optimizer.lr=0.5"))
    assert other.seeds == (0, 1, 2)
    assert other.config.optimizer.lr == 0.5
    assert "optimizer.lr=0.5" in other.command("fpst/table1", other.seeds)
    assert other.name == "gcn, texas"


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("30m", 1800), ("2h", 7200), ("1.5d", 129600)]
)
def test_budgets(text, seconds):
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["2", "h", "-1h", "soon", ""])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(UsageError, match="2h"):
        parse_budget(text)


def test_what_keeps_cells_from_running_is_said_once_for_all():
    names = ("gcn", "gat", "sgc", "sage", "mlp")
    reasons = (*["cora is missing"] * 4, "mlp has no edges")
    cells = [PlannedCell((f"model={name}",), (0,), None) for name in names]
    assert obstacles(list(zip(cells, reasons, strict=True))) == [
        "not here, 4 cells (gcn; ...; sage): cora is missing",
        "not here, mlp: mlp has no edges",
    ]


@pytest.mark.parametrize(
    ("budget", "chosen"),
    [
        (5, {"here": [1, 2]}),  # which only are copied
        (30, {"here": [1, 2], "quick": [0], "one": [4]}),
        (80, {"here": [1, 2], "slow": [0], "quick": [0], "one": [4]}),
        (95, {"here": [1, 2], "slow": [0], "quick": [0, 1], "one": [4]}),
        (1000, {"here": [0, 1, 2], "slow": [0, 1, 2], "quick": [0, 1, 2], "one": [4], "most": [4]}),
    ],
)
def test_a_budget_gives_every_cell_a_seed_before_any_gets_two(budget, chosen):
    cells = [
        planned("here", 500, copies=(1, 2)),
        planned("slow", 50),
        planned("quick", 10),
        planned("one", 20, seeds=(4,)),
        planned("most", 90, seeds=(4,), done=4),
    ]
    found = {cell.overrides[0][6:]: seeds for cell, seeds in within_budget(cells, budget)}
    assert found == chosen


def planned(name, seconds, seeds=(0, 1, 2), **options):
    return PlannedCell((f"model={name}",), seeds, None, **options), Cost(1.0, 0.0, seconds)


def test_runs_that_another_table_has_are_known_as_copies(configs, tmp_path):
    gcn, _ = planned_cells(configs, "fpst/table1", tmp_path, SOME)
    finish(gcn, 1, tmp_path)
    (tmp_path / "fpst" / "table1").rename(tmp_path / "fpst" / "other")
    gcn, _ = planned_cells(configs, "fpst/table1", tmp_path, SOME)
    assert (gcn.seeds, gcn.done, gcn.copies) == ((0, 1, 2), 0, (1,))


@pytest.mark.slow
def test_the_cost_is_of_all_steps_and_looks(configs, tmp_path):
    words = ("model=gcn", "dataset=synthetic_web", "seed=0", f"paths.data_dir={tmp_path}")
    (cell,) = planned_cells(Path(configs), "fpst/fig3", tmp_path, words)
    found = cost(cell.config, torch.device("cpu"), runs=1)
    trainer = cell.config.trainer  # a point of the curve each epoch, and the test
    looks = trainer.max_steps / trainer.steps_per_epoch + 1
    assert looks == 101
    spent = trainer.max_steps * found.step_ms + looks * found.look_ms
    assert found.look_ms > 0
    assert found.seconds == pytest.approx(spent / 1e3)
    words = ("model=gcn", "dataset=synthetic_large", "dataset.source.num_nodes=200", "seed=0")
    words = (*words, f"paths.data_dir={tmp_path}", "trainer.validate_every=2")
    (cell,) = planned_cells(Path(configs), "fpst/table1", tmp_path, words)
    found = cost(cell.config, torch.device("cpu"), runs=1)
    steps = cell.config.trainer.max_steps
    looks = steps / 2 * found.look_ms
    assert found.seconds == pytest.approx((steps * found.step_ms + looks) / 1e3)


def test_a_scheduler_of_the_rate_does_not_keep_a_cell_from_being_timed(configs, tmp_path):
    words = ("model=cat", "dataset=synthetic_kg", "seed=0", f"paths.data_dir={tmp_path}")
    (cell,) = planned_cells(Path(configs), "cat/table1", tmp_path, words)
    assert cell.config.task.scheduler is not None
    found = cost(cell.config, torch.device("cpu"), runs=1)
    assert min(found.step_ms, found.look_ms) > 0
