"""Configurations from words, as `curvlab train` composes them."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import hydra
from hydra import initialize_config_dir
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig

from curvlab.config.folder import CONFIGS, folders, is_group
from curvlab.config.resolvers import register_resolvers
from curvlab.errors import UsageError


def compose(words: Sequence[str] = (), configs: Path = CONFIGS) -> DictConfig:
    """The configuration that these words select, every option of every class in it.

    Within a run, what they select of the configurations that the run itself was composed from.
    What words of groups select of this package's own files is composed once a process.

    Args:
        words: overrides, such as `model=fpst` and `model.dim=8`.
        configs: the folder of configurations.

    Raises:
        UsageError: Hydra cannot compose them.
    """
    register_resolvers()
    try:
        if not _is_own(configs):
            return _composed(words, configs)
        overrides = OverridesParser.create().parse_overrides(list(words))
        values = [override for override in overrides if sets_a_key(override, configs)]
        choices = tuple(str(o.input_line) for o in overrides if o not in values)
        config = deepcopy(_once(choices, configs))
        ConfigLoaderImpl._apply_overrides_to_config(values, config)
        return config
    except HydraException as error:
        raise UsageError(" ".join(str(error).split())) from None


def _composed(words: Sequence[str], configs: Path) -> DictConfig:
    with _opened(configs):
        return hydra.compose("train", list(words))


_once = cache(_composed)


def _opened(configs: Path) -> AbstractContextManager[Any]:
    """Hydra over a folder, unless a run has it open already."""
    if GlobalHydra.instance().is_initialized():
        return nullcontext()
    return initialize_config_dir(str(configs.resolve()), version_base="1.3")


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
