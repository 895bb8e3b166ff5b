"""The page of a paper: one file, all tables, numbers that sort."""

import re
from dataclasses import replace
from html import unescape

import pytest

from curvlab.tables import build_report, load_table, table_names
from curvlab.tables.page import BETTER, WORSE, heatmap, page

pytestmark = pytest.mark.slow


def test_a_page_has_all_tables_with_the_runs_of_each_cell(configs, spec, write_run, tmp_path):
    write_run("fpst", "web_edu", 0, 98.765)
    write_run("fpst", "web_edu", 1, 99.0)
    write_run("<script>&'", "power", 0, 98.7)
    text = page(configs, "fpst", tmp_path)
    names = [name for name in table_names(configs) if name.startswith("fpst/")]
    blocks = [table.report.title for name in names for table in load_table(configs, name)]
    assert [unescape(title) for title in re.findall("<h2>(.*?)</h2>", text)] == blocks
    lines = re.search(r'title="FPS-T, Web-Edu\n(.*?)"', text, re.DOTALL)[1].splitlines()
    assert lines[:2] == ["ours: 98.88", "printed: 99.00 ± 0.08"]
    assert [line.partition(",")[0] for line in lines[-2:]] == ["seed 0: 98.77", "seed 1: 99.00"]
    assert all(line.endswith("result.json") for line in lines[-2:])
    assert "http" not in text
    assert "<script>&" not in text


@pytest.mark.parametrize(
    ("values", "better", "side"),
    [
        ((90.0, 90.1, 90.2), "higher", WORSE),  # 99.00 ± 0.08 is printed
        ((90.0, 90.1, 90.2), "lower", BETTER),
        ((98.9, 99.0, 99.1), "higher", ""),
        ((90.0, 90.1), "higher", ""),  # two runs have no interval
    ],
)
def test_colour_is_the_side_of_a_difference_that_intervals_do_not_explain(
    spec, write_run, tmp_path, values, better, side
):
    for seed, value in enumerate(values):
        write_run("fpst", "web_edu", seed, value)
    block = replace(spec.report, better=better)
    text = heatmap(build_report(replace(spec, report=block), tmp_path))
    found = re.search(r'<td([^>]*) title="FPS-T, Web-Edu', text)
    assert found[1] == (f' style="background: rgba({side}, 0.60)"' if side else "")
