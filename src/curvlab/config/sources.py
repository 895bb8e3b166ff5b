"""Read configuration files and complete them by the defaults of their classes' signatures."""

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra._internal.sources_registry import SourcesRegistry
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.object_type import ObjectType
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigResult
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import AnyNode, DictConfig, ListConfig, OmegaConf

from curvlab.config.folder import (
    EARLIER_PROVENANCE,
    PROVENANCE,
    VARIANTS,
    folders,
    is_recipe,
    place_in,
    section_of,
    variants_of,
)
from curvlab.config.schema import MISSING, complete_options


def complete(node: Any) -> None:
    """Add missing options to mappings with a `_target_`, and expand `~/`."""
    if isinstance(node, ListConfig) and not (node._is_none() or node._is_interpolation()):
        for i in range(len(node)):
            complete(node._get_node(i))
    if not isinstance(node, DictConfig) or node._is_none() or node._is_interpolation():
        return
    for key in list(node):
        child = node._get_node(key)
        if isinstance(child, AnyNode) and str(child._value()).startswith("~/"):
            node[key] = str(Path(child._value()).expanduser())
        complete(child)
    target = node._get_node("_target_")
    if target is None or target._is_interpolation():
        return
    for name, option in complete_options(str(node["_target_"])).items():
        if name not in node and option.default is not MISSING:
            default = option.default
            node[name] = list(default) if isinstance(default, tuple) else default


class CompletedFiles(FileConfigSource):
    """Completed files of a folder; a file may hold several configurations (`section_of`)."""

    def is_config(self, config_path: str) -> bool:
        """Whether a file has the configuration."""
        return place_in(Path(self.path), config_path) is not None

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """Names of files and of the configurations in them."""
        names = super().list(config_path, results_filter)
        if results_filter != ObjectType.GROUP:
            files = Path(self.path, config_path).glob("*.yaml")
            names += [f"{file.stem}__{name}" for file in files for name in variants_of(file)]
        return sorted(names)

    def load_config(self, config_path: str) -> ConfigResult:
        """Read and complete a configuration."""
        result = self.plain(config_path)
        complete(result.config)
        return result

    def plain(self, name: str) -> ConfigResult:
        """Read a configuration as it is in its file; a variant begins with its base."""
        file, key = place_in(Path(self.path), name) or (None, "")
        base = section_of(name)[0] if key else name
        result = deepcopy(_load(self.provider, self.path, base, file and file.stat().st_mtime))
        content = result.config
        assert isinstance(content, DictConfig)
        variants = content if is_recipe(name) else content.pop(VARIANTS, {})
        if key:
            values = OmegaConf.create(variants[key] or {})
            result.config = values
            for key_of_origin in (PROVENANCE, EARLIER_PROVENANCE):
                values.pop(key_of_origin, None)
            if not is_recipe(name):
                name_of_base = base.rpartition("/")[2]
                defaults = values.pop("defaults", [])
                if not any(isinstance(default, str) for default in defaults):
                    defaults = [name_of_base, *defaults]
                head = {
                    "defaults": defaults,
                    "name": f"{name_of_base}__{key}",
                    "recipe": name_of_base,
                }
                result.config = OmegaConf.merge(head, values)
        return result


@cache
def _load(provider: str, folder: str, name: str, changed: float | None) -> ConfigResult:  # noqa: ARG001
    """Read a whole file, once while its time of change is the same."""
    return FileConfigSource(provider, folder).load_config(name)


def read(configs: Path, name: str) -> DictConfig | None:
    """Read a configuration as it is in its file, with `defaults`; None if no folder has it."""
    for folder in folders(configs):
        if place_in(folder, name):
            config = CompletedFiles("", str(folder)).plain(name).config
            assert isinstance(config, DictConfig)
            return config
    return None


class OtherFolders(SearchPathPlugin):
    """Adds the folders of other packages and of the command line to Hydra's search path."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Append the folders."""
        for folder in folders()[1:]:
            search_path.append("curvlab", f"file://{folder}")


# Workers of a sweep receive this registry and then register Hydra's source under its name.
CompletedFiles.__name__ = FileConfigSource.__name__


def register_sources() -> None:
    """Let Hydra read files through `CompletedFiles`."""
    plugins = Plugins.instance()  # which registers Hydra's sources
    if OtherFolders not in plugins.discover(SearchPathPlugin):
        plugins.register(OtherFolders)
    SourcesRegistry.instance().types[CompletedFiles.scheme()] = CompletedFiles
