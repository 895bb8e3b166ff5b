"""What a class says of its options is read from its source, whoever wrote it."""

import sys
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from curvlab.config import schema
from curvlab.config.options import check_options, check_setting
from curvlab.config.schema import MISSING, attribute, completed, is_subclass, options_of, spaces_of
from curvlab.config.sources import complete
from curvlab.errors import UsageError

TOY, MORE = "toys.Toy", "toys.More"


@pytest.fixture(autouse=True)
def readable(monkeypatch):
    """The folder of this file is one where packages are looked for, as an installed one's."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    for cached in (schema.options_of, schema.locate, schema.mro, schema._module):
        cached.cache_clear()


def test_options_are_the_arguments_with_literal_defaults_and_those_of_the_class_above():
    options = options_of(TOY)
    assert "toys" not in sys.modules
    assert set(completed(TOY)) == {
        "layer", "kind", "speed", "dropout", "widths", "threads", "dim", "weight"
    }  # fmt: skip
    assert options["dim"].default == 16
    assert options["dim"].doc == "width of everything."
    assert options["in_channels"].default is MISSING
    assert options["threads"].incidental
    assert not options["dim"].incidental
    assert spaces_of(TOY) == ("curvlab.manifolds.Lorentz",)
    assert spaces_of("toys.Base") == ("curvlab.manifolds.Euclidean",)


def test_fields_of_a_dataclass_are_options_the_nearest_default_counts():
    options = completed(MORE)
    assert {name: option.default for name, option in options.items()} == {
        "steps": 20, "patience": None
    }  # fmt: skip
    assert options["steps"].doc == "how many."


def test_attributes_and_classes_above():
    assert attribute(TOY, "revision") == 3
    assert attribute(TOY, "whole_graph") is True
    assert attribute("toys.Base", "revision", 1) == 1
    assert is_subclass(TOY, "toys.Base")
    assert not is_subclass("toys.Base", TOY)
    assert is_subclass("curvlab.manifolds.Sphere", "curvlab.manifolds.Stereographic")
    assert not is_subclass("no.such.Class", "toys.Base")


@pytest.mark.parametrize(
    ("name", "says", "right", "wrong"),
    [
        ("dim", "a whole number of at least 4", [4, 100], [3, 4.5, True, "4", None]),
        ("weight", "a number", [-0.5, 2, 0], [float("nan"), float("inf"), True, "1", None]),
        ("kind", "one of a, b, or null", ["a", None], ["c", 1, []]),
        ("speed", "a number between 0 and 3", [1, 2.9], [0, 3, -1]),
        ("dropout", "a number from 0 up to, but not including, 1", [0, 0.9], [1, -0.1]),
        ("widths", "a list, each a whole number of at least 1", [[1, 2], []], [[0], 3, ["a"]]),
        ("threads", "a whole number of at least 1, or null", [1, None], [0, "many"]),
        ("layer", "keys of its own, or null", [{"_target_": "x"}, None], [3, "GCNConv"]),
    ],
)  # fmt: skip
def test_annotations_say_in_words_what_a_value_may_be(name, says, right, wrong):
    option = options_of(TOY)[name]
    assert option.says == says
    assert [option.problem(value) for value in right] == [None] * len(right)
    assert [option.problem(value) for value in wrong] == [says] * len(wrong)


def test_a_file_is_completed_from_the_signature_wherever_a_class_is_named():
    config = OmegaConf.create(
        {"model": {"_target_": TOY, "dim": 32, "layer": {"_target_": MORE, "steps": 5}}}
    )
    complete(config)
    assert config.model.dim == 32
    assert config.model.widths == [8, 8]
    assert config.model.layer == {"_target_": MORE, "steps": 5, "patience": None}
    assert not {"components", "num_classes", "space", "in_channels"} & set(config.model)


def test_what_a_library_takes_is_not_written_out():
    config = OmegaConf.create({"optimizer": {"_target_": "torch.optim.Adam", "lr": 0.1}})
    complete(config)
    assert set(config.optimizer) == {"_target_", "lr"}
    assert "betas" in options_of("torch.optim.Adam")


def test_values_are_checked_in_the_classes_of_others_too():
    config = OmegaConf.create({"model": {"_target_": TOY, "weight": -0.5, "size": -1}})
    complete(config)
    check_options(config)  # a negative weight is right here, and size is nobody's option
    config.model.dim = 3
    with pytest.raises(UsageError, match=r"^model.dim=3 must be a whole number of at least 4$"):
        check_options(config)
    config.model.dim = "${model.size}"
    with pytest.raises(UsageError, match=r"^model.size=-1 must be"):  # after it is resolved
        check_options(config)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("model.dim", "wide", "model.dim is a whole number, as in model.dim=16, not wide"),
        ("model.kind", "c", "model.kind=c must be one of a, b, or null"),
        ("model.layer", 3, "model.layer is null here and cannot be 3: choose another model=..."),
        ("model.widths", 8, r"model.widths is a list.*, as in model.widths=\[8,8\], not 8"),
        ("part", 3, "part has keys of its own, as part.steps: set these, not 3"),
    ],
)
def test_a_value_of_another_kind_is_refused_by_what_stands_there(key, value, sentence):
    config = OmegaConf.create({"model": {"_target_": TOY}, "part": {"_target_": MORE}})
    complete(config)
    with pytest.raises(UsageError, match=sentence):
        check_setting(key, config, value)
