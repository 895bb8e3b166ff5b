"""Words that people type, as this program calls them; a hint where a word has several meanings."""

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

TABLES = (".csv", ".tsv", ".parquet")


def resolve_aliases(words: Sequence[str], configs: Path) -> list[str]:
    """Replace other names of choices, other spellings (`model=FPS-T`) and paths of graphs.

    Args:
        words: overrides and flags of the command line.
        configs: the folder of configurations.

    Raises:
        UsageError: a word has several meanings; the message names them.
    """
    return [resolved for word in words for resolved in _resolve(word, configs)]


def squashed(name: str) -> str:
    """A name without its case, hyphens and underscores."""
    return name.lower().replace("-", "").replace("_", "")


def _resolve(word: str, configs: Path) -> list[str]:
    group, _, value = word.partition("=")
    if group in HINTS:
        raise UsageError(f"{word}: {HINTS[group]}")
    if not value or not group.isidentifier() or not is_group(configs, group):
        return [word]
    names = choices(configs, group)
    spellings = {squashed(name): name for name in names} | ALIASES.get(group, {})
    resolved = []
    for choice in value.split(","):
        hint = HINTS.get(f"{group}={choice}")
        if hint and choice not in names:
            raise UsageError(f"{group}={choice}: {hint}")
        resolved.append(choice if choice in names else spellings.get(squashed(choice), choice))
    if group == "dataset" and value not in names and (found := _own_graph(value)):
        return found
    return [f"{group}={','.join(resolved)}"]


def _own_graph(value: str) -> list[str]:
    """The words for a graph of the user's own that `dataset=` names by its path."""
    path = Path(value)
    if path.is_dir():
        return ["dataset=graph_folder", f"dataset.path={path}"]
    if path.suffix not in TABLES:
        return []
    if path.is_file() and path.stem == "edges":
        return ["dataset=graph_folder", f"dataset.path={path.parent}"]
    raise UsageError(
        f"dataset={value}: a graph of your own is a folder with edges.csv; say "
        "dataset=graph_folder dataset.path=FOLDER"
    )
