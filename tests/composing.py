"""Configurations as Hydra composes them, each once a process: one takes a fifth of a second."""

import copy
from functools import cache
from pathlib import Path

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, open_dict, read_write

from curvlab.config.resolvers import register_resolvers

CONFIGS = Path(__file__).resolve().parents[1] / "configs"


def composed(*words: str, configs: Path = CONFIGS) -> DictConfig:
    """What `python train.py WORDS` hands to `train`: a copy, which may be changed.

    Args:
        words: choices and values.
        configs: another folder of configurations; it may change between calls.
    """
    run = with_hydra(*words, configs=configs)
    with read_write(run), open_dict(run):
        del run["hydra"]
    return run


def with_hydra(*words: str, configs: Path = CONFIGS) -> DictConfig:
    """The same with Hydra's own part, `hydra`."""
    make = _once if configs == CONFIGS else _compose
    return copy.deepcopy(make(words, configs))


def _compose(words: tuple[str, ...], configs: Path) -> DictConfig:
    register_resolvers()
    with initialize_config_dir(str(configs), version_base="1.3"):
        return compose("train", list(words), return_hydra_config=True)


_once = cache(_compose)
