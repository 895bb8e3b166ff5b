"""The page of a paper: one file, all tables, numbers that sort."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from curvlab.errors import UsageError
from curvlab.tables import build_report, load_table, table_names
from curvlab.tables.collect import collect
from curvlab.tables.heatmap import POINTS, count, heatmap
from curvlab.tables.page import page
from curvlab.tables.report import report_of
from curvlab.tables.spec import Better

pytestmark = pytest.mark.slow


class Reader(HTMLParser):
    """Collects tags that must be closed, addresses, and the values of cells."""

    VOID = ("meta", "img", "br", "hr", "link", "input")

    def __init__(self):
        super().__init__()
        self.open, self.addresses, self.values, self.titles = [], [], [], []
        self.cells = {}

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.addresses += [attributes[key] for key in ("src", "href") if key in attributes]
        self.values += [
            float(attributes[key]) for key in ("data-ours", "data-printed") if key in attributes
        ]
        if "data-cell" in attributes:
            cell = json.loads(attributes["data-cell"])
            self.cells.setdefault((cell["row"], cell["column"]), cell)  # of the first table
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "h2":
            self.titles.append(data)


@pytest.fixture
def read(configs, tmp_path):
    def make(paper="fpst"):
        text = page(configs, paper, tmp_path)
        reader = Reader()
        reader.feed(text)
        assert reader.open == []
        return text, reader

    return make


def test_every_table_of_the_paper_is_there_and_no_other(configs, read):
    _, reader = read()
    names = [name for name in table_names(configs) if name.startswith("fpst/")]
    blocks = [spec.report.title for name in names for spec in load_table(configs, name)]
    assert reader.titles == blocks


def test_cells_sort_by_the_printed_and_the_reproduced_means(
    configs, read, spec, write_run, tmp_path
):
    write_run("fpst", "web_edu", 0, 98.765)
    _, reader = read()
    cells = build_report(spec, tmp_path).cells
    assert 98.765 in reader.values
    assert set(cells["paper_mean"].dropna()) <= set(reader.values)


def test_hours_of_runs_that_two_panels_show_count_once(read, write_run):
    for model in ("gcn", "fpst"):
        path = write_run(model, "web_edu", 0, 1.0, table="fpst/fig4")
        costs = {"test": {"inference_ms": 1.0, "inference_mb": 1.0}}
        result = json.loads(path.read_text()) | {"wall_seconds": 1800.0, "metrics": costs}
        path.write_text(json.dumps(result))
    text, _ = read()
    assert "<dt>hours</dt><dd>1.0</dd>" in text


def test_a_cell_lists_its_runs(read, write_run):
    write_run("fpst", "web_edu", 0, 98.765)
    write_run("fpst", "web_edu", 1, 99.0)
    _, reader = read()
    cell = reader.cells["FPS-T", "Web-Edu"]
    assert [run["seed"] for run in cell["runs"]] == [0, 1]
    assert [run["value"] for run in cell["runs"]] == ["98.77", "99.00"]
    assert all(run["file"].endswith("result.json") for run in cell["runs"])
    assert "-m table=fpst/fig3 model=fpst dataset=web_edu" in cell["command"]
    assert not cell["why"]


def test_a_cell_without_runs_says_why(read, write_run):
    write_run("fpst", "web_edu", 0, 98.765)
    _, reader = read()
    assert not reader.cells["FPS-T", "Power"]["runs"]
    assert "its files" in reader.cells["FPS-T", "Power"]["why"]
    assert "the hours" in reader.cells["GCN", "Web-Edu"]["why"]


def test_curves_are_those_of_the_runs_that_kept_them(read, write_run):
    steps = range(0, 1000, 5)
    path = write_run("fpst", "web_edu", 0, 98.765)
    rows = [f"{step},{0.5},{step / 10 if step % 10 else ''}" for step in steps]
    (path.parent / "metrics.csv").write_text("\n".join(["step,loss,map", *rows]))
    write_run("fpst", "web_edu", 1, 99.0)
    _, reader = read()
    (curve,) = reader.cells["FPS-T", "Web-Edu"]["curves"]
    assert 2 < len(curve) <= POINTS
    assert all(step % 10 and score == step / 10 for step, score in curve)
    assert curve[0][0] == 5


@pytest.mark.parametrize(
    ("values", "better", "side"),
    [
        ((90.0, 90.1, 90.2), "higher", "worse"),  # 99.00 ± 0.08 is printed
        ((90.0, 90.1, 90.2), "lower", "better"),
        ((98.9, 99.0, 99.1), "higher", ""),
        ((90.0, 90.1), "higher", ""),  # two runs have no interval
    ],
)
def test_colour_is_the_side_of_a_difference_that_intervals_do_not_explain(
    spec, write_run, tmp_path, values, better, side
):
    for seed, value in enumerate(values):
        write_run("fpst", "web_edu", seed, value)
    runs = collect(tmp_path / spec.name, spec.report)
    report = replace(report_of(spec, runs, tmp_path), better=Better[better])
    html = heatmap(spec, report, runs, tmp_path / spec.name)
    found = re.search(r'<td class="( \w+)?"[^>]*><button[^>]*title="FPS-T, Web-Edu"', html)
    assert found is not None
    assert (found[1] or "").strip() == side


def test_cells_are_counted_once_each(spec, write_run, tmp_path):
    for seed in range(5):
        write_run("fpst", "web_edu", seed, 90 + seed / 10)
    report = build_report(spec, tmp_path)
    counts = count(report)
    assert counts["full protocol"] == counts["below"] == 1
    assert counts["within"] == counts["above"] == 0
    assert counts["printed"] == len(report.cells)
    assert counts["not run"] == counts["printed"] - 1


def test_pictures_are_inside_and_nothing_is_fetched(read, tmp_path):
    picture = b"\x89PNG\r\n\x1a\n"
    (tmp_path.parent / "fpst_curves.png").write_bytes(picture)
    text, reader = read()
    (tmp_path.parent / "fpst_curves.png").unlink()
    assert reader.addresses == ["data:image/png;base64,iVBORw0KGgo="]
    assert "http" not in text


def test_pictures_have_the_papers_numbers(configs, tmp_path):
    results = tmp_path / "tables"
    results.mkdir()
    (tmp_path / "fpst_fig6.png").touch()
    assert "<figcaption>Figure 6: sectional curvature of the graphs<" in page(
        configs, "fpst", results
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("picture", "caption"),
    [
        ("cat_fig2_fb15k237", "CAT, Figure 2: FB15k-237"),
        ("lrn_fig2", "LRN, Figure 2 (left: Disease): ROC-AUC of links by the number of layers"),
        (
            "lrn_fig2_airport",
            "LRN, Figure 2 (right: Airport): ROC-AUC of links by the number of layers",
        ),
        (
            "hypformer_fig5",
            "Hypformer, Figure 5: a training step by the number of nodes, ms; peak memory of a "
            "training step, MB of 2^20 bytes",
        ),
        ("fpst_web_edu_curves", "fpst web edu curves"),
    ],
)
def test_pictures_of_a_table_have_its_title(configs, tmp_path, picture, caption):
    (tmp_path / "tables").mkdir()
    (tmp_path / f"{picture}.png").touch()
    text = page(configs, picture.partition("_")[0], tmp_path / "tables")
    assert f"<figcaption>{caption}</figcaption>" in text


def test_names_cannot_break_the_page(configs, read, spec, write_run):
    write_run("<b>gcn", "web_edu", 0, 90.0)
    text, _ = read()
    assert "<b>gcn" not in text
    assert "&lt;b&gt;gcn" in text


def test_an_unknown_paper_names_those_there_are(configs, tmp_path):
    with pytest.raises(UsageError, match="fpst, hypformer"):
        page(configs, "gpst", tmp_path)
