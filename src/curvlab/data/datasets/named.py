"""Datasets by the names of their configurations, for scripts that train nothing."""

import difflib
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from curvlab.config.resolvers import register_resolvers
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
    register_resolvers()
    paths = OmegaConf.load(config_dir / "paths" / "default.yaml")
    if data_dir is not None:
        paths.data_dir = str(data_dir)
    config = OmegaConf.create({"paths": paths, "dataset": _described(name, config_dir / "dataset")})
    OmegaConf.resolve(config)
    return config.dataset


def _described(name: str, folder: Path) -> DictConfig:
    """A dataset's file over that of which it is a variant, without the groups that it chooses."""
    dataset = OmegaConf.load(folder / f"{name}.yaml")
    assert isinstance(dataset, DictConfig)
    bases = [base for base in dataset.pop("defaults", []) if isinstance(base, str)]
    merged = OmegaConf.merge(*(_described(base, folder) for base in bases), dataset)
    assert isinstance(merged, DictConfig)
    return merged
