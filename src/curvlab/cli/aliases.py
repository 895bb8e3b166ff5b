"""Words that people type, as this program calls them; a hint where a word has several meanings."""

import re
from collections.abc import Sequence
from pathlib import Path

from curvlab.config.folder import choices, is_group
from curvlab.errors import UsageError

ALIASES = {
    "manifold": {"flat": "euclidean", "hyperboloid": "lorentz", "spherical": "sphere"},
    "task": {"lp": "link_prediction", "nc": "node_classification", "kgc": "kg_completion"},
}
"""Other names of choices, by group."""

HINTS = {
    "manifold=hyperbolic": "say manifold=poincare for the ball, manifold=lorentz for the "
    "hyperboloid",
    "manifold=product": "say manifold=stereographic, whose components, FPS-T's heads, have a "
    "curvature each, or manifold=pseudo_hyperboloid",
    "epochs": "say trainer.max_steps, which are epochs where a batch is the whole graph, or "
    "trainer.epochs where the task has batches",
}
"""Answers to keys and choices that do not exist and could mean several things."""

READERS = {
    "pyg": (".pt", ".pth"),
    "networkx": (".graphml", ".gml", ".gexf", ".net", ".edgelist", ".adjlist", ".edges", ".txt"),
    "graph_folder": (".csv", ".tsv", ".parquet"),
}
"""Data sets that read a user's file, by its ending, `.gz` left out."""


def resolve_aliases(words: Sequence[str], configs: Path) -> list[str]:
    """Replace other names of choices, other spellings (`model=FPS-T`) and paths of graphs."""
    words = _with_reader_of_path(words, configs)
    return [_resolve(word, configs) for word in words]


def squashed(name: str) -> str:
    """A name without its case, hyphens and underscores."""
    return name.lower().replace("-", "").replace("_", "")


def _resolve(word: str, configs: Path) -> str:
    group, _, value = word.partition("=")
    if group in HINTS:
        raise UsageError(f"{word}: {HINTS[group]}")
    if not value or not group.isidentifier() or not is_group(configs, group):
        return word
    names = choices(configs, group)
    spellings = {squashed(name): name for name in names} | ALIASES.get(group, {})
    resolved = []
    for choice in value.split(","):
        hint = HINTS.get(f"{group}={choice}")
        if hint and choice not in names:
            raise UsageError(f"{group}={choice}: {hint}")
        resolved.append(choice if choice in names else spellings.get(squashed(choice), choice))
    return f"{group}={','.join(resolved)}"


def _with_reader_of_path(words: Sequence[str], configs: Path) -> list[str]:
    """Words with the data set that reads a user's files: `dataset=FOLDER`, `dataset=edges.csv`."""
    found = [word.partition("=")[2] for word in words if word.startswith("dataset=")]
    names = {*READERS, *([] if not found else choices(configs, "dataset"))}
    readers = {_reader(value) for value in found[-1].split(",")} if found else set()
    if found and not names.issuperset(found[-1].split(",")) and readers.isdisjoint({""}):
        reader, *others = readers
        if not others:
            path = "dataset.source.path" if reader == "kg_folder" else "dataset.path"
            value = found[-1] if re.fullmatch(r"[\w./~+,-]+", found[-1]) else f"'{found[-1]}'"
            kept = [word for word in words if not word.startswith("dataset=")]
            words, found = [*kept, f"dataset={reader}", f"{path}={value}"], [reader]
    if not found or found[-1] not in READERS:
        return list(words)
    kind = r"^dataset\.features=(?!null$)(?=[\w+,]+$)"
    return [re.sub(kind, "dataset.features.kind=", word) for word in words]


def _reader(value: str) -> str:
    """The data set that reads a path; none of what is no path."""
    place = Path(value).expanduser()
    if place.is_dir():
        triples = any((place / f"train.txt{end}").exists() for end in ("", ".gz"))
        return "kg_folder" if triples else "graph_folder"
    ending = Path(place.name.removesuffix(".gz")).suffix
    return next((name for name, endings in READERS.items() if ending in endings), "")
