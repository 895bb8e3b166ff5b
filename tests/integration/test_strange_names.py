"""A graph whose names steer terminals and spreadsheets, used by every command; then it changes."""

import csv
import re
import subprocess
from itertools import pairwise

import pytest
from fault_trials import small_disk
from tiny_runs import FAST

TITLE = "\x1b]0;owned\x07\x1b[2J"
WORDS = ("model=mlp", "trainer.max_steps=5", "trainer.accelerator=cpu", "trainer.plots=false")
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@pytest.fixture
def graph(command):
    folder = command.folder / "graph"
    folder.mkdir()
    names = [f"={TITLE}{i}" for i in range(30)]
    edges = [f"{one},{other}" for one, other in pairwise(names)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    rows = [f"{name},{i / 10},@class{TITLE}{i % 2}" for i, name in enumerate(names)]
    (folder / "nodes.csv").write_text("\n".join(["id,size,label", *rows]) + "\n")
    return folder


@pytest.mark.nightly
def test_no_control_character_of_a_name_reaches_the_terminal(command, graph):
    done = [command.verb("init-graph", str(graph)), command(f"dataset={graph}", *WORDS)]
    (name,) = command.results()
    run = str(command.outputs / name)
    done += [command.verb("predict", run), command.verb("evaluate", run)]
    done += [command.verb("predict", run, "--node", f"no{TITLE}"), command.verb("compare", run)]
    done += [command.start(f"model={TITLE}").done()]
    said = "".join(one.stdout + one.stderr for one in done)
    assert not CONTROLS.findall(said)
    assert "owned" in said

    table = command.folder / "classes.csv"
    for option in ((), ("--spreadsheet",)):
        command.verb("predict", run, "--output", str(table), *option)
        _, *rows = csv.reader(table.read_text().splitlines())
        assert len(rows) == 30
        quote = "'" if option else ""
        assert all(row[0].startswith(f"{quote}={TITLE}") for row in rows)
        assert all(f"{quote}@class{TITLE}{i % 2}" in row for i, row in enumerate(rows))


def test_evaluate_names_the_file_that_has_changed(command, graph):
    command(f"dataset={graph}", *WORDS)
    (name,) = command.results()
    nodes = graph / "nodes.csv"
    nodes.write_text(nodes.read_text().replace("0.1", "0.7"))
    done = command.verb("evaluate", str(command.outputs / name))
    assert done.returncode == 2
    assert "graph has changed since this run was trained on it (nodes.csv changed)" in done.stderr


def test_a_run_that_has_finished_is_reported_from_a_read_only_disk(command):
    try:
        with small_disk(command.outputs, 100_000):
            command(*FAST)
            remount = ("mount", "-o", "remount,ro", str(command.outputs))
            subprocess.run(remount, check=True)
            done = command(*FAST)
            assert "result.json (rerun=true repeats it)" in done.stdout
            assert all(" ..." in line for line in done.stderr.splitlines())  # of a wait
            done = command("-m", "seed=0", *FAST)
            assert "sweep of 1 cell: 1 finished" in done.stdout
            refused = command(*FAST, "seed=1", code=1)
            assert re.search(r"curvlab train: .*Read-only file system.*\n", refused.stderr)
    except PermissionError as error:
        pytest.skip(str(error))
