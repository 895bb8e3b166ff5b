"""Overrides of a `_target_`: options of the replaced class that the new one does not have."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from omegaconf import DictConfig, OmegaConf, open_dict

from curvlab.config.schema import check_importable, options_of, signature_of
from curvlab.config.validation import mappings
from curvlab.errors import UsageError


class Replaced(NamedTuple):
    """A node whose class an override replaces, and options that only the old class has."""

    path: str
    old: str
    new: str
    options: tuple[str, ...]

    def __str__(self) -> str:
        old = self.old.rpartition(".")[2]
        listed = ", ".join(self.options)
        return f"{self.path}._target_={self.new}: options of {old} are left out: {listed}"


def replaced_classes(before: DictConfig, config: DictConfig) -> Iterator[Replaced]:
    """Find the classes that overrides replace.

    Args:
        before: the configuration without overrides of keys.
        config: the same with them.

    Raises:
        UsageError: a new class cannot be imported.
    """
    after = dict(mappings(OmegaConf.to_container(config, resolve=False)))
    for path, node in mappings(OmegaConf.to_container(before, resolve=False)):
        old = node.get("_target_")
        new = after.get(path, {}).get("_target_")
        if old is None or not isinstance(new, str) or new == old:
            continue
        check_importable(f"{path}._target_", new)
        dropped: tuple[str, ...] = ()
        if not signature_of(new).passes_on:
            dropped = tuple(_only_of(old, new, after[path]))
        yield Replaced(path, old, new, dropped)


def _only_of(old: str, new: str, node: Mapping[str, Any]) -> Iterator[str]:
    """Options in a node that the old class has and the new one has not."""
    for name, option in options_of(old).items():
        if option.settable and name in node and name not in options_of(new):
            yield name


def drop_options(config: DictConfig, replaced: Replaced, user_keys: Collection[str]) -> None:
    """Leave out the options of a replaced class.

    Raises:
        UsageError: the user has set one of them.
    """
    node = OmegaConf.select(config, replaced.path)
    for name in replaced.options:
        key = f"{replaced.path}.{name}"
        if key in user_keys:
            raise UsageError(f"{key}: {replaced.new} has no such option; omit {key}=")
        with open_dict(node):
            del node[name]
