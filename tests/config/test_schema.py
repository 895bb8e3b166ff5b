"""Signatures of classes of this package and of others: options, types, defaults."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from curvlab.config import schema, trust
from curvlab.config.schema import (
    MISSING,
    attribute,
    complete_options,
    is_subclass,
    options_of,
    spaces_of,
)
from curvlab.config.sources import complete
from curvlab.config.validation import check_options, check_setting, check_space
from curvlab.errors import UsageError

TOY, BASE = "toys.Toy", "toys.Base"


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """The folder of this file is one where packages are looked for, as an installed one's."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setattr(trust, "_trusted_targets", {TOY, BASE})


def test_stored_signatures_are_what_the_classes_have():
    stored = json.loads(schema.FILE.read_text(encoding="utf-8"))
    assert json.loads(schema.describe_all()) == stored, "python -m curvlab.config.schema"


def test_the_stub_names_every_model():
    written = schema.MODEL_STUB.read_text(encoding="utf-8")
    assert schema.model_stub() == written, "python -m curvlab.config.schema"


def test_an_own_model_without_a_space_says_which_argument_it_needs():
    flat = "curvlab.manifolds.euclidean_space.Euclidean"
    curved = "curvlab.manifolds.stereographic_space.Stereographic"
    made = {"model": {"name": "mynet", "_target_": BASE}, "manifold": {"name": "m"}}
    config = OmegaConf.create(made)
    config.manifold._target_ = flat
    check_space(config)
    config.manifold._target_ = curved
    says = r"it can with euclidean; .* manifold: SpaceMaker\[Stereographic\] = Stereographic"
    with pytest.raises(UsageError, match=says):
        check_space(config)
    config.model._target_ = "curvlab.models.graph_network.GCN"
    with pytest.raises(UsageError, match=r"it can with euclidean$"):
        check_space(config)


def test_a_default_that_moves_is_noticed_unless_its_class_says_so():
    target = "curvlab.models.fpst.FPST"
    old = schema.stored_signatures()[target]
    options = {**old.options, "dim": schema.Option("int", 32), "fresh": schema.Option("int", 0)}
    new = replace(old, options=options)
    assert schema.moved_defaults({target: old}, {target: new}) == ["FPST.dim: 16 -> 32"]
    revised = replace(
        new, attributes={**old.attributes, "revision": old.attributes["revision"] + 1}
    )
    assert schema.moved_defaults({target: old}, {target: revised}) == []
    assert schema.moved_defaults({target: old}, {}) == []


def test_options_are_the_arguments_with_literal_defaults_and_those_of_the_class_above():
    options = options_of(TOY)
    assert set(complete_options(TOY)) == {
        "layer", "kind", "speed", "dropout", "widths", "threads", "dim", "weight"
    }  # fmt: skip
    assert options["dim"].default == 16
    assert options["dim"].doc == "width of everything."
    assert options["in_channels"].default is MISSING
    assert options["threads"].incidental
    assert not options["dim"].incidental
    assert spaces_of(TOY) == ("curvlab.manifolds.lorentz_space.Lorentz",)
    assert spaces_of(BASE) == ("curvlab.manifolds.euclidean_space.Euclidean",)


def test_attributes_and_classes_above():
    assert attribute(TOY, "revision") == 3
    assert attribute(TOY, "whole_graph") is True
    assert attribute(BASE, "revision", 1) == 1
    assert is_subclass(TOY, BASE)
    assert not is_subclass(BASE, TOY)
    assert is_subclass(
        "curvlab.manifolds.Sphere", "curvlab.manifolds.stereographic_space.Stereographic"
    )
    assert not is_subclass("no.such.Class", BASE)


@pytest.mark.parametrize(
    ("name", "says", "right", "wrong"),
    [
        ("dim", "a whole number of at least 4", [4, 100], [3, 4.5, True, "4", None]),
        ("weight", "a number", [-0.5, 2, 0], [float("nan"), float("inf"), True, "1", None]),
        ("kind", "one of a, b, or null", ["a", None], ["c", 1, []]),
        ("speed", "a number greater than 0 and less than 3", [1, 2.9], [0, 3, -1]),
        ("dropout", "a number of at least 0 and less than 1", [0, 0.9], [1, -0.1]),
        ("widths", "a list, each a whole number of at least 1", [[1, 2], []], [[0], 3, ["a"]]),
        ("threads", "a whole number of at least 1, or null", [1, None], [0, "many"]),
        ("layer", "a mapping of keys, or null", [{"_target_": "x"}, None], [3, "GCNConv"]),
    ],
)  # fmt: skip
def test_annotations_say_in_words_what_a_value_may_be(name, says, right, wrong):
    option = options_of(TOY)[name]
    assert option.says == says
    assert [option.problem(value) for value in right] == [None] * len(right)
    assert [option.problem(value) for value in wrong] == [says] * len(wrong)


def test_a_file_is_completed_from_the_signature_wherever_a_class_is_named():
    config = OmegaConf.create(
        {"model": {"_target_": TOY, "dim": 32, "layer": {"_target_": BASE, "dim": 5}}}
    )
    config.optimizer = {"_target_": "torch.optim.Adam", "lr": 0.1}
    complete(config)
    assert set(config.optimizer) == {"_target_", "lr"}, "of a library, what the file names"
    assert config.model.dim == 32
    assert config.model.widths == [8, 8]
    assert config.model.layer == {"_target_": BASE, "dim": 5, "weight": -0.5}
    assert not {"components", "num_classes", "space", "in_channels"} & set(config.model)


def test_values_are_checked_in_the_classes_of_others_too():
    config = OmegaConf.create({"model": {"_target_": TOY, "weight": -0.5, "size": -1}})
    complete(config)
    check_options(config)  # a negative weight is right here, and size is nobody's option
    config.model.dim = 3
    with pytest.raises(UsageError, match=r"^model.dim=3 must be a whole number of at least 4$"):
        check_options(config)
    with pytest.raises(UsageError, match=r"^model.widths=8 must be a list, each a whole"):
        check_setting("model.widths", config, 8)
    config.model.dim = "${model.size}"
    with pytest.raises(UsageError, match=r"^model.size=-1 must be"):  # after it is resolved
        check_options(config)
