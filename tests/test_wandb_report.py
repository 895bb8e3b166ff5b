"""Reports on W&B: every table has one, which reads the runs that its sweep makes."""

import json

import pytest

from curvlab.config.folder import CONFIGS
from curvlab.tables import load_table, table_names
from curvlab.tables.wandb_report import table_report

pytest.importorskip("wandb")
pytestmark = pytest.mark.filterwarnings("ignore:Pydantic V1 style")  # of wandb-workspaces


def grids(name):
    """The panel grids of a table's report as they go to the site, which needs no account."""
    report = table_report(load_table(CONFIGS, name), "curvlab", "someone")
    sent = json.loads(report._to_model().model_dump_json(by_alias=True))
    assert sent["project"] == {"name": "curvlab", "entityName": "someone", "id": None}
    return [block["metadata"] for block in sent["spec"]["blocks"] if block["type"] == "panel-grid"]


def filters(grid):
    """What is asked of a grid's runs, by key."""

    items = grid["runSets"][0]["filters"]["filters"]
    return {(item["key"]["name"], item["op"]): item["value"] for item in items}


@pytest.mark.parametrize("name", table_names(CONFIGS))
def test_every_table_has_a_report_of_its_runs(name):
    for grid in grids(name):
        asked = filters(grid)
        assert asked["group", "="] == name
        assert asked["jobType", "!="] == "table"


def test_each_dataset_has_bars_of_the_models():
    *columns, curves = grids("lrn/table2")
    (spec,) = load_table(CONFIGS, "lrn/table2")
    assert [grid["runSets"][0]["name"] for grid in columns] == list(spec.planned_columns)
    for grid, column in zip(columns, spec.planned_columns, strict=True):
        expected = [f"{column}/{row}" for row in spec.planned_rows]
        assert filters(grid)["jobType", "IN"] == expected
        (bars,) = grid["panelBankSectionConfig"]["panels"]
        assert bars["config"]["metrics"] == ["summary_metrics.score"]
        assert bars["config"]["groupBy"] == "model.value.name"
    kinds = [panel["viewType"] for panel in curves["panelBankSectionConfig"]["panels"]]
    assert kinds == ["Run History Line Plot", "Run History Line Plot", "Run Comparer"]


def test_numbers_are_an_axis():
    grid, _ = grids("lrn/fig2")
    points, _ = grid["panelBankSectionConfig"]["panels"]
    assert points["config"]["xAxis"] == "config:model.value.layers"
    assert points["config"]["yAxis"] == "summary:test/roc_auc"
