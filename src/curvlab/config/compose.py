"""Configurations from words, as `curvlab train` composes them."""

import re
from collections.abc import Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path

import hydra
from hydra import initialize_config_dir
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig

from curvlab.config.folder import CONFIGS, folders, is_group
from curvlab.config.options import keys_of
from curvlab.config.resolvers import register_resolvers
from curvlab.errors import UsageError, refuse


def compose(words: Sequence[str] = (), configs: Path = CONFIGS) -> DictConfig:
    """Compose what words select, with every option; what only groups select once a process."""
    register_resolvers()
    try:
        overrides = OverridesParser.create().parse_overrides(list(words))
        values = [override for override in overrides if sets_a_key(override, configs)]
        choices = tuple(str(o.input_line) for o in overrides if o not in values)
        config = (_once if _is_own(configs) else _composed)(choices, configs)
        config = deepcopy(config)
        ConfigLoaderImpl._apply_overrides_to_config(values, config)
        return config
    except HydraException as error:
        if missing := re.match("Could not override '(.+?)'", str(error)):
            chosen = f" with {' '.join(choices)}" if choices else ""
            refuse(f"key {missing[1]}{chosen}", missing[1], keys_of(config))
        raise UsageError(" ".join(f"{error} {error.__cause__ or ''}".split())) from None


def _composed(words: Sequence[str], configs: Path) -> DictConfig:
    if GlobalHydra.instance().is_initialized():
        return hydra.compose("train", list(words))
    with initialize_config_dir(str(configs.resolve()), version_base="1.3"):
        return hydra.compose("train", list(words))


_once = cache(_composed)


def _is_own(configs: Path) -> bool:
    """Whether all files are this package's, which do not change while it runs."""
    run = GlobalHydra.instance()
    if not run.is_initialized():
        return folders(configs) == (CONFIGS,)
    places = [place.path or "" for place in run.config_loader().get_search_path().get_path()]
    return [place for place in places if place.startswith("file:")] == [f"file://{CONFIGS}"]


def sets_a_key(override: Override, configs: Path) -> bool:
    """Whether a word chooses no file: Hydra sets such keys when all files are read."""
    key = override.key_or_group
    return not (
        key.startswith("hydra")
        or "@" in override.get_key_element()
        or override.is_delete()
        or override.is_sweep_override()
        or is_group(configs, key)
    )
