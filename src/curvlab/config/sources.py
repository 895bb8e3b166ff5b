"""Configuration files, completed by the defaults of the signatures of their classes."""

from copy import deepcopy
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

from curvlab.config.folder import PROVENANCE, VARIANTS, folders, is_recipe, section_of, variants_of
from curvlab.config.schema import MISSING, complete_options


def complete(node: Any) -> None:
    """Give mappings with a `_target_` the options that they do not name; expand `~/`."""
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


_READ: dict[tuple[str, str], tuple[float, ConfigResult]] = {}
"""Files, with the time of their last change."""


class CompletedFiles(FileConfigSource):
    """Files of a folder, completed; one may hold several configurations (`section_of`)."""

    def is_config(self, config_path: str) -> bool:
        """Whether a file has it."""
        return self._is_file(config_path) or self._shared(config_path) is not None

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """Names of files, and of the configurations in them."""
        names = super().list(config_path, results_filter)
        if results_filter != ObjectType.GROUP:
            files = Path(self.path, config_path).glob("*.yaml")
            names += [f"{file.stem}__{name}" for file in files for name in variants_of(file)]
        return sorted(names)

    def load_config(self, config_path: str) -> ConfigResult:
        """A configuration, completed."""
        result = self.plain(config_path)
        complete(result.config)
        return result

    def plain(self, name: str) -> ConfigResult:
        """A configuration as in its file."""
        whole = None if self._is_file(name) else self._shared(name)
        if whole is not None:
            return ConfigResult(whole.provider, whole.path, _section(whole, name), {**whole.header})
        result = deepcopy(self._file(name))
        if isinstance(result.config, DictConfig):
            result.config.pop(VARIANTS, None)
        return result

    def _shared(self, name: str) -> ConfigResult | None:
        """The file that has a configuration under one of its keys; None without one."""
        file, key = section_of(name)
        whole = self._file(file) if key and self._is_file(file) else None
        return whole if whole is not None and key in _sections(whole, name) else None

    def _is_file(self, name: str) -> bool:
        return super().is_config(name)

    def _file(self, name: str) -> ConfigResult:
        """The whole file, cached until it changes."""
        path, key = Path(self.path, f"{name.removesuffix('.yaml')}.yaml"), (self.path, name)
        changed = path.stat().st_mtime if path.is_file() else 0.0
        if key not in _READ or _READ[key][0] != changed:
            _READ[key] = (changed, super().load_config(name))
        return _READ[key][1]


def _sections(whole: ConfigResult, name: str) -> Any:
    """The keys of a file that are configurations."""
    assert isinstance(whole.config, DictConfig)
    return whole.config if is_recipe(name) else whole.config.get(VARIANTS) or {}


def _section(whole: ConfigResult, name: str) -> Any:
    """A configuration from the file that has it as a key; a variant begins with its base."""
    file, key = section_of(name)
    values = OmegaConf.create(_sections(whole, name)[key] or {})
    values.pop(PROVENANCE, None)
    if is_recipe(name):
        return values
    base, others = file.rpartition("/")[2], values.pop("defaults", [])
    first = [] if any(isinstance(other, str) for other in others) else [base]
    head = {"defaults": [*first, *others], "name": f"{base}__{key}", "recipe": base}
    return OmegaConf.merge(head, values)


def read(configs: Path, name: str) -> DictConfig | None:
    """A configuration as in its file, `defaults` included; None if no folder has it."""
    for folder in folders(configs):
        files = CompletedFiles("", str(folder))
        if files.is_config(name):
            config = files.plain(name).config
            assert isinstance(config, DictConfig)
            return config
    return None


class OtherFolders(SearchPathPlugin):
    """Folders of other packages and of the command line, after this package's own."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Name them to Hydra."""
        for folder in folders()[1:]:
            search_path.append("curvlab", f"file://{folder}")


# Workers of a sweep get the registry and then register Hydra's own, which goes by this name.
CompletedFiles.__name__ = FileConfigSource.__name__


def register_sources() -> None:
    """Let Hydra read files through the source above."""
    plugins = Plugins.instance()  # which registers its own
    if OtherFolders not in plugins.discover(SearchPathPlugin):
        plugins.register(OtherFolders)
    SourcesRegistry.instance().types[CompletedFiles.scheme()] = CompletedFiles
