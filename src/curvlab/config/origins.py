"""Where each value of a composed configuration is from: a file, the command line, a class."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from curvlab.config.folder import CONFIGS, address, is_group
from curvlab.config.sources import read

COLUMN = 58


def origins(words: Sequence[str], configs: Path = CONFIGS) -> dict[str, str]:
    """The last file, or the command line, that gave a key its value."""
    loader = GlobalHydra.instance().config_loader()
    listed = loader.compute_defaults_list("train", list(words), RunMode.RUN)
    found: dict[str, str] = {}
    for default in listed.defaults:
        own = None if default.config_path is None else read(configs, default.config_path)
        if own is None:
            continue
        node = OmegaConf.to_container(own, resolve=False)
        package = "" if default.package in (None, "_global_") else default.package
        assert isinstance(node, dict)
        node.pop("defaults", None)
        found |= dict.fromkeys(_leaves(node, package or ""), address(configs, default.config_path))
    for override in OverridesParser.create().parse_overrides(list(words)):
        key = override.key_or_group
        if "." not in key and is_group(configs, key):  # its file has said what it brings
            continue
        found = {k: v for k, v in found.items() if not k.startswith(f"{key}.")}
        found[key] = "command line"
    return found


def with_origins(config: DictConfig, found: Mapping[str, str]) -> str:
    """A configuration as YAML, resolved, each value with a comment that says where it is from."""
    return "\n".join(_lines(OmegaConf.to_container(config, resolve=True), found, "")) + "\n"


def _lines(node: Any, found: Mapping[str, str], path: str) -> Iterator[str]:
    """Lines of a mapping."""
    indent, target = "  " * len(path.split(".")[:-1]), str(node.get("_target_", ""))
    default = f"default of {target.rpartition('.')[2]}" if target else ""
    for name, value in node.items():
        key = f"{path}{name}"
        if isinstance(value, dict) and value:
            yield f"{indent}{name}:"
            yield from _lines(value, found, f"{key}.")
            continue
        text = yaml.safe_dump({name: value}, default_flow_style=None, width=10_000).strip()
        first, *others = (text[1:-1] if text.startswith("{") else text).splitlines()
        owners = [key.rsplit(".", i)[0] for i in range(key.count(".") + 1)]
        origin = next((found[owner] for owner in owners if owner in found), default)
        yield f"{indent + first:<{COLUMN}} # {origin}" if origin else indent + first
        yield from (indent + line for line in others)


def _leaves(node: Mapping[Any, Any], path: str) -> Iterator[str]:
    for name, value in node.items():
        key = f"{path}.{name}".lstrip(".")
        yield from _leaves(value, key) if isinstance(value, dict) and value else [key]
