"""`examples/plugin` and another package beside it: what they add works as our own does."""

import json
import os
import subprocess
import sys

import pandas as pd
import pytest
from forked import Process
from tiny_runs import TREE

from composing import ROOT

PLUGIN = ROOT / "examples" / "plugin"
SHORT = ("trainer.max_steps=20", "trainer.plots=false")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--no-index"]
    place = ["--no-deps", "--no-build-isolation", "--target", str(folder), str(PLUGIN)]
    subprocess.run([*pip, *place], check=True, capture_output=True)
    return folder


@pytest.fixture
def run(tmp_path):
    """`curvlab WORDS` from an empty folder, with a folder on Python's path; its exit code."""

    def run(site, *words, code=0):
        path = os.pathsep.join([str(site), str(ROOT / "src")])
        environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        done = Process(["-m", "curvlab", *words], tmp_path, environment).done()
        assert done.returncode == code, done.stderr
        return done

    return run


TASKS = {
    "reconstruction": ("dataset=synthetic_web", "dataset.source.num_nodes=40"),
    "node_classification": TREE[:4],
    "link_prediction": TREE[:3],
}
FPST = ("model=fpst", "model.eigenvectors=4")
SPHERE = "manifold=hypersphere"
LORENTZ = "manifold=lorentz"
PRODUCT = "manifold=product"
CASES = [
    *((task, *FPST, "model.dropout=0.1", SPHERE) for task in TASKS),
    *((task, "model=kappa_gcn", SPHERE) for task in TASKS),
    ("node_classification", "model=hgcn", SPHERE),
    ("link_prediction", *FPST, LORENTZ),
    ("node_classification", "model=kappa_gcn", LORENTZ),
    ("reconstruction", *FPST, PRODUCT, "manifold.signature=H8xS4xE4", "model.heads=3"),
    ("link_prediction", "model=kappa_gcn", PRODUCT, "manifold.signature=L8xU8"),
]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_models_train_on_every_manifold_in_every_task(installed, run, tmp_path, case):
    task, *words = case
    options = ("model.dim=16", "optimizer.lr=0.005", "trainer.steps_per_epoch=5", "recipe=none")
    run(installed, "train", *TASKS[task], f"task={task}", *words, *options, *SHORT)
    (path,) = tmp_path.rglob("metrics.csv")
    losses = pd.read_csv(path).loss.dropna()
    assert losses.min() < losses.iloc[0]


@pytest.mark.nightly  # as test_queue has it, for a table of a package
def test_its_table_is_filled_by_workers_and_rendered(installed, run, tmp_path):
    words = ("table=my_lab/first", "seed=0", *SHORT, "hydra/launcher=joblib")
    done = run(installed, "train", "-m", *words)
    assert "sweep of 2 cells: 2 finished" in done.stdout
    table = run(installed, "tables", "my_lab/first").stdout
    assert "A ring of stars" in table
    lines = table.splitlines()
    (at,) = (i for i, line in enumerate(lines) if "TAG" in line)
    (path,) = tmp_path.rglob("my_tag/*/result.json")
    assert "90.0" in lines[at]  # printed
    assert f"{json.loads(path.read_text())['score']:.1f}" in lines[at + 1]


@pytest.mark.parametrize(
    "place", [["--config-dir", "{}"], ["hydra.searchpath=[pkg://my_lab.configs]"]]
)
def test_a_folder_may_be_named_on_the_command_line(run, place):
    """Of a package without an entry point, which Python can import."""
    place = [word.format(PLUGIN / "my_lab" / "configs") for word in place]
    run(PLUGIN, "train", "model=my_tag", "dataset=my_ring", code=2)
    run(PLUGIN, "train", *place, "model=my_tag", "dataset=my_ring", *SHORT)


FILES = {
    "extra.py": '''
import torch
from curvlab.tasks.reconstruction import Reconstruction


class Hubs(Reconstruction):
    """Reconstruction that counts hubs too.

    Args:
        encoder: the model.
        optimizer: of its parameters.
        least: neighbours of a hub.
    """

    def __init__(self, encoder, optimizer=None, least: int = 3) -> None:
        super().__init__(encoder, optimizer)
        self.least = least

    def test_step(self, batch, batch_idx):
        super().test_step(batch, batch_idx)
        degrees = torch.bincount(batch.edge_index[0])
        self.log("test/hubs", float((degrees >= self.least).sum()), batch_size=1)
''',
    "extra_configs/__init__.py": "",
    "extra_configs/task/hubs.yaml": """# Counts hubs
name: hubs
recipe: reconstruction # whose data sets and recipes it has
_target_: extra.Hubs
""",
    "extra_configs/recipe/reconstruction/my_tag.yaml": """# @package _global_
my_ring:
  model: {dim: 8}
""",
    "extra-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: extra\nVersion: 1\n",
    "extra-1.dist-info/entry_points.txt": "[curvlab.configs]\nextra = extra_configs\n",
}


@pytest.fixture(scope="module")
def extra(installed, tmp_path_factory):
    """A package beside the first: a task, and a recipe of the first one's model."""
    place = tmp_path_factory.mktemp("extra")
    for name, text in FILES.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    return os.pathsep.join([str(installed), str(place)])


def test_a_task_of_a_package_is_run_on_a_manifold_of_another(extra, run, tmp_path):
    """With an option of its own, on a graph of curvlab, which knows no such task."""
    words = ("task=hubs", "task.least=4", "dataset=synthetic_web", "dataset.source.num_nodes=40")
    run(extra, "train", "model=kappa_gcn", SPHERE, *words, *SHORT)
    (path,) = tmp_path.rglob("result.json")
    result = json.loads(path.read_text())
    assert result["metrics"]["test"].keys() == {"map", "hubs"}
    assert 0 < result["metrics"]["test"]["hubs"] < 40
    again = run(extra, "evaluate", str(path.parent))  # loads both classes
    assert "the same to the last digit" in again.stdout
    shown = run(extra, "train", "model=my_tag", "dataset=my_ring", "print_config=true").stdout
    assert "dim: 8 # recipe/reconstruction/my_tag.yaml my_ring" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["model=my_tga"], "did you mean my_tag?"),
        (["model=my_tag", "model.hop=3"], "did you mean model.hops"),
        (["model=my_tag", "model.hops=0"], "at least 1"),
        (["manifold=hypersphre"], "did you mean hypersphere"),
        ([SPHERE, "model=hypformer"], f"cannot be built with {SPHERE}"),
        (["task=hubbs"], "did you mean hubs?"),
        (["task=hubs", "task.least=many"], "task.least"),
        (["task=hubs", "dataset=fb15k237", "model=distmult"], "has no task hubs"),
        (["--config-dir", "nowhere"], "there is no folder of configurations"),
        (["hydra.searchpath=[pkg://no_lab.configs]"], "there is no folder of configurations"),
    ],
)
def test_wrong_words_are_answered_as_for_our_own(extra, run, words, answer):
    done = run(extra, "train", *words, code=2)
    assert done.stderr.count("\n") == 1
    assert answer in done.stderr
