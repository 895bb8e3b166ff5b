"""A study from words to its page: it goes on, and it is right on a small tree and a grid."""

import json

import pytest
from hydra.types import RunMode
from tiny_runs import composed

import curvlab.study.run as study_run
from curvlab.results.result import read_result
from curvlab.study.grid import answers

SMALL = ("study.models=[kappa_gcn]", "study.dim=4", "trainer.accelerator=cpu")


@pytest.fixture
def study_here(tmp_path):
    """Call `study` in this process: the folder of its page."""

    def run(*words: str, name: str = "study"):
        places = (f"paths.data_dir={tmp_path / 'data'}", f"paths.output_dir={tmp_path}")
        said = ("study=spaces", *places, *SMALL, *words)
        result = study_run.study(composed(tmp_path / name, said, RunMode.MULTIRUN))
        return result, tmp_path / name

    return run


@pytest.mark.slow
def test_a_study_goes_on_and_says_what_its_json_says(study_here, monkeypatch, capsys):
    words = ("dataset=balanced_tree", "dataset.source.depth=2", "study.seeds=2", "study.steps=10")
    result, folder = study_here(*words)
    assert result.status == "finished", result.error
    found = json.loads((folder / "study.json").read_text())
    (report,) = found["reports"]
    rows = report["table"]
    spaces = [row["space"] for row in rows]
    assert spaces == ["flat", "hyperbolic", "spherical", "learned", "product"]
    for row in rows:
        runs = folder / "runs" / "kappa_gcn" / f"{row['space']}_4"
        assert row["scores"] == [read_result(runs / f"seed{seed}").score for seed in (0, 1)]
    assert found["facts"]["delta"] == [0, 0]
    said = " ".join(capsys.readouterr().out.split())
    assert found["answer"] in said
    assert report["text"] in said
    assert (folder / "study.png").stat().st_size > 5000

    ran = []
    whole = study_run.train_in
    monkeypatch.setattr(
        "curvlab.run.train.run", lambda config, *_: ran.append(config.seed) or whole
    )
    again, _ = study_here(*words)
    assert again.status == "finished"
    assert not ran  # every run has its result already


TREE = ("dataset=balanced_tree", "dataset.source.branching=2", "dataset.source.depth=5")
FLAT = ("dataset=grid", "dataset.source.rows=6", "dataset.source.columns=6")


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(("graph", "space"), [(TREE, "hyperbolic"), (FLAT, "flat")])
def test_the_space_of_a_graph_that_is_known_is_found(study_here, tmp_path, graph, space):
    """A small version of docs/spaces.md: two spaces, five seeds, fewer steps."""
    others = [f"study.spaces.{name}=null" for name in ("spherical", "learned", "product")]
    budget = ("study.seeds=5", "study.steps=100", *others)
    result, _ = study_here(*graph, *budget)
    assert result.status == "finished", result.error
    found = answers(tmp_path)
    assert found["recommended"].tolist() == [space]
    assert found["right"].tolist() == [True]
