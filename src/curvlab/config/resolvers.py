"""Resolvers: functions that configurations call, such as `${recipe_name:model,...}`."""

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from curvlab.config.building import build
from curvlab.config.file_contents import user_files
from curvlab.config.folder import CONFIGS
from curvlab.config.schema import options_of
from curvlab.config.sources import read, register_sources
from curvlab.config.validation import decides
from curvlab.errors import UsageError
from curvlab.options import USER_FILE

IN_PATH = ("task", "dataset", "dataset.path", "model", "seed")
"""Keys that name the folders above a run's folder."""

MAX_OVERRIDES = 3  # overrides in a folder's name, before its hash
LONGEST = 60  # characters of a folder's name, before its hash
LINKS = "links"  # name of link prediction's edge split in recipes


def run_name(overrides: Sequence[str], *, _root_: Mapping[str, Any]) -> str:
    """Name a run's folder after the overrides that decide its result, as `dim=8-lr=0.01`."""
    decisive = []
    for override in sorted(str(override).lstrip("+") for override in overrides):
        key, _, value = override.partition("=")
        if value in ("True", "False"):  # the values of a sweep
            value = value.lower()
        matters = key in ("recipe", "debug") or decides(key.replace("/", "."), _root_)
        if matters and key not in IN_PATH:
            decisive.append(f"{key}={value}")
    prefix = r"^(model|optimizer|trainer)\."
    name = "-".join(re.sub(prefix, "", override) for override in decisive[:MAX_OVERRIDES])
    short = re.sub(r"[^\w.=,+-]+", "_", name)[:LONGEST]
    if short != name or len(decisive) > MAX_OVERRIDES:
        short += f"-{hashlib.sha256(' '.join(decisive).encode()).hexdigest()[:8]}"
    return short or "default"


def data_name(*, _root_: Mapping[str, Any]) -> str:
    """Name of a run's data set; for a user's graph, the name of its folder or file."""
    dataset = _root_["dataset"]
    options = options_of(str((dataset.get("source") or {}).get("_target_"))).values()
    is_own = any(USER_FILE in option.marks for option in options)
    return str(dataset["label" if is_own else "name"])


def data_folder(*, _root_: DictConfig) -> str:
    """Name of the folder of a data set's runs; for a user's graph, with a hash of its files."""
    dataset = OmegaConf.to_container(_root_.dataset, resolve=True)
    contents = [content for content in user_files({"dataset": dataset}).values() if content]
    name = data_name(_root_=_root_)
    if not contents:
        return name
    return f"{name}-{hashlib.sha256(' '.join(contents).encode()).hexdigest()[:6]}"


def recipe_name(group: str, choice: str, task: str | None = None) -> str:
    """The choice whose recipes a choice uses: that of its key `recipe`, perhaps by task."""
    file = _known_file(CONFIGS, f"{group}/{choice}")
    name = choice if file is None else file.get("recipe", choice)
    return str(name.get(task, choice) if isinstance(name, Mapping) else name)


_known_file = cache(read)


def only_with(value: Any, *pairs: Any) -> Any:
    """A value if each two of `pairs` are equal, else None, which is in no identity."""
    firsts = pairs[::2]
    seconds = pairs[1::2]
    equal = all(first == second for first, second in zip(firsts, seconds, strict=True))
    return value if equal else None


def if_key(key: str, content: Any, value: Any, otherwise: Any, *, _root_: DictConfig) -> Any:
    """A value if a key of the configuration has a content, else another value."""
    node: Any = _root_
    for name in key.split("."):
        node = node.get(name) if isinstance(node, Mapping | DictConfig) else None
    return value if node == content else otherwise


def recipe(task: str, model: str, dataset: str | None = None, split: str | None = None) -> str:
    """The recipe of a model in a task: for all data, or for a data set and its split."""
    name = "_" if dataset is None else name_of_recipe(task, dataset, split)
    task = recipe_name("task", task)
    base = recipe_name("model", model, task)
    while base != model and read(CONFIGS, f"recipe/{task}/{model}/{name}") is None:
        model = base
        base = recipe_name("model", model, task)
    return f"{task}/{model}/{name}"


def searched(folder: str, model: str, dataset: str, split: str) -> str:
    """The recipe that a search on a data set and its split has written into a table's folder."""
    name = recipe(folder, model, dataset, split)
    if read(CONFIGS, f"recipe/{name}") is None:
        raise UsageError(
            f"no search has written {folder} values for model={model} dataset={dataset} "
            f"split={split}: search them (curvlab train -m search={model} dataset={dataset}), "
            f"then curvlab adopt SEARCH --into {folder}"
        )
    return name


def name_of_recipe(task: str, dataset: str, split: str | None) -> str:
    """`DATASET@SPLIT`, since another split may test nodes that the values were chosen on."""
    parts = LINKS if recipe_name("task", task) == "link_prediction" else split
    name = recipe_name("dataset", dataset)
    return name if parts in (None, "none") else f"{name}@{parts}"


def splits_with_recipe(recipe: str) -> list[str]:
    """Other splits of a recipe's data set that have one; empty if the recipe itself exists."""
    task, model, key = recipe.split("/", 2)
    known = [str(name) for name in read(CONFIGS, f"recipe/{task}/{model}") or {}]
    dataset = key.partition("@")[0]
    others = [name for name in known if name.partition("@")[0] == dataset]
    return [] if key in known else sorted(name.partition("@")[2] for name in others)


def steps_of_pass(triples: int | None, size: int, inverse_relations: bool) -> int:
    """Number of steps of at most `size` triples in a pass; inverse relations double the triples."""
    total = (triples or 0) * (2 if inverse_relations else 1)
    return -(-total // size)  # rounded up


def stem_of(path: str | None, otherwise: str) -> str:
    """Name of a user's graph: of its file, or of its folder (also for `edges.csv`)."""
    if not path:
        return otherwise
    place = Path(path).expanduser().absolute()
    name = place.name.partition(".")[0]
    return (place.parent.name if name == "edges" else name) or otherwise


def training_triples(source: DictConfig) -> int:
    """Number of training triples of a folder; 1 if they cannot be read."""
    try:
        return int(build(source).num_train)
    except UsageError:
        return 1


def product(*factors: float) -> float:
    """The product of numbers."""
    return math.prod(factors)


def is_set(value: Any) -> bool:
    """Whether a value is given."""
    return value is not None


def if_set(choice: Any, name: str) -> str:
    """The name of a file, if a choice is given; else `none`, which no file has."""
    return "none" if choice is None else name


RESOLVERS = {
    function.__name__: function
    for function in (
        *(product, is_set, if_set, stem_of, training_triples, steps_of_pass, only_with, if_key),
        *(run_name, data_name, data_folder, recipe_name, recipe, searched),
    )
}


def register_resolvers() -> None:
    """Register the resolvers, and the sources that complete configurations."""
    register_sources()
    for name, function in RESOLVERS.items():
        OmegaConf.register_new_resolver(name, function, replace=True)
