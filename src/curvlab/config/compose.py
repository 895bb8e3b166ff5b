"""Compose configurations from overrides, and find the origin of each value."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import hydra
import yaml
from hydra import initialize_config_dir
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from curvlab.config.folder import CONFIGS, address, folders, is_group
from curvlab.config.labels import label_of
from curvlab.config.replaced import drop_options, replaced_classes
from curvlab.config.resolvers import register_resolvers
from curvlab.config.sources import read
from curvlab.config.trust import trust
from curvlab.config.validation import keys_of, leaves
from curvlab.errors import UsageError, configuration_message, refuse

COLUMN = 58  # of the origins in `print_config=true`
JOB = "train"  # name of the main configuration and of a run's log


def compose(overrides: Sequence[str] = (), configs: Path = CONFIGS) -> DictConfig:
    """Compose overrides, with every option, without Hydra's part."""
    return without_hydra(compose_with_hydra(overrides, configs))


def compose_with_hydra(
    overrides: Sequence[str] = (),
    configs: Path = CONFIGS,
    say: Callable[[str], None] = lambda _: None,
) -> DictConfig:
    """Compose overrides with Hydra's part, `hydra`, which names the folder of the run.

    Choices of groups are composed once per process; values are set on a copy. `say` gets a line
    for each class that an override replaces, on the options that are left out with it.
    """
    parsed, values, base = _choose(overrides, configs)
    config = deepcopy(base)
    try:
        ConfigLoaderImpl._apply_overrides_to_config(values, config)
    except HydraException as error:
        missing_key = re.match("Could not override '(.+?)'", str(error))
        if missing_key:
            choices = [str(override.input_line) for override in parsed if override not in values]
            made_by = f" with {' '.join(choices)}" if choices else ""
            existing = [key for key in keys_of(config) if not key.startswith("hydra")]
            refuse(f"key {missing_key[1]}{made_by}", missing_key[1], existing)
        raise _refusal(error) from None
    trust(config)
    drop_replaced_options(config, overrides, configs, say)
    relabel(config, overrides, configs)
    of_run = [override for override in parsed if not override.is_hydra_override()]
    config.hydra.overrides.task = [str(override.input_line) for override in of_run]
    config.hydra.mode = RunMode.RUN
    return config


def drop_replaced_options(
    config: DictConfig,
    overrides: Sequence[str],
    configs: Path = CONFIGS,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Leave out options of classes that overrides of a `_target_` replace.

    Raises:
        UsageError: a class cannot be imported, or lacks an option that the user has set.
    """
    if not any("_target_" in override for override in overrides):
        return
    _, values, base = _choose(overrides, configs)
    keys = {override.key_or_group for override in values}
    for replaced in list(replaced_classes(base, config)):
        drop_options(config, replaced, keys)
        if replaced.options:
            say(str(replaced))


def relabel(config: DictConfig, overrides: Sequence[str], configs: Path = CONFIGS) -> None:
    """Let the model's label follow overrides of the model's options."""
    prefix = "model."
    keys = [override.lstrip("+~").partition("=")[0] for override in overrides]
    options = [key.removeprefix(prefix) for key in keys if key.startswith(prefix)]
    if options and not {"label", "name"}.intersection(options):
        config.model.label = label_of(config.model, options, configs)


def _choose(
    overrides: Sequence[str], configs: Path
) -> tuple[list[Override], list[Override], DictConfig]:
    """All overrides, the ones that set a key, and the configuration of the remaining ones."""
    register_resolvers()
    cached = configs == CONFIGS  # another folder may change
    compose_groups: Any = _compose_groups if cached else _compose_groups.__wrapped__
    try:
        parsed = OverridesParser.create().parse_overrides(list(overrides))
        values = [override for override in parsed if sets_a_key(override, configs)]
        choices = tuple(str(o.input_line) for o in parsed if o not in values)
        return parsed, values, compose_groups(choices, configs, folders())
    except HydraException as error:
        raise _refusal(error) from None


def _refusal(error: HydraException) -> UsageError:
    return UsageError(" ".join(f"{configuration_message(error)} {error.__cause__ or ''}".split()))


def without_hydra(config: DictConfig) -> DictConfig:
    """Copy a configuration without Hydra's own part."""
    return OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])


@cache
def _compose_groups(
    choices: Sequence[str],
    configs: Path,
    _: tuple[Path, ...],  # the search path, which the cache distinguishes
) -> DictConfig:
    """Compose choices of groups."""
    if GlobalHydra.instance().is_initialized():
        return hydra.compose(JOB, list(choices), return_hydra_config=True)
    with initialize_config_dir(str(configs.resolve()), JOB, version_base="1.3"):
        return hydra.compose(JOB, list(choices), return_hydra_config=True)


def sets_a_key(override: Override, configs: Path) -> bool:
    """Whether an override sets a key instead of choosing a file."""
    key = override.key_or_group
    return not (
        key.startswith("hydra")
        or "@" in override.get_key_element()
        or override.is_delete()
        or override.is_sweep_override()
        or is_group(configs, key)
    )


def origins(overrides: Sequence[str], configs: Path = CONFIGS) -> dict[str, str]:
    """The file, or `command line`, that sets each key."""
    loader = GlobalHydra.instance().config_loader()
    listed = loader.compute_defaults_list(JOB, list(overrides), RunMode.RUN)
    addresses: dict[str, str] = {}
    for default in listed.defaults:
        file = None if default.config_path is None else read(configs, default.config_path)
        if file is None:
            continue
        node = OmegaConf.to_container(file, resolve=False)
        package = "" if default.package in (None, "_global_") else str(default.package)
        assert isinstance(node, dict)
        node.pop("defaults", None)
        keys = (f"{package}.{key}".lstrip(".") for key, _ in leaves(node))
        addresses |= dict.fromkeys(keys, address(configs, default.config_path))
    for override in OverridesParser.create().parse_overrides(list(overrides)):
        key = override.key_or_group
        if "." not in key and is_group(configs, key):  # its file is the origin
            continue
        addresses = {k: v for k, v in addresses.items() if not k.startswith(f"{key}.")}
        addresses[key] = "command line"
    return addresses


def show_origins(config: DictConfig, origins: Mapping[str, str]) -> str:
    """Format a resolved configuration as YAML, each value with its origin as a comment."""
    return "\n".join(_lines(OmegaConf.to_container(config, resolve=True), origins, "")) + "\n"


def _lines(node: Any, origins: Mapping[str, str], path: str) -> Iterator[str]:
    indent = "  " * len(path.split(".")[:-1])
    target = str(node.get("_target_", ""))
    default = f"default of {target.rpartition('.')[2]}" if target else ""
    for name, value in node.items():
        key = f"{path}{name}"
        if isinstance(value, dict) and value:
            yield f"{indent}{name}:"
            yield from _lines(value, origins, f"{key}.")
            continue
        text = yaml.safe_dump({name: value}, default_flow_style=None, width=10_000).strip()
        if text.startswith("{"):
            text = text[1:-1]
        first, *further = text.splitlines()
        owners = [key.rsplit(".", i)[0] for i in range(key.count(".") + 1)]
        origin = next((origins[owner] for owner in owners if owner in origins), default)
        yield f"{indent + first:<{COLUMN}} # {origin}" if origin else indent + first
        yield from (indent + line for line in further)
