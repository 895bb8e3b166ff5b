"""Settings in which runs differ, apart from the seed."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from curvlab.config.validation import leaves
from curvlab.results.identity import built, canonical
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


def setting_texts(settings: Mapping[str, Any]) -> list[str]:
    """Settings in words, such as `dim=32`, without names; revisions if nothing else differs."""
    texts = []
    of_versions = []
    for key, value in settings.items():
        last = key.rpartition(".")[2]
        text = str(value).rpartition(".")[2] if last == "_target_" else value
        words = f"{last}={'default' if value is None else text}"
        if last in ("revision", "transforms"):
            of_versions.append(words)
        elif last != "name":
            texts.append(words)
    return texts or of_versions


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
