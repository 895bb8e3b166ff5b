"""Configurations as Hydra composes them, each choice once a process: one takes a tenth of a second.

Interpolations are parsed once a process too.
"""

import copy
import re
from functools import cache
from pathlib import Path

import hydra
import omegaconf._utils
import omegaconf.base
import yaml
from hydra import initialize_config_dir
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig
from omegaconf._utils import get_yaml_loader

from curvlab.config.compose import compose, sets_a_key
from curvlab.config.folder import choices
from curvlab.config.resolvers import register_resolvers
from curvlab.config.schema import attribute
from curvlab.config.sources import read

ROOT = Path(__file__).resolve().parents[1]
CONFIGS = ROOT / "configs"

omegaconf.base.parse = omegaconf._utils.parse = cache(omegaconf.base.parse)


def composed(*words: str, configs: Path = CONFIGS) -> DictConfig:
    """What `python train.py WORDS` hands to `train`: a copy, which may be changed.

    Args:
        words: choices and values.
        configs: another folder of configurations; it may change between calls.
    """
    return compose(words, configs)


def with_hydra(*words: str) -> DictConfig:
    """The same with Hydra's own part, `hydra`, in which folders are not named after values."""
    values = [_parsed(word) for word in words if sets_a_key(_parsed(word), CONFIGS)]
    choices = [word for word in words if not sets_a_key(_parsed(word), CONFIGS)]
    config = copy.deepcopy(_once(tuple(choices)))
    ConfigLoaderImpl._apply_overrides_to_config(values, config)
    config.hydra.overrides.task = list(words)
    return config


@cache
def _once(words: tuple[str, ...]) -> DictConfig:
    register_resolvers()
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        return hydra.compose("train", list(words), return_hydra_config=True)


@cache
def _parsed(word: str) -> Override:
    return OverridesParser.create().parse_override(word)


@cache
def recipes() -> dict[tuple[str, str, str], dict]:
    """All recipes, with where they are from, by task, model and key."""
    files = sorted((CONFIGS / "recipe").glob("*/*.yaml"))
    return {
        (file.parent.name, file.stem, str(key)): values
        for file in files
        for key, values in yaml.load(file.read_text(), get_yaml_loader()).items()
    }


def different_models() -> list[str]:
    """All models but for variants, whose layers are those of another."""
    names = choices(CONFIGS, "model")
    return [n for n in names if n.startswith("lrn__") or not re.search("__|_wide|_nsampler", n)]


@cache
def tasks_of(model: str) -> tuple[str, ...]:
    """The tasks that a model's class is made for; none said: those of graphs."""
    return tuple(attribute(target_of(model), "tasks", ()))


@cache
def target_of(model: str) -> str:
    """A model's class, or that of the model that it is a variant of."""
    config = read(CONFIGS, f"model/{model}")
    assert config is not None
    if "_target_" in config:
        return str(config["_target_"])
    return next(target_of(base) for base in config["defaults"] if isinstance(base, str))
