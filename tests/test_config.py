"""Values of real configurations, recipes of variants, names of folders."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from composing import composed
from curvlab.config.resolvers import run_name


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


@settings(max_examples=40)
@given(st.text())
def test_a_folder_name_is_safe_and_short(value):
    name = run_name([f"model.note={value}"], _root_={"model": {}})
    assert re.fullmatch(r"note=[\w.=,+-]*", name)
    assert len(name) <= 70


TRAINER = {"trainer": {"_target_": "curvlab.run.options.EarlyStopping"}}


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("", "default"),
        ("model=gcn dataset=cora seed=3 paths.output_dir=here table=null logger=csv", "default"),
        ("trainer.plots=false trainer.threads=1 trainer.progress=false", "default"),
        ("model.heads=4 model.dim=8", "dim=8-heads=4"),
        ("optimizer.lr=0.1 recipe=none task.loss=sum", "lr=0.1-recipe=none-task.loss=sum"),
        ("++trainer.patience=5", "patience=5"),
        ("model.bias=True", "bias=true"),  # a sweep spells truth in capitals
        ("dataset.path=/data/mine", "default"),  # whose name is in the path above
    ],
)
def test_a_folder_is_named_after_the_words_that_decide(words, name):
    assert run_name(words.split(), _root_=TRAINER) == name


def test_names_of_many_words_stay_apart():
    words = ["model.a=1", "model.b=1", "model.c=1"]
    one, other = (run_name([*words, f"model.d={i}"], _root_={}) for i in (1, 2))
    assert re.fullmatch(r"a=1-b=1-c=1-[0-9a-f]{8}", one)
    assert re.fullmatch(r"a=1-b=1-c=1-[0-9a-f]{8}", other)
    assert one != other
