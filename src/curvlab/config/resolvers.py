"""Functions that configurations call, as `${recipe_name:model,...}`."""

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from curvlab.config.building import build
from curvlab.config.file_contents import user_files
from curvlab.config.folder import CONFIGS
from curvlab.config.options import decides
from curvlab.config.schema import options_of
from curvlab.config.sources import read, register_sources
from curvlab.errors import UsageError
from curvlab.options import USER_FILE

IN_PATH = ("task", "dataset", "dataset.path", "model", "seed")
"""Keys left out of a run's folder name, which is below folders that are named after them."""

SHOWN, LONGEST = 3, 60  # words and characters of a folder's name, before its hash
LINKS = "links"  # name of link prediction's edge split in recipes


def run_name(overrides: Sequence[str], *, _root_: Mapping[str, Any]) -> str:
    """Name a run's folder after the words that decide its result, `dim=8-lr=0.01` for instance."""
    words = []
    for override in sorted(str(word).lstrip("+") for word in overrides):
        key, _, value = override.partition("=")
        chosen = key in ("recipe", "debug") or decides(key.replace("/", "."), _root_)
        if chosen and key not in IN_PATH:
            # A sweep spells truth in capitals.
            words.append(f"{key}={value.lower() if value in ('True', 'False') else value}")
    shown = (re.sub(r"^(model|optimizer|trainer)\.", "", word) for word in words[:SHOWN])
    name = "-".join(shown)
    short = re.sub(r"[^\w.=,+-]+", "_", name)[:LONGEST]
    if short != name or len(words) > SHOWN:
        short += f"-{hashlib.sha256(' '.join(words).encode()).hexdigest()[:8]}"
    return short or "default"


def data_name(*, _root_: Mapping[str, Any]) -> str:
    """The name of a run's data set; of a user's graph that of its folder or file."""
    dataset = _root_["dataset"]
    options = options_of(str((dataset.get("source") or {}).get("_target_"))).values()
    is_own = any(USER_FILE in option.marks for option in options)
    return str(dataset["label" if is_own else "name"])


def data_folder(*, _root_: DictConfig) -> str:
    """The folder of a data set's runs; a user's graph has one for each content of its files."""
    dataset = OmegaConf.to_container(_root_.dataset, resolve=True)
    contents = [content for content in user_files({"dataset": dataset}).values() if content]
    name = data_name(_root_=_root_)
    if not contents:
        return name
    return f"{name}-{hashlib.sha256(' '.join(contents).encode()).hexdigest()[:6]}"


def recipe_name(group: str, choice: str, task: str | None = None) -> str:
    """Whose recipes a choice takes: its own, or of the name in its key `recipe`, or by task."""
    file = _known_file(CONFIGS, f"{group}/{choice}")
    name = choice if file is None else file.get("recipe", choice)
    return str(name.get(task, choice) if isinstance(name, Mapping) else name)


_known_file = cache(read)


def only_with(value: Any, *pairs: Any) -> Any:
    """A value where each two of `pairs` are equal, else None, so that it decides no identity."""
    met = all(one == other for one, other in zip(pairs[::2], pairs[1::2], strict=True))
    return value if met else None


def recipe(task: str, model: str, dataset: str | None = None, split: str | None = None) -> str:
    """The recipe of a model in a task, for all data or for some."""
    name = "_" if dataset is None else name_of_recipe(task, dataset, split)
    task = recipe_name("task", task)
    while (other := recipe_name("model", model, task)) != model:
        if read(CONFIGS, f"recipe/{task}/{model}/{name}") is not None:
            break
        model = other
    return f"{task}/{model}/{name}"


def name_of_recipe(task: str, dataset: str, split: str | None) -> str:
    """`DATASET@SPLIT`: values chosen on one split are not taken where another tests those nodes."""
    parts = LINKS if recipe_name("task", task) == "link_prediction" else split
    name = recipe_name("dataset", dataset)
    return name if parts in (None, "none") else f"{name}@{parts}"


def steps_of_pass(triples: int | None, size: int, inverse_relations: bool) -> int:
    """Steps of at most `size` triples in a pass over them, each twice with inverse relations."""
    return -(-(triples or 0) * (2 if inverse_relations else 1) // size)


def stem_of(path: str | None, otherwise: str) -> str:
    """The name of a user's graph: that of its folder or file, of `edges.csv` that of its folder."""
    if not path:
        return otherwise
    place = Path(path).expanduser().absolute()
    name = place.name.partition(".")[0]
    return (place.parent.name if name == "edges" else name) or otherwise


def training_triples(source: DictConfig) -> int:
    """Training triples of a folder, for the length of an epoch; 1 where they cannot be read."""
    try:
        return int(build(source).num_train)
    except UsageError:
        return 1


def register_resolvers() -> None:
    """Register the functions that configurations call and the sources that complete them."""
    register_sources()
    named: dict[str, Callable[..., Any]] = {
        "product": lambda *factors: math.prod(factors),
        "is_set": lambda value: value is not None,
        "if_set": lambda choice, name: "none" if choice is None else name,  # which is not there
    }
    named |= {
        function.__name__: function
        for function in (
            *(stem_of, training_triples, steps_of_pass, only_with, run_name),
            *(data_name, data_folder, recipe_name, recipe),
        )
    }
    for name, function in named.items():
        OmegaConf.register_new_resolver(name, function, replace=True)
