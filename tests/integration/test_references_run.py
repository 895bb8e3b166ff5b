"""Reference points of runs: in the result, on the terminal, in tables, and only when asked for."""

import json

import pytest
from tiny_runs import TREE, TRIPLES

from curvlab.cli.evaluate import main as evaluate
from curvlab.results.result import read_result

SHORT = ("trainer.plots=false", "trainer.progress=false", "trainer.threads=1")
NAMES = ["majority", "neighbours' vote", "linear model"]


@pytest.mark.parametrize("model", ["relation_frequency", "reverse_lookup"])
@pytest.mark.parametrize("both", ["true", "false"])
def test_a_floor_is_its_own_reference(run_here, model, both):
    words = (f"model={model}", "dataset=synthetic_kg", *TRIPLES[1:], *SHORT)
    result = run_here(*words, f"task.inverse_relations={both}", "trainer.epochs=1")
    assert result.references[model.replace("_", " ")] == pytest.approx(result.score)


def test_they_are_computed_when_asked_for_and_cached(run_here, tmp_path, capsys):
    words = ("model=gcn", *TREE, *SHORT)
    without = run_here(*words, "trainer.references=false")
    assert without.references == {}
    assert "reference:" not in capsys.readouterr().out
    assert evaluate([str(tmp_path / "run"), "--accelerator", "cpu"]) == 0
    assert "reference: majority" in capsys.readouterr().out
    added = read_result(tmp_path / "run").references
    assert list(added) == NAMES
    (file,) = (tmp_path / "data" / "references").iterdir()
    assert json.loads(file.read_text()) == added
    file.write_text(json.dumps({"majority": 12.5}))
    again = run_here(*words, "model.dim=8", folder="again")
    assert again.references == {"majority": 12.5}
    assert "reference: majority 12.5; this model" in capsys.readouterr().out


def test_a_sweep_prints_them_once(command):
    done = command("-m", "model=gcn,mlp", *TREE, *SHORT)
    assert done.stdout.count("reference: ") == 1
    assert {tuple(run["references"]) for run in command.results().values()} == {tuple(NAMES)}
