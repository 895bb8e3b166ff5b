"""Configuration files, completed: what a file's YAML does not name of a class, the signature has.

Hydra reads files through these sources, wherever they come from: this package's folder,
`--config-dir` or `hydra.searchpath`. So every option can be set on a command line, whoever wrote
the class. Small files share one: each is a key of it (`section_of`).
"""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra._internal.core_plugins.importlib_resources_config_source import (
    ImportlibResourcesConfigSource,
)
from hydra._internal.sources_registry import SourcesRegistry
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.object_type import ObjectType
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigResult
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, ListConfig, OmegaConf

from curvlab.config.folder import (
    PROVENANCE,
    VARIANTS,
    folders,
    is_recipe,
    section_of,
    variants_of,
)
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
"""Configurations, with the time of their file's last change."""


class _Sections:
    """A source whose files may hold several configurations, see `section_of`."""

    provider: str
    path: str

    def is_config(self, config_path: str) -> bool:
        return self._is_file(config_path) or self._section(config_path) is not None

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        names: list[str] = super().list(config_path, results_filter)  # type: ignore[misc]
        if results_filter != ObjectType.GROUP:
            files = Path(self.path, config_path).glob("*.yaml")
            names += [f"{file.stem}__{name}" for file in files for name in variants_of(file)]
        return sorted(names)

    def load_config(self, config_path: str) -> ConfigResult:
        if not self._is_file(config_path) and (section := self._section(config_path)) is not None:
            return section
        result = deepcopy(self._whole(config_path))
        if isinstance(result.config, DictConfig):
            result.config.pop(VARIANTS, None)
        return result

    def _is_file(self, name: str) -> bool:
        return bool(super().is_config(name))  # type: ignore[misc]

    def _section(self, name: str) -> ConfigResult | None:
        """A configuration that is a key of a file; None where there is none."""
        file, key = section_of(name)
        if not key or not self._is_file(file):
            return None
        whole = self._whole(file)
        sections = whole.config if is_recipe(name) else whole.config.get(VARIANTS)
        if sections is None or key not in sections:
            return None
        own = deepcopy(sections._get_node(key))
        values = OmegaConf.create({} if own._is_none() else own)
        values.pop(PROVENANCE, None)
        if not is_recipe(name):
            base = file.rpartition("/")[2]
            others = values.pop("defaults", [])
            first = [] if any(isinstance(other, str) for other in others) else [base]
            head = {"defaults": [*first, *others], "name": f"{base}__{key}", "recipe": base}
            values = OmegaConf.merge(head, values)
        return ConfigResult(whole.provider, whole.path, values, whole.header)

    def _whole(self, file: str) -> ConfigResult:
        return self._read("", file, super().load_config)  # type: ignore[misc]

    def _read(self, key: str, file: str, load: Callable[[str], ConfigResult]) -> ConfigResult:
        """What `load` makes of a file, once for as long as the file does not change."""
        place = (self.provider, self.path, file, key)
        changed = _time_of_change(self.path, file)
        if place not in _READ or _READ[place][0] != changed:
            _READ[place] = (changed, load(file))
        return _READ[place][1]


class _Completed(_Sections):
    """A source whose files are completed."""

    def load_config(self, config_path: str) -> ConfigResult:
        file = config_path if self._is_file(config_path) else section_of(config_path)[0]
        return deepcopy(self._read(config_path, file, lambda _: self._completed(config_path)))

    def _completed(self, name: str) -> ConfigResult:
        result = super().load_config(name)
        complete(result.config)
        return result


def _time_of_change(folder: str, name: str) -> float:
    """Of a file; of what lies in a package, which does not change, 0."""
    path = Path(folder, name if name.endswith(".yaml") else f"{name}.yaml")
    return path.stat().st_mtime if path.is_file() else 0.0


class CompletedFiles(_Completed, FileConfigSource):
    """Files of a folder."""


class _Files(_Sections, FileConfigSource):
    """Files of a folder, as they are."""


class CompletedPackages(_Completed, ImportlibResourcesConfigSource):
    """Files of a package."""


def read(configs: Path, name: str) -> DictConfig | None:
    """A configuration as its file has it, `defaults` too; None where no folder has it.

    Args:
        configs: the folder of configurations.
        name: such as `model/lrn__tangent_space`.
    """
    for folder in folders(configs):
        files = _Files("", str(folder))
        if files.is_config(name):
            return files.load_config(name).config
    return None


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
