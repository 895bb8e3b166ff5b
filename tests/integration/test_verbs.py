"""The verbs that use finished runs: their files, their refusals."""

import json
import re
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_runs import FAST, TREE, TRIPLES
from torch_geometric.data import Data

import curvlab
from curvlab.errors import UsageError

WORDS = (*TREE, "trainer.plots=false", "optimizer.lr=0.05", "model=hgcn")


def verb(name, *words):
    return import_module(f"curvlab.cli.{name}").main([str(word) for word in words])


@pytest.mark.parametrize("name", ["predict", "export", "evaluate", "compare"])
@pytest.mark.parametrize("words", [(), ("nowhere",), ("nowhere", "--nonsense")])
def test_wrong_words_are_answered_in_one_sentence(name, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert verb(name, *words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"curvlab {name}: ")
    assert said.err.count("\n") == 1
    assert len(said.err) < 400


def test_a_run_is_predicted_evaluated_and_exported(run_here, tmp_path, monkeypatch, capsys):
    result = run_here(*WORDS)
    folder = tmp_path / "run"
    monkeypatch.chdir(tmp_path)
    run = curvlab.load(folder)
    capsys.readouterr()

    assert verb("predict", folder, "--output", "p.csv") == 0
    assert verb("predict", folder, "--output", "p.parquet") == 0
    found = pd.read_csv("p.csv", dtype={"node": str, "predicted": str, "label": str})
    pd.testing.assert_frame_equal(found, run.predict(), check_dtype=False, rtol=1e-6)
    pd.testing.assert_frame_equal(pd.read_parquet("p.parquet"), run.predict(), check_dtype=False)
    assert verb("predict", folder, "--node", "3", "--node", "5") == 0
    assert verb("predict", folder, "--node", "none") == 2
    assert verb("predict", folder, "--output", "p.xlsx") == 2
    assert verb("predict", folder, "--head", "a") == 2
    (tmp_path / "pairs.csv").write_text("head,tail\n1,2\n")
    ignored = [("--pairs", "pairs.csv"), ("--known",), ("--no-known",)]
    ignored.append(("--head", "1", "--relation", "r", "--tail", "2"))
    for words in ignored:
        capsys.readouterr()
        assert verb("predict", folder, *words) == 2
        said = capsys.readouterr().err
        assert re.search(r"does not predict by .*: omit it, or give nodes or unlabelled", said)
    with pytest.raises(UsageError, match="accelerator=cuda: another graph is evaluated on cpu"):
        run.evaluate("cuda", Data())

    capsys.readouterr()
    assert verb("evaluate", folder) == 0
    said = capsys.readouterr().out
    assert f"accuracy {result.score!r}, the same to the last digit" in said

    for kind, file in (("csv", "e.csv"), ("parquet", "e.parquet")):
        assert verb("export", folder, "--format", kind, "--output", file) == 0
        space = json.loads((tmp_path / f"{file}.json").read_text())
        assert space["space"] == type(run.space).__name__
        assert f"{run.config.model.label}" in space["layer"]
        assert f"curvature {run.space.kappa[0]:.3g}" in space["geometry"]
        assert space["curvature"] == pytest.approx(run.space.kappa.tolist())
    points = run.embed().numpy()
    for table in (pd.read_csv("e.csv"), pd.read_parquet("e.parquet")):
        assert table["id"].astype(str).tolist() == run.ids()
        np.testing.assert_allclose(table.filter(like="x").to_numpy(), points, rtol=1e-6)

    assert verb("export", folder, "--format", "word2vec", "--tangent", "--output", "e.txt") == 0
    first, *lines = (tmp_path / "e.txt").read_text().splitlines()
    tangents = run.space.logmap0(run.embed()).detach().numpy()
    assert first.split() == [str(n) for n in tangents.shape]
    assert [line.split()[0] for line in lines] == run.ids()
    written = np.array([line.split()[1:] for line in lines], dtype=float)
    np.testing.assert_allclose(written, tangents, rtol=1e-6)


@pytest.mark.parametrize(
    ("words", "ask"),
    [
        ((*WORDS, "trainer.max_steps=5"), ()),
        ((*TREE, "task=link_prediction", "model=gcn", "trainer.max_steps=5"), ()),
        ((*FAST, "trainer.max_steps=5"), ()),
        ((*TRIPLES, "model=distmult", "trainer.epochs=1"), ("--head", "1", "--relation", "member")),
    ],
)
def test_numbers_that_are_not_finite_are_no_answer(
    run_here, tmp_path, monkeypatch, capsys, words, ask
):
    run_here(*words, "trainer.plots=false")
    run = curvlab.load(tmp_path / "run")
    name, weight = next(run.task.named_parameters())
    weight.data.fill_(torch.nan)
    monkeypatch.setattr(curvlab, "load", lambda *_, **options: run)
    if ask:
        ask = (*ask[:-1], run.vocabulary.relations[0])
    for verb_words in (("predict", tmp_path, *ask), ("evaluate", tmp_path)):
        capsys.readouterr()
        assert verb(*verb_words) == 1
        said = capsys.readouterr()
        assert f"not finite; parameter {name}" in said.err
        assert said.err.count("\n") == 1


def test_triples_are_completed_from_a_file(run_here, tmp_path, capsys):
    words = ("dataset=synthetic_kg", "dataset.source.groups=4", "model=complex")
    few = ("trainer.epochs=3", "trainer.accelerator=cpu", "trainer.plots=false")
    run_here(*words, *few, "batching.size=100", "task.inverse_relations=true")
    relation = curvlab.load(tmp_path / "run").vocabulary.relations[0]
    pairs = pd.DataFrame({"head": ["1", ""], "relation": relation, "tail": ["", "2"]})
    pairs.to_csv(tmp_path / "pairs.csv", index=False)
    output = tmp_path / "answers.csv"
    words = ("--pairs", tmp_path / "pairs.csv", "--k", "4", "--output", output)
    assert verb("predict", tmp_path / "run", *words) == 0
    found = pd.read_csv(output, dtype={"head": str, "tail": str})
    assert len(found) == 8
    assert found["head"][:4].tolist() == ["1"] * 4
    assert found["tail"][4:].tolist() == ["2"] * 4
    assert verb("predict", tmp_path / "run", "--relation", relation) == 2
    assert verb("predict", tmp_path / "run") == 2
    (tmp_path / "pairs.csv").write_bytes(b"\xff\xfe\x00")
    assert verb("predict", tmp_path / "run", *words) == 2


def test_runs_are_compared_over_their_seeds(run_here, tmp_path, capsys):
    scores, votes = {"gcn": [], "mlp": []}, {}
    for model, of_model in scores.items():
        for seed in range(3):
            words = (*WORDS, f"model={model}", f"seed={seed}", "trainer.max_steps=10")
            result = run_here(*words, folder=f"{model}/seed{seed}")
            of_model.append(result.score)
            votes[seed] = result.references["neighbours' vote"]
    output = tmp_path / "t.csv"
    words = (tmp_path / "gcn", f"{tmp_path}/ml*", "--output", output)
    capsys.readouterr()
    assert verb("compare", *words) == 0
    said = capsys.readouterr().out
    assert said.count("reference: majority ") == 1
    assert f", neighbours' vote {np.mean([*votes.values()]):.1f}, linear model " in said
    table = pd.read_csv(output)
    assert table["label"].tolist() == ["gcn", "mlp"]
    assert table["common"].tolist() == [0, 3]
    np.testing.assert_allclose(table["mean"], [np.mean(s) for s in scores.values()])
    difference = np.subtract(scores["mlp"], scores["gcn"]).mean()
    assert table["difference"][1] == pytest.approx(difference)
    assert torch.tensor(table["seconds"].to_numpy()).gt(0).all()
