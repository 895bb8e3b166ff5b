"""Resolve overrides as users type them: aliases, hints, and paths of graphs."""

import re
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from curvlab.config.folder import CONFIGS, choices, is_group, place_in
from curvlab.config.sources import read
from curvlab.data.readers.endings import READERS, TRIPLES, reader_name
from curvlab.errors import UsageError

ALIASES = {
    "manifold": {"flat": "euclidean", "hyperboloid": "lorentz", "spherical": "sphere"},
    "task": {"lp": "link_prediction", "nc": "node_classification", "kgc": "kg_completion"},
}

SOURCE = "dataset.source"

HINTS = {
    "debug=anomaly": "say debug=nan",
    "manifold=hyperbolic": "say manifold=poincare for the ball, manifold=lorentz for the "
    "hyperboloid",
    "epochs": "say trainer.max_steps, which are epochs where a batch is the whole graph, or "
    "trainer.epochs where the task has batches",
}
"""Answers to keys and choices that do not exist and could have several meanings."""


def resolve_aliases(overrides: Sequence[str]) -> list[str]:
    """Replace aliases of choices, other spellings (`model=FPS-T`) and paths of graphs."""
    return [_resolve(override) for override in _add_reader(overrides)]


def squash(name: str) -> str:
    """Normalise a name: lower case, without hyphens and underscores."""
    return name.lower().replace("-", "").replace("_", "")


def _resolve(override: str) -> str:
    group, _, value = override.partition("=")
    if group in HINTS:
        raise UsageError(f"{override}: {HINTS[group]}")
    if not value or not group.isidentifier() or not is_group(CONFIGS, group):
        return override
    names = choices(CONFIGS, group)
    spellings = {squash(name): name for name in names} | ALIASES.get(group, {})
    resolved = []
    for choice in value.split(","):
        hint = HINTS.get(f"{group}={choice}")
        if hint and choice not in names:
            raise UsageError(f"{group}={choice}: {hint}")
        name = choice if choice in names else spellings.get(squash(choice), choice)
        resolved.append("'nan'" if name == "nan" else name)  # unquoted it is a number to Hydra
    return f"{group}={','.join(resolved)}"


def _add_reader(overrides: Sequence[str]) -> list[str]:
    """Add the data set that reads a user's files: `dataset=FOLDER`, `dataset=edges.csv`."""
    key = "dataset="
    datasets = [word.removeprefix(key) for word in overrides if word.startswith(key)]
    if not datasets:
        return list(overrides)
    value = datasets[-1]
    values = value.split(",")
    names = {*READERS, *choices(CONFIGS, "dataset")}
    prints_config = any(word.lstrip("+").lower() == "print_config=true" for word in overrides)
    for sentence in _clashes(values, names):
        print(sentence, file=sys.stderr if prints_config else sys.stdout)
    if not names.issuperset(values):
        options = [word.partition("=")[0].removeprefix(f"{SOURCE}.") for word in overrides]
        readers = {reader_name(value, options) for value in values}
        if len(readers) == 1 and readers != {""}:
            values = list(readers)
            reader = values[0]
            path = path_key(reader)
            quoted = value if re.fullmatch(r"[\w./~+,-]+", value) else f"'{value}'"
            rest = [word for word in overrides if not word.startswith(key)]
            overrides = [*rest, f"{key}{reader}", f"{path}={quoted}"]
    if not names.issuperset(values) or not all(map(_has_kinds_of_features, values)):
        return list(overrides)
    kind = r"^dataset\.features=(?!null$)(?=[\w+,]+$)"
    return [re.sub(kind, "dataset.features.kind=", override) for override in overrides]


def path_key(reader: str) -> str:
    """The key of the path that a data set reads."""
    return f"{SOURCE}.path" if reader == "kg_folder" else "dataset.path"


def _has_kinds_of_features(name: str) -> bool:
    """Whether a data set is a user's graph, of which `dataset.features` names a kind."""
    graphs = READERS.keys() - {"kg_folder"}
    config = None if name in graphs else read(CONFIGS, f"dataset/{name}")
    bases = [] if config is None else config.get("defaults", [])
    return name in graphs or any(base in graphs for base in bases if isinstance(base, str))


def _clashes(values: Sequence[str], names: Collection[str]) -> Iterator[str]:
    """Say whether a name that a data set and a folder share means the data set or the folder."""
    folders = [value for value in values if _is_graph_folder(Path(value).expanduser())]
    for value in folders:
        name = next((name for name in names if squash(name) == squash(value)), None)
        if name is None:
            continue
        if value in names:
            owner = "curvlab's" if place_in(CONFIGS, f"dataset/{value}") else "a configured"
            yield f"dataset={value} is {owner} data set; your folder is dataset=./{value}"
        else:
            yield f"dataset={value} is your folder; curvlab's data set is dataset={name}"


def _is_graph_folder(place: Path) -> bool:
    names = ("edges.*", *TRIPLES)
    return place.is_dir() and any(any(place.glob(name)) for name in names)
