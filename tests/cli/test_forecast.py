"""The forecast of a command: its runs, those that are finished, and the time of the others."""

import fnmatch
import subprocess
import sys

import pytest

from curvlab.cli import forecast as home
from curvlab.cli.forecast import Forecast
from curvlab.config.compose import compose
from curvlab.config.folder import CONFIGS, choices
from curvlab.run.train import describe

SWEEP = ("-m", "model=mlp,gcn", "dataset=texas", "seed=0,1")


@pytest.fixture
def outputs(tmp_path, monkeypatch):
    """An empty folder of runs; only those in it are known."""
    monkeypatch.setattr(home, "REPOSITORY", None)
    return tmp_path / "outputs"


def finish(outputs, *words, steps=100, seconds=50.0, folder="default", most=1000):
    """Store a finished run."""
    config = compose([*words, f"trainer.max_steps={most}", f"paths.output_dir={outputs}"])
    result = describe(config)
    result.status, result.steps, result.wall_seconds = "finished", steps, seconds
    place = outputs / result.model / folder / f"seed{result.seed}"
    place.mkdir(parents=True)
    result.save(place)


def said(words, **options):
    return list(Forecast(words).lines(**options))


def time_of(words):
    (cell,) = Forecast(words).left
    return Forecast(words).seconds(cell)


def test_runs_are_counted_and_the_finished_ones_left_out(outputs):
    words = [*SWEEP, f"paths.output_dir={outputs}"]
    assert said(words) == ["4 runs, 0 finished; no stored run tells how long they take"]
    finish(outputs, "model=mlp", "dataset=texas", "seed=1")
    finish(outputs, "model=mlp", "dataset=texas", "model.dim=2", "seed=0", folder="dim=2")
    assert said(words, each=True) == [
        "mlp, texas                                          1 run   50 s",
        "gcn, texas                                          2 runs  no stored run tells how long",
        "4 runs, 1 finished, about 50 s on this machine for 1 of them, by the cost of stored runs",
    ]
    assert len(Forecast([*words, "rerun=true"]).left) == 4
    assert not Forecast(["model=mlp", "dataset=texas", "seed=1", words[-1]]).left


def test_ctrl_c_ends_an_estimate_with_what_it_has(outputs, monkeypatch):
    def seconds(_, cell):
        if cell["model"] == "gcn":
            raise KeyboardInterrupt
        return 50.0

    monkeypatch.setattr(Forecast, "seconds", seconds)
    first, end = said([*SWEEP, f"paths.output_dir={outputs}"], each=True)
    assert first.endswith("2 runs  2 min")
    assert end.startswith("Interrupted: 4 runs, 0 finished, about 2 min on this machine for 2")


@pytest.mark.parametrize(("most", "expected"), [(1000, 50.0), (100, 50.0), (10, 9.5)])
def test_time_follows_the_steps_that_a_run_like_it_took(outputs, most, expected):
    finish(outputs, "model=mlp", "dataset=texas", "seed=7", steps=100, seconds=50.0)
    words = ["model=mlp", "dataset=texas", f"trainer.max_steps={most}"]
    assert time_of([*words, f"paths.output_dir={outputs}"]) == pytest.approx(expected)


def test_the_closest_runs_are_used_and_several_at_once_divide_the_time(outputs):
    finish(outputs, "model=mlp", "dataset=texas", "seed=8", seconds=50.0)
    finish(outputs, "model=mlp", "dataset=texas", "seed=9", "model.dim=2", seconds=7200.0)
    words = ["-m", "model=mlp", "dataset=texas", "seed=0,1", f"paths.output_dir={outputs}"]
    total, shorter = said([*words, "model.dim=2"])
    assert "about 4.0 h" in total
    assert "To run less" in shorter
    assert "about 2.0 h" in said([*words, "model.dim=2", "hydra.launcher.n_jobs=2"])[0]


@pytest.mark.parametrize(
    ("words", "runs"),
    [
        (["table=fpst/fig3"], 240),
        (["table=fpst/fig3", "dataset=power", "seed=0"], 12),
        (
            ["model=glob(fpst*)", "dataset=web_edu"],
            len(fnmatch.filter(choices(CONFIGS, "model"), "fpst*")),
        ),
        (["search=fpst", "dataset=texas", "search.trials=5"], 50),
        (["study=spaces", "study.models=[kappa_gcn]"], 30),
    ],
)
def test_tables_searches_and_studies(words, runs):
    assert Forecast(["-m", *words]).runs == runs


def test_shipped_runs_tell_the_time_and_those_of_another_task_do_not(tmp_path):
    where = f"paths.output_dir={tmp_path / 'outputs'}"
    assert time_of(["model=fpst", "dataset=web_edu", where]) > home.START
    words = ["model=fpst", "dataset=bio_worm", where]
    stored = [(run["model"], run["dataset"], run["task"]) for run in Forecast(words).stored]
    assert {task for *run, task in stored if run == ["fpst", "bio_worm"]} == {"inference"}
    assert time_of(words) is None


@pytest.mark.slow
@pytest.mark.parametrize("words", [["model=mlp"], [*SWEEP], ["-m", "study=spaces"]])
def test_a_dry_run_prints_the_forecast_waits_for_no_torch_and_leaves_nothing(tmp_path, words):
    code = (
        "import sys; from curvlab.cli.main import main; done = main(sys.argv[1:]); "
        "sys.exit(done or 3 * ('torch' in sys.modules))"
    )
    command = [sys.executable, "-c", code, "train", *words, "--dry-run"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert " run" in done.stdout
    assert not list(tmp_path.iterdir())
