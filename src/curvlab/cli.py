"""The command line: wrong words are answered in one sentence before anything is composed."""

import difflib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

from curvlab.config import register_resolvers
from curvlab.errors import UsageError

# Flags of Hydra that only show something.
INFORMATION = {"--help", "-h", "--hydra-help", "--info", "-i", "--version", "--cfg", "-c"}


def complain(message: str) -> NoReturn:
    """Print one sentence and leave with exit code 2."""
    print(f"train.py: {message.rstrip('.')}.", file=sys.stderr)
    sys.exit(2)


def check_command_line(arguments: Sequence[str], config_dir: Path) -> None:
    """Check the words after `train.py` against the configuration folder; leave if one is wrong.

    Args:
        arguments: `sys.argv[1:]`.
        config_dir: the folder `configs`.
    """
    if INFORMATION.intersection(arguments):
        return
    multirun = bool({"-m", "--multirun"}.intersection(arguments))
    words = [word for word in arguments if not word.startswith("-")]
    try:
        check_overrides(words, config_dir, multirun)
    except UsageError as error:
        complain(str(error))


def check_overrides(words: Sequence[str], config_dir: Path, multirun: bool) -> None:
    """Check overrides: they parse, their groups, choices and keys exist, their values fit.

    Raises:
        UsageError: the first that does not.
    """
    overrides = [_parse(word) for word in words]
    groups = [o for o in overrides if _is_group(o.key_or_group, config_dir)]
    for override in groups:
        for choice in _values(override):
            _check_choice(override.key_or_group, choice, config_dir)
    if not multirun:
        _refuse_sweeps(overrides)
    default = _compose(
        [f"{o.key_or_group}={_values(o)[0]}" for o in groups if o.key_or_group != "table"],
        config_dir,
    )
    for override in overrides:
        key = override.key_or_group
        if override in groups or key.startswith("hydra") or override.is_add():
            continue
        _check_key(key, default)
        if not override.is_delete():
            for value in _values(override):
                _check_type(key, OmegaConf.select(default, key), value)


def _parse(word: str) -> Override:
    if "=" not in word and not word.startswith("~"):
        raise UsageError(f"{word!r} is not of the form key=value, for instance model=fpst")
    try:
        return OverridesParser.create().parse_override(word)
    except HydraException:
        raise UsageError(
            f"{word!r} cannot be read; put values with commas, spaces or brackets in quotes"
        ) from None


def _is_group(key: str, config_dir: Path) -> bool:
    return "." not in key and not key.startswith("hydra") and (config_dir / key).is_dir()


def _values(override: Override) -> list[Any]:
    if override.is_sweep_override():
        return [_plain(text) for text in override.sweep_string_iterator()]
    return [override.value()]


def _plain(text: str) -> Any:
    """One element of a sweep as the value that it will be."""
    return OverridesParser.create().parse_override(f"key={text}").value()


def _check_choice(group: str, choice: Any, config_dir: Path) -> None:
    if choice is None or (config_dir / group / f"{choice}.yaml").is_file():
        return
    names = sorted(
        path.relative_to(config_dir / group).with_suffix("").as_posix()
        for path in (config_dir / group).rglob("*.yaml")
    )
    raise UsageError(f"there is no {group}={choice}; {_near(str(choice), names)}")


def _refuse_sweeps(overrides: Iterable[Override]) -> None:
    for override in overrides:
        if override.key_or_group == "table" and override.value() is not None:
            raise UsageError(
                f"table={override.value()} is a sweep: add -m, as in "
                f"python train.py -m table={override.value()}"
            )
        if override.is_sweep_override():
            raise UsageError(
                f"{override.input_line} asks for several runs: add -m, as in "
                f"python train.py -m {override.input_line}"
            )


def _compose(groups: list[str], config_dir: Path) -> DictConfig:
    register_resolvers()
    try:
        with initialize_config_dir(str(config_dir.resolve()), version_base="1.3"):
            return compose("train", overrides=groups)
    except HydraException as error:
        raise UsageError(" ".join(str(error).split())) from None


def _check_key(key: str, default: DictConfig) -> None:
    keys = _keys(default)
    if key not in keys:
        raise UsageError(f"there is no key {key}; {_near(key, keys)}")


def _keys(config: DictConfig, prefix: str = "") -> list[str]:
    found = []
    for name in config:
        path = f"{prefix}{name}"
        found.append(path)
        node = config._get_node(name)
        if isinstance(node, DictConfig) and not node._is_none() and not node._is_interpolation():
            found += _keys(node, f"{path}.")
    return found


def _check_type(key: str, default: Any, value: Any) -> None:
    """A value must be of the kind of the one it replaces."""
    if default is None or (isinstance(value, str) and "${" in value):
        return
    kinds: dict[type, tuple[str, tuple[type, ...]]] = {
        bool: ("true or false", (bool,)),
        int: ("a whole number", (int,)),
        float: ("a number", (int, float)),
        str: ("a word", (str, int, float)),
    }
    if type(default) not in kinds:
        return
    kind, accepted = kinds[type(default)]
    if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):
        raise UsageError(f"{key} is {kind}, as in {key}={default}, not {value}")


def _near(name: str, names: Sequence[str]) -> str:
    """What the user may have meant."""
    matches = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    last = [n for n in names if n.rsplit(".", 1)[-1] == name.rsplit(".", 1)[-1] and "." in n]
    close = list(dict.fromkeys(last[:2] + matches))[:3]
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"there is {', '.join(n for n in names if '.' not in n)}"
