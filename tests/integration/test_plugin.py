"""`examples/plugin`: another package's model, data set and table, installed into a folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
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
    """`curvlab WORDS` from an empty folder, with a folder on Python's path."""

    def run(site, *words):
        path = os.pathsep.join([str(site), str(ROOT / "src")])
        return subprocess.run(
            [sys.executable, "-m", "curvlab", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    return run


def test_its_model_learns_its_graph_and_the_result_is_identified(installed, run, tmp_path):
    done = run(installed, "train", "model=my_tag", "dataset=my_ring", "model.hops=3", *SHORT)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.rglob("result.json")
    result = json.loads(path.read_text())
    assert result["status"] == "finished"
    assert result["config"]["model"]["_target_"] == "my_lab.models.TAG"
    assert result["config"]["model"]["hops"] == 3
    again = run(installed, "train", "model=my_tag", "dataset=my_ring", "model.hops=3", *SHORT)
    assert "step 20/20" not in again.stderr  # the identity is the same


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["model=my_tga"], "did you mean my_tag?"),
        (["model=my_tag", "model.hop=3"], "did you mean model.hops"),
        (["model=my_tag", "model.hops=0"], "at least 1"),
    ],
)
def test_wrong_words_are_answered_as_for_our_own(installed, run, words, near):
    done = run(installed, "train", *words)
    assert done.returncode == 2
    assert near in done.stderr


def test_its_table_is_filled_by_workers_and_rendered(installed, run):
    words = ("table=my_lab/first", "seed=0", *SHORT, "hydra/launcher=parallel")
    done = run(installed, "train", "-m", *words)
    assert done.returncode == 0, done.stderr
    assert "sweep of 2 cells: 2 finished" in done.stdout
    table = run(installed, "tables", "my_lab/first").stdout
    assert "Ring of stars" in table
    assert "TAG" in table


@pytest.mark.parametrize(
    "place", [["--config-dir", "{}"], ["hydra.searchpath=[pkg://my_lab.configs]"]]
)
def test_a_folder_may_be_named_on_the_command_line(run, place):
    """Of a package without an entry point, which Python can import."""
    place = [word.format(PLUGIN / "my_lab" / "configs") for word in place]
    assert run(PLUGIN, "train", "model=my_tag", "dataset=my_ring").returncode == 2
    done = run(PLUGIN, "train", *place, "model=my_tag", "dataset=my_ring", *SHORT)
    assert done.returncode == 0, done.stderr


def test_a_folder_that_is_not_there_is_one_sentence(run):
    for place in (["--config-dir", "nowhere"], ["hydra.searchpath=[pkg://no_lab.configs]"]):
        done = run(PLUGIN, "train", *place, "model=gcn")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "there is no folder of configurations" in done.stderr
