import re
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pandas as pd
import pytest

from curvlab.tables.folders import own_results, results_folder

SCRIPT = str(Path(__file__).resolve().parents[2] / "scripts" / "tables.py")
Run = namedtuple("Run", "returncode stdout stderr")


@pytest.fixture
def tables(script):
    """Run scripts/tables.py."""
    return lambda *arguments: Run(*script("tables.py", *map(str, arguments)))


def test_unknown_table_names_the_near_ones(tables):
    run = tables("fpst/fig33")
    assert run.returncode == 2
    assert run.stdout == ""
    assert len(run.stderr.strip().splitlines()) == 1
    assert "fpst/fig3" in run.stderr
    assert "fpst/fig33" in run.stderr


def test_unknown_results_folder_is_refused(tables, tmp_path):
    run = tables("fpst/fig3", "--results", tmp_path / "typo")
    assert run.returncode == 2
    assert len(run.stderr.strip().splitlines()) == 1
    assert "typo" in run.stderr


def test_columns_of_a_file_beside_the_results_stand_in_a_text(tables, tmp_path):
    results = tmp_path / "tables"
    results.mkdir()
    (tmp_path / "spaces.csv").write_text("graph,answer,p\ntree,curved,0.01\ngrid,flat,0.5\n")
    text = tmp_path / "text.md"
    text.write_text("<!-- tables.py file spaces.csv graph p -->\n<!-- end -->\n")
    assert tables("refresh", text, "--results", results).returncode == 0
    rows = ["| graph | p |", "| --- | --- |", "| tree | 0.01 |", "| grid | 0.5 |"]
    assert [line for line in text.read_text().splitlines() if line.startswith("|")] == rows
    text.write_text(text.read_text().replace("graph p", "graph q"))
    run = tables("refresh", text, "--results", results)
    assert (run.returncode, run.stderr) == (
        2,
        f"curvlab tables: {tmp_path / 'spaces.csv'} has no column q\n",
    )


@pytest.mark.parametrize("output", ["/", "/proc/nowhere/table.txt"])
def test_an_output_that_cannot_be_written_gets_one_sentence(tables, tmp_path, output):
    run = tables("fpst/fig3", "--results", tmp_path, "--output", output)
    assert run.returncode == 1
    assert run.stderr.startswith(f"curvlab tables: {output[:5]}")
    assert len(run.stderr.splitlines()) == 1


def test_a_folder_without_results_of_tables_is_told(tables, write_run, tmp_path, caplog):
    write_run("fpst", "web_edu", 0, 98.7)
    assert tables("fpst/fig4", "--results", tmp_path).returncode == 0
    assert not caplog.records
    assert tables("fpst/fig3", "--results", tmp_path / "fpst").returncode == 0
    (record,) = caplog.records
    assert record.message.startswith(f"no result of any table below {tmp_path / 'fpst'}: ")


def test_results_are_own_ones_or_the_repositorys(tmp_path, caplog):
    assert results_folder(tmp_path) == tmp_path / "docs" / "results" / "tables"
    assert "docs/results/tables" in caplog.text
    own_results(tmp_path).mkdir(parents=True)
    assert results_folder(tmp_path) == own_results(tmp_path)


@pytest.mark.slow
def test_table_of_a_half_done_sweep_with_a_half_written_file(write_run, tmp_path):
    """In a process of its own, since pytest takes warnings before they are said."""
    write_run("fpst", "web_edu", 0, 98.7)
    write_run("gcn", "web_edu", 0, 79.0).write_text('{"status": ')
    output = tmp_path / "new" / "fig3.csv"
    words = ("fpst/fig3", "--results", tmp_path, "--format", "csv", "--output", output)
    command = [sys.executable, SCRIPT, *map(str, words)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("result.json") == 1
    cells = pd.read_csv(output).set_index(["row", "column"])
    assert cells.loc[("fpst", "web_edu"), "our_mean"] == 98.7
    assert cells.loc[("gcn", "web_edu"), "status"] == "not run"


def test_piped_output_has_no_terminal_codes(tables, write_run, tmp_path):
    write_run("fpst", "web_edu", 0, 98.7)
    run = tables("fpst/fig3", "--results", tmp_path)
    assert run.returncode == 0, run.stderr
    assert "98.70" in run.stdout
    assert "\x1b" not in run.stdout


@pytest.mark.slow
def test_status_counts_what_is_finished_and_how_it_compares(tables, write_run, tmp_path):
    for seed in range(5):
        write_run("fpst", "web_edu", seed, 98.7 + seed / 100)  # printed: 99.00 +- 0.08
    write_run("gcn", "web_edu", 0, 80.0, steps=500)
    run = tables("status", "--results", tmp_path, "--format", "markdown")
    assert run.returncode == 0, run.stderr
    (line,) = (line for line in run.stdout.splitlines() if line.startswith("| fpst/fig3 "))
    assert line.split(" | ")[1:6] == ["1 of 48", "6 of 240", "0", "1", "0"]
    cited = "MLP, GCN, ChebNet, GPR-GNN"
    assert f"- polyformer/table5: {cited} have published numbers only." in run.stdout
    assert " has no " not in run.stdout
    short = "1 of 6 runs: 500 steps where the table's has 10,000."
    assert f"- fpst/fig3: not the table's protocol, {short}" in run.stdout
    assert "*Within*: 0 lies in the difference's 95% interval" in run.stdout
    shown = tables("status", "--results", tmp_path)
    assert "1 of 48" in shown.stdout
    assert "Within: 0 lies in the difference's 95% interval" in " ".join(shown.stdout.split())


@pytest.mark.slow
def test_status_links_the_pictures_that_are_there(tables, tmp_path):
    (tmp_path / "tables").mkdir()
    (tmp_path / "fpst_fig6.png").touch()
    words = ("status", "--results", tmp_path / "tables")
    lines = tables(*words, "--format", "markdown").stdout.splitlines()
    (drawn,) = (line for line in lines if line.startswith("| fpst | Figure 6 "))
    assert "| [drawn](fpst_fig6.png); without PubMed | `curvlab plot curvature " in drawn
    (other,) = (line for line in lines if line.startswith("| polyformer | Figure 4 "))
    assert "| not drawn | `curvlab train -m table=polyformer/table3 " in other
    shown = tables(*words).stdout
    assert re.search(r"^fpst +Figure 6 +.* drawn; without PubMed$", shown, re.MULTILINE)
    assert shown.endswith("The commands of these: curvlab tables status --format markdown\n")
    assert max(map(len, shown.splitlines())) <= 120


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("nothing", "at", "all"), "estimate TABLE"),
        (("estimate",), "estimate TABLE"),
        (("page",), "page PAPER"),
        (("estimate", "fpst/fig33"), "fpst/fig3"),
        (("estimate", "fpst/fig3", "model=gnc"), "gcn"),
        (("estimate", "fpst/fig3", "model=gcn", "foo=1"), "foo"),
        (("estimate", "fpst/fig3", "bar"), "key=value"),
        (("estimate", "fpst/fig3", "model=gcn", "seed=x"), "seed"),
        (("page", "nobody"), "fpst"),
        (("page", "fpst", "--format", "latex"), "drop --format"),
        (("status", "--format", "csv"), "drop --format"),
    ],
)
def test_wrong_words_get_one_sentence(tables, words, answer):
    run = tables(*words)
    assert run.returncode == 2
    assert len(run.stderr.strip().splitlines()) == 1
    assert answer in run.stderr


@pytest.mark.slow
def test_status_counts_what_the_sweep_plans_and_no_other_runs(tables, write_run, tmp_path):
    for seed in (0, 1, 10, 11):
        write_run("gcn", "power", seed, 97.5)
        write_run("sgformer", "power", seed, 97.5)
        write_run("gcn", "wordnet", seed, 97.5)
    for seed in range(10, 15):  # as many as planned, but others
        write_run("gat", "power", seed, 97.5)
    for seed in (*range(5), 10):
        write_run("mlp", "power", seed, 97.5)
    run = tables("status", "--results", tmp_path, "--format", "markdown")
    (line,) = (line for line in run.stdout.splitlines() if line.startswith("| fpst/fig3 "))
    assert line.split(" | ")[1:3] == ["1 of 48", "7 of 240"]
