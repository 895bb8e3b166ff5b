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


def named_source(name: str, data_dir: Path | None = None) -> GraphSource:
    """Build the source of a data set by name, `named_source("cora").load()`."""
    paths = compose().paths
    if data_dir is not None:
        paths.data_dir = str(data_dir)
    return build_source(dataset_config(name), paths)


def dataset_config(name: str) -> DictConfig:
    """A data set's configuration, resolved."""
    if name not in (names := choices(CONFIGS, "dataset")):
        refuse(f"dataset {name}", name, names)
    dataset = compose([f"dataset={name}"]).dataset
    OmegaConf.resolve(dataset)
    return dataset
