"""The forecast of a command: its runs, those that are finished, and the time of the others."""

import fnmatch
import subprocess
import sys

import pytest

from composing import ROOT
from curvlab.cli import forecast as home
from curvlab.cli.forecast import Forecast, forecast_of_run
from curvlab.config.folder import CONFIGS, choices
from curvlab.results.costs import FILE, cost_of, read_costs, summarise, write_costs
from curvlab.results.folder import RunDirectory
from curvlab.results.result import load, read_result, result_files
from curvlab.run.command import Command

SWEEP = ("model=mlp,gcn", "dataset=texas", "seed=0,1")


@pytest.fixture
def outputs(tmp_path, monkeypatch):
    """An empty folder of runs; only those in it are known."""
    monkeypatch.setattr(home, "RESULTS", tmp_path)
    return tmp_path / "outputs"


def finish(outputs, *words, steps=100, seconds=50.0, folder=None, most=1000):
    """Store a finished run in the folder of its command, or another."""
    run = Command.from_overrides(
        [*words, f"trainer.max_steps={most}", f"paths.output_dir={outputs}"]
    )
    result = run.initial_result()
    result.status, result.steps, result.wall_seconds = "finished", steps, seconds
    place = RunDirectory(run.folder(True) if folder is None else outputs / folder / "seed0")
    place.path.mkdir(parents=True, exist_ok=True)
    place.prepare(result, fresh=False)
    result.save(place.path)
    return place.path


def said(words, **options):
    return list(Forecast(words).lines(**options))


def time_of(words):
    (cell,) = Forecast(words).unfinished
    return Forecast(words).seconds(cell)


def test_runs_are_counted_and_the_finished_ones_left_out(outputs):
    words = [*SWEEP, f"paths.output_dir={outputs}", "trainer.max_steps=1000"]
    assert said(words) == ["4 runs, 0 finished; no stored run tells how long they take"]
    finish(outputs, "model=mlp", "dataset=texas", "seed=1")
    finish(outputs, "model=mlp", "dataset=texas", "model.dim=32", "seed=0")
    assert said(words, by_cell=True) == [
        "mlp, texas, 1000                                    1 run   50 s",
        "gcn, texas, 1000                                    2 runs  no stored run tells how long",
        "4 runs, 1 finished, about 50 s on this machine for 1 of them, by the cost of stored runs",
    ]
    assert len(Forecast([*words, "rerun=true"]).unfinished) == 4
    assert not Forecast(["model=mlp", "seed=1", *words[1:2], *words[3:]]).unfinished


TRIAL = ("table=fpst/fig3", "model=gcn", "dataset=power", "seed=0,1")


@pytest.mark.parametrize("shorter", ["trainer.max_steps=50", "model.dim=2", "optimizer.lr=0.1"])
def test_a_trial_makes_no_cell_of_a_table_finished(outputs, shorter):
    """Nor do its plan and its status; the trial itself is finished when it is asked for again."""
    place = f"paths.output_dir={outputs}"
    for seed in (0, 1):
        words = (*TRIAL[:3], f"seed={seed}", shorter, place)
        result = Command.from_overrides(words).initial_result()
        result.status, result.steps, result.wall_seconds = "finished", 50, 10.0
        folder = RunDirectory(Command.from_overrides(words).folder(True))
        folder.path.mkdir(parents=True)
        folder.prepare(result, fresh=False)
        result.save(folder.path)
    assert said([*TRIAL, place])[0].startswith("2 runs, 0 finished")
    assert said([*TRIAL, shorter, place]) == ["2 runs, 2 finished"]


def test_a_run_is_finished_wherever_its_result_is(outputs):
    """Set aside by another run in its folder, or below another folder: by its identity alone."""
    place, run = f"paths.output_dir={outputs}", ("model=gcn", "dataset=texas", "seed=0")
    finish(outputs, *run)
    words = [*run, place, "trainer.max_steps=1000"]
    assert said(words) == ["1 run, 1 finished"]
    assert said([*words, "model.dim=16"]) == ["1 run, 1 finished"]  # a default that is spelt out
    assert said([*words, "logger=tensorboard"]) == ["1 run, 1 finished"]
    (done,) = outputs.rglob("result.json")
    folder = RunDirectory(done.parent)
    folder._make_room()
    assert not folder.conclusion()
    assert said(words) == ["1 run, 1 finished"]  # the run takes it back
    done.parent.rename(outputs / "elsewhere")
    assert said(words)[0].startswith("1 run, 0 finished")  # what is in another's previous/ is not
    finish(outputs, *run, folder="mine")
    assert said(words) == ["1 run, 1 finished"]
    logged = [*words, "logger=tensorboard", "model.dim=16"]
    assert said(logged)[0].startswith("1 run, 0 finished")  # which is to see each of its runs


def test_ctrl_c_ends_an_estimate_with_what_it_has(outputs, monkeypatch):
    def seconds(_, cell):
        if "model=gcn" in cell:
            raise KeyboardInterrupt
        return 50.0

    monkeypatch.setattr(Forecast, "seconds", seconds)
    first, end = said([*SWEEP, f"paths.output_dir={outputs}"], by_cell=True)
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
    words = ["model=mlp", "dataset=texas", "seed=0,1", f"paths.output_dir={outputs}"]
    total, shorter = said([*words, "model.dim=2"])
    assert "about 4.0 h" in total
    assert "To run less" in shorter
    assert "about 2.0 h" in said([*words, "model.dim=2", "hydra.launcher.n_jobs=2"])[0]


def test_a_run_of_a_few_steps_tells_nothing_of_a_long_one(outputs):
    """Its time is that of a start, and its first steps prepare what later ones use."""
    finish(outputs, "model=mlp", "dataset=texas", steps=3, seconds=30.0, most=3)
    words = ["model=mlp", "dataset=texas", f"paths.output_dir={outputs}"]
    assert time_of([*words, "trainer.max_steps=5000", "seed=1"]) is None
    assert time_of([*words, "trainer.max_steps=3", "seed=1"]) == pytest.approx(30.0)


def test_the_start_of_a_short_run_is_not_counted_at_each_step(outputs):
    folder = finish(outputs, "model=mlp", "dataset=texas", steps=200, seconds=45.0, most=200)
    result = read_result(folder)
    result.ms_per_step = 5.0
    result.save(folder)
    words = ["model=mlp", "dataset=texas", f"paths.output_dir={outputs}", "seed=1"]
    assert 5 + 10_000 * 0.005 <= time_of([*words, "trainer.max_steps=10000"]) <= 5 + 10_000 * 0.02


FAR = {
    "width": (["model.dim=1000"], ["model.dim=32"]),
    "samples": (["task.training=negative_sampling"], []),
    "number of samples": (
        ["task.training=negative_sampling", "task.negatives=1024"],
        ["task.training=negative_sampling", "task.negatives=16"],
    ),
}


@pytest.mark.parametrize("case", FAR)
def test_other_settings_tell_no_time(case, outputs):
    """Of a triple's samples or a much larger width a step costs something else."""
    planned, stored = FAR[case]
    run = ["model=rotate", "dataset=umls"]
    finish(outputs, *run, *stored, seconds=50.0)
    words = [*run, f"paths.output_dir={outputs}", "trainer.max_steps=1000", "seed=1"]
    assert time_of([*words, *planned]) is None
    assert "no stored run tells" in said([*words, *planned])[0]
    assert "about 50 s" in said([*words, *stored])[0]


def test_comparable_settings_tell_it_roughly(outputs):
    finish(outputs, "model=mlp", "dataset=texas", "model.dim=32", seconds=50.0)
    words = ["model=mlp", "dataset=texas", f"paths.output_dir={outputs}", "seed=1"]
    planned = [*words, "trainer.max_steps=1000", "model.dim=64"]
    assert "roughly 50 s" in said(planned)[0]
    assert said(planned, by_cell=True)[0].endswith("roughly 50 s")
    assert "about 50 s" in said([*planned, "model.dim=32", "model.dropout=0.3"])[0]


def test_runs_of_the_same_settings_come_before_the_users_own(outputs):
    """Which are of this machine, but of another width."""
    finish(outputs, "model=mlp", "dataset=texas", "model.dim=64", seconds=500.0)
    other = finish(outputs, "model=mlp", "dataset=texas", "seed=5", seconds=50.0)
    write_costs(home.RESULTS / FILE, [vars(read_result(other)) | {"device": "cpu"}])
    (other / "result.json").unlink()
    words = ["model=mlp", "dataset=texas", f"paths.output_dir={outputs}", "seed=1"]
    assert "about 50 s" in said([*words, "trainer.max_steps=1000"])[0]


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
    assert Forecast(words).runs == runs


def test_shipped_runs_tell_the_time_and_those_of_another_task_do_not(tmp_path):
    where = f"paths.output_dir={tmp_path / 'outputs'}"
    assert time_of(["model=fpst", "dataset=web_edu", where]) > 60
    kinds = {cost.kind for cost in read_costs(ROOT / "docs/results" / FILE)}
    reconstructed = {(model, dataset) for model, dataset, task in kinds if task == "reconstruction"}
    inferred = {(model, dataset) for model, dataset, task in kinds if task == "inference"}
    model, dataset = min(inferred - reconstructed)
    assert time_of([f"model={model}", f"dataset={dataset}", where]) is None


def test_an_estimate_counts_the_steps_that_the_cell_will_have(tmp_path):
    """Stored runs of CAT's Table 1 have 20 of its 200 passes."""
    where = f"paths.output_dir={tmp_path / 'outputs'}"
    words = ["table=cat/table1", "model=atth", "dataset=wn18rr", "seed=0", where]
    times = [time_of([*words, f"trainer.epochs={passes}"]) for passes in (20, 200)]
    start = home.seconds_of.__globals__["Cost"](("", "", ""), "", 0.0).seconds(0)
    assert (times[1] - start) / (times[0] - start) == pytest.approx(10)
    assert time_of(words) == times[1]


def test_the_index_of_costs_is_that_of_the_tables_of_runs():
    runs = (load(path) for path in result_files(ROOT / "docs/results/tables"))
    costs = (cost_of(run) for run in runs if run["device"] == "cpu")
    assert read_costs(ROOT / "docs/results" / FILE) == list(summarise(filter(None, costs)))


def test_costs_are_medians_and_runs_that_ended_early_say_when(tmp_path):
    def run(ms, steps, device="cpu"):
        config = {"trainer": {"max_steps": 100}, "dataset": {"name": "cora"}}
        names = {"model": "gcn", "task": "nc", "experiment": "a/b", "device": device}
        return names | {"config": config, "steps": steps, "ms_per_step": ms, "wall_seconds": 5.0}

    write_costs(tmp_path / FILE, [run(1.0, 40), run(3.0, 60), run(8.0, 100), run(900.0, 1, "cuda")])
    (cost,) = read_costs(tmp_path / FILE)
    assert (cost.kind, cost.table, cost.ms, cost.steps) == (("gcn", "cora", "nc"), "a/b", 3.0, 50)
    assert cost.seconds(1000) == cost.seconds(50) == pytest.approx(5.15)
    assert cost.seconds(10) == pytest.approx(5.03)


def test_a_single_run_reads_no_result_but_its_own(tmp_path, monkeypatch):
    def fail(*_):
        raise AssertionError("a start read stored results")

    for name in ("load", "result_files", "folders_by_hash"):
        monkeypatch.setattr(home, name, fail)
    words = ["model=fpst", "dataset=web_edu", "trainer.max_steps=9999"]
    run = Command.from_overrides([*words, f"paths.output_dir={tmp_path}"])
    assert forecast_of_run(run, run.folder(False)).startswith("about ")
    finish(tmp_path, *words[:2], most=9999)
    assert forecast_of_run(run, run.folder(False)) == ""


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("words", [["model=mlp"], ["-m", *SWEEP], ["-m", "study=spaces"]])
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
