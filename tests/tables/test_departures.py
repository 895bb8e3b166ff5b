"""Cells of another protocol: shown with a mark, in no order and in no comparison."""

import json
import re

import pytest

from curvlab.tables import build_report
from curvlab.tables.collect import collect
from curvlab.tables.departures import LETTERS, letters, with_departures
from curvlab.tables.latex import escape
from curvlab.tables.page import page
from curvlab.tables.render import markdown, render, terminal

pytestmark = pytest.mark.slow


@pytest.fixture
def mixed(spec, write_run, tmp_path):
    """Four models of full length on Web-Edu, and one, the best, of 250 steps."""
    means = {"gcn": 79.9, "gat": 88.8, "tokengt": 89.5, "fpst": 98.9}
    for model, mean in means.items():
        for seed in range(5):
            write_run(model, "web_edu", seed, mean + 0.01 * seed)
    for seed in range(5):
        write_run("mlp", "web_edu", seed, 99.5 + 0.01 * seed, steps=250)
    return build_report(spec, tmp_path)


def of(report, row):
    cells = report.cells
    return cells[(cells["row"] == row) & (cells["column"] == "web_edu")].iloc[0]


def said(path, words):
    path.write_text(json.dumps(json.loads(path.read_text()) | {"changed": words}))


def test_a_short_run_is_not_ranked_not_compared_and_not_best(mixed):
    mlp, fpst = of(mixed, "mlp"), of(mixed, "fpst")
    assert mlp["our_mean"] == pytest.approx(99.52)
    assert mlp[["difference", "our_rank"]].isna().all()
    assert mlp["within"] is None
    assert (fpst["our_rank"], fpst["ranked"]) == (1, 4)
    # GCN, GAT, TokenGT, FPS-T stand 4, 3, 2, 1 in both.
    assert fpst["spearman"] == pytest.approx(1)
    text = markdown(mixed)
    assert "**98.92 ± 0.01** (5)" in text
    assert "<sub>99.52 ± 0.01 (5) ᵃ</sub>" in text
    assert "ᵃ Not the table's protocol, 5 of 25 runs: 250 steps" in text
    assert "Small, with a letter: another protocol than the table's." in text


def test_every_format_shows_it_grey_with_its_mark(mixed, configs, tmp_path):
    assert re.search(r"\x1b\[2m *99\.52", terminal(mixed, 120, styled=True))
    assert re.search(r"\n +ours +99\.52 ± +0\.01 \(5\) ᵃ", terminal(mixed, 120))
    text = render([mixed], "latex")
    assert r"\textcolor{gray}{99.52 $\pm$ 0.01 (5) \textsuperscript{a}}" in text
    assert r"\usepackage{booktabs,xcolor}" in text
    assert text.isascii()
    assert 'class="grey">99.52 ± 0.01 (5) ᵃ<' in page(configs, "fpst", tmp_path)
    (line,) = (s for s in render([mixed], "csv").splitlines() if ",mlp,web_edu," in s)
    assert '"250 steps where the table\'s has 10,000",ᵃ,' in line


def test_a_table_of_its_own_protocol_says_nothing_of_others(spec, write_run, tmp_path):
    write_run("gcn", "web_edu", 0, 79.9)
    report = build_report(spec, tmp_path)
    assert "another protocol" not in markdown(report)
    assert (report.cells["mark"] == "").all()


def test_each_protocol_has_its_letter(spec, write_run, tmp_path):
    said(write_run("gcn", "web_edu", 0, 79.9), ["optimizer.lr=0.1"])
    write_run("gat", "web_edu", 0, 79.9, steps=250)
    said(write_run("gat", "power", 0, 79.9, steps=250), ["trainer.max_steps=250"])
    report = build_report(spec, tmp_path)
    marks = {(c["row"], c["column"]): c["mark"] for _, c in report.cells.iterrows() if c["mark"]}
    assert marks == {("gcn", "web_edu"): "ᵇ", ("gat", "web_edu"): "ᵃ", ("gat", "power"): "ᵃ"}


def test_words_that_say_what_the_table_says_are_no_departure(spec, write_run, tmp_path):
    said(write_run("gcn", "web_edu", 0, 79.9), ["trainer.max_steps=10000"])
    assert of(build_report(spec, tmp_path), "gcn")["departure"] == ""


def test_longer_runs_depart_too(spec, write_run, tmp_path):
    said(write_run("gcn", "web_edu", 0, 79.9, steps=20_000), ["trainer.max_steps=20000"])
    gcn = of(build_report(spec, tmp_path), "gcn")
    assert gcn["departure"] == "20,000 steps where the table's has 10,000"


def test_a_draw_that_is_no_longer_the_splits_departs(table1, write_run, tmp_path):
    """As when a split of one draw becomes one of a draw for each seed: the two do not mix."""
    words = {"table": "fpst/table1", "metric": "f1_micro", "steps": 1000}
    for model, draw in (("gcn", 7), ("gat", None)):
        split = {"name": "random_60_20_20", "draw": draw}  # in configs/split: null
        write_run(model, "cora", 0, 80.0, split=split, **words)
    cells = build_report(table1, tmp_path).cells.set_index(["row", "column"])
    assert cells.loc[("gcn", "cora"), "departure"] == "split.draw=7 where the table's has null"
    assert cells.loc[("gat", "cora"), "departure"] == ""


def test_many_protocols_have_letters_of_their_own(spec, write_run, tmp_path):
    words = [f"optimizer.lr={i}" for i in range(len(LETTERS) + 1)]
    for i, word in enumerate(words):
        said(write_run(f"model{i}", "power", 0, 1.0), [word])
    runs = with_departures(spec, collect(tmp_path / spec.name, spec.report))
    marks = list(letters(runs).values())
    assert len(set(marks)) == len(words)
    assert escape("".join(marks)).isascii()
