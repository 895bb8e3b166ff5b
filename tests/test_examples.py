"""Each script of examples/ runs."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
SAYS = {
    "first_run": "result.json",
    "own_loop": "last loss",
    "paper_to_cell": "GCN   ours",
    "triples": "was kept back",
    "worth_it": "delta of a tree is 0",
}


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script_runs(script, tmp_path):
    done = subprocess.run(
        [sys.executable, script, tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert SAYS[script.stem] in done.stdout
