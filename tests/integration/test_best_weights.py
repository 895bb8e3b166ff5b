"""What a finished run leaves of its weights are those that its result reports."""

import pytest
import torch
from tiny_runs import FAST, PIXELS, TINY, TREE, TRIPLES, Command

from curvlab.results.folder import BEST
from curvlab.results.identity import identity_hash, stored_config
from curvlab.results.result import read_result
from curvlab.run.load import load

LABELLED = (*(word for word in TREE if "split" not in word), "optimizer.lr=0.05")
PATIENT = ("trainer.plots=false", "trainer.patience=10", "trainer.min_steps=1")
TASKS = {
    "reconstruction": (*TINY, "model=fpst", "model.eigenvectors=4", "model.dropout=0.3"),
    "node_classification": (*LABELLED, *PATIENT, "model=hgcn"),
    "link_prediction": (*LABELLED, *PATIENT, "task=link_prediction", "model=gcn"),
    "kg_completion": (*TRIPLES, "model=complex", "trainer.epochs=12", "optimizer.lr=0.5"),
    "filter_regression": (*PIXELS, "trainer.max_steps=61", "model=polyattn_cheb"),
}
CHOSEN = set(TASKS) - {"reconstruction"}  # by validation


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    return Command(tmp_path_factory.mktemp("best"))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("task", TASKS)
def test_the_weights_that_a_run_leaves_have_the_score_that_it_reports(command, task, monkeypatch):
    monkeypatch.chdir(command.folder)
    command(*TASKS[task], "trainer.accelerator=cpu", "trainer.threads=1")
    (folder,) = {path.parent for path in command.outputs.rglob(f"runs/{task}/**/result.json")}
    result = read_result(folder)
    assert result.task == task
    assert (result.best_step < result.steps) == (task in CHOSEN)
    assert [path.name for path in (folder / "checkpoints").iterdir()] == ["best.ckpt"]
    run = load(folder)
    assert not run.model.training
    assert run.result == result
    named = ("score", "val_score", "config_hash", "schema", "revisions", "versions", "metrics")
    assert {name: run.checkpoint[name] for name in named} == {n: getattr(result, n) for n in named}
    assert run.checkpoint["step"] == result.best_step
    assert identity_hash(stored_config(run.config)) == result.config_hash
    assert run.evaluate() == result.metrics
    assert len(run.embed()) == len(run.ids())


@pytest.mark.smoke
def test_weights_go_where_their_result_goes(run_here, tmp_path):
    """To `previous/` and back, and into the same cell of another table."""
    first = run_here(*FAST, folder="tables/a/one/seed0")
    own = tmp_path / "tables" / "a" / "one" / "seed0"
    run_here(*FAST, "model.dim=8", folder="tables/a/one/seed0")
    aside = own / "previous" / first.config_hash / BEST
    assert torch.load(aside, weights_only=True)["score"] == first.score
    assert run_here(*FAST, folder="tables/a/one/seed0") == first
    assert load(own).checkpoint["score"] == first.score
    taken = run_here(*FAST, folder="tables/b/two/seed0")
    twin = tmp_path / "tables" / "b" / "two" / "seed0"
    assert taken.score == first.score
    assert (twin / BEST).read_bytes() == (own / BEST).read_bytes()


def test_an_attempt_that_does_not_finish_has_no_weights(run_here, tmp_path, monkeypatch):
    """Nor do those of an earlier attempt stay beside its result."""
    run_here(*FAST)
    (tmp_path / "run" / "result.json").unlink()

    def fails(*_, **__):
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr("curvlab.run.train.build_task", fails)
    with pytest.raises(ZeroDivisionError):
        run_here(*FAST)
    ended = read_result(tmp_path / "run")
    assert (ended.status, ended.error) == ("failed", "ZeroDivisionError: a mistake")
    assert not (tmp_path / "run" / BEST).exists()
