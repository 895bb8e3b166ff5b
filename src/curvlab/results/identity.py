"""What identifies a run: the part of its configuration that decides the result."""

import hashlib
import json
from typing import Any

from omegaconf import DictConfig, OmegaConf

# Keys that change where and how a run is computed, but not what.
NOT_IDENTITY = ("paths", "logger", "rerun", "print_config", "experiment", "report", "table")
NOT_IDENTITY_TRAINER = (
    "accelerator",
    "devices",
    "threads",
    "compile",
    "deterministic",
    "parallel_seeds",
    "progress",
    "plots",
)
NOT_IDENTITY_BATCHING = ("workers", "memory_gb")
MACHINE_KEYS = ("data_dir", "mirror")

# What of the rest says what a run is called, from where its files come and what it may be used for.
DESCRIPTIONS = ("label", "url")
DESCRIPTIVE = (
    "dataset.tasks",
    "model.requires.bases",
    "model.requires.manifolds",
    "model.requires.tasks",
    "task.requires",
    "optimizer.fused",
)


def identity(config: DictConfig) -> dict[str, Any]:
    """The part of a resolved configuration that decides the result, as plain containers."""
    plain = OmegaConf.to_container(config, resolve=True)
    assert isinstance(plain, dict)
    kept = {str(key): value for key, value in plain.items() if key not in NOT_IDENTITY}
    kept["trainer"] = {
        key: value for key, value in kept["trainer"].items() if key not in NOT_IDENTITY_TRAINER
    }
    if config.trainer.devices != 1:  # each has a batch of its own in a step
        kept["trainer"]["devices"] = config.trainer.devices
    if kept["batching"]["one_graph"]:
        del kept["batching"]  # the only way that there was, once
    else:
        for key in NOT_IDENTITY_BATCHING:
            kept["batching"].pop(key, None)
    return _without_machine(kept)


def _without_machine(node: Any) -> Any:
    """A copy without the keys that name folders of this machine."""
    if isinstance(node, dict):
        return {k: _without_machine(v) for k, v in node.items() if k not in MACHINE_KEYS}
    return [_without_machine(v) for v in node] if isinstance(node, list) else node


def deciding(identity: dict[str, Any], path: str = "") -> dict[str, Any]:
    """What of an identity decides the result, without what describes, and what is null or empty.

    So an option that is new and off, or a task more for a dataset, does not make earlier results
    those of another configuration.
    """
    kept = {}
    for key, value in identity.items():
        own = f"{path}{key}"
        if key not in DESCRIPTIONS and own not in DESCRIPTIVE:
            kept[key] = deciding(value, f"{own}.") if isinstance(value, dict) else value
    return {key: value for key, value in kept.items() if value is not None and value != {}}


def decides(key: str) -> bool:
    """Whether a key of a configuration, or a group's, can decide the result."""
    trainer = tuple(f"trainer.{name}" for name in NOT_IDENTITY_TRAINER)
    batching = tuple(f"batching.{name}" for name in NOT_IDENTITY_BATCHING)
    where = any(f"{key}.".startswith(f"{k}.") for k in (*NOT_IDENTITY, *trainer, *batching))
    return not where and key.rpartition(".")[2] not in MACHINE_KEYS


def canonical(value: Any) -> str:
    """A text that is equal where values are: keys in any order, 1 and 1.0 alike."""
    numbers_alike = json.loads(json.dumps(value, default=str), parse_int=float)
    return json.dumps(numbers_alike, sort_keys=True)


def identity_hash(identity: dict[str, Any]) -> str:
    """A name for what decides a result, equal where it is equal, 16 hexadecimal digits."""
    return hashlib.sha256(canonical(deciding(identity)).encode()).hexdigest()[:16]
