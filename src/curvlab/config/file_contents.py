"""Checksums of the files that a configuration names: a run is identified by their content."""

import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from omegaconf import DictConfig, OmegaConf

from curvlab.checked import Part
from curvlab.checksums import checksum, checksums, files_at
from curvlab.config.folder import CONFIGS, place_in
from curvlab.config.schema import (
    LIBRARIES,
    MISSING,
    attribute,
    is_subclass,
    options_of,
    stored_signatures,
)
from curvlab.config.sources import read
from curvlab.config.validation import leaves, mappings
from curvlab.options import DATASET_FILES, INCIDENTAL, USER_FILE

PARTS = ("dataset", "split", "model", "manifold", "task")
"""Parts of a configuration whose files a run reads."""

OBJECT = f"{Part.__module__}.{Part.__name__}"
"""The kind of an option of a plug-in whose type is a class, such as `Path`."""

UNREAD = {USER_FILE, INCIDENTAL}
"""Marks of options of a plug-in that are read by their mark, or decide nothing."""

FOLDERS_OF_CURVLAB = {"data_dir", "mirror"}
"""Options of a plug-in's source to which curvlab passes its own folders."""

FOREIGN = "curvlab.data.datasets.pyg_object.PyGObject"
"""A source whose `options` are the arguments of any class."""


def user_files(config: Mapping[Any, Any]) -> dict[str, str | None]:
    """Checksums of the user's files and folders by key of a resolved configuration.

    These are the options marked `UserFile`; of classes outside of curvlab also all other options
    that name an existing file or folder and are not marked `Incidental`. A folder is named by a
    text with a separator, or by an option whose type is a path. None: there is nothing to read.
    """
    return {key: checksum([*files.values()], [*files]) for key, files in _user_files(config)}


def user_file_checksums(config: Mapping[Any, Any]) -> dict[str, dict[str, str]]:
    """Checksums of the user's files by key of a configuration and by name of the file."""
    return {key: checksums(files) for key, files in _user_files(config)}


def _user_files(config: Mapping[Any, Any]) -> Iterator[tuple[str, dict[str, Path]]]:
    """Keys of a configuration that name files of the user's, and these files by their names."""
    for path, node in mappings({part: config.get(part) for part in PARTS}):
        target = str(node.get("_target_", ""))
        for name, option in options_of(target).items():
            if USER_FILE in option.marks:
                place = node.get(name)
                key = f"{path}.{name}"
                if place is not None:
                    names = attribute(target, "file_names", ()) if name == "path" else ()
                    yield key, files_at(str(place), *names)
                elif name == "path" and not node.get("target"):
                    yield key, {}
        if is_subclass(target, FOREIGN):
            files_by_key = _named_files({"options": node.get("options") or {}}, None)
        elif target and not _is_known(target):
            options = options_of(target)
            ignored = {key for key, option in options.items() if UNREAD & {*option.marks}}
            ignored |= FOLDERS_OF_CURVLAB
            values = {key: value for key, value in node.items() if key not in ignored}
            paths = {key for key, option in options.items() if OBJECT in str(option.kind)}
            files_by_key = _named_files(values, paths)
        else:
            continue
        for key, files in files_by_key:
            yield f"{path}.{key}", files


def dataset_files(config: Mapping[str, Any]) -> dict[str, str]:
    """Checksums of options marked `DatasetFiles`, by key.

    Options of a shipped data set are left out, since its name identifies its files.
    """
    dataset = config.get("dataset") or {}
    source = dataset.get("source") or {}
    options = options_of(str(source.get("_target_", "")))
    checksums = {}
    for name, option in options.items():
        if DATASET_FILES not in option.marks or name not in source:
            continue
        default = None if option.default is MISSING else option.default
        shipped = _shipped_source(str(dataset.get("name")))
        if source[name] != shipped.get(name, default):
            text = json.dumps(source[name], sort_keys=True, default=str)
            checksums[f"dataset.source.{name}"] = hashlib.sha256(text.encode()).hexdigest()[:16]
    return checksums


def _is_known(target: str) -> bool:
    return target in stored_signatures() or target.partition(".")[0] in ("curvlab", *LIBRARIES)


def _named_files(
    node: Mapping[str, Any], paths: Collection[str] | None
) -> Iterator[tuple[str, dict[str, Path]]]:
    """Files that values name, and those of folders unless `paths` is None, by key."""
    for key, value in _texts(node):
        place = _place(value)
        if place is None:
            continue
        is_named = key.partition(".")[0] in (paths or ()) or _has_separator(value)
        files: dict[str, Path] = {}
        if place.is_file():
            files = {place.name: place}
        elif paths is not None and is_named:
            files = files_at(value)
        if files:
            yield key, files


def _texts(node: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Dotted keys and values of the texts below a node, in lists too."""
    for key, value in leaves(node):
        values = {key: value}
        if isinstance(value, list | tuple):
            values = {f"{key}.{i}": entry for i, entry in enumerate(value)}
        for name, entry in values.items():
            if isinstance(entry, Mapping):
                yield from _texts({f"{name}.{k}": v for k, v in entry.items()})
            elif isinstance(entry, str):
                yield name, entry


def _has_separator(text: str) -> bool:
    return any(separator in text for separator in ("/", os.sep, "~"))


def _place(text: str) -> Path | None:
    """The path of a text; None if nothing is there."""
    try:
        place = Path(text).expanduser()
        return place if text and place.exists() else None
    except (OSError, RuntimeError, ValueError):  # a text that no path can be
        return None


@cache
def _shipped_source(name: str) -> dict[Any, Any]:
    """The source of a shipped data set as in its files; empty for other data sets."""
    if place_in(CONFIGS, f"dataset/{name}") is None:
        return {}
    dataset = _merged(f"dataset/{name}")
    config = OmegaConf.create({"dataset": dataset})
    source = OmegaConf.to_container(config.dataset.get("source") or {}, resolve=True)
    assert isinstance(source, dict)
    return source


def _merged(name: str) -> DictConfig:
    """A file's configuration over those of the files that it begins with."""
    config = read(CONFIGS, name)
    assert config is not None
    bases = [base for base in config.pop("defaults", []) if isinstance(base, str)]
    group = PurePosixPath("/", name).parent
    names = [str(group / base.partition("@")[0]).strip("/") for base in bases if base != "_self_"]
    merged = OmegaConf.merge(*map(_merged, names), config)
    assert isinstance(merged, DictConfig)
    return merged
