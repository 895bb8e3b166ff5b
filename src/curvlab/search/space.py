"""Space of a search: configuration keys and their candidate values."""

from collections.abc import Mapping
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from curvlab.config.validation import check_setting, leaves
from curvlab.errors import UsageError
from curvlab.run.sections import seeds_from

SPACE = "search.space"
PACKAGES = ("optuna", "ruamel.yaml")
_ABSENT = object()


def values_by_key(config: DictConfig) -> dict[str, list[Any]]:
    """Dotted keys of the search with their values, without keys whose values are null."""
    space = leaves(config.search.space)
    return {key: list(values) for key, values in space if values is not None}


def search_seeds(config: DictConfig) -> list[Any]:
    """Seeds of each combination."""
    return seeds_from(config.search.seeds, config.seed)


def defaults(config: DictConfig) -> dict[str, Any] | None:
    """The configuration's values of the search's keys; None if a value is not in the space."""
    current = {}
    for key, values in values_by_key(config).items():
        current[key] = OmegaConf.select(config, key)
        if current[key] not in values:
            return None
    return current


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # the parent package is missing
        return False


def check_search(config: DictConfig, overrides: Mapping[str, str] = MappingProxyType({})) -> None:
    """Refuse an invalid search; `overrides` are the command line's overrides by key."""
    missing = [name for name in PACKAGES if not _is_installed(name)]
    if missing:
        raise UsageError(f"search= needs {' and '.join(missing)}: pip install 'curvlab[hpo]'")
    if "metric" not in config.task:
        raise UsageError(
            f"task={config.task.name} has no validation nodes, and a search must not use test "
            "nodes: choose a dataset with labels, such as cora"
        )
    seeds = search_seeds(config)
    if not seeds:
        raise UsageError(
            f"search.seeds={config.search.seeds} must be a number of seeds, as in 3, or a list, as "
            "in [0,1,2]"
        )
    if isinstance(config.search.seeds, ListConfig) and len(seeds) < len(config.search.seeds):
        raise UsageError(f"search.seeds={config.search.seeds} must be a list of different seeds")
    for seed in seeds:
        check_setting("seed", config, seed)
    for key, values in leaves(config.search.space):
        if values is None:
            continue
        if not isinstance(values, ListConfig) or not values:
            raise UsageError(f"{SPACE}.{key}={values} must be a list of values, as in [1,2]")
        if any(value in values[:i] for i, value in enumerate(values)):
            raise UsageError(f"{SPACE}.{key}={values} must be a list of different values")
    space = values_by_key(config)
    if not space:
        raise UsageError(f"the search has nothing to vary: give {SPACE} some keys with values")
    for key, values in space.items():
        if OmegaConf.select(config, key, default=_ABSENT) is _ABSENT:
            raise UsageError(
                f"model={config.model.name} with task={config.task.name} has no {key} to search: "
                f"leave it out by {SPACE}.{key}=null"
            )
        for value in values:
            check_setting(key, config, value)
        if key in overrides:
            raise UsageError(
                f"{overrides[key]}: the search varies {key}; fix it by adding {SPACE}.{key}=null, "
                f"or give it other values by {SPACE}.{key}=[...]"
            )
