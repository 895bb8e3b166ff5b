"""Each script of examples/ runs."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from forked import Process, _server
from tiny_runs import ROOT

SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
SAYS = {
    "first_run": "result.json",
    "four_sums": "centroid: x ⊕ y at distance 0.93 from the origin",
    "own_loop": "last loss",
    "paper_to_cell": "GCN   ours",
    "two_machines": "4 of 4 runs done",
    "triples": "was kept back",
    "worth_it": "delta of a tree is 0",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script_runs(script, tmp_path, monkeypatch, capsys):
    """The commands that it starts are processes that have imported everything already."""

    def run(command, cwd=ROOT, check=False):
        process = Process(command[1:], Path(cwd), os.environ)
        output, errors = process.communicate()
        assert process.returncode == 0, output[-2000:] + errors
        print(output)

    class Started(Process):
        def __init__(self, command, cwd):
            super().__init__(command[1:], Path(cwd), os.environ)

        def wait(self):
            self.communicate()
            assert self.returncode == 0

    _server()  # which is a real process
    monkeypatch.setattr(subprocess, "Popen", Started)
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path)])
    runpy.run_path(str(script), run_name="__main__")
    assert SAYS[script.stem] in capsys.readouterr().out
