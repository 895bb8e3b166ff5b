"""The models of the site: their classes, the choices that build them, and their groups."""

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

from hydra.utils import get_object

from curvlab.config.folder import choices
from curvlab.config.schema import attribute, spaces_of
from curvlab.config.sources import read

CONFIGS = Path(__file__).resolve().parents[1] / "configs"

KINDS = {
    "graph_network": "Graphs: flat message passing",
    "spectral": "Graphs: flat spectral filters and polynomial tokens",
    "specformer": "Graphs: flat spectral filters and polynomial tokens",
    "polyformer": "Graphs: flat spectral filters and polynomial tokens",
    "nagphormer": "Graphs: flat spectral filters and polynomial tokens",
    "idgl": "Graphs: learned edges",
    "lds": "Graphs: learned edges",
}
"""Groups of models of flat space by their module; others are transformers."""

GROUPS = (
    "Graphs: curvature of any sign",
    "Graphs: hyperbolic",
    "Graphs: flat transformers",
    *dict.fromkeys(KINDS.values()),
    "Knowledge graphs",
)

HYPERBOLIC = ("poincare", "lorentz", "poincare_fixed", "lorentz_fixed")


@cache
def models_of_site() -> dict[str, list[str]]:
    """Classes of models with the choices of `model=` that build them."""
    targets: dict[str, list[str]] = defaultdict(list)
    for name in choices(CONFIGS, "model"):
        targets[_target(name)].append(name)
    return dict(sorted(targets.items(), key=lambda item: item[0].lower()))


def _target(model: str) -> str:
    """The class of a choice, or of the choice from which it starts."""
    config = read(CONFIGS, f"model/{model}")
    assert config is not None
    if "_target_" in config:
        return str(config["_target_"])
    above = [d for d in config["defaults"] if isinstance(d, str) and d != "_self_"]
    return _target(above[0].rpartition("/")[2])


def page_of(target: str) -> str:
    """The page of a class, by its place under docs/."""
    return f"models/{target.rpartition('.')[2].lower()}.md"


def pages_by_group() -> dict[str, list[str]]:
    """The pages of each group of models, in the order of the index."""
    models = models_of_site()
    return {
        title: [page_of(target) for target in models if group_of(target) == title]
        for title in GROUPS
    }


def group_of(target: str) -> str:
    """The group of a class: its task, else its geometry, else its kind."""
    if only_triples(target):
        return "Knowledge graphs"
    spaces = {space.rpartition(".")[2] for space in spaces_of(target)}
    if spaces - {"Euclidean"} or target.endswith(".CAT"):
        curved = {"Lorentz", "PoincareBall"}
        only_hyperbolic = spaces <= curved or _main_manifold(target) in HYPERBOLIC
        return "Graphs: hyperbolic" if only_hyperbolic else "Graphs: curvature of any sign"
    return KINDS.get(module_of(target).rpartition(".")[2], "Graphs: flat transformers")


def _main_manifold(target: str) -> str:
    """The manifold that a class's configuration, or the one it starts from, chooses."""
    name = main_choice(target, models_of_site()[target])
    while name:
        text = (CONFIGS / "model" / f"{name}.yaml").read_text(encoding="utf-8")
        match = re.search(r"manifold@\S+: (\w+)", text)
        if match:
            return match[1]
        above = re.search(r"(?m)^  - (\w+)$", text)
        name = above[1] if above else ""
    return ""


def main_choice(target: str, names: list[str]) -> str:
    """The choice that is named like its class, else the one with the shortest name."""
    files = [name for name in names if (CONFIGS / "model" / f"{name}.yaml").is_file()]
    class_name = target.rpartition(".")[2].lower()
    same_name = [name for name in names if name.replace("_", "") == class_name]
    return min(same_name or files or names, key=lambda name: (len(name), name))


def only_triples(target: str) -> bool:
    """Whether a class is for knowledge graphs alone."""
    return list(attribute(target, "tasks", ())) == ["kg_completion"]


def module_of(target: str) -> str:
    """The module that defines a class, wherever `target` names it."""
    return str(get_object(target).__module__)
