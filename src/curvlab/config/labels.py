"""The label of a model, which tables and pictures show, follows the options that are overridden.

`model=polyformer model.basis=cheb` builds the model of `model=polyformer_cheb`, and has its label.
"""

import re
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from curvlab.checked import format_value
from curvlab.config.folder import choices, find, section_of
from curvlab.config.sources import complete, read
from curvlab.config.validation import leaves

DESCRIBING = ("name", "label", "recipe", "defaults")
"""Keys of a choice that are not options of its class."""


def label_of(model: DictConfig, overridden: Collection[str], configs: Path) -> str:
    """The label of a model with overridden options.

    It is the label of the choice with the same class and the same distinguishing options. An option
    distinguishes if a choice of the class sets it and has a separate label. Without such a choice,
    the options that differ are added to a label that says more than that of the class.

    Args:
        model: Configuration of the model, with the overrides.
        overridden: Keys below `model.` that the user has set.
        configs: Folder of configurations.
    """
    name = str(model.name)
    label = str(model.label)
    if not any(_is_in_a_file(configs, key.rpartition(".")[2]) for key in overridden):
        return label

    family = _family(configs, name)
    base = next(iter(family))
    distinguishing: set[str] = set()
    for choice, config in family.items():
        if config["label"] != family[base]["label"]:
            distinguishing.update(_options(_chain(configs, choice)[-1]))

    options = _options(model)
    defaults = _options(family[name])
    changed = {}
    for key in sorted(distinguishing):
        is_overridden = any(_overlap(key, override) for override in overridden)
        if is_overridden and options.get(key) != defaults.get(key):
            changed[key] = options.get(key)
    if not changed:
        return label

    for config in family.values():
        choice_options = _options(config)
        if all(options.get(key) == choice_options.get(key) for key in distinguishing):
            return str(config["label"])
    if name == base and not label.endswith(")"):
        return label
    short_label = re.sub(r" \([^()]*\)$", "", label)
    settings = [f"{key}={format_value(value)}" for key, value in changed.items()]
    return ", ".join([short_label, *settings])


def _overlap(first: str, second: str) -> bool:
    """Whether two keys are equal, or one is below the other."""
    return f"{first}.".startswith(f"{second}.") or f"{second}.".startswith(f"{first}.")


def _options(model: DictConfig) -> dict[str, Any]:
    """Options of a model by their dotted keys, unresolved."""
    container = OmegaConf.to_container(model, resolve=False)
    assert isinstance(container, dict)
    return {key: value for key, value in leaves(container) if key not in DESCRIBING}


@cache
def _family(configs: Path, name: str) -> dict[str, DictConfig]:
    """Choices of a choice's class with all their options, beginning with their base."""
    root = _root(configs, section_of(name)[0])
    names = [
        choice
        for choice in choices(configs, "model")
        if _root(configs, section_of(choice)[0]) == root
    ]
    names.sort(key=lambda choice: len(_chain(configs, choice)))
    family = {choice: _complete(configs, choice) for choice in names}
    target = family[name]["_target_"]
    return {choice: config for choice, config in family.items() if config.get("_target_") == target}


def _root(configs: Path, file: str) -> str:
    """The file from which a file starts, over any number of files."""
    base = re.search(r"(?m)^  - (?!_self_)(\w+)$", _files(configs)[file])
    return _root(configs, section_of(base[1])[0]) if base else file


@cache
def _files(configs: Path) -> dict[str, str]:
    """The texts of all files of models."""
    names = {section_of(name)[0] for name in choices(configs, "model")}
    return {name: find(configs, f"model/{name}").read_text(encoding="utf-8") for name in names}


@cache
def _is_in_a_file(configs: Path, option: str) -> bool:
    """Whether the file of a model sets an option of this name."""
    key = re.compile(rf"(?m)^ *{re.escape(option)}:")
    return any(key.search(text) for text in _files(configs).values())


def _chain(configs: Path, name: str) -> list[DictConfig]:
    """The configurations from which a choice is merged; that of its own file is the last."""
    config = read(configs, f"model/{name}")
    assert config is not None
    chain = []
    for default in config.get("defaults", []):
        if isinstance(default, str) and default != "_self_":
            chain += _chain(configs, default)
    return [*chain, config]


@cache
def _complete(configs: Path, name: str) -> DictConfig:
    """A choice with all options of its class; groups within it are left out."""
    merged = OmegaConf.merge(*_chain(configs, name))
    assert isinstance(merged, DictConfig)
    complete(merged)
    return merged
