"""Configuration files, completed: what a file's YAML does not name of a class, the signature has.

Hydra reads files through these sources, wherever they come from: this package's folder,
`--config-dir` or `hydra.searchpath`. So every option can be set on a command line, whoever wrote
the class.
"""

from copy import deepcopy
from pathlib import Path
from typing import Any

from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra._internal.core_plugins.importlib_resources_config_source import (
    ImportlibResourcesConfigSource,
)
from hydra._internal.sources_registry import SourcesRegistry
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigResult
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, ListConfig

from curvlab.config.folder import folders
from curvlab.config.schema import MISSING, completed


def complete(node: Any) -> None:
    """Give every mapping with a `_target_` the options that it does not name, at their defaults."""
    if isinstance(node, ListConfig) and not (node._is_none() or node._is_interpolation()):
        for i in range(len(node)):
            complete(node._get_node(i))
    if not isinstance(node, DictConfig) or node._is_none() or node._is_interpolation():
        return
    for key in list(node):
        complete(node._get_node(key))
    target = node._get_node("_target_")
    if target is None or target._is_interpolation():
        return
    for name, option in completed(str(node["_target_"])).items():
        if name not in node and option.default is not MISSING:
            default = option.default
            node[name] = list(default) if isinstance(default, tuple) else default


_READ: dict[tuple[str, ...], tuple[float, ConfigResult]] = {}
"""Completed files, with the time of their last change."""


class _Completed:
    """A source whose files are completed, and read once for as long as they do not change."""

    def load_config(self, config_path: str) -> ConfigResult:
        key = (self.provider, self.path, config_path)  # type: ignore[attr-defined]
        changed = _time_of_change(self.path, config_path)  # type: ignore[attr-defined]
        if key not in _READ or _READ[key][0] != changed:
            result: ConfigResult = super().load_config(config_path)  # type: ignore[misc]
            complete(result.config)
            _READ[key] = (changed, result)
        return deepcopy(_READ[key][1])  # which Hydra changes


def _time_of_change(folder: str, name: str) -> float:
    """Of a file; of what lies in a package, which does not change, 0."""
    path = Path(folder, name if name.endswith(".yaml") else f"{name}.yaml")
    return path.stat().st_mtime if path.is_file() else 0.0


class CompletedFiles(_Completed, FileConfigSource):
    """Files of a folder."""


class CompletedPackages(_Completed, ImportlibResourcesConfigSource):
    """Files of a package."""


class OtherFolders(SearchPathPlugin):
    """Folders of other packages and of the command line, after this package's own."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Name them to Hydra."""
        for folder in folders()[1:]:
            search_path.append("curvlab", f"file://{folder}")


# Workers of a sweep get the registry and then register Hydra's own, which go by these names.
CompletedFiles.__name__ = FileConfigSource.__name__
CompletedPackages.__name__ = ImportlibResourcesConfigSource.__name__


def register_sources() -> None:
    """Let Hydra read files through the sources above."""
    plugins = Plugins.instance()  # which registers its own
    if OtherFolders not in plugins.discover(SearchPathPlugin):
        plugins.register(OtherFolders)
    registry = SourcesRegistry.instance()
    for source in (CompletedFiles, CompletedPackages):
        registry.types[source.scheme()] = source
