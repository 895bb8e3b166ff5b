"""Constructors that a configuration can name refuse the same values when Python calls them."""

import re
from inspect import signature

import pytest
from hydra.utils import get_object

from curvlab.checked import is_bounded
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
            assert option.says != "keys of its own", name


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
