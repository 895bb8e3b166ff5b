"""The runs of a study: which model, in which space, with which overrides."""

from collections.abc import Sequence
from dataclasses import dataclass

from omegaconf import DictConfig, OmegaConf

from curvlab.config.compose import compose
from curvlab.config.validation import check_setting, check_space, is_of_triples
from curvlab.errors import UsageError
from curvlab.run.sections import seeds_from

FLAT = "flat"

ALTERNATIVES = {
    "model": "name the models by study.models=[...]",
    "manifold": "name other spaces by study.spaces.NAME=[[manifold=...]]",
    "table": "run table= by itself",
    "search": "run search= by itself",
}
"""Groups that a study sets itself or that are other sweeps, with what to do instead."""


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
    """A model in each kind of space that it can be built with, flat space first."""
    defaults = [*(options.get("overrides") or ()), "trainer.plots=false", "trainer.progress=false"]
    for key, value in (("trainer.max_steps", options.steps), ("model.dim", options.dim)):
        defaults += [] if value is None else [f"{key}={value}"]
    keys = set(map(_key, overrides))
    common = [*(each for each in defaults if _key(each) not in keys), *overrides]
    models = []
    for space, choices in options.spaces.items():
        for choice in choices or ():
            candidate = (f"model={model}", *common, *choice)
            config = compose(candidate)
            if fits(config):
                models.append(ModelInSpace(model, str(space), candidate, int(config.model.dim)))
                break
    models.sort(key=lambda one: one.space != FLAT)
    if len(models) < 2 or models[0].space != FLAT:
        spaces = ", ".join(one.space for one in models) or "none"
        raise UsageError(
            f"study.models: model={model} has {spaces} of the study's spaces, and a comparison "
            "needs flat space and another; choose other models, such as fpst, kappa_gcn or hgcn"
        )
    return models


def fits(config: DictConfig) -> bool:
    """Whether a model can be built with its space, and has one curvature per component."""
    try:
        check_space(config)
    except UsageError:
        return False
    kappa = config.manifold.get("kappa")
    components = config.model.get("components", config.model.get("heads", 1))
    return not OmegaConf.is_list(kappa) or len(kappa) == components


def check_study(config: DictConfig, overrides: Sequence[str], models: Sequence[str]) -> None:
    """Refuse an invalid study; `models` are the choices of `model=`."""
    for override in overrides:
        alternative = ALTERNATIVES.get(_key(override))
        if alternative:
            raise UsageError(f"{override}: study= chooses models and spaces itself; {alternative}")
    options = config.study
    unknown = [name for name in options.models if name not in models]
    if unknown or not options.models:
        raise UsageError(
            f"study.models={list(options.models)} must name choices of model=, such as fpst and "
            f"kappa_gcn{f'; there is no {unknown[0]}' if unknown else ''}"
        )
    if len(set(options.models)) < len(options.models):
        raise UsageError(f"study.models={list(options.models)} must be different models")
    seeds = seeds_from(options.seeds, config.seed)
    if len(seeds) < 2:
        raise UsageError(
            f"study.seeds={options.seeds} gives no interval: use at least 2 seeds, better 6"
        )
    for seed in seeds:
        check_setting("seed", config, seed)
    if is_of_triples(config):
        raise UsageError(
            f"study= compares models of graphs; dataset={config.dataset.name} has triples"
        )


def overrides_of_runs(overrides: Sequence[str]) -> list[str]:
    """The overrides of a command that all runs of a study share."""
    of_study = ("study", "seed", "rerun", "print_config")
    groups = ("study.", "hydra")
    keys = {override: _key(override) for override in overrides}
    return [o for o, key in keys.items() if key not in of_study and not key.startswith(groups)]


def _key(override: str) -> str:
    return override.lstrip("+").partition("=")[0]
