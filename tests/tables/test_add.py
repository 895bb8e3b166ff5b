"""Adding runs to tables of runs: what is added, and what is refused with which reason."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

import stored_runs
from composing import CONFIGS, composed
from curvlab.results.identity import identity_hash, revisions_of, stored_config
from curvlab.results.result import read_result
from curvlab.results.run_tables import SUFFIX, read_rows, text_of
from curvlab.tables.add import add_runs

RUN = "fpst/fig3/synthetic_web/fpst/seed0"
REPLACED = "0" * 16


@pytest.fixture(scope="module")
def result():
    config = stored_config(composed("model=fpst", "dataset=synthetic_web"))
    fields = {"model": "fpst", "dataset": "synthetic_web", "manifold": "stereographic"}
    fields |= {"experiment": "fpst/fig3", "score": 90.0, "revisions": revisions_of(config)}
    return stored_runs.result(config, **fields)


@pytest.fixture
def folders(tmp_path):
    return tmp_path / "source", tmp_path / "into"


def store(result, folder, run=RUN):
    (folder / run).mkdir(parents=True, exist_ok=True)
    result.save(folder / run)


def test_a_finished_run_is_added_with_its_curves_and_is_read_as_its_folder(result, folders):
    source, into = folders
    store(result, source)
    (source / RUN / "metrics.csv").write_text("step,loss\n0,1.5\n")
    done = add_runs(source, into)
    assert (done.added, done.refused) == ([RUN], {})
    assert done.text() == "fpst/fig3: 1 run added\n"
    assert [path.name for path in into.rglob("*") if path.is_file()] == ["fig3.jsonl.gz"]
    assert read_result(into / RUN) == result
    assert text_of(into / RUN / "metrics.csv") == "step,loss\n0,1.5\n"
    assert add_runs(source, into).text() == "nothing was added\n"


@pytest.mark.parametrize(("identity", "score"), [(None, 90.0), (REPLACED, 10.0)])
def test_a_run_replaces_only_one_of_another_identity(result, folders, identity, score):
    source, into = folders
    store(replace(result, config_hash=identity or result.config_hash), source)
    if identity:  # an earlier one, whose class has changed since
        config = {**result.config, "seed": 7}
        store(replace(result, config=config, config_hash=identity_hash(config)), source)
    add_runs(source, into)
    store(replace(result, score=10.0), source)
    add_runs(source, into)
    assert read_result(into / RUN).score == score


def changed(result, **values):
    """A run with other values of the trainer than the table has."""
    config = {**result.config, "trainer": {**result.config["trainer"], **values}}
    words = [f"trainer.{name}={value}" for name, value in values.items()]
    return replace(
        result, config=config, config_hash=identity_hash(config, result.revisions)
    ), words


def test_a_trial_does_not_replace_a_run_of_the_protocol(result, folders):
    source, into = folders
    store(result, source)
    add_runs(source, into)
    trial, words = changed(result, max_steps=25)
    store(replace(trial, changed=words), source)
    done = add_runs(source, into)
    assert done.added == []
    assert done.refused == {
        RUN: "it has trainer.max_steps=25, which the stored run in its place does not have"
    }
    assert read_result(into / RUN).config_hash == result.config_hash


def test_a_run_of_the_protocol_replaces_a_trial_and_the_text_says_so(result, folders):
    source, into = folders
    trial, words = changed(result, max_steps=25)
    store(replace(trial, changed=words), source)
    other = RUN.replace("seed0", "seed1")
    store(result, source, other)
    assert add_runs(source, into).text() == "fpst/fig3: 2 runs added\n"
    longer, words = changed(result, max_steps=25, steps_per_epoch=5)
    store(replace(longer, changed=words[:1]), source)  # the same deviation, of another version
    assert add_runs(source, into).text() == "fpst/fig3: 1 run added, 1 in place of stored ones\n"
    store(result, source)
    assert add_runs(source, into).replaced == [RUN]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"status": "failed", "error": "no memory"}, "it ended as failed: no memory"),
        ({"status": "interrupted"}, "it ended as interrupted: None"),
        ({"config_hash": "0" * 16}, "its identity is not that of its configuration"),
        (
            {"revisions": {}},
            "it is of FPST of revision 1, Reconstruction of revision 1, which has changed",
        ),
        ({"experiment": "fpst/table1"}, "it is a run of fpst/table1"),
        ({}, "its result cannot be read"),
    ],
)
def test_a_run_that_is_not_what_it_says_is_refused(change, reason, result, folders):
    source, into = folders
    wrong = replace(result, **change)
    if "revisions" in change:
        wrong.config_hash = identity_hash(wrong.config, {})
    store(wrong, source)
    if not change:  # another number than was written
        file = source / RUN / "result.json"
        file.write_text(file.read_text().replace("90.0", "99.0"))
    done = add_runs(source, into)
    assert (done.added, done.refused) == ([], {RUN: reason})
    assert not into.exists()


def test_runs_of_two_devices_share_no_cell(result, folders):
    """GPUs add numbers in another order than CPUs."""
    source, into = folders
    other = RUN.replace("seed0", "seed1")
    config = {**result.config, "seed": 1}
    of_other = {"config": config, "config_hash": identity_hash(config, result.revisions)}
    store(replace(result, device="cuda:0"), source)
    add_runs(source, into)
    store(replace(result, device="cpu", seed=1, **of_other), source, other)
    assert add_runs(source, into).refused == {
        other: "it ran on cpu and stored runs of its cell on cuda, whose scores do not share a mean"
    }
    store(replace(result, device="cuda:1", seed=1, **of_other), source, other)
    store(replace(result, device="cpu"), source, RUN.replace("fpst/seed0", "tokengt/seed0"))
    assert add_runs(source, into).refused == {}


def test_no_stored_cell_has_runs_of_two_devices():
    for file in (CONFIGS.parent / "docs/results/tables").rglob(f"*{SUFFIX}"):
        devices = defaultdict(set)
        for run, row in read_rows(file).items():
            devices[Path(run).parent].add((row["device"] or "cpu").partition(":")[0])
        assert not [cell for cell, kinds in devices.items() if len(kinds) > 1], file
