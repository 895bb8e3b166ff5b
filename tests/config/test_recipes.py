"""A recipe holds what differs: no value that would hold without it."""

import pytest
from omegaconf import OmegaConf

from composing import composed, recipes

OF_DATA = [names for names in recipes() if names[2] != "_" and "/" not in names[2]]
EVERY = 6  # each takes two compositions


def leaves(node, path=""):
    """Dotted keys and literals, but for those of a node that names its class.

    Such a node gets that class's defaults, so that it may have to say again what was there.
    """
    if "_target_" in node:
        return
    for key, value in node.items():
        own = f"{path}.{key}" if path else str(key)
        if isinstance(value, dict):
            yield from leaves(value, own)
        elif not (isinstance(value, str) and "${" in value):
            yield own, value


@pytest.mark.slow
@pytest.mark.parametrize("names", OF_DATA[::EVERY], ids="/".join)
def test_a_recipe_repeats_no_value_that_would_hold_without_it(names):
    task, model, key = names
    dataset, _, split = key.partition("@")
    words = [f"model={model}", f"dataset={dataset}", f"task={task}"]
    words += [f"split={split}"] if split not in ("", "links", "none") else []
    without = composed(*words, "recipe=none")
    for key, value in leaves(OmegaConf.to_container(recipes()[names])):
        if not key.startswith(("defaults", "found")):
            assert OmegaConf.select(without, key) != value, key
