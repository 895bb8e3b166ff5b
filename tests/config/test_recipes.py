"""A recipe holds what differs: no value that would hold without it."""

from pathlib import Path

import pytest
import yaml
from omegaconf import OmegaConf

from composing import CONFIGS, composed

RECIPES = CONFIGS / "recipe"
OF_DATA = sorted(path for path in RECIPES.glob("*/*/*.yaml") if path.stem != "_")
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
@pytest.mark.parametrize(
    "path", OF_DATA[::EVERY], ids=lambda path: path.relative_to(RECIPES).as_posix()
)
def test_a_recipe_repeats_no_value_that_would_hold_without_it(path: Path):
    task, model = path.relative_to(RECIPES).parts[:2]
    dataset, _, split = path.stem.partition("@")
    words = [f"model={model}", f"dataset={dataset}", f"task={task}"]
    words += [f"split={split}"] if split not in ("", "links", "none") else []
    without = composed(*words, "recipe=none")
    for key, value in leaves(yaml.safe_load(path.read_text(encoding="utf-8")) or {}):
        if not key.startswith("defaults"):
            assert OmegaConf.select(without, key) != value, key
