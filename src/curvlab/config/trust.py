"""The classes that a configuration may name, checked before anything is located or built.

A command's own configuration is the user's, and so are the classes that it names. A file may be a
stranger's: a checkpoint, a result, a row in a table of runs, a search's journal. What it names is
located, imported or resolved only if it is on the list of `is_known`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from inspect import isclass
from pathlib import Path
from pydoc import locate
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf

from curvlab.config.folder import GROUP, folders
from curvlab.errors import UsageError

SIGNATURES = Path(__file__).with_name("signatures.json")

OPTIMISERS = r"torch\.optim(\.lr_scheduler)?\.[A-Z]\w*"

KEY_OF_PACKAGE = {
    "curvlab.callbacks.": "logger",
    "lightning.pytorch.profilers.": "trainer.profiler",
    "torch_geometric.datasets.": "dataset.source.dataset",
}
"""The only key at which a file may name classes of a package that write files when built."""

TARGET = r"_target_['\"]?: *['\"]?([\w.]+)"
DEEPEST = 40  # levels of a configuration
PLAIN = (str, int, float, bool, type(None))

_trusted_targets: set[str] = set()
_trusted_values: set[str] = set()  # values of the user's own configurations


def trust(config: Any) -> None:
    """Trust the classes that a configuration of the user names."""
    if isinstance(config, DictConfig):
        config = OmegaConf.to_container(config, resolve=False)
    values = [(key, str(value)) for key, value in _values(config)]
    _trusted_targets.update(value for key, value in values if _is_target(key))
    _trusted_values.update(value for _, value in values)


def is_known(target: str) -> bool:
    """Whether a full name may be located.

    It is a class in `signatures.json`, an optimiser or scheduler of torch, a class of an installed
    package with the entry point, a class that its configurations, ours or those of `--config-dir`
    name, or one that this command names.
    """
    return (
        target in _signatures()
        or target in _trusted_targets
        or re.fullmatch(OPTIMISERS, target) is not None
        or any(target in _targets_in(folder) for folder in folders())
        or _is_class_of_package(target)
    )


def check(config: Any, file: object) -> None:
    """Refuse a configuration from a file if it names an unknown class or is not plain data."""
    try:
        for key, value in _values(config):
            fault = _fault(key, value)
            if fault:
                raise UsageError(
                    f"{file} has {key}={str(value)[:120]}, {fault}: it could run another's code "
                    "here; if you trust who made it, add --trust (in Python trust=True)"
                )
        for key, node in _nodes(config):
            _check_node(key, node, file)
    except RecursionError:
        raise UsageError(f"{file} is no configuration: it is nested too deeply") from None


def _fault(key: str, value: Any) -> str:
    if not isinstance(value, PLAIN):
        return f"which is a {type(value).__name__}, not a plain value"
    if "${" in key or (isinstance(value, str) and "${" in value):
        return "which would be resolved"
    if not _is_target(key):
        return ""
    if not isinstance(value, str) or not is_known(value):
        return "which is none of the classes of curvlab, of torch.optim or of an installed plug-in"
    for package, place in KEY_OF_PACKAGE.items():
        if value.startswith(package) and key != f"{place}._target_":
            return f"which only {place} may name"
    return ""


def _check_node(key: str, node: Mapping[str, Any], file: object) -> None:
    target = str(node.get("_target_", ""))
    strange = [
        f"{key}.{name}={value}"
        for name, value in _raw_files(node)
        if value is not None
        and str(value) not in _trusted_values
        and str(value) not in _scalars_of_datasets(folders())
    ]
    if target.startswith("torch_geometric.") and (not node.get("_partial_") or "root" in node):
        strange.append(f"{key}._partial_ ({target} would download at once)")
    if target.endswith(".PyGObject") and node.get("target") is not None:
        strange.append(f"{key}.target={node['target']}")
    if strange:
        raise UsageError(
            f"{file} has {strange[0]}, which is no data set of curvlab or of an installed plug-in: "
            "it could write files here; if you trust who made it, add --trust (in Python "
            "trust=True)"
        )


def _raw_files(node: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Addresses and names of files that a source downloads."""
    if isinstance(node.get("files"), list):
        yield "url", node.get("url")
        for file in node["files"]:
            parts = file if isinstance(file, Mapping) else {"path": file}
            yield from ((name, parts.get(name)) for name in ("path", "name"))


def _is_target(key: str) -> bool:
    return key.rpartition(".")[2] == "_target_"


def _values(node: Any, key: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Keys and values of a configuration; keys of mappings are values, too."""
    if depth > DEEPEST:
        raise RecursionError
    if isinstance(node, Mapping):
        for name, value in node.items():
            yield from _values(value, f"{key}.{name}".lstrip("."), depth + 1)
    elif isinstance(node, list | tuple):
        for i, value in enumerate(node):
            yield from _values(value, f"{key}[{i}]", depth + 1)
    else:
        yield key, node


def _nodes(node: Any, key: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(node, Mapping):
        yield key, node
        for name, value in node.items():
            yield from _nodes(value, f"{key}.{name}".lstrip("."))
    elif isinstance(node, list | tuple):
        for i, value in enumerate(node):
            yield from _nodes(value, f"{key}[{i}]")


def _is_class_of_package(target: str) -> bool:
    """Whether a name is a class of an installed package with the entry point."""
    package = target.partition(".")[0]
    if package not in _packages():
        return False
    try:
        located = locate(target)
    except Exception:  # building reports a module that cannot be imported
        return False
    return isclass(located) and located.__module__.partition(".")[0] == package


@cache
def _signatures() -> frozenset[str]:
    return frozenset(json.loads(SIGNATURES.read_bytes()))


@cache
def _packages() -> frozenset[str]:
    return frozenset(entry.value.partition(".")[0] for entry in entry_points(group=GROUP))


@cache
def _targets_in(folder: Path) -> frozenset[str]:
    """The classes that a folder of configurations names."""
    texts = (path.read_text(encoding="utf-8") for path in folder.rglob("*.yaml"))
    return frozenset(name for text in texts for name in re.findall(TARGET, text))


@cache
def _scalars_of_datasets(places: tuple[Path, ...]) -> frozenset[str]:
    """All values in the data sets' files of some folders."""
    scalars: set[str] = set()
    for folder in places:
        for path in (folder / "dataset").rglob("*.yaml"):
            content = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
            scalars.update(str(value) for _, value in _values(content))
    return frozenset(scalars)
