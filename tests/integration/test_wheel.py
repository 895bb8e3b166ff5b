"""The wheel, installed into an empty folder and used from another one."""

import os
import re
import subprocess
import sys

import pytest

from composing import ROOT


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Where the built wheel is installed; nothing else of this repository can be imported."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(folder)]
    subprocess.run([*pip, *build, str(ROOT)], check=True, capture_output=True)
    (wheel,) = folder.glob("curvlab-*.whl")
    place = ["install", "--no-deps", "--no-index", "--target", str(folder / "site")]
    subprocess.run([*pip, *place, str(wheel)], check=True, capture_output=True)
    return folder / "site"


@pytest.fixture
def curvlab(installed, tmp_path):
    """`curvlab WORDS` of the wheel, from an empty folder."""
    environment = {k: v for k, v in os.environ.items() if k != "CURVLAB_MIRROR"}
    environment |= {"PYTHONPATH": str(installed), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}

    def run(*words):
        return subprocess.run(
            [sys.executable, str(installed / "bin" / "curvlab"), *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    return run


def test_the_wheel_has_every_configuration_and_nothing_of_the_checkout(installed):
    def names(folder):
        return {path.relative_to(folder) for path in folder.rglob("*.yaml")}

    assert names(installed / "curvlab" / "configs") == names(ROOT / "configs")
    assert not (installed / "configs").exists()
    assert not (installed / "tests").exists()


def test_a_run_from_an_empty_folder_leaves_its_result_there(curvlab, tmp_path):
    few = ("dataset.source.num_nodes=60", "trainer.max_steps=5", "trainer.steps_per_epoch=5")
    done = curvlab("train", "model=gcn", "dataset=synthetic_web", *few)
    assert done.returncode == 0, done.stderr
    (result,) = tmp_path.rglob("result.json")
    assert result.relative_to(tmp_path).parts[:2] == ("outputs", "runs")


@pytest.mark.nightly
def test_tables_and_data_need_no_checkout(curvlab):
    status = curvlab("tables", "status")
    assert status.returncode == 0
    assert "fpst/fig3" in status.stdout
    assert "no runs in outputs/tables yet" in status.stderr
    table = curvlab("tables", "fpst/fig3", "--format", "markdown").stdout
    assert re.search(r"FPS-T.*9\d\.\d\d.*9\d\.\d\d", table)  # published and ours
    assert curvlab("data", "synthetic_web").stdout.startswith("synthetic_web: generated")


@pytest.mark.nightly
def test_the_wheel_passes_the_check_of_a_release(installed, tmp_path):
    (package,) = installed.glob("curvlab-*.dist-info")
    version = package.name.removeprefix("curvlab-").removesuffix(".dist-info")
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "check_wheel.py"), version],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(installed), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
