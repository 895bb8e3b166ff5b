"""Sources of graphs from their configurations, also by name, for scripts that train nothing."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from curvlab.config.building import build
from curvlab.config.compose import compose
from curvlab.config.folder import CONFIGS, choices
from curvlab.config.schema import options_of
from curvlab.data.files.sources import GraphSource
from curvlab.errors import refuse


def build_source(dataset: DictConfig, paths: Mapping[str, Any] | DictConfig) -> GraphSource:
    """Build a data set's source; one that reads files receives its name and its folders."""
    known = options_of(dataset.source._target_)
    passed = {"name": dataset.name, "data_dir": paths["data_dir"], "mirror": paths["mirror"]}
    return build(dataset.source, **{k: v for k, v in passed.items() if k in known})


def named_source(name: str, data_dir: Path | None = None, configs: Path = CONFIGS) -> GraphSource:
    """Build the source of a data set by name, `named_source("cora").load()`."""
    paths = compose((), configs).paths
    if data_dir is not None:
        paths.data_dir = str(data_dir)
    return build_source(dataset_config(name, configs), paths)


def dataset_names(configs: Path = CONFIGS) -> list[str]:
    """Names of all data sets that the configuration folder describes."""
    return choices(configs, "dataset")


def dataset_config(name: str, configs: Path = CONFIGS) -> DictConfig:
    """A data set's configuration, resolved."""
    if name not in dataset_names(configs):
        refuse(f"dataset {name}", name, dataset_names(configs))
    dataset = compose([f"dataset={name}"], configs).dataset
    OmegaConf.resolve(dataset)
    return dataset
