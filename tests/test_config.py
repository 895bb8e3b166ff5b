"""Values of real configurations, recipes of variants, names of folders."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from composing import composed
from curvlab.config.options import check_options
from curvlab.config.resolvers import run_name
from curvlab.errors import UsageError


def test_a_variant_has_the_recipes_of_what_it_varies():
    base = composed("model=hypformer", "dataset=cora", "split=random_per_class")
    column = composed("model=hypformer", "dataset=cora__per_class")
    row = composed("model=hypformer__no_graph", "dataset=cora__per_class")
    assert base.optimizer == column.optimizer == row.optimizer
    assert base.trainer == column.trainer == row.trainer
    assert base.split == column.split
    assert base.model == column.model
    different = {key for key in base.model if base.model[key] != row.model[key]}
    assert different == {"name", "label", "graph"}


@settings(deadline=None, max_examples=40)  # the first example composes
@given(st.integers(max_value=0) | st.floats() | st.booleans() | st.none())
def test_a_size_is_a_whole_number_of_at_least_one(value):
    config = composed("model=fpst")
    config.model.dim = value
    with pytest.raises(UsageError, match=r"model.dim(=| is a whole number)"):
        check_options(config)


@settings(max_examples=40)
@given(st.text())
def test_a_folder_name_is_safe_and_short(value):
    name = run_name(f"paths.mirror={value}")
    assert re.fullmatch(r"paths\.mirror=[\w.=,+-]*", name)
    assert len(name) <= 100


def test_long_names_stay_apart():
    long = "model.dim=8," * 20
    assert run_name(long + "seed=1") != run_name(long + "seed=2")
    assert run_name("model.dim=8") == "model.dim=8"
    # A sweep spells truth in capitals; the folder is that of the single run.
    assert run_name("trainer.plots=False") == run_name("trainer.plots=false")
    assert run_name("++trainer.patience=5,seed=1") == "trainer.patience=5,seed=1"
    assert run_name("") == "default"
