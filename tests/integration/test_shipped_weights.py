"""The runs that ship with the package: they load, and evaluate to the score that they state."""

import pytest
import torch

import curvlab
from curvlab.errors import UsageError
from curvlab.run.load import WEIGHTS, shipped_runs


def test_each_system_ships_a_run_and_all_are_small():
    assert {name.split("/")[0] for name in shipped_runs()} == {
        "cat",
        "fpst",
        "hypformer",
        "lrn",
        "polyformer",
    }
    sizes = [file.stat().st_size for file in WEIGHTS.glob("*/*.ckpt")]
    assert max(sizes) < 1e6
    assert sum(sizes) < 3e6


@pytest.mark.parametrize("name", shipped_runs())
def test_a_shipped_run_evaluates_to_its_score(name, mirror, tmp_path):
    run = curvlab.load(name, data_dir=str(tmp_path), mirror=str(mirror))
    found = run.evaluate()["test"]
    # Threads and processors round sums in another order: a node or two may change their class.
    stated = run.kept["metrics"]["test"]
    assert found == pytest.approx({name: stated[name] for name in found}, abs=0.2)
    assert run.task.score in found
    assert torch.isfinite(run.embed()).all()


def test_weights_with_an_option_that_is_gone_load(tmp_path, caplog):
    kept = torch.load(WEIGHTS / "hypformer" / "cora.ckpt", weights_only=True)
    kept["config"]["model"]["attention"]["phi_on_value"] = False
    torch.save(kept, tmp_path / "older.ckpt")
    run = curvlab.load(tmp_path / "older.ckpt")
    assert "no option phi_on_value=False" in caplog.text
    weights = run.model.state_dict()
    assert all(torch.equal(v, kept["state_dict"][f"encoder.{k}"]) for k, v in weights.items())


def test_an_unknown_name_is_answered_by_the_names_there_are(tmp_path):
    with pytest.raises(UsageError, match="fpst/web_edu"):
        curvlab.load("fpst/nowhere")
