"""OGB's evaluators: imported only if a metric of theirs is computed, without a question."""

import subprocess
import sys

import pytest

LATE = """
import sys
import curvlab, curvlab.layers, curvlab.models, curvlab.cli.main, curvlab.run.train
import curvlab.callbacks, curvlab.tasks.node_classification, curvlab.cli.wandb_sync
import curvlab.search.run
few = ("trainer.max_steps=2", "trainer.steps_per_epoch=2", "dataset.source.num_nodes=40")
curvlab.train("model=gcn", "dataset=synthetic_web", "trainer.plots=false", *few)
print([name for name in ("wandb", "ogb", "outdated") if name in sys.modules])
"""

QUESTION = """
import sys
from pathlib import Path
Path("outdated.py").write_text("raise SystemExit('asked')")
sys.path.insert(0, ".")
import torch
from curvlab.metrics import ogb
print(ogb.accuracy(torch.eye(3), torch.tensor([0, 1, 0])).item())
assert "outdated" not in sys.modules
"""


def run(code, folder):
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.nightly
@pytest.mark.slow
def test_a_run_imports_neither_wandb_nor_ogb(tmp_path):
    assert run(LATE, tmp_path) == "[]"


def test_ogb_asks_no_package_index_when_it_is_imported(tmp_path):
    assert float(run(QUESTION, tmp_path)) == pytest.approx(2 / 3)
