"""The runs of a study: models, spaces and overrides."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from omegaconf import DictConfig, OmegaConf

from curvlab.config import folder
from curvlab.config.compose import compose
from curvlab.config.folder import CONFIGS
from curvlab.config.validation import check_setting, check_space, is_of_triples
from curvlab.errors import UsageError, refuse
from curvlab.run.sections import seeds_from

FLAT = "flat"

ALTERNATIVES = {
    "model": "name the models by study.models=[...]",
    "manifold": "name another space by \"study.spaces.NAME=[['manifold=...']]\"",
    "table": "run table= by itself",
    "search": "run search= by itself",
}
"""Groups that a study sets or that are other sweeps, with the alternative to each."""


@dataclass(frozen=True)
class ModelInSpace:
    """A model in one kind of space, with all overrides except the seed."""

    model: str
    space: str
    overrides: tuple[str, ...]
    dim: int

    def config(self, seed: int) -> DictConfig:
        """Compose the configuration of a run."""
        return compose([*self.overrides, f"seed={seed}"])


def models_in_spaces(
    model: str, overrides: Sequence[str], options: DictConfig
) -> list[ModelInSpace]:
    """The model in each kind of space that it supports, flat space first."""
    defaults = [*(options.get("overrides") or ()), "trainer.plots=false", "trainer.progress=false"]
    if options.steps is not None:
        defaults.append(f"trainer.max_steps={options.steps}")
    if options.dim is not None:
        defaults.append(f"model.dim={options.dim}")
    keys = set(map(_key, overrides))
    common = [default for default in defaults if _key(default) not in keys]
    common += overrides
    models = []
    for space, choices in options.spaces.items():
        for choice in choices or ():
            candidate = (f"model={model}", *common, *choice)
            config = compose(candidate)
            if fits(config):
                models.append(ModelInSpace(model, str(space), candidate, int(config.model.dim)))
                break
    models.sort(key=lambda member: member.space != FLAT)
    if len(models) < 2 or models[0].space != FLAT:
        spaces = ", ".join(member.space for member in models) or "none"
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
    if not OmegaConf.is_list(kappa):
        return True
    components = config.model.get("components", config.model.get("heads", 1))
    return len(kappa) == components


def check_study(config: DictConfig, overrides: Sequence[str], models: Sequence[str]) -> None:
    """Refuse an invalid study; `models` are the choices of `model=`."""
    for override in overrides:
        alternative = ALTERNATIVES.get(_key(override))
        if alternative:
            raise UsageError(f"{override}: study= chooses models and spaces itself; {alternative}")
    options = config.study
    unknown = [name for name in options.models if name not in models]
    if unknown or not options.models:
        missing = f"; there is no {unknown[0]}" if unknown else ""
        raise UsageError(
            f"study.models={list(options.models)} must name choices of model=, such as fpst and "
            f"kappa_gcn{missing}"
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
    named = [str(space) for space, spaces in options.spaces.items() if spaces]
    if FLAT not in named or len(named) < 2:
        raise UsageError(
            f"study.spaces has {', '.join(named) or 'no space'}: a comparison needs flat space and "
            "another"
        )
    for space, spaces in options.spaces.items():
        for override in chain.from_iterable(spaces or ()):
            key, _, choice = str(override).lstrip("+").partition("=")
            names = folder.choices(CONFIGS, key) if folder.is_group(CONFIGS, key) else [choice]
            if choice not in names:
                refuse(f"{key}={choice}, which study.spaces.{space} has", choice, names)
    if is_of_triples(config):
        raise UsageError(
            f"study= compares models of graphs; dataset={config.dataset.name} has triples"
        )


def run_overrides(overrides: Sequence[str]) -> list[str]:
    """A command's overrides for each run, without the overrides of the study itself."""
    study_keys = ("study", "seed", "rerun", "print_config")
    study_groups = ("study.", "hydra")
    key_by_override = {override: _key(override) for override in overrides}
    return [
        override
        for override, key in key_by_override.items()
        if key not in study_keys and not key.startswith(study_groups)
    ]


def _key(override: str) -> str:
    return override.lstrip("+").partition("=")[0]
