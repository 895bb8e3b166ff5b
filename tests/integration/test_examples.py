"""Each script of examples/ runs."""

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from forked import Process, _server
from matplotlib import pyplot as plt
from tiny_runs import ROOT

SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
SAYS = {
    "first_run": "result.json",
    "four_sums": "centroid: x ⊕ y at distance 0.93 from the origin",
    "own_loop": "last loss",
    "paper_to_cell": "GCN   ours",
    "two_machines": "4 runs, 4 finished",
    "triples": "was kept back",
    "worth_it": "delta of a tree is 0",
}


@pytest.mark.sampled(9)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script_runs(script, tmp_path, monkeypatch, capsys):
    """The commands that it starts are processes that have imported everything already."""

    def run(command, cwd=ROOT, check=False):
        done = Process(command[1:], Path(cwd), os.environ).done()
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr
        print(done.stdout)

    class Started(Process):
        def __init__(self, command, cwd):
            super().__init__(command[1:], Path(cwd), os.environ)

        def wait(self):
            assert self.done().returncode == 0

    _server()  # which is a real process
    monkeypatch.setattr(subprocess, "Popen", Started)
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path)])
    runpy.run_path(str(script), run_name="__main__")
    assert SAYS[script.stem] in capsys.readouterr().out


PRINTED = sorted((ROOT / "examples" / "printed").glob("*.txt"))


@pytest.mark.parametrize("stored", PRINTED, ids=lambda path: path.stem)
def test_the_output_that_the_site_shows_is_that_of_a_script(stored):
    """`python scripts/pages.py` writes it."""
    assert SAYS[stored.stem] in stored.read_text(encoding="utf-8")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("book", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda p: p.stem)
def test_a_notebook_prints_what_it_stores(book, tmp_path, monkeypatch):
    """Where it trains, but for the numbers, which include times."""
    monkeypatch.chdir(tmp_path)
    execute = runpy.run_path(str(ROOT / "scripts" / "notebooks.py"))["execute"]
    stored, found = (
        _printed(each) for each in (json.loads(book.read_text("utf-8")), execute(book))
    )
    if "ms a step" in stored:
        stored, found = (re.sub(r"\d[\d.,]*", "N", text) for text in (stored, found))
    assert found == stored
    plt.close("all")
    torch.set_default_dtype(torch.float32)


def _printed(notebook):
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    return "\n".join(line.rstrip() for output in outputs for line in output.get("text", ()))
