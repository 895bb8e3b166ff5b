"""train.py itself: what it prints and how it exits, interruptions, W&B."""

import re
import signal
import time

import pandas as pd
import psutil
import pytest
import yaml
from tiny_runs import TINY, TREE

from curvlab.results.result import read_result

SMALL = (*TINY, "model=fpst", "model.eigenvectors=4", "model.dropout=0.1", "trainer.plots=false")


def only_result(command):
    (result,) = command.results().values()
    return result


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("model=fpts",), "there is no model=fpts; did you mean fpst\\?"),
        (("-m", "model=gcn", "--cfg", "hydra"), "Only one of --run, --multirun, --cfg.*"),
        (("model=gcn", "model.dim=0"), "model.dim=0 must be a whole number of at least 1.*"),
        (("-m", "model=fpst", "model.heads=0,2"), "model.heads=0 must be a whole number.*"),
        (("model=mlp", "dataset=web_edu", "paths.mirror=none"), ".*none, which is not a folder.*"),
    ],
)
def test_what_cannot_be_run_is_answered_in_one_line_with_exit_code_2(command, words, answer):
    done = command(*words, code=2)
    assert re.fullmatch(rf"curvlab train: {answer}\n", done.stderr)
    assert command.results() == {}


def test_a_run_prints_what_starts_how_it_goes_and_where_the_result_is(command):
    done = command(*TINY, "model=gcn")
    first, score, facts, references, *files = done.stdout.splitlines()
    assert references.startswith("  reference: ")
    assert re.search("seed 0, euclidean: starting in ", first)
    assert re.fullmatch(r"gcn on synthetic_web, seed 0: mAP \d+\.\d\d", score)
    assert re.search("parameters, .* ms a step", facts)
    named = [command.folder / line.split()[-1] for line in files]
    assert [path.name for path in named] == ["result.json", "curves.png", "embedding.png"]
    assert all(path.is_file() for path in named)
    progress = [line for line in done.stderr.splitlines() if "loss" in line]  # a wait has others
    assert len(progress) == 4
    line = r"GCN on Synthetic web, seed 0  step \d+/20  loss .*(  \d:\d\d:\d\d left)?"
    assert all(re.fullmatch(line, said) for said in progress)


def test_the_configuration_alone_is_printed_and_nothing_else_happens(command):
    done = command(*TINY, "model=gcn", "print_config=true")
    assert done.stderr == ""
    printed = yaml.safe_load(done.stdout)
    assert (printed["model"]["name"], printed["trainer"]["max_steps"]) == ("gcn", 20)
    assert "${" not in done.stdout
    assert re.search(r"^  max_steps: 20 +# command line$", done.stdout, re.MULTILINE)
    assert re.search(r"^  dim: 16 +# default of GCN$", done.stdout, re.MULTILINE)
    assert "hydra" not in printed
    assert list(command.folder.iterdir()) == []


def test_a_sweep_prints_the_configuration_of_each_cell_and_trains_none(command):
    assert command("model=gcn", "model.dim=0", "print_config=true", code=2).stdout == ""
    words = ("table=fpst/fig3", "model=gcn,mlp", "dataset=power", "seed=1", "print_config=true")
    done = command("-m", *words, "hydra/launcher=joblib")
    assert done.stderr == ""
    assert re.findall(r"^model:\n  name: (\w+)", done.stdout, re.MULTILINE) == ["gcn", "mlp"]
    assert "sweep of" not in done.stdout
    assert list(command.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("preset", "steps", "made"),
    [
        ("fast", 20, "metrics.csv"),
        ("overfit", 20, "metrics.csv"),
        ("limit", 9, "metrics.csv"),
        ("profile", 20, "fit-profile.txt"),
        ("nan", 20, "metrics.csv"),
    ],
)
def test_a_preset_for_a_look_at_a_run(command, preset, steps, made):
    command(*TINY, "model=mlp", f"debug={preset}", "trainer.plots=false")
    assert only_result(command)["steps"] == steps
    assert list(command.outputs.rglob(made))


def test_lightnings_keys_and_callbacks_of_ones_own_pass_through(command):
    (command.folder / "mine" / "callbacks").mkdir(parents=True)
    file = command.folder / "mine" / "callbacks" / "keep.yaml"
    file.write_text(
        "a:\n  _target_: lightning.pytorch.callbacks.ModelCheckpoint\n  dirpath: kept\n"
    )
    words = (*TINY, "model=mlp", "+trainer.limit_train_batches=2", "callbacks=keep")
    command("--config-dir", "mine", *words)
    assert list((command.folder / "kept").glob("*.ckpt"))
    (curves,) = command.outputs.rglob("metrics.csv")
    assert pd.read_csv(curves)["step"].tolist() == list(range(2, 21, 2))
    assert {"limit_train_batches": 2}.items() <= only_result(command)["config"]["trainer"].items()


def test_a_diverging_run_exits_with_code_1_and_one_sentence(command):
    done = command(*SMALL, "optimizer.lr=1e20", "trainer.progress=false", code=1)
    assert re.fullmatch(r"curvlab train: not finite at step 2: .*; kappa/0 = .*\n", done.stderr)
    assert only_result(command)["status"] == "diverged"


def kill_after_three_epochs(command, *words):
    """Kill a run when its curves have three rows."""
    process = command.start(*words)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        for curves in command.outputs.rglob("metrics.csv"):
            rows = len(curves.read_text().splitlines()) - 1
            checkpoint = curves.parent / "checkpoints" / "last.ckpt"
            if rows >= 3 and checkpoint.exists():
                started = psutil.Process(process.pid).children(recursive=True)
                process.send_signal(signal.SIGKILL)
                process.communicate()
                assert psutil.wait_procs(started, timeout=20)[1] == [], "they end with it"
                return rows
        time.sleep(0.002)
    raise AssertionError("the run ended before it could be killed")


def test_a_killed_run_started_again_ends_as_if_it_had_not_been_killed(command, run_here):
    words = (*SMALL, "trainer.max_steps=60", "trainer.steps_per_epoch=1")
    rows = kill_after_three_epochs(command, *words)
    assert rows < 60
    assert command.results() == {}

    done = command(*words)
    assert "resuming from the last checkpoint" in done.stdout
    resumed = only_result(command)
    whole = run_here(*words, folder="whole")
    assert resumed["config_hash"] == whole.config_hash
    assert resumed["metrics"]["test"] == pytest.approx(whole.metrics["test"], abs=1e-6)
    assert resumed["steps"] == whole.steps == 60
    (curves,) = command.outputs.rglob("metrics.csv")
    expected = pd.read_csv(command.folder / "whole" / "metrics.csv")
    assert expected["step"].tolist() == list(range(1, 61))
    pd.testing.assert_frame_equal(pd.read_csv(curves), expected, rtol=1e-6)


def test_what_the_data_refuse_leaves_the_link_to_the_run_before(command):
    command("model=mlp", *TREE, "trainer.plots=false")
    before = (command.outputs / "latest").resolve()
    words = [word for word in TREE if not word.startswith("split=")]
    done = command("model=mlp", *words, "split=official", code=2)
    assert "split=official" in done.stderr
    assert (command.outputs / "latest").resolve() == before


def test_a_run_is_found_by_what_it_builds_whatever_words_chose_it(command):
    """Incidental words and a default that is spelt out name the same run; it trains once."""
    words = ("model=mlp", *TINY)
    command(*words)
    (first,) = command.outputs.rglob("result.json")
    assert (command.outputs / "latest").resolve() == first.parent.resolve()
    done = command(*words, "trainer.plots=false")
    assert "already" in " ".join(done.stdout.split()), done.stdout + done.stderr
    assert list(command.outputs.rglob("result.json")) == [first]
    assert "copying the same run" in command(*words, "model.dim=16").stdout
    one, other = sorted(command.outputs.rglob("result.json"))
    assert read_result(one.parent).score == read_result(other.parent).score


@pytest.mark.nightly
def test_wandb_without_an_account_is_offline_and_goes_on_with_a_run_that_was_killed(command):
    pytest.importorskip("wandb")
    words = (*TINY, "model=mlp", "logger=wandb", "trainer.max_steps=200")
    kill_after_three_epochs(command, *words)
    done = command(*words)  # its standard input is closed: a prompt would fail
    assert "resuming from the last checkpoint" in done.stdout
    assert "wandb" not in done.stderr
    assert re.search(r"W&B +offline, .*: upload by curvlab wandb_sync", done.stdout)
    ((folder, result),) = command.results().items()
    runs = sorted((command.outputs / folder / "wandb").glob("offline-run-*"))
    assert len(runs) == 2
    assert {run.name.rsplit("-", 1)[-1] for run in runs} == {result["config_hash"]}
    (log,) = runs[-1].glob("*.wandb")
    assert all(name in log.read_bytes() for name in (b"loss", b"map", b"score", b"curves"))
