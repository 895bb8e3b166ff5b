"""Configurations as Hydra composes them, each choice once a process: one takes a tenth of a second.

Values are set afterwards, by Hydra itself: they choose no files. The files of this checkout are
read, and interpolations are parsed, once a process too, which halves the time of a composition.
"""

import copy
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import omegaconf._utils
import omegaconf.base
from hydra import compose, initialize_config_dir
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import ConfigRepository
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.plugins.config_source import ConfigResult
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from curvlab.config.resolvers import register_resolvers
from curvlab.config.schema import attribute, is_subclass

CONFIGS = Path(__file__).resolve().parents[1] / "configs"
OWN = f"file://{CONFIGS}"

read, kept = ConfigRepository.load_config, dict[tuple[object, ...], ConfigResult | None]()


def read_once(repository: ConfigRepository, config_path: str) -> ConfigResult | None:
    """Read a file of this checkout once a process; Hydra gets a copy, which it changes."""
    places = tuple(source.full_path() for source in repository.sources)
    if any(place.startswith("file:") and place != OWN for place in places):
        return read(repository, config_path)
    if (places, config_path) not in kept:
        kept[places, config_path] = read(repository, config_path)
    return copy.deepcopy(kept[places, config_path])


ConfigRepository.load_config = read_once
omegaconf.base.parse = omegaconf._utils.parse = cache(omegaconf.base.parse)


def composed(*words: str, configs: Path = CONFIGS) -> DictConfig:
    """What `python train.py WORDS` hands to `train`: a copy, which may be changed.

    Args:
        words: choices and values.
        configs: another folder of configurations; it may change between calls.
    """
    run = with_hydra(*words, configs=configs)
    with read_write(run), open_dict(run):
        del run["hydra"]
    return run


def with_hydra(*words: str, configs: Path = CONFIGS) -> DictConfig:
    """The same with Hydra's own part, `hydra`, in which folders are not named after values."""
    if configs != CONFIGS:
        return _compose(words, configs)
    values = [_parsed(word) for word in words if _is_value(_parsed(word))]
    choices = [word for word in words if not _is_value(_parsed(word))]
    config = copy.deepcopy(_once(tuple(choices)))
    ConfigLoaderImpl._apply_overrides_to_config(values, config)
    config.hydra.overrides.task = list(words)
    return config


def _compose(words: Sequence[str], configs: Path) -> DictConfig:
    register_resolvers()
    with initialize_config_dir(str(configs), version_base="1.3"):
        return compose("train", list(words), return_hydra_config=True)


@cache
def _once(words: tuple[str, ...]) -> DictConfig:
    return _compose(words, CONFIGS)


@cache
def _parsed(word: str) -> Override:
    return OverridesParser.create().parse_override(word)


def _is_value(word: Override) -> bool:
    """Whether a word sets a key; else it chooses a file or is about Hydra."""
    key = word.key_or_group
    return not (
        key.startswith("hydra") or "@" in word.get_key_element() or (CONFIGS / key).is_dir()
    )


def different_models() -> list[str]:
    """All models but for variants, whose layers are those of another."""
    names = sorted(path.stem for path in (CONFIGS / "model").glob("*.yaml"))
    return [n for n in names if n.startswith("lrn__") or not re.search("__|_wide|_nsampler", n)]


def tasks_of(model: str) -> tuple[str, ...]:
    """The tasks that a model's class is made for; none said: those of graphs."""
    target = target_of(model)
    if is_subclass(target, "curvlab.models.triple_scorer.TripleScorer"):
        return tuple(attribute(target, "tasks", ("kg_completion",)))
    return tuple(attribute(target, "tasks", ()))


def target_of(model: str) -> str:
    """A model's class, or that of the file that it is a variant of."""
    config = OmegaConf.load(CONFIGS / "model" / f"{model}.yaml")
    if "_target_" in config:
        return str(config["_target_"])
    return next(target_of(base) for base in config["defaults"] if isinstance(base, str))
