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


def label_of(model: DictConfig, overridden: Collection[str], configs: Path) -> str:
    """The label of a model with overridden options.

    It is the label of the choice with the same class and the same distinguishing options. An option
    distinguishes if a choice of the class sets it and has a separate label. Without such a choice,
    the options that differ are added to a label that says more than that of the class.

    Args:
        model: the model's configuration, with the overrides.
        overridden: keys below `model.` that the user has set.
        configs: the folder of configurations.
    """
    label = str(model.label)
    chosen = str(model.name)
    if not any(_mentions(configs, key.rpartition(".")[2]) for key in overridden):
        return label
    main, *others = family = _family(configs, chosen)
    whole = {name: _whole(configs, name) for name in family}
    labelled = [name for name in others if whole[name]["label"] != whole[main]["label"]]
    keys = {key for name in labelled for key in _stated(configs, name)}
    touched = {key for key in keys for each in overridden if _overlap(key, each)}
    if not touched:
        return label
    values = _values(model)
    known = {name: _values(whole[name]) for name in family}
    wrong = {key: values.get(key) for key in touched if values.get(key) != known[chosen].get(key)}
    if not wrong:
        return label
    for name in family:
        if all(values.get(key) == known[name].get(key) for key in keys):
            return str(whole[name]["label"])
    if chosen == main and not label.endswith(")"):
        return label
    plain = re.sub(r" \([^()]*\)$", "", label)
    return ", ".join([plain, *(f"{k}={format_value(v)}" for k, v in sorted(wrong.items()))])


def _overlap(key: str, other: str) -> bool:
    return f"{key}.".startswith(f"{other}.") or f"{other}.".startswith(f"{key}.")


def _values(model: DictConfig) -> dict[str, Any]:
    container = OmegaConf.to_container(model, resolve=False)
    assert isinstance(container, dict)
    return {key: value for key, value in leaves(container) if key not in DESCRIBING}


@cache
def _mentions(configs: Path, name: str) -> bool:
    """Whether the file of a model sets an option of this name."""
    key = re.compile(rf"(?m)^ *{re.escape(name)}:")
    return any(key.search(text) for text in _files(configs).values())


@cache
def _family(configs: Path, chosen: str) -> list[str]:
    """The choices of a class, beginning with the base from which further ones start."""
    target = _whole(configs, chosen)["_target_"]
    above = {section_of(name)[0] for name in _bases(configs, chosen)} | {section_of(chosen)[0]}
    files = above
    found = set()
    while files:
        found |= files
        files = {file for file in _files(configs) if _starts_from(configs, file, found)} - found
    names = [name for name in choices(configs, "model") if section_of(name)[0] in found]
    names = [name for name in names if _whole(configs, name).get("_target_") == target]
    return sorted(names, key=lambda name: len(_chain(configs, name)))


@cache
def _files(configs: Path) -> dict[str, str]:
    """The texts of all files of models."""
    names = {section_of(name)[0] for name in choices(configs, "model")}
    return {name: find(configs, f"model/{name}").read_text(encoding="utf-8") for name in names}


def _starts_from(configs: Path, file: str, bases: Collection[str]) -> bool:
    return any(base in bases for base in re.findall(r"(?m)^ +- (\w+)$", _files(configs)[file]))


def _bases(configs: Path, name: str) -> list[str]:
    """The choices that a choice starts from, with the same class."""
    target = _whole(configs, name)["_target_"]
    above = [str(each.name) for each in _chain(configs, name)[:-1] if "name" in each]
    return [base for base in above if _whole(configs, base).get("_target_") == target]


def _chain(configs: Path, name: str) -> list[DictConfig]:
    """The configurations that a choice is made of, its own last."""
    own = read(configs, f"model/{name}")
    assert own is not None
    bases = [d for d in own.get("defaults", []) if isinstance(d, str) and d != "_self_"]
    return [*(each for base in bases for each in _chain(configs, base)), own]


@cache
def _whole(configs: Path, name: str) -> DictConfig:
    """A choice with all options of its class; groups within it are left out."""
    merged = OmegaConf.merge(*_chain(configs, name))
    assert isinstance(merged, DictConfig)
    complete(merged)
    return merged


def _stated(configs: Path, name: str) -> set[str]:
    """The options that the own file of a choice sets."""
    return set(_values(_chain(configs, name)[-1]))
