import json
import re
from dataclasses import replace
from io import StringIO

import pandas as pd
import pytest

from curvlab.tables import build_report, load_table
from curvlab.tables.latex import escape
from curvlab.tables.page import page
from curvlab.tables.render import csv, markdown, render, sentence, terminal

ESCAPE_CODE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def report(spec, write_run, tmp_path):
    """A half-done sweep: full, single-seed, diverged, out of memory, mixed and missing cells."""
    for model, mean in [("gcn", 79.9), ("gat", 88.8), ("tokengt", 89.5), ("fpst", 98.9)]:
        for seed in range(5):
            write_run(model, "web_edu", seed, mean + 0.1 * seed)
    write_run("fpst", "web_edu", 4, None, status="diverged", steps=40)
    write_run("gat", "power", 0, 99.0)
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
    for number in report.cells["paper_mean"]:
        assert f"{number:.2f}" in text


def test_narrow_terminals_get_blocks_below_each_other(report):
    assert terminal(report, 60).count("FPS-T  ") > terminal(report, 100).count("FPS-T  ") >= 1


def test_terminal_aligns_paper_and_ours(report):
    text = terminal(report, 100)
    paper, ours = line_of(text, "GCN "), line_of(text, "GCN ", 1)
    assert paper.index("79.95") == ours.index("80.10")
    assert paper.index("±") == ours.index("±")


def test_styles_change_no_character(report):
    styled = terminal(report, 100, styled=True)
    plain = ESCAPE_CODE.sub("", styled)
    body = [line.rstrip() for line in plain.splitlines() if not line.startswith("Bold")]
    assert body == terminal(report, 100).splitlines()
    assert "\x1b[1m99.00" in styled
    assert "\x1b[4m90.21" in styled


def test_numbers_and_outcomes_are_told(report):
    text = terminal(report, 160)
    ours = line_of(text, "FPS-T ", 1)
    assert "99.05" in ours  # the mean of 98.9, 99.0, 99.1, 99.2
    assert "(4)" in ours
    assert "1 of 5 diverged" in line_of(text, "FPS-T ", 4)
    assert "1 of 2 failed, 1 of 2 out of memory" in text
    assert "not run" in line_of(text, "MLP", 1)
    assert "≈" in line_of(text, "FPS-T ", 2)


def test_one_seed_shows_no_interval(report):
    ours = line_of(markdown(report), "**GAT**", 1)
    assert "99.00 (1)" in ours
    assert "GAT, Web-Edu: 1 run left out" in markdown(report)


def test_markdown_has_the_same_columns_in_each_line(report):
    lines = [line for line in markdown(report).splitlines() if line.startswith("|")]
    assert {line.count("|") for line in lines} == {7}
    assert len({len(line) for line in lines}) == 1
    assert set(lines[1]) <= set("|- ")


def test_best_is_bold_and_second_italic_of_each_kind(report):
    text = markdown(report)
    assert "**99.00 ± 0.08**" in line_of(text, "**FPS-T**")
    assert "*90.21 ± 0.36*" in line_of(text, "**HAT**")
    assert re.search(r"\*\*99\.05 ± \d\.\d\d\*\* \(4\)", line_of(text, "**FPS-T**", 1))
    assert re.search(r"[^*]\*89\.70 ± \d\.\d\d\*[^*]", line_of(text, "**TokenGT**", 1))


def test_ties_are_both_best_and_a_lone_number_is_not_marked(spec, write_run, tmp_path):
    write_run("gcn", "web_edu", 0, 80.001)
    write_run("gat", "web_edu", 0, 79.999)
    write_run("sgc", "web_edu", 0, 79.0)
    write_run("gcn", "power", 0, 98.0)
    text = markdown(build_report(spec, tmp_path))
    assert line_of(text, "**GCN**", 1).count("**80.00**") == 1
    assert line_of(text, "**GAT**", 1).count("**80.00**") == 1
    assert "*" not in line_of(text, "**SGC**", 1)
    assert "98.00 (1)" in line_of(text, "**GCN**", 1)
    assert "*98.00" not in text


@pytest.mark.slow
def test_latex_is_balanced_and_every_line_has_all_columns(report):
    text = render([report], "latex")
    assert len(re.findall(r"(?<!\\)\{", text)) == len(re.findall(r"(?<!\\)\}", text))
    assert re.findall(r"\\begin\{(\w+)\}", text) == re.findall(r"\\end\{(\w+)\}", text)[::-1]
    rules = [rf"\{rule}rule" for rule in ("top", "mid", "bottom")]
    assert sorted(text.index(rule) for rule in rules) == [text.index(rule) for rule in rules]
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {5}
    assert re.search(r"begin\{tabular\}\{llrrrr\}", text)
    assert len(re.findall(r"(?<!\\)\$", text)) % 2 == 0
    assert text.isascii()


def test_latex_marks_and_escapes(report):
    text = render([replace(report, title="50% of {a_b} & #1")], "latex")
    assert r"50\% of \{a\_b\} \& \#1" in text
    assert r"\textbf{99.00} $\pm$ 0.08" in text
    assert r"\underline{90.21} $\pm$ 0.36" in text
    assert r"$\kappa$-GCN" in text
    assert r"trainer.max\_steps" in text


def test_escape_leaves_no_command():
    assert escape("\\input{x}") == r"\textbackslash{}input\{x\}"
    assert escape("a^b~c") == r"a\textasciicircum{}b\textasciitilde{}c"


def test_csv_round_trips(report):
    cells = pd.read_csv(StringIO(csv([report])))
    texts = ["departure", "mark"]  # which may be empty
    cells[texts] = cells[texts].astype(object).fillna("")
    pd.testing.assert_frame_equal(
        cells.drop(columns="within"), report.cells.drop(columns="within"), check_dtype=False
    )
    assert cells["within"].notna().sum() == report.cells["within"].notna().sum()


@pytest.fixture
def with_tails(spec, write_run, tmp_path):
    """Three runs of which the last step is 98, 99, 100 and the tail 96, 97, 98, one without."""
    for seed in range(3):
        path = write_run("fpst", "web_edu", seed, 98.0 + seed)
        result = json.loads(path.read_text())
        result["metrics"]["test"]["map_tail"] = 96.0 + seed
        path.write_text(json.dumps(result))
    write_run("gcn", "web_edu", 0, 80.0)
    return build_report(spec, tmp_path)


@pytest.mark.slow
def test_a_second_number_stands_below_ours_in_every_format(with_tails, configs, tmp_path):
    """Of both the standard deviation is 1, and the half width 4.303 / sqrt(3) = 2.48."""
    name = "mean of the last 2,000 steps"
    text = markdown(with_tails)
    assert re.search(rf"\| {name} +\| 97\.00 ± 2\.48 \(3\) ", line_of(text, "**FPS-T**", 2))
    assert name not in line_of(text, "**GCN**", 2)
    assert "Mean of the last 2,000 steps: test.map_tail of runs that have it." in text
    assert re.search(rf" {name} +97\.00 ± +2\.48 \(3\)", terminal(with_tails, 120))
    assert max(map(len, terminal(with_tails, 80).splitlines())) <= 80
    assert rf"& {name} & 97.00 $\pm$ 2.48 (3) &" in render([with_tails], "latex")
    words = page(configs, "fpst", tmp_path)
    assert re.search(rf'<tr class="second">.*<td>{name}</td><td>97\.00 ± 2\.48 \(3\)</td>', words)
    cells = pd.read_csv(StringIO(csv([with_tails]))).set_index(["row", "column"])
    assert cells.loc[("fpst", "web_edu"), ["second_mean", "second_seeds"]].tolist() == [97.0, 3]
    assert cells.loc[("gcn", "web_edu"), "second_seeds"] == 0


def test_a_cell_in_a_text_is_ours_its_second_number_and_the_papers(
    with_tails, dimensions, tmp_path
):
    assert sentence(with_tails, "fpst", "web_edu") == (
        "FPS-T, Web-Edu: ours 99.00 ± 2.48 (3), mean of the last 2,000 steps 97.00 ± 2.48 (3), "
        "paper 99.00 ± 0.08.\n"
    )
    assert sentence(with_tails, "gcn", "power") == "GCN, Power: ours not run, paper 98.25 ± 0.02.\n"
    assert "paper 92.00" in sentence(build_report(dimensions, tmp_path), "fpst", "4")


@pytest.mark.parametrize("form", ["terminal", "markdown", "latex", "csv"])
def test_a_table_without_runs_renders(configs, tmp_path, form):
    (spec,) = load_table(configs, "polyformer/table5")  # has methods that are cited only
    text = render([build_report(spec, tmp_path)], form)
    assert "not run" in text
    assert "cited" in text
    assert text.endswith("\n")
    assert not re.search(r"\bnan\b|None", text)
