"""`help` of each model lists all arguments with types, defaults and meaning."""

import inspect
import re

import pytest

from curvlab import models

BASES = ("DotProductScorer", "Encoder", "FlatEncoder")  # without a constructor of their own
NAMES = [name for name in models.__all__ if name not in BASES]

ARGUMENT = re.compile(r"(?m)^ {4}(\w+) \(([^)]+)\): (\S.*(?:\n {8}.*)*)")


def listed(name):
    """Arguments of a model in its documentation: type, and what is said."""
    text = inspect.getdoc(getattr(models, name))
    (section,) = re.findall(r"(?m)^Args:\n((?:    .*\n?)+)", text)
    return {found: (kind, said) for found, kind, said in ARGUMENT.findall(section)}


@pytest.mark.parametrize("name", NAMES)
def test_help_lists_every_argument_of_the_constructor(name):
    documented = listed(name)
    for argument in inspect.signature(getattr(models, name)).parameters.values():
        if argument.kind in (argument.VAR_KEYWORD, argument.VAR_POSITIONAL):
            continue
        kind, said = documented[argument.name]
        assert kind
        assert argument.default is argument.empty or "(default: " in said


def test_help_has_the_arguments_that_a_constructor_passes_on_and_no_others():
    documented = listed("GAT")
    assert {"in_channels", "heads", "attention_dropout", "dim", "layers"} <= set(documented)
    assert "layer" not in documented
    assert "space" not in listed("HGCN")


def test_an_argument_has_its_type_bounds_default_and_meaning():
    documented = listed("FPST")
    assert documented["dim"] == ("int, at least 1", "width of the embeddings. (default: 16)")
    assert documented["in_channels"] == ("int", "Number of input features of a node.")
    assert documented["attention"][0] == "'linear' | 'exact'"
    assert "(default: Stereographic(learnable=True))" in " ".join(documented["manifold"][1].split())
