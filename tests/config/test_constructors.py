"""Constructors that a configuration can name: what they refuse, and how that is said."""

import re
from inspect import signature

import pytest
from hydra.utils import get_object
from omegaconf import OmegaConf

from curvlab.checked import is_bounded
from curvlab.config.building import build
from curvlab.config.folder import CONFIGS
from curvlab.config.schema import PASSED, complete_options, options_of
from curvlab.errors import UsageError

TARGETS = {
    target
    for file in CONFIGS.rglob("*.yaml")
    for target in re.findall(r"_target_: *(curvlab[.\w]+)", file.read_text(encoding="utf-8"))
}
BOUNDED = {
    target: options
    for target in sorted(TARGETS)
    if (
        options := {
            name: option
            for name, option in options_of(target).items()
            if is_bounded(option.kind)
            and not (option.required or PASSED in option.marks)  # Lightning's
        }
    )
}


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_every_option_has_a_kind_and_a_line(target):
    for name, option in complete_options(target).items():
        assert option.doc, name
        assert option.says not in ("any value", ""), name
        if target.startswith("curvlab.data") and name != "dataset":  # a class of PyG
            assert option.says != "a mapping of keys", name


WRONG = (-1, 0, "no/such?choice")


@pytest.mark.parametrize("target", BOUNDED)
def test_a_value_that_is_out_of_bounds_or_no_choice_is_refused(target):
    made, options = get_object(target), options_of(target)
    required = {
        name: next(
            (value for value in (0.5, "inside", "relu") if not options[name].problem(value)), 0.5
        )
        for name, parameter in signature(made).parameters.items()
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
    }
    for name, option in BOUNDED[target].items():
        wrong = next(value for value in WRONG if option.problem(value))
        says = f"{made.__name__}: {name}={wrong!r} must be {option.says}"
        with pytest.raises(UsageError) as refused:
            made(**(required | {name: wrong}))
        assert str(refused.value) == says.replace("null", "None")


@pytest.mark.parametrize(
    ("values", "answer"),
    [
        ({"_target_": "torch.nn.Linear", "in_features": "a", "out_features": 3}, "got str"),
        ({"_target_": "torch.nn.Dropout", "p": 3}, "dropout probability has to be between 0 and 1"),
        ({"_target_": "torch.nn.Linear", "width": 3}, "unexpected keyword argument 'width'"),
        ({"_target_": "torch.nn.Linear"}, "missing 2 required positional arguments"),
        ({"_target_": "curvlab.data.datasets.hgcn.DiseaseGraph", "folder": "a", "files": []},
         r"missing 1 required .* argument: 'statistics'"),
        ({"_target_": "torch_geometric.nn.ChebConv", "in_channels": 2, "out_channels": 2, "K": 0},
         "AssertionError"),
        ({"_target_": "torch.nn.Nothing"}, "No module named 'torch.nn.Nothing'"),
        ({"_target_": "torch.pi"}, "Expected a callable target"),
    ],
)  # fmt: skip
def test_what_other_packages_say_of_values_is_the_users_error(values, answer):
    sentence = rf"^model \({values['_target_']}\) cannot be built with its values: .*{answer}"
    with pytest.raises(UsageError, match=sentence or "^$") as refused:
        build(values, "model")
    assert "\n" not in str(refused.value)


def test_a_part_of_a_configuration_knows_where_it_stands():
    config = OmegaConf.create({"dataset": {"features": {"_target_": "torch.nn.Nothing"}}})
    with pytest.raises(UsageError, match=r"^dataset.features \(torch.nn.Nothing\) cannot be built"):
        build(config.dataset.features)


def test_a_mistake_of_ours_stays_one():
    values = {"triples": "a", "size": 2, "inverse_relations": False}
    with pytest.raises(TypeError, match="bad operand"):
        build({"_target_": "curvlab.config.resolvers.steps_of_pass", **values})


def refuse(sentence):
    raise UsageError(sentence) if sentence else MemoryError


@pytest.mark.parametrize(("sentence", "error"), [("no such thing", UsageError), ("", MemoryError)])
def test_what_a_constructor_raises_is_raised(sentence, error):
    with pytest.raises(error, match=sentence or "^$"):
        build({"_target_": f"{__name__}.refuse", "sentence": sentence})
