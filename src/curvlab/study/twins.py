"""The runs of a study: which model, in which space, with which words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import Any

from omegaconf import DictConfig, OmegaConf

from curvlab.config.compose import compose
from curvlab.config.options import check_setting
from curvlab.config.rules import check_space, is_of_triples
from curvlab.errors import UsageError

FLAT = "flat"
GIVEN = ("model", "manifold", "table", "search")
"""Groups that a study chooses itself, or that are something else."""


@dataclass(frozen=True)
class Twin:
    """A model in a space, before a seed is chosen.

    Attributes:
        model: choice of `model=`.
        space: kind of space: flat, hyperbolic, ...
        words: all of a command line but the seed.
        dim: width.
    """

    model: str
    space: str
    words: tuple[str, ...]
    dim: int

    def config(self, seed: int) -> DictConfig:
        """Compose a run.

        Raises:
            UsageError: Hydra cannot.
        """
        return compose([*self.words, f"seed={seed}"])

    def narrower(self, divisor: int) -> "Twin":
        """The same twin with a smaller width."""
        dim = self.dim // divisor
        return replace(self, dim=dim, words=(*self.words, f"model.dim={dim}"))

    def with_words(self, words: Sequence[str]) -> "Twin":
        """The same twin with further words."""
        return replace(self, words=(*self.words, *words))


def twins_of(model: str, words: Sequence[str], options: DictConfig) -> list[Twin]:
    """A model in each kind of space that it can be built with, the flat one first.

    Args:
        model: choice of `model=`.
        words: what the command line says beside the study.
        options: `config.study`.

    Raises:
        UsageError: there is no flat twin, or nothing to compare it with.
    """
    own = [*_common(words, options), *words]
    found = []
    for space, choices in options.spaces.items():
        for choice in choices or ():
            said = (f"model={model}", *own, *choice)
            config = compose(said)
            if fits(config):
                found.append(Twin(model, str(space), said, int(config.model.dim)))
                break
    found.sort(key=lambda twin: twin.space != FLAT)
    if len(found) < 2 or found[0].space != FLAT:
        spaces = ", ".join(twin.space for twin in found) or "none"
        raise UsageError(
            f"study.models: model={model} has {spaces} of the study's spaces, so that a curved one "
            "has no flat twin; choose others, such as fpst, kappa_gcn or hgcn"
        )
    return found


def fits(config: DictConfig) -> bool:
    """Whether a model can be built with a space, and with a curvature for each component."""
    try:
        check_space(config)
    except UsageError:
        return False
    kappa = config.manifold.get("kappa")
    components = config.model.get("components", config.model.get("heads", 1))
    return not OmegaConf.is_list(kappa) or len(kappa) == components


def trials_of(options: DictConfig) -> list[tuple[str, ...]]:
    """The combinations of values that every twin tries, as words; the same for all.

    Drawn without replacement, so that there are at most as many as combinations.
    """
    values = _leaves(options.get("values") or {})
    combinations = [
        tuple(f"{key}={value}" for key, value in zip(values, chosen, strict=True))
        for chosen in product(*values.values())
    ]
    drawn = min(options.trials, len(combinations)) if values else 0
    return Random(0).sample(combinations, drawn)


def check_study(config: DictConfig, words: Sequence[str], models: Sequence[str]) -> None:
    """Check a study before its first run.

    Args:
        config: a composed configuration with `study`.
        words: of the command line.
        models: choices of `model=` that there are.

    Raises:
        UsageError: the first thing that is wrong, in one sentence.
    """
    for word in words:
        key = word.lstrip("+").partition("=")[0]
        if key in GIVEN:
            way = {
                "model": "name the models by study.models=[...]",
                "manifold": "name other spaces by study.spaces.NAME=[[manifold=...]]",
            }.get(key, f"run {key}= by itself")
            raise UsageError(f"{word}: study= chooses models and spaces itself; {way}")
    options = config.study
    for key in ("seeds", "steps", "dim", "trials", "models", "cuts"):
        check_setting(f"study.{key}", config, _plain(options[key]))
    unknown = [name for name in options.models if name not in models]
    if unknown or not options.models:
        raise UsageError(
            f"study.models={list(options.models)} must name choices of model=, such as fpst and "
            f"kappa_gcn{f'; there is no {unknown[0]}' if unknown else ''}"
        )
    if options.seeds < 2:
        raise UsageError("study.seeds=1 gives no interval: use at least 2, better 6")
    if is_of_triples(config):
        raise UsageError(
            f"study= compares models of graphs; dataset={config.dataset.name} has triples"
        )


def given(words: Sequence[str]) -> list[str]:
    """The words of a command line that all runs of a study have."""
    keys = [word.lstrip("+").partition("=")[0] for word in words]
    ours = ("study", "seed", "rerun", "print_config")
    return [
        word
        for word, key in zip(words, keys, strict=True)
        if key not in ours and not key.startswith(("study.", "hydra"))
    ]


def _common(words: Sequence[str], options: DictConfig) -> list[str]:
    """Words that all runs have where the command line does not say otherwise."""
    said = {word.lstrip("+").partition("=")[0] for word in words}
    common = [*(options.get("words") or ()), "trainer.plots=false", "trainer.progress=false"]
    if options.steps is not None:
        common.append(f"trainer.max_steps={options.steps}")
    if options.dim is not None:
        common.append(f"model.dim={options.dim}")
    return [word for word in common if word.partition("=")[0] not in said]


def _leaves(node: Mapping[Any, Any], prefix: str = "") -> dict[str, list[Any]]:
    """Dotted keys with their lists of values."""
    found: dict[str, list[Any]] = {}
    for key, value in node.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping | DictConfig):
            found |= _leaves(value, f"{path}.")
        elif value is not None:
            found[path] = list(value)
    return found


def _plain(value: Any) -> Any:
    return OmegaConf.to_container(value) if OmegaConf.is_config(value) else value
