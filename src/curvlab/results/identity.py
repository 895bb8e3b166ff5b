"""Identity of a run: the classes that it builds, their revisions, and non-default arguments.

A new option at its default does not change identities. A class whose numbers change needs a new
`revision`. Classes are named without their modules (`class_name`), so that files can move.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf

from curvlab.config.file_contents import dataset_files, user_files
from curvlab.config.schema import GROUPS as UNBUILT
from curvlab.config.schema import (
    LIBRARIES,
    MISSING,
    attribute,
    class_name,
    options_of,
    signature_of,
)
from curvlab.config.validation import DECISIVE, is_if_needed, mappings

FOLDER_ARGUMENTS = ("data_dir", "mirror")  # arguments that are folders of this machine
FILES = "files"  # key of the checksums of the files that a configuration names
MISSING_FILE = "missing"  # the checksum of a file that does not exist
SEED = "\0seed"  # placeholder of the seed in a text
Node = Mapping[str, Any]


def stored_config(config: DictConfig) -> dict[str, Any]:
    """The configuration that a result stores: resolved, without local folders.

    `files` has the checksums of the files that the configuration names.
    """
    container = OmegaConf.to_container(config, resolve=True)
    assert isinstance(container, dict)
    plain = {str(key): value for key, value in container.items()}
    user_contents = {key: content or MISSING_FILE for key, content in user_files(plain).items()}
    contents = user_contents | dataset_files(plain)
    if contents:
        plain[FILES] = contents
    return decisive_parts(plain)


def decisive_parts(config: Mapping[Any, Any]) -> dict[str, Any]:
    """The parts of a resolved configuration that decide a result, without local folders."""
    parts = {str(k): v for k, v in config.items() if k in (*DECISIVE, FILES)}

    def without_places(node: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in node.items() if key not in FOLDER_ARGUMENTS}

    return dict(map_dicts(parts, without_places))


def built(config: Node, revisions: Mapping[str, int] | None = None) -> dict[str, Any]:
    """The objects that a run builds, as nested mappings keyed as in the configuration."""
    model = config.get("model") or {}
    task = config.get("task") or {}
    split = config.get("split") or {}
    batching = config.get("batching") or {}
    options = options_of(str(model.get("_target_"))).values()
    takes_space = any(option.spaces for option in options)
    no_split = task.get("split") or ("metric" not in task and is_if_needed(split))
    parts = {key: config[key] for key in (*DECISIVE, FILES) if key in config} | {
        "manifold": config.get("manifold") if takes_space else None,
        "split": None if no_split else split,
        "batching": None if batching.get("one_graph", True) else batching,
    }
    objects = {key: _describe(part, revisions, UNBUILT.get(key)) for key, part in parts.items()}
    if task.get("split"):  # built by code outside of the task
        objects["task"]["split"] = _describe(task["split"], revisions)
    return {key: part for key, part in objects.items() if part is not None and part not in ({}, [])}


def revisions_of(config: Node) -> dict[str, int]:
    """Current revisions, other than 1, of the classes that a configuration names."""
    revisions = {class_name(target): _revision(target) for target in _targets(config)}
    return {name: revision for name, revision in sorted(revisions.items()) if revision != 1}


def outdated_classes(config: Node, revisions: Mapping[str, int]) -> list[str]:
    """Classes of a result whose numbers have changed since, such as `FPST of revision 1`."""
    today = {class_name(target): _revision(target) for target in _targets(config)}
    return [
        f"{name.rpartition('.')[2]} of revision {revisions.get(name, 1)}"
        for name, revision in sorted(today.items())
        if revisions.get(name, 1) < revision
    ]


def identity_hash(config: Node, revisions: Mapping[str, int] | None = None) -> str:
    """Hash of the objects that a configuration builds, 16 hexadecimal digits."""
    return hashlib.sha256(canonical(built(config, revisions)).encode()).hexdigest()[:16]


class SeedlessIdentity:
    """Hashes of a configuration with different seeds, computed from one description."""

    def __init__(self, config: Node) -> None:
        self._parts = canonical({**built(config), "seed": SEED}).split(json.dumps(SEED))

    def hash(self, seed: int) -> str:
        """The `identity_hash` of the configuration with a seed."""
        text = canonical(seed).join(self._parts)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def canonical(value: Any) -> str:
    """A canonical text of a value: keys sorted, 1 equal to 1.0."""
    numbers_alike = json.loads(json.dumps(value, default=str), parse_int=float)
    return json.dumps(numbers_alike, sort_keys=True)


def are_equal(first: Any, second: Any) -> bool:
    """Whether the canonical texts of two values are equal."""
    if type(first) is type(second) and isinstance(first, str | bool | int | float | None):
        return bool(first == second)  # without the slower texts
    return canonical(first) == canonical(second)


def _describe(node: Any, revisions: Mapping[str, int] | None, unbuilt: str | None = None) -> Any:
    """Description of the objects that a part of a configuration builds.

    `unbuilt` is the class with the options of a part that is not built.
    """
    if isinstance(node, list | tuple):
        return [_describe(value, revisions) for value in node]
    if not isinstance(node, Mapping):
        return node
    target = str(node.get("_target_", ""))
    signature = options_of(target or unbuilt or "")
    description: dict[str, Any] = {}
    if target:
        name = class_name(target)
        description["_target_"] = name
        revision = _revision(target) if revisions is None else revisions.get(name, 1)
        if revision != 1:
            description["revision"] = revision
    for key, value in node.items():
        option = signature.get(key)
        if str(key).startswith("_"):
            continue
        if option is not None and (option.incidental or option.spaces):
            continue
        of_library = target.partition(".")[0] in LIBRARIES or signature_of(target).passes_on
        if option is None and target and signature and not of_library:
            continue  # other objects are built from it, which have it
        if value is None and option is None:
            continue
        default = MISSING if option is None else option.default
        if default is MISSING or not are_equal(value, default):
            description[str(key)] = _describe(value, revisions)
    return description


def _revision(target: str) -> int:
    return int(attribute(target, "revision", 1))


def _targets(config: Any) -> set[str]:
    return {str(node["_target_"]) for _, node in mappings(config) if "_target_" in node}


def map_dicts(node: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Copy a configuration and change each mapping, the inner ones first."""
    if isinstance(node, dict):
        return change({key: map_dicts(value, change) for key, value in node.items()})
    if isinstance(node, list):
        return [map_dicts(value, change) for value in node]
    return node
