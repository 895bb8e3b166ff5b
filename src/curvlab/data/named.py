"""Datasets by the names of their configurations, for scripts that train nothing."""

import difflib
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from curvlab.errors import UsageError


def dataset_names(config_dir: Path) -> list[str]:
    """Names of all datasets that the configuration folder describes."""
    return sorted(path.stem for path in (config_dir / "dataset").glob("*.yaml"))


def dataset_config(name: str, config_dir: Path, data_dir: Path | None = None) -> DictConfig:
    """The dataset's configuration, its places resolved as a run would resolve them.

    Args:
        name: For instance `web_edu`.
        config_dir: The folder `configs`.
        data_dir: Where raw files are; by default what `configs/paths` says.

    Raises:
        UsageError: There is no dataset of that name.
    """
    names = dataset_names(config_dir)
    if name not in names:
        near = difflib.get_close_matches(name, names, n=3)
        choices = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}."
        raise UsageError(f"there is no dataset {name}: {choices}")
    paths = OmegaConf.load(config_dir / "paths" / "default.yaml")
    if data_dir is not None:
        paths.data_dir = str(data_dir)
    dataset = OmegaConf.load(config_dir / "dataset" / f"{name}.yaml")
    assert isinstance(dataset, DictConfig)
    dataset.pop("defaults", None)  # what else a run would choose by the dataset
    config = OmegaConf.create({"paths": paths, "dataset": dataset})
    OmegaConf.resolve(config)
    return config.dataset
