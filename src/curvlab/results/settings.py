"""Settings in which runs differ, apart from the seed."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from curvlab.checked import format_value
from curvlab.config.validation import leaves
from curvlab.results.identity import Node, built, canonical
from curvlab.results.result import Result


def flatten(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten nested mappings to dotted keys; lists become JSON text."""
    return {k: json.dumps(v) if isinstance(v, list) else v for k, v in leaves(tree)}


def differing_settings(results: Sequence[Result]) -> list[dict[str, Any]]:
    """For each run, the settings that are not the same in all; None where one is the default."""
    settings = pd.DataFrame(map(_describe, results), dtype=object)
    settings = settings.where(settings.notna(), None)
    differing = settings.loc[:, settings.map(canonical).nunique() > 1].to_dict("records")
    return [{str(key): value for key, value in setting.items()} for setting in differing]


def setting_texts(settings: Mapping[str, Any], config: Node) -> list[str]:
    """Settings in words, such as `dim=32`, without names; revisions if nothing else differs."""
    texts = []
    of_versions = []
    for key in settings:
        last = key.rpartition(".")[2]
        text = setting_text(settings, key, config)
        if last == "_target_":
            text = text.rpartition(".")[2]
        if last in ("revision", "transforms"):
            of_versions.append(f"{last}={text}")
        elif last != "name":
            texts.append(f"{last}={text}")
    return texts or of_versions


def setting_text(settings: Mapping[str, Any], key: str, config: Node) -> str:
    """One of a run's settings in words; a default as its configuration has it."""
    value = settings[key]
    if value is None:
        value = flatten(config).get(key, "default")
    return format_value(value)


def _describe(result: Result) -> dict[str, Any]:
    objects = built(result.config, result.revisions)
    objects.pop("seed", None)
    objects.get("split", {}).pop("cycle", None)  # further runs on the same splits
    for group in ("model", "dataset", "manifold"):
        part = objects.get(group)
        if not isinstance(part, dict):
            part = {}
        objects[group] = {key: value for key, value in part.items() if key != "_target_"}
        objects[group]["name"] = getattr(result, group)
    return flatten(objects)
