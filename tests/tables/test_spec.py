"""What a table is: its file, the cells of its sweep, the paper's numbers."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from composing import CONFIGS
from curvlab import statistics, tables
from curvlab.errors import UsageError
from curvlab.tables import build_report, load_table, table_names
from curvlab.tables.spec import Better, ReportBlock, paper_numbers
from stored_runs import cell

GOOD = "title: t, metric: m, better: higher, rows: model.name, columns: model.dim"


def write_table(configs, text):
    path = configs / "table/paper/t.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.slow
@pytest.mark.parametrize("name", table_names(CONFIGS))
def test_every_table_reads_its_paper_and_plans_its_cells(name, tmp_path):
    for spec in load_table(CONFIGS, name):
        cells = build_report(spec, tmp_path).cells
        assert cells["paper_mean"].notna().any() == (spec.report.paper is not None)
        planned = len(spec.planned_rows) * len(spec.planned_columns)
        assert (cells["status"] == "not run").sum() == planned
        assert spec.planned_seeds


def test_dimensions_are_sorted_and_matched_by_number(dimensions, write_run, tmp_path):
    write_run("fpst", "web_edu", 0, 93.0, dim=4, table="fpst/fig3_dimensions")
    report = build_report(dimensions, tmp_path)
    assert report.columns == [2, 4, 8, 16]
    fpst = cell(report, "fpst", 4)
    assert (fpst["paper_mean"], fpst["our_mean"], fpst["difference"]) == (92.0, 93.0, 1.0)
    assert pd.isna(cell(report, "fpst", 16)["paper_mean"])
    assert cell(report, "tokengt", 16)["paper_mean"] == 89.13
    assert any("FPS-T, dim 4" in n and "no layer norm" in n for n in report.footnotes)


def test_the_papers_number_is_next_to_both_columns_of_one_graph(table1, tmp_path):
    report = build_report(table1, tmp_path)
    assert report.columns[4:6] == ["airport", "airport_hgcn"]
    for column in ("airport", "airport_hgcn"):
        assert cell(report, "gcn", column)["paper_mean"] == 92.00
    assert report.labels["column", "airport_hgcn"] == "Airport (HGCN split, leaks)"
    assert any("HGCN's split" in note for note in report.footnotes)


def test_a_sweep_may_be_written_as_a_range(tmp_path):
    sweep = "seed: 'range(0, 4)', model: gcn, model.dim: 'choice(2, 8)'"
    write_table(tmp_path, f"hydra: {{sweeper: {{params: {{{sweep}}}}}}}\nreport: {{{GOOD}}}\n")
    (spec,) = load_table(tmp_path, "paper/t")
    assert spec.planned_seeds == (0, 1, 2, 3)
    assert (spec.planned_rows, spec.planned_columns) == (("gcn",), (2, 8))
    assert spec.planned_length == {}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("report: {title: t}", "metric"),
        ("report: {tilte: t}", "tilte|title"),
        ("report: [{GOOD}, {title: u}]", "metric"),
        ("report: {better: bigger}", "title|bigger"),
        ("seed: 0", "title"),
        ("report: 5", "report"),
        ("report: {title: [", "line "),
        ("- report", "keys and values"),
        ("5", "keys and values"),
        ("trainer: 5", "trainer"),
        ("hydra: {sweeper: {params: 5}}", "hydra.sweeper.params"),
        ("hydra: {sweeper: {params: {seed: 'range('}}}\nreport: {GOOD}", "params.seed"),
    ],
)
def test_a_wrong_file_is_one_sentence_that_names_it_and_the_key(tmp_path, text, key):
    write_table(tmp_path, text.replace("GOOD", GOOD))
    with pytest.raises(UsageError, match=key) as error:
        load_table(tmp_path, "paper/t")
    assert "\n" not in str(error.value)
    assert "paper/t" in str(error.value)


@pytest.fixture
def block():
    return ReportBlock(
        title="t", metric="m", better=Better.higher, rows="model.name", columns="dataset.name"
    )


def test_numbers_may_be_next_to_the_table(block, tmp_path):
    (tmp_path / "own.csv").write_text("model,dataset,mean,pm\ngcn,power,12.5,0.3\n")
    (found,) = paper_numbers(replace(block, paper="own.csv"), tmp_path).to_dict("records")
    names = ("row", "column", "mean", "pm", "pm_kind", "note")
    assert [found[name] for name in names] == ["gcn", "power", "12.5", "0.3", "unknown", ""]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, r"no file own\.csv"),
        ("model,mean\ngcn,12\n", "dataset"),
        ("model,dataset,score\ngcn,power,12\n", "'mean'"),
        ("model,dataset,mean\ngcn,power,high\n", "numbers in the column mean"),
        ("model,dataset,mean\ngcn,power,12\n", "no column panel"),
    ],
)
def test_a_wrong_file_of_numbers_is_one_sentence(block, tmp_path, text, why):
    if text is not None:
        (tmp_path / "own.csv").write_text(text)
    with pytest.raises(UsageError, match=why) as error:
        paper_numbers(replace(block, paper="own.csv", select={"panel": "left"}), tmp_path)
    assert "\n" not in str(error.value)


def test_paper_cells_without_coordinates_are_refused(dimensions):
    dimensions.report.paper_cells.pop("fpst__d4")
    with pytest.raises(UsageError, match="fpst__d4"):
        paper_numbers(dimensions.report)


def test_every_kind_of_printed_spread_has_its_words():
    for path in (Path(tables.__file__).parent / "papers").glob("*.csv"):
        numbers = pd.read_csv(path, dtype=str, keep_default_na=False)
        kinds = set(numbers.loc[numbers["pm"] != "", "pm_kind"])
        assert kinds <= {*statistics.PRINTED_SPREADS, "unknown"}, path.name


def test_printed_numbers_of_figure_3(spec, tmp_path):
    report = build_report(spec, tmp_path)
    fpst = cell(report, "fpst")
    assert (fpst["paper_mean"], fpst["paper_pm"]) == (99.00, 0.08)
    assert cell(report, "tokengt", "power")["paper_pm"] == 0.0
    assert len(report.rows) == 12
    assert report.columns == ["web_edu", "power", "facebook", "bio_worm"]
    assert report.decimals == 2
    assert report.cells["paper_mean"].notna().all()
