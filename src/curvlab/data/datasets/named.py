"""Sources of graphs from their configurations, also by name, for scripts that train nothing."""

import difflib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from omegaconf import DictConfig, OmegaConf

from curvlab.config.building import build
from curvlab.config.folder import CONFIGS, choices
from curvlab.config.resolvers import register_resolvers
from curvlab.config.schema import options_of
from curvlab.config.sources import complete, read
from curvlab.config.words import remember
from curvlab.data.files.sources import GraphSource
from curvlab.errors import UsageError


def build_source(dataset: DictConfig, paths: Mapping[str, Any] | DictConfig) -> GraphSource:
    """Build a data set's source; one that reads files receives its name and its folders.

    Args:
        dataset: the configuration of the data set.
        paths: `data_dir`, folder of raw and processed files, and `mirror`, used instead of the
            network, None for none.
    """
    known = options_of(dataset.source._target_)
    passed = {"name": dataset.name, "data_dir": paths["data_dir"], "mirror": paths["mirror"]}
    source = build(dataset.source, **{k: v for k, v in passed.items() if k in known})
    remember(source, dataset.source)
    return source


def named_source(name: str, data_dir: Path | None = None, configs: Path = CONFIGS) -> GraphSource:
    """Build the source of a data set by name, `named_source("cora").load()`.

    Args:
        name: for instance `web_edu`.
        data_dir: folder of raw files; None: that of `configs/paths`.
        configs: the folder of configurations.

    Raises:
        UsageError: There is no data set of that name.
    """
    paths = OmegaConf.load(configs / "paths" / "default.yaml")
    assert isinstance(paths, DictConfig)
    if data_dir is not None:
        paths.data_dir = str(data_dir)
    return build_source(dataset_config(name, configs), paths)


def dataset_names(configs: Path = CONFIGS) -> list[str]:
    """Names of all data sets that the configuration folder describes."""
    return choices(configs, "dataset")


def dataset_config(name: str, configs: Path = CONFIGS) -> DictConfig:
    """A data set's configuration, resolved, without the groups that it chooses.

    Args:
        name: for instance `web_edu`.
        configs: the folder of configurations.

    Raises:
        UsageError: There is no data set of that name.
    """
    names = dataset_names(configs)
    if name not in names:
        near = difflib.get_close_matches(name, names, n=3)
        choices = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}."
        raise UsageError(f"there is no dataset {name}: {choices}")
    register_resolvers()
    config = OmegaConf.create({"dataset": _described(name, configs)})
    complete(config)
    OmegaConf.resolve(config)
    return config.dataset


def _described(name: str, configs: Path) -> DictConfig:
    """A data set's file over those that it is based on."""
    dataset = read(configs, f"dataset/{name}")
    assert dataset is not None
    bases = [base for base in dataset.pop("defaults", []) if isinstance(base, str)]
    beside = PurePosixPath(name).parent
    below = (_described(str(beside / base.partition("@")[0]), configs) for base in bases)
    merged = OmegaConf.merge(*below, dataset)
    assert isinstance(merged, DictConfig)
    return merged
