"""Configurations from words, as `curvlab train` composes them."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import hydra
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import DictConfig

from curvlab.config.folder import CONFIGS
from curvlab.config.resolvers import register_resolvers
from curvlab.errors import UsageError


def compose(
    words: Sequence[str] = (), configs: Path = CONFIGS, with_hydra: bool = False
) -> DictConfig:
    """The configuration that these words select, every option of every class in it.

    Within a run, what they select of the configurations that the run itself was composed from.

    Args:
        words: overrides, such as `model=fpst` and `model.dim=8`.
        configs: the folder of configurations.
        with_hydra: keep Hydra's own part.

    Raises:
        UsageError: Hydra cannot compose them.
    """
    register_resolvers()
    try:
        with _opened(configs):
            return hydra.compose("train", list(words), return_hydra_config=with_hydra)
    except HydraException as error:
        raise UsageError(" ".join(str(error).split())) from None


def _opened(configs: Path) -> AbstractContextManager[Any]:
    """Hydra over a folder, unless a run has it open already."""
    if GlobalHydra.instance().is_initialized():
        return nullcontext()
    return initialize_config_dir(str(configs.resolve()), version_base="1.3")
