"""Filling tables: the order of commands, and what is taken over."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from composing import composed
from curvlab.errors import UsageError
from curvlab.results.identity import identity_hash, revisions_of, stored
from curvlab.results.result import Result, read_result
from curvlab.tables import fill as filling
from curvlab.tables.fill import fill, take_over

RUN = "fpst/fig3/synthetic_web/fpst/seed0"


@pytest.fixture
def result():
    config = stored(composed("model=fpst", "dataset=synthetic_web"))
    return Result(
        status="finished",
        model="fpst",
        dataset="synthetic_web",
        task="reconstruction",
        manifold="stereographic",
        seed=0,
        experiment="fpst/fig3",
        config_hash=identity_hash(config),
        config=config,
        score=90.0,
        revisions=revisions_of(config),
    )


@pytest.fixture
def folders(tmp_path):
    return tmp_path / "source", tmp_path / "into", tmp_path / "known"


def store(result, folder, run=RUN):
    (folder / run).mkdir(parents=True, exist_ok=True)
    result.save(folder / run)


def test_a_finished_run_is_added_with_its_curves_and_files_that_its_cell_has_had(result, folders):
    source, into, known = folders
    store(result, source)
    for name in ("metrics.csv", "routing.csv"):
        (source / RUN / name).write_text("new")
    taken = take_over(source, into, known)
    assert (taken.added, taken.refused) == ([RUN], {})
    assert read_result(into / RUN) == result
    assert (into / RUN / "metrics.csv").read_text() == "new"
    assert not (into / RUN / "routing.csv").exists()
    assert taken.text() == "fpst/fig3: 1 runs added\n"


def test_what_the_source_began_with_replaces_nothing(result, folders):
    source, into, known = folders
    store(result, source)
    store(result, known)
    newer = replace(result, config_hash="0" * 16, score=95.0)
    store(newer, into)
    assert take_over(source, into, known).added == []
    assert read_result(into / RUN) == newer


def test_a_finished_run_is_not_replaced_by_another_of_its_identity(result, folders):
    source, into, known = folders
    store(replace(result, score=10.0), source)
    store(result, into)
    assert take_over(source, into, known).added == []
    assert read_result(into / RUN).score == 90.0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"status": "failed", "error": "no memory"}, "ended as failed: no memory"),
        ({"config_hash": "0" * 16}, "identity"),
        ({"revisions": {}}, "FPST of revision 1"),
    ],
)
def test_a_run_that_is_not_what_it_says_is_refused(change, reason, result, folders):
    source, into, known = folders
    wrong = replace(result, **change)
    if "revisions" in change:
        wrong.config_hash = identity_hash(wrong.config, {})
    store(wrong, source)
    taken = take_over(source, into, known)
    assert taken.added == []
    assert reason in taken.refused[RUN]
    assert not (into / RUN).exists()


def test_a_file_that_is_no_result_is_refused(folders):
    source, into, known = folders
    (source / RUN).mkdir(parents=True)
    (source / RUN / "result.json").write_text(json.dumps([1]))
    assert "cannot be read" in take_over(source, into, known).refused[RUN]


def test_the_first_seed_of_every_table_comes_first(monkeypatch, tmp_path):
    run = []
    monkeypatch.setattr(filling, "_clone", lambda *_: tmp_path)
    monkeypatch.setattr(filling, "_run", lambda _, command, __: run.append(command[1:3]))
    root = Path(__file__).resolve().parents[2]
    monkeypatch.setattr(filling, "RESULTS", tmp_path)
    fill(root, ["lrn/fig2", "lrn/table1"], hours=1.0, say=lambda _: None)
    first, second, third = run[:3]
    assert [first, second] == [["table=lrn/fig2", "seed=0"], ["table=lrn/table1", "seed=0"]]
    assert third == ["table=lrn/fig2", "seed=1"]
    assert len(run) == 3 + 5


def test_a_folder_that_is_no_checkout_is_refused(tmp_path):
    with pytest.raises(UsageError, match="no git checkout"):
        fill(tmp_path, [], hours=1.0)


@pytest.mark.slow
def test_a_command_runs_in_the_clone_of_the_last_commit_and_is_stopped_in_time(tmp_path):
    def git(*words):
        author = ["-c", "user.name=x", "-c", "user.email=x@x"]
        filling.subprocess.run(["git", *author, *words], cwd=tmp_path, check=True)

    git("init", "-q")
    program = "import sys, time; open('words', 'w').write(sys.argv[1]); time.sleep(600)"
    (tmp_path / "train.py").write_text(program)
    git("add", "train.py")
    git("commit", "-q", "-m", "one")
    (tmp_path / "train.py").write_text("raise SystemExit")  # not committed
    clone = filling._clone(tmp_path, tmp_path / "none")
    filling._run(clone, ["table=x"], seconds=5.0)
    assert (clone / "words").read_text() == "table=x"
    assert filling._clone(tmp_path, tmp_path / "none") == clone
