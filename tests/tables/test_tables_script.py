import re
import subprocess
import sys
from collections import namedtuple
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

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
    assert max(map(len, run.stdout.splitlines())) <= 100


def test_status_counts_what_is_finished_and_how_it_compares(tables, write_run, tmp_path):
    for seed in range(5):
        write_run("fpst", "web_edu", seed, 98.7 + seed / 100)  # printed: 99.00 +- 0.08
    write_run("gcn", "web_edu", 0, 80.0, steps=500)
    run = tables("status", "--results", tmp_path, "--format", "markdown")
    assert run.returncode == 0, run.stderr
    (line,) = (line for line in run.stdout.splitlines() if line.startswith("| fpst/fig3 "))
    assert line.split(" | ")[1:6] == ["1 of 48", "6 of 240", "0", "1", "0"]
    assert "- polyformer/table5 has no MLP" in run.stdout
    short = "1 of 6 runs: 500 steps where the table's has 10,000."
    assert f"- fpst/fig3: reduced protocol, {short}" in run.stdout
    shown = tables("status", "--results", tmp_path)
    assert "1 of 48" in shown.stdout


def test_status_links_the_pictures_that_are_there(tables, tmp_path):
    (tmp_path / "tables").mkdir()
    (tmp_path / "fpst_fig6.png").touch()
    words = ("status", "--results", tmp_path / "tables")
    lines = tables(*words, "--format", "markdown").stdout.splitlines()
    (drawn,) = (line for line in lines if line.startswith("| fpst | Figure 6 "))
    assert "| [drawn](fpst_fig6.png); without PubMed | `python scripts/plot.py curvature " in drawn
    (other,) = (line for line in lines if line.startswith("| polyformer | Figure 4 "))
    assert "| not drawn | `python train.py -m table=polyformer/table3 " in other
    shown = tables(*words).stdout
    assert re.search(r"^fpst +Figure 6 +.* drawn; without PubMed$", shown, re.MULTILINE)
    assert shown.endswith("The commands of these: scripts/tables.py status --format markdown\n")
    assert max(map(len, shown.splitlines())) <= 120


def test_estimate_prints_commands_within_a_budget(tables, tmp_path):
    words = ("fpst/fig3", "model=gcn,mlp", "dataset=synthetic_web", "seed=0,1")
    words = (*words, f"paths.data_dir={tmp_path}", "trainer.max_steps=20")
    run = tables("estimate", *words, "--results", tmp_path, "--budget", "1h", "--device", "cpu")
    assert run.returncode == 0, run.stderr
    commands = run.stdout.splitlines()
    assert [command.split()[4] for command in commands] == ["model=gcn", "model=mlp"]
    assert all("seed=0,1" in command for command in commands)


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("nothing", "at", "all"), "estimate TABLE"),
        (("estimate",), "fpst/fig3"),
        (("estimate", "fpst/fig33"), "fpst/fig3"),
        (("estimate", "fpst/fig3", "--budget", "soon"), "2h"),
        (("estimate", "fpst/fig3", "model=gnc"), "gcn"),
        (("estimate", "fpst/fig3", "model=gcn", "foo=1"), "foo"),
        (("estimate", "fpst/fig3", "bar"), "key=value"),
        (("estimate", "fpst/fig3", "model=gcn", "seed=x"), "seed"),
        (("page", "nobody"), "fpst"),
        (("page", "fpst", "--format", "latex"), "drop --format"),
        (("status", "--format", "csv"), "markdown"),
    ],
)
def test_wrong_words_get_one_sentence(tables, words, answer):
    run = tables(*words)
    assert run.returncode == 2
    assert len(run.stderr.strip().splitlines()) == 1
    assert answer in run.stderr


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_formats_are_printed(tables, tmp_path, form):
    run = tables("fpst/fig3_dimensions", "--results", tmp_path, "--format", form)
    assert run.returncode == 0, run.stderr
    assert "92.00" in StringIO(run.stdout).read()
