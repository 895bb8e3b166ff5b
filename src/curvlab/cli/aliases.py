"""Overrides as people type them: aliases, hints, and graphs of their own."""

import re
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from curvlab.config.folder import CONFIGS, choices, is_group
from curvlab.data.readers.endings import READERS, TRIPLES, reader_name
from curvlab.errors import UsageError

ALIASES = {
    "manifold": {"flat": "euclidean", "hyperboloid": "lorentz", "spherical": "sphere"},
    "task": {"lp": "link_prediction", "nc": "node_classification", "kgc": "kg_completion"},
}

HINTS = {
    "debug=anomaly": "say debug=nan",
    "manifold=hyperbolic": "say manifold=poincare for the ball, manifold=lorentz for the "
    "hyperboloid",
    "epochs": "say trainer.max_steps, which are epochs where a batch is the whole graph, or "
    "trainer.epochs where the task has batches",
}
"""Answers to keys and choices that do not exist and could mean several things."""


def resolve_aliases(words: Sequence[str]) -> list[str]:
    """Replace aliases of choices, other spellings (`model=FPS-T`) and paths of graphs."""
    words = _add_reader(words)
    return [_resolve(word) for word in words]


def squash(name: str) -> str:
    """Normalise a name: lower case, without hyphens and underscores."""
    return name.lower().replace("-", "").replace("_", "")


def _resolve(word: str) -> str:
    group, _, value = word.partition("=")
    if group in HINTS:
        raise UsageError(f"{word}: {HINTS[group]}")
    if not value or not group.isidentifier() or not is_group(CONFIGS, group):
        return word
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


def _add_reader(words: Sequence[str]) -> list[str]:
    """Add the data set that reads a user's files: `dataset=FOLDER`, `dataset=edges.csv`."""
    found = [word.partition("=")[2] for word in words if word.startswith("dataset=")]
    chosen = found[-1] if found else ""
    readers = {reader_name(value) for value in chosen.split(",")}
    names = {*READERS, *choices(CONFIGS, "dataset")}
    shown = any(word.lstrip("+").lower() == "print_config=true" for word in words)
    for said in _clashes(chosen.split(","), names):
        print(said, file=sys.stderr if shown else sys.stdout)
    if chosen and len(readers) == 1 and readers != {""} and not names.issuperset(chosen.split(",")):
        (reader,) = readers
        path = "dataset.source.path" if reader == "kg_folder" else "dataset.path"
        value = chosen if re.fullmatch(r"[\w./~+,-]+", chosen) else f"'{chosen}'"
        kept = [word for word in words if not word.startswith("dataset=")]
        words, chosen = [*kept, f"dataset={reader}", f"{path}={value}"], reader
    if not set(chosen.split(",")) <= READERS.keys() - {"kg_folder"}:
        return list(words)
    kind = r"^dataset\.features=(?!null$)(?=[\w+,]+$)"
    return [re.sub(kind, "dataset.features.kind=", word) for word in words]


def _clashes(values: Sequence[str], names: Collection[str]) -> Iterator[str]:
    """Say which of a data set and a folder with one name is taken."""
    spellings = {squash(name): name for name in names}
    for value in values:
        name = spellings.get(squash(value))
        if name is None or not _is_graph_folder(Path(value).expanduser()):
            continue
        if value in names:
            yield f"dataset={value} is curvlab's data set; your folder is dataset=./{value}"
        else:
            yield f"dataset={value} is your folder; curvlab's data set is dataset={name}"


def _is_graph_folder(place: Path) -> bool:
    names = ("edges.*", *TRIPLES)
    return place.is_dir() and any(any(place.glob(name)) for name in names)
