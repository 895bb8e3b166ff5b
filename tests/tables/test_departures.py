"""Cells of another protocol: shown with a mark, in no order and in no comparison."""

import json
import re

import pytest

from curvlab.errors import UsageError
from curvlab.tables import build_report
from curvlab.tables.collect import collect
from curvlab.tables.departures import LETTERS, letters, with_departures
from curvlab.tables.latex import escape
from curvlab.tables.leaderboard import own_runs
from curvlab.tables.page import page
from curvlab.tables.render import markdown, render, terminal
from curvlab.tables.standing import as_csv

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
    runs = with_departures(spec, collect(tmp_path / spec.name, spec.report), tmp_path)
    marks = list(letters(runs).values())
    assert len(set(marks)) == len(words)
    assert escape("".join(marks)).isascii()


MEANS = {"gcn": 90.0, "gat": 91.0, "sage": 92.0, "hat": 93.0, "fpst": 94.0}


@pytest.fixture
def listed(spec, write_run, tmp_path):
    """Two seeds of models, of which nothing but the list beside the results calls some older."""
    for model, mean in MEANS.items():
        for seed in (0, 1):
            folder = f"web_edu/{model}/seed{seed}"
            write_run(model, "web_edu", seed, mean + seed, folder=folder, table="tables/fpst/fig3")
    results = tmp_path / "tables"
    assert (build_report(spec, results).cells["mark"] == "").all()
    cells = [
        ("fpst/fig3/web_edu/gcn", 2, "model.dim 16 -> 32"),
        ("fpst/fig3/web_edu/gat", 2, "model.dim 16 -> 32; model.revision default -> 2"),
        ("fpst/fig3/web_edu/sage", 2, "unknown option model.hops; say model.layers"),
        ("fpst/fig3/web_edu/hat", 2, "model.dim 8 -> 16"),  # which was run again since
        ("fpst/fig3_dimensions/web_edu/fpst", 2, "model.dim 16 -> 32"),
    ]
    (tmp_path / "older.csv").write_text(as_csv(cells), encoding="utf-8")
    return results


def test_each_cell_that_the_list_of_older_ones_has_is_marked(spec, listed):
    report = build_report(spec, listed)
    assert {model: of(report, model)["departure"] for model in MEANS} == {
        "gcn": "model.dim=16 where the table's has 32",
        "gat": "model.dim=16 where the table's has 32, "
        "model.revision=default where the table's has 2",
        "sage": "unknown option model.hops; say model.layers",
        "hat": "",
        "fpst": "",
    }
    assert len({of(report, model)["mark"] for model in ("gcn", "gat", "sage")} - {""}) == 3
    assert of(report, "hat")["mark"] == of(report, "fpst")["mark"] == ""
    assert of(report, "gcn")[["difference", "our_rank"]].isna().all()
    assert set(own_runs(spec, listed)["row"]) == {"hat", "fpst"}
    assert "2 of 10 runs: model.dim=16 where the table's has 32." in markdown(report)


def test_page_marks_listed_cells(configs, listed):
    text = page(configs, "fpst", listed)
    assert len(re.findall(r'class="grey">\d+\.\d+ \(.*?\) [ᵃᵇᶜ]<', text)) == 3


def test_a_listed_length_is_said_once(spec, write_run, tmp_path):
    folder, table = "web_edu/gcn/seed0", "tables/fpst/fig3"
    write_run("gcn", "web_edu", 0, 80.0, folder=folder, table=table, steps=250)
    why = "model.dim 16 -> 32; trainer.max_steps 250 -> 10000"
    text = as_csv([("fpst/fig3/web_edu/gcn", 1, why)])
    (tmp_path / "older.csv").write_text(text, encoding="utf-8")
    assert of(build_report(spec, tmp_path / "tables"), "gcn")["departure"] == (
        "model.dim=16 where the table's has 32, 250 steps where the table's has 10,000"
    )


def test_a_list_of_another_kind_is_refused(spec, listed):
    (listed.parent / "older.csv").write_text("name\ngcn\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"older\.csv must be a file that `tables older`"):
        build_report(spec, listed)
