"""Reports in every format, pages of papers, texts with tables in them; the script tables.py."""

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from matplotlib.container import ErrorbarContainer
from scipy import stats

from composing import CONFIGS, ROOT
from curvlab.analysis.forest import forest_figure
from curvlab.analysis.style import save_figure, shows
from curvlab.cli.table_texts import _claims_of, forest_path
from curvlab.errors import UsageError
from curvlab.tables.claims import Claim
from curvlab.tables.page import BETTER, WORSE, heatmap, page
from curvlab.tables.render import (
    markdown,
    number,
    numbers_of_seeds,
    refresh,
    render,
    sentence,
    terminal,
)
from curvlab.tables.report import build_report
from curvlab.tables.spec import load_table, table_names
from stored_runs import extend

RESULTS = ROOT / "docs" / "results" / "tables"
SECOND = "mean of the last 2,000 steps"


@pytest.fixture
def report(spec, write_run, tmp_path):
    """A half-done sweep: full, single-seed, diverged, out of memory, short and missing cells."""
    for model, mean in [("gcn", 79.9), ("gat", 88.8), ("tokengt", 89.5), ("fpst", 98.9)]:
        for seed in range(5):
            path = write_run(model, "web_edu", seed, mean + 0.1 * seed)
            if model == "fpst":
                value = mean + 0.1 * seed
                extend(path, metrics={"test": {"map": value, "map_tail": value - 1}})
    write_run("fpst", "web_edu", 4, None, status="diverged", steps=40)
    write_run("gat", "power", 0, 99.0)
    write_run("mlp", "power", 0, 99.5, steps=250)
    write_run("sgc", "facebook", 0, None, status="out_of_memory", steps=0)
    write_run("sgc", "facebook", 1, None, status="failed", steps=0)
    write_run("gat", "web_edu", 4, 10.0, steps=500)
    return build_report(spec, tmp_path)


def line_of(text, label, below=0):
    lines = text.splitlines()
    return lines[next(i for i, line in enumerate(lines) if label in line) + below]


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_terminal_fits_its_width_and_loses_nothing(report, width):
    text = terminal(report, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for name in ("Web-Edu", "Power", "Facebook", "Bio-Worm"):
        assert name in text
    for mean in report.cells["paper_mean"]:
        assert f"{mean:.2f}" in text


def test_numbers_and_outcomes_are_written(report):
    text = markdown(report)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in lines} == {7}
    assert len({len(line) for line in lines}) == 1
    assert "**99.00 ± 0.08**" in line_of(text, "**FPS-T**")
    assert "*90.21 ± 0.36*" in line_of(text, "**HAT**")
    assert re.search(r"\*\*99\.05 ± \d\.\d\d\*\* \(4\)", line_of(text, "**FPS-T**", 1))
    assert f"| {SECOND} | 98.05 ± 0.21 (4) " in line_of(text, "**FPS-T**", 2)
    assert "+0.05 ≈ confirmed" in line_of(text, "**FPS-T**", 3)
    assert "1 of 5 diverged" in line_of(text, "**FPS-T**", 5)
    assert "1 of 2 failed, 1 of 2 out of memory" in text
    assert re.search(r"[^*]\*89\.70 ± \d\.\d\d\*[^*]", line_of(text, "**TokenGT**", 1))
    assert "<sub>99.50 (1) ᵃ</sub>" in line_of(text, "**MLP**", 1)
    assert "not run" in line_of(text, "**HGCN**", 1)
    assert SECOND not in line_of(text, "**GCN**", 2)
    assert "rank" in line_of(text, "**Spearman**")
    assert "Mean of the last 2,000 steps: test.map_tail of runs that have it." in text
    assert "Small, with a letter: another protocol than the table's." in text
    assert "1. GAT, Web-Edu: 1 run left out" in text


def test_latex_is_balanced_and_every_line_has_all_columns(report):
    title = replace(report.spec.report, title="50% of {a_b} & #1")
    text = render([replace(report, spec=replace(report.spec, report=title))], "latex")
    assert len(re.findall(r"(?<!\\)\{", text)) == len(re.findall(r"(?<!\\)\}", text))
    assert re.findall(r"\\begin\{(\w+)\}", text) == re.findall(r"\\end\{(\w+)\}", text)[::-1]
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {5}
    assert len(re.findall(r"(?<!\\)\$", text)) % 2 == 0
    assert text.isascii()
    for words in (
        r"50\% of \{a\_b\} \& \#1",
        r"\textbf{99.00 $\pm$ 0.08}",
        r"\underline{90.21 $\pm$ 0.36}",
        r"$\kappa$-GCN",
        r"trainer.max\_steps",
        r"\textcolor{gray}{99.50 (1) \textsuperscript{a}}",
        rf"& {SECOND} & 98.05 $\pm$ 0.21 (4) &",
    ):
        assert words in text


def test_a_cell_in_a_text(report):
    assert sentence(report, "fpst", "web_edu") == (
        f"FPS-T, Web-Edu: ours 99.05 ± 0.21 (4), {SECOND} 98.05 ± 0.21 (4), paper 99.00 ± 0.08.\n"
    )
    assert sentence(report, "gcn", "power") == "GCN, Power: ours not run, paper 98.25 ± 0.02.\n"
    assert number(report, "fpst", "web_edu") == "99.05"
    assert number(report, "fpst", "power", "paper") == "99.18"
    assert numbers_of_seeds(report, "fpst", "web_edu") == "98.90, 99.00, 99.10 and 99.20"
    with pytest.raises(UsageError, match="has no value 'ours' for gcn, power"):
        number(report, "gcn", "power")
    with pytest.raises(UsageError, match="has no finished run of gcn, power"):
        numbers_of_seeds(report, "gcn", "power")


@pytest.mark.parametrize("form", ["terminal", "markdown", "latex", "csv"])
def test_panels_without_runs_are_written(configs, tmp_path, form):
    (spec,) = load_table(configs, "polyformer/table5")  # has methods that are cited only
    panels = [spec, *load_table(configs, "fpst/fig4")]
    text = render([build_report(panel, tmp_path) for panel in panels], form)
    assert "not run" in text
    assert "cited" in text
    assert text.endswith("\n")
    assert not re.search(r"\bnan\b|None", text)
    if form != "csv":
        assert text.index("(left)") < text.index("(right)")


TEXT = """Before.

<!-- tables.py fpst/fig3 1 -->
old
<!-- end -->

It has <!-- cell a/b c d -->1.0<!-- /cell -->, <!-- paired e f g h i --><!-- /cell -->.

<!-- tables.py status -->

<!-- end -->
After.
"""


def test_only_what_is_between_marks_is_new():
    new = refresh(TEXT, lambda words: f"\nof {words}\n\n")
    expected = TEXT.replace("-->\nold\n<!--", "-->\n\nof fpst/fig3 1\n\n<!--")
    expected = expected.replace("status -->\n\n<!--", "status -->\n\nof status\n\n<!--")
    expected = expected.replace("-->1.0<!--", "-->of cell a/b c d<!--")
    assert new == expected.replace("--><!-- /cell", "-->of paired e f g h i<!-- /cell")
    assert refresh(new, lambda words: f"of {words}") == new
    assert refresh("no marks", str) == "no marks"


@pytest.mark.parametrize(
    "text", [TEXT.replace("<!-- end -->\nAfter", "After"), TEXT + "<!-- end -->\n"]
)
def test_half_a_pair_of_marks_is_refused(text):
    with pytest.raises(UsageError, match="must be between a line <!-- tables"):
        refresh(text, str)


PAGES = [ROOT / "README.md", *sorted(RESULTS.parent.glob("*.md")), ROOT / "docs/spaces.md"]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_show_what_the_result_files_say(page, script):
    words = ("refresh", str(page), "--results", str(RESULTS), "--output", "new.md")
    script("tables.py", *words)
    assert Path("new.md").read_text() == page.read_text()


PAPERS = ("fpst", "hypformer", "lrn", "cat", "polyformer")


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS)
def test_pictures_of_claims_show_what_the_result_files_say(paper):
    claims = _claims_of(RESULTS, paper)
    assert shows(forest_path(RESULTS, paper), forest_figure(claims))


def test_a_picture_of_other_numbers_is_not_current(spec, write_run, tmp_path):
    """The picture draws each data set once."""

    def claims():
        report = build_report(spec, tmp_path)
        return [Claim("paper", "A & B", spec.name, "fpst", "tokengt", "link", report)]

    for seed in range(3):
        write_run("fpst", "web_edu", seed, 99.0 + 0.1 * seed)
        write_run("tokengt", "web_edu", seed, 89.0)
    figure = forest_figure(claims())
    path = save_figure(figure, tmp_path / "forest.svg")
    assert shows(path, forest_figure(claims()))
    (axis,) = figure.axes
    assert [label.get_text() for label in axis.get_yticklabels()] == [
        "Web-Edu", "Power", "Facebook", "Bio-Worm"
    ]  # fmt: skip
    published = [float(line.get_xdata()[0]) for line in axis.lines if line.get_markersize() == 9]
    assert published == pytest.approx([9.44, 0.10, 1.44, 0.15])
    (bar,) = (c for c in axis.containers if isinstance(c, ErrorbarContainer))
    low, high = bar.lines[2][0].get_segments()[0][:, 0]
    half = stats.t.ppf(0.975, 2) * 0.1 / 3**0.5
    assert (low, high) == pytest.approx((10.1 - half, 10.1 + half))
    write_run("fpst", "web_edu", 3, 98.0)
    write_run("tokengt", "web_edu", 3, 89.0)
    assert not shows(path, forest_figure(claims()))
    assert not shows(tmp_path / "none.svg", figure)


@pytest.mark.parametrize("page", PAGES[1:-1], ids=lambda page: page.stem)
def test_no_decimal_of_a_finding_is_typed_by_hand(page):
    written = re.sub("<!--.*?-->", "", refresh(page.read_text(), lambda _words: ""))
    findings = [line for line in written.splitlines() if line.startswith("- ")]
    assert not [line for line in findings if re.search(r"(?<![\d=])[1-9]?\d\.\d", line)]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("fpst/fig3 2", "fpst/fig3 has 1 panels, no 2"),
        ("fpst/fig3 fpst cora", "'cora' is none of web_edu, "),
        ("fpst/fig3 fpst web_edu x", "the number of its part"),
        ("cell fpst/fig3 fpst nowhere", "'nowhere' is none of web_edu, "),
        ("cell fpst/fig3#9 fpst web_edu", "no 9"),
    ],
)
def test_unknown_marks_are_one_sentence(script, tmp_path, words, answer):
    text = tmp_path / "text.md"
    text.write_text(f"<!-- tables.py {words} -->\n<!-- end -->\n")
    said = script("tables.py", "refresh", str(text), "--results", str(RESULTS), code=2).err
    assert answer in said
    assert said.count("\n") == 1
    assert text.read_text().endswith("-->\n<!-- end -->\n")


@pytest.mark.slow
def test_status_has_each_name_of_a_table_in_a_line_of_its_own(script, tmp_path):
    said = script("tables.py", "status", "--results", str(tmp_path)).out
    lines = said.splitlines()[2:]
    first_words = [line.split()[0] for line in lines[: lines.index("")]]
    assert {name.partition("#")[0] for name in first_words} == set(table_names(CONFIGS))
    assert len(set(first_words)) == len(first_words)


def test_a_faulty_page_keeps_no_other_from_being_written(script):
    block = "<!-- tables.py status -->\n<!-- end -->\n"
    faulty = "<!-- tables.py fpst/fig3 9 -->\n<!-- end -->\n"
    contents = {"first.md": faulty, "second.md": block, "third.md": faulty}
    for name, content in contents.items():
        Path(name).write_text(content)
    said = script("tables.py", "refresh", *contents, "--results", str(RESULTS), code=2).err
    assert "first.md is left as it is: fpst/fig3 has 1 panels, no 9" in said
    assert "\n  - third.md is left as it is: " in said
    assert Path("first.md").read_text() == faulty
    assert "| fpst/fig3 |" in Path("second.md").read_text()


@pytest.mark.slow
def test_a_page_has_all_tables_with_the_runs_of_each_cell(configs, spec, write_run, tmp_path):
    write_run("fpst", "web_edu", 0, 98.765)
    write_run("fpst", "web_edu", 1, 99.0)
    write_run("<script>&'", "power", 0, 98.7)
    text = page(configs, "fpst", tmp_path)
    names = [name for name in table_names(configs) if name.startswith("fpst/")]
    blocks = [table.report.title for name in names for table in load_table(configs, name)]
    assert [unescape(title) for title in re.findall("<h2>(.*?)</h2>", text)] == blocks
    lines = re.search(r'title="FPS-T, Web-Edu\n(.*?)"', text, re.DOTALL)[1].splitlines()
    assert lines[:2] == ["ours: 98.88", "published: 99.00 ± 0.08"]
    assert [line.partition(",")[0] for line in lines[-2:]] == ["seed 0: 98.77", "seed 1: 99.00"]
    assert all(line.endswith("result.json") for line in lines[-2:])
    assert "http" not in text
    assert "<script>&" not in text


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("fpst/fig33",), "fpst/fig3"),
        (("fpst/fig3", "--results", "typo"), "no folder typo"),
        (("nothing", "at", "all"), "estimate TABLE"),
        (("estimate",), "estimate TABLE"),
        (("page",), "page PAPER"),
        (("estimate", "fpst/fig33"), "fpst/fig3"),
        (("estimate", "fpst/fig3", "model=gnc"), "gcn"),
        (("estimate", "fpst/fig3", "model=gcn", "foo=1"), "foo"),
        (("estimate", "fpst/fig3", "bar"), "key=value"),
        (("estimate", "fpst/fig3", "model=gcn", "seed=x"), "seed"),
        (("page", "nobody"), "fpst"),
        (("page", "fpst", "--format", "latex"), "omit --format"),
        (("status", "--format", "csv"), "omit --format"),
    ],
)
def test_wrong_words_get_one_sentence(script, words, answer):
    complained = script("tables.py", *words, code=2).err
    assert complained.count("\n") == 1
    assert answer in complained


@pytest.mark.slow
def test_status_counts_what_the_sweep_plans_and_no_other_runs(script, write_run, tmp_path):
    for seed in (0, 1, 10, 11):
        write_run("gcn", "power", seed, 97.5)
        write_run("sgformer", "power", seed, 97.5)
        write_run("gcn", "wordnet", seed, 97.5)
    for seed in range(10, 15):  # as many as planned, but others
        write_run("gat", "power", seed, 97.5)
    for seed in (*range(5), 10):
        write_run("mlp", "power", seed, 97.5)
    words = ("status", "--results", str(tmp_path), "--format", "markdown")
    said = script("tables.py", *words).out
    (line,) = (line for line in said.splitlines() if line.startswith("| fpst/fig3 "))
    assert line.split(" | ")[1:3] == ["1 of 48", "7 of 240"]


def test_reference_points_are_rows_if_asked_for(spec, write_run, tmp_path):
    for seed, value in enumerate((20.0, 30.0)):
        path = write_run("fpst", "power", seed, 60.0 + seed)
        extend(path, score=60.0 + seed, references={"degree product": value})
    report = build_report(spec, tmp_path)
    assert "degree product" not in markdown(report)
    line = line_of(markdown(replace(report, with_references=True)), "degree product")
    cells = [cell.strip() for cell in line.split("|")]
    assert [cell for cell in cells if cell] == ["**Reference points**", "degree product", "25.00"]
