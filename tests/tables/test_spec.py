"""What a table is: its file, the cells of its sweep, the paper's numbers."""

from dataclasses import replace

import pytest

from composing import CONFIGS
from curvlab.errors import UsageError
from curvlab.tables import build_report, load_table, table_names
from curvlab.tables.spec import ReportBlock, paper_numbers

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


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("report: {title: t}", "metric"),
        ("report: {tilte: t}", "tilte|title"),
        ("report: 5", "report"),
        ("report: {title: [", "line "),
        ("- report", "keys and values"),
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
        title="t", metric="m", better="higher", rows="model.name", columns="dataset.name"
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
