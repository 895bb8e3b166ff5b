"""A run is identified by what it builds."""

import re
from collections import Counter
from pathlib import Path

import pytest
from omegaconf import OmegaConf

import curvlab
from composing import composed
from curvlab.config.schema import class_name, options_of, stored_signatures
from curvlab.config.validation import decides
from curvlab.results import identity as identities
from curvlab.results.identity import (
    built,
    identity_hash,
    outdated_classes,
    revisions_of,
    stored_config,
)


def hash_of(config):
    return identity_hash(stored_config(config))


def changed(config, path, value):
    copy = OmegaConf.create(OmegaConf.to_container(config, resolve=False))
    OmegaConf.update(copy, path, value, merge=False, force_add=True)
    return copy


@pytest.mark.parametrize(
    "path",
    ["seed", "trainer.max_steps", "trainer.precision", "trainer.devices", "model.dim",
     "model.dropout", "model._target_", "manifold.kappa", "optimizer.lr", "optimizer.curvature_lr",
     "task.power", "dataset.features.noise", "model.hops", "model.eigenvectors"],
)  # fmt: skip
def test_what_is_built_otherwise_is_another_run(path):
    config = composed("model=fpst", "dataset=web_edu")
    assert hash_of(changed(config, path, 0.123)) != hash_of(config)
    assert decides(path, stored_config(config))


@pytest.mark.parametrize(
    "words",
    ["paths.data_dir=/elsewhere", "paths.output_dir=/elsewhere", "paths.mirror=/elsewhere",
     "logger=wandb", "trainer.progress=false", "trainer.plots=false", "trainer.threads=3",
     "optimizer.fused=false", "trainer.accelerator=cpu",
     "experiment=fpst/fig3", "rerun=true", "print_config=true", "dataset.source.url=https://a.b"],
)  # fmt: skip
def test_where_and_how_a_run_is_computed_is_not_part_of_its_identity(words):
    here = composed("model=fpst", "dataset=web_edu")
    there = composed("model=fpst", "dataset=web_edu", words)
    assert hash_of(there) == hash_of(here)
    assert not decides(words.partition("=")[0], stored_config(there))


def test_an_option_at_its_default_changes_nothing():
    config = stored_config(composed("model=fpst", "dataset=web_edu"))
    assert config["model"]["dim"] == options_of(config["model"]["_target_"])["dim"].default
    less = {**config, "model": {k: v for k, v in config["model"].items() if k != "dim"}}
    assert identity_hash(less) == identity_hash(config)
    assert "dim" not in built(config)["model"]


@pytest.mark.parametrize("place", ["curvlab.models.elsewhere.FPST", "curvlab.models.FPST"])
def test_a_class_that_moves_is_the_same_and_keeps_its_options_and_revision(place):
    here = stored_config(composed("model=fpst", "dataset=web_edu", "model.heads=4"))
    there = {**here, "model": {**here["model"], "_target_": place}}
    assert identity_hash(there) == identity_hash(here)
    assert revisions_of(there) == revisions_of(here) != {}
    assert options_of(place) == options_of(here["model"]["_target_"]) != {}


@pytest.mark.parametrize("place", ["lab.FPST", "lab.models.fpst.FPST", "curvlab_lab.FPST"])
def test_a_class_of_another_package_is_none_of_ours(place):
    ours = stored_config(composed("model=fpst", "dataset=web_edu"))
    theirs = {**ours, "model": {**ours["model"], "_target_": place}}
    assert identity_hash(theirs) != identity_hash(ours)
    assert built(theirs)["model"]["_target_"] == place
    assert options_of(place) == {}


def test_a_name_in_identities_is_that_of_one_class():
    files = Path(curvlab.__file__).parent.rglob("*.py")
    lines = "\n".join(file.read_text("utf-8") for file in files)
    defined = Counter(re.findall(r"(?m)^(?:class|def) (\w+)", lines))
    ours = (target for target in stored_signatures() if target.startswith("curvlab."))
    names = set(map(class_name, ours))
    assert {name: defined[name] for name in names if defined[name] != 1} == {}


def test_what_only_describes_is_not_built():
    config = composed("model=fpst", "dataset=web_edu")
    for path in ("model.label", "model.name", "dataset.label", "dataset.tasks"):
        assert hash_of(changed(config, path, "other")) == hash_of(config), path


def test_a_space_that_the_model_does_not_take_is_none_of_its_parts():
    config = composed("model=gcn", "dataset=web_edu")
    assert "manifold" not in built(stored_config(config))
    assert "manifold" in built(stored_config(composed("model=hgcn", "dataset=web_edu")))


def test_whole_numbers_and_others_are_alike_and_order_is_nothing():
    one = {"seed": 0, "optimizer": {"lr": 1, "decay": 0}}
    assert identity_hash(one) == identity_hash({"optimizer": {"decay": 0.0, "lr": 1.0}, "seed": 0})


def test_a_raised_revision_makes_exactly_the_results_of_its_class_old(monkeypatch):
    fpst, gcn = (stored_config(composed(f"model={m}", "dataset=web_edu")) for m in ("fpst", "gcn"))
    target, now = fpst["model"]["_target_"], revisions_of(fpst)
    name = class_name(target)
    before = {"gcn": identity_hash(gcn), "fpst": identity_hash(fpst)}
    assert outdated_classes(fpst, now) == outdated_classes(gcn, revisions_of(gcn)) == []
    real = identities._revision
    monkeypatch.setattr(identities, "_revision", lambda t: 9 if t == target else real(t))
    assert identity_hash(gcn) == before["gcn"]
    assert identity_hash(fpst) != before["fpst"]
    assert identity_hash(fpst, now) == before["fpst"]  # what was written keeps its identity
    assert outdated_classes(fpst, now) == [f"FPST of revision {now.get(name, 1)}"]
    assert outdated_classes(gcn, revisions_of(gcn)) == []
    assert revisions_of(fpst)[name] == 9


def test_a_cell_of_a_table_is_the_run_that_its_protocol_describes():
    cell = composed("table=fpst/fig3", "model=gcn", "dataset=power")
    alone = composed("model=gcn", "dataset=power", f"trainer.max_steps={cell.trainer.max_steps}")
    assert hash_of(cell) == hash_of(alone)
    assert hash_of(changed(cell, "report.title", "other")) == hash_of(cell)
