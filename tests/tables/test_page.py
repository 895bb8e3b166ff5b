"""The page of a paper: one file, all tables, numbers that sort."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from curvlab.errors import UsageError
from curvlab.tables import build_report, load_table, table_names
from curvlab.tables.page import BETTER, WORSE, count, heatmap, page
from curvlab.tables.spec import Better
from stored_runs import extend

pytestmark = pytest.mark.slow


class Reader(HTMLParser):
    """Collects tags that must be closed, addresses, headings, and the titles of cells."""

    VOID = ("meta", "img", "br", "hr", "link")

    def __init__(self):
        super().__init__()
        self.open, self.addresses, self.titles, self.cells = [], [], [], {}

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.addresses += [attributes[key] for key in ("src", "href") if key in attributes]
        if "title" in attributes:
            name, _, words = attributes["title"].partition("\n")
            self.cells.setdefault(name, words)  # of the first table
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "h2":
            self.titles.append(data)


@pytest.fixture
def read(configs, tmp_path):
    def make():
        text = page(configs, "fpst", tmp_path)
        reader = Reader()
        reader.feed(text)
        assert reader.open == []
        return text, reader

    return make


def test_a_page_has_all_tables_with_the_runs_of_each_cell(configs, read, spec, write_run, tmp_path):
    write_run("fpst", "web_edu", 0, 98.765)
    write_run("fpst", "web_edu", 1, 99.0)
    picture = b"\x89PNG\r\n\x1a\n"
    (tmp_path.parent / "fpst_fig6.png").write_bytes(picture)
    text, reader = read()
    (tmp_path.parent / "fpst_fig6.png").unlink()
    names = [name for name in table_names(configs) if name.startswith("fpst/")]
    blocks = [table.report.title for name in names for table in load_table(configs, name)]
    assert reader.titles == blocks
    lines = reader.cells["FPS-T, Web-Edu"].splitlines()
    assert lines[:2] == ["ours: 98.88", "printed: 99.00 ± 0.08"]
    assert [line.partition(",")[0] for line in lines[-2:]] == ["seed 0: 98.77", "seed 1: 99.00"]
    assert all(line.endswith("result.json") for line in lines[-2:])
    assert reader.cells["FPS-T, Power"] == "printed: 99.18 ± 0.06"
    assert reader.addresses == ["data:image/png;base64,iVBORw0KGgo="]
    assert "<figcaption>Figure 6: sectional curvature of the graphs<" in text
    assert "http" not in text


def test_hours_of_runs_that_two_panels_show_count_once(read, write_run):
    for model in ("gcn", "fpst"):
        costs = {"test": {"inference_ms": 1.0, "inference_mb": 1.0}}
        path = write_run(model, "web_edu", 0, 1.0, table="fpst/fig4")
        extend(path, wall_seconds=1800.0, metrics=costs)
    assert "<dt>hours</dt><dd>1.0</dd>" in read()[0]


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
    block = replace(spec.report, better=Better[better])
    text = heatmap(build_report(replace(spec, report=block), tmp_path))
    found = re.search(r'<td([^>]*) title="FPS-T, Web-Edu', text)
    assert found[1] == (f' style="background: rgba({side}, 0.60)"' if side else "")


def test_cells_are_counted_once_each(spec, write_run, tmp_path):
    for seed in range(5):
        write_run("fpst", "web_edu", seed, 90 + seed / 10)
    report = build_report(spec, tmp_path)
    counts = count(report)
    assert counts["full protocol"] == counts["below"] == 1
    assert counts["within"] == counts["above"] == 0
    assert counts["printed"] == len(report.cells)
    assert counts["not run"] == counts["printed"] - 1


def test_names_cannot_break_the_page(read, write_run):
    write_run("<script>&'\"", "web_edu", 0, 98.7)
    text, reader = read()
    assert "<script>&" not in text
    assert "ours: 98.70" in reader.cells["<script>&'\", Web-Edu"]


def test_an_unknown_paper_names_those_there_are(configs, tmp_path):
    with pytest.raises(UsageError, match="fpst"):
        page(configs, "nobody", tmp_path)
