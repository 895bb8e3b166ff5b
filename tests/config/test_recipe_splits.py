"""A command that takes a split without the recipe of the data set's other split says so."""

import pytest
import yaml

from composing import CONFIGS
from curvlab.config.resolvers import splits_with_recipe
from curvlab.run.command import Command

FILES = sorted((CONFIGS / "recipe").glob("*/*.yaml"))
LINE = (
    "model=lrn_sgformer dataset=chameleon split=random_70_15_15 has no recipe, only split=given "
    "has: the model's general values are used"
)


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_the_other_splits_of_each_data_set_are_found(file):
    name = f"{file.parent.name}/{file.stem}"
    keys = yaml.safe_load(file.read_text()) or {}
    for key in keys:
        dataset, at, split = key.partition("@")
        assert splits_with_recipe(f"{name}/{key}") == []
        if at:
            assert split in splits_with_recipe(f"{name}/{dataset}@no_such_split")
    assert splits_with_recipe(f"{name}/no_such_dataset@given") == []


def lines_of(*words):
    lines = []
    for seed in (0, 1):
        overrides = ["model=lrn_sgformer", "dataset=chameleon", f"seed={seed}", *words]
        Command.from_overrides(overrides, say=lines.append)
    return lines


def test_a_split_that_has_no_recipe_is_said_once():
    assert lines_of("split=random_70_15_15") == [LINE]


@pytest.mark.parametrize("words", [[], ["split=given"], ["split=random_48_32_20", "recipe=none"]])
def test_nothing_is_said_of_the_recipe_that_counts(words):
    assert lines_of(*words) == []
