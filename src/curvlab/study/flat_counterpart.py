"""The runs of a study: which model, in which space, with which overrides."""

from collections.abc import Sequence
from dataclasses import dataclass

from omegaconf import DictConfig, OmegaConf

from curvlab.config.compose import compose
from curvlab.config.options import check_space, is_of_triples
from curvlab.errors import UsageError

FLAT = "flat"

OTHERWISE = {
    "model": "name the models by study.models=[...]",
    "manifold": "name other spaces by study.spaces.NAME=[[manifold=...]]",
    "table": "run table= by itself",
    "search": "run search= by itself",
}
"""Groups that a study chooses itself, or that are something else, with what to do instead."""


@dataclass(frozen=True)
class ModelInSpace:
    """A model in one kind of space, with all overrides except the seed."""

    model: str
    space: str
    overrides: tuple[str, ...]
    dim: int

    def config(self, seed: int) -> DictConfig:
        """Compose a run."""
        return compose([*self.overrides, f"seed={seed}"])


def spaces_of(model: str, overrides: Sequence[str], options: DictConfig) -> list[ModelInSpace]:
    """A model in each kind of space that it can be built with, the flat one first."""
    common = [*(options.get("words") or ()), "trainer.plots=false", "trainer.progress=false"]
    for key, value in (("trainer.max_steps", options.steps), ("model.dim", options.dim)):
        common += [] if value is None else [f"{key}={value}"]
    given = set(map(_key, overrides))
    own = [*(word for word in common if _key(word) not in given), *overrides]
    found = []
    for space, choices in options.spaces.items():
        for choice in choices or ():
            candidate = (f"model={model}", *own, *choice)
            config = compose(candidate)
            if fits(config):
                found.append(ModelInSpace(model, str(space), candidate, int(config.model.dim)))
                break
    found.sort(key=lambda one: one.space != FLAT)
    if len(found) < 2 or found[0].space != FLAT:
        spaces = ", ".join(one.space for one in found) or "none"
        raise UsageError(
            f"study.models: model={model} has {spaces} of the study's spaces, so that a curved one "
            "has no flat counterpart; choose others, such as fpst, kappa_gcn or hgcn"
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


def check_study(config: DictConfig, words: Sequence[str], models: Sequence[str]) -> None:
    """Refuse an invalid study, in one sentence."""
    for word in words:
        if way := OTHERWISE.get(_key(word)):
            raise UsageError(f"{word}: study= chooses models and spaces itself; {way}")
    options = config.study
    unknown = [name for name in options.models if name not in models]
    if unknown or not options.models:
        raise UsageError(
            f"study.models={list(options.models)} must name choices of model=, such as fpst and "
            f"kappa_gcn{f'; there is no {unknown[0]}' if unknown else ''}"
        )
    if len(set(options.models)) < len(options.models):
        raise UsageError(f"study.models={list(options.models)} must be different models")
    if options.seeds < 2:
        raise UsageError("study.seeds=1 gives no interval: use at least 2, better 6")
    if is_of_triples(config):
        raise UsageError(
            f"study= compares models of graphs; dataset={config.dataset.name} has triples"
        )


def overrides_of_runs(words: Sequence[str]) -> list[str]:
    """The overrides of a command line that all runs of a study have."""
    ours, groups = ("study", "seed", "rerun", "print_config"), ("study.", "hydra")
    return [word for word in words if _key(word) not in ours and not _key(word).startswith(groups)]


def _key(word: str) -> str:
    return word.lstrip("+").partition("=")[0]
