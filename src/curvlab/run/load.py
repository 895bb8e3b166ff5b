"""Load a finished run from its folder or `best.ckpt`: `curvlab.load(path)`."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.utilities.seed import isolate_rng
from omegaconf import DictConfig, OmegaConf

import curvlab.config.trust as trusted
from curvlab.checksums import DamagedError, check_archive
from curvlab.config.resolvers import register_resolvers
from curvlab.config.schema import options_of
from curvlab.errors import UsageError
from curvlab.files import find_below
from curvlab.process import default_dtype
from curvlab.results.folder import BEST
from curvlab.results.identity import map_dicts, outdated_classes
from curvlab.results.migrations import SchemaError, migrated, with_current_targets
from curvlab.results.result import read_result
from curvlab.run.finished_run import Run
from curvlab.run.parts import DataSpec, build_task

__all__ = ["WEIGHTS", "Run", "load", "replace_paths", "shipped_runs"]

log = logging.getLogger(__name__)

WEIGHTS = Path(__file__).parents[1] / "weights"

PATH_KEYS = ("data_dir", "mirror", "path", "nodes")
"""Keys of paths that are relative to the directory in which the run started."""


def load(
    path: Path | str, data_dir: str | None = None, mirror: str | None = None, trust: bool = False
) -> Run:
    """Load a finished run with the reported weights.

    The file is data, not code: only classes of curvlab, of installed plug-ins, and torch's
    optimisers are built (`curvlab.config.trust`).

    Args:
        path: The run's folder, or its `best.ckpt` in any folder, or the name of a run that ships
            with curvlab, such as `fpst/web_edu` (`shipped_runs()` lists them).
        data_dir: Folder of raw and processed files; None: the run's `paths.data_dir`.
        mirror: Folder of the mirror; None: the run's `paths.mirror`.
        trust: Build any class that the file names. The file's author can then run code here.

    Raises:
        UsageError: The file is missing, is not a checkpoint of a run, names an unknown class, or
            was written by another revision of a class.
    """
    if str(path) in shipped_runs() and not Path(path).exists():
        path = WEIGHTS / f"{path}.ckpt"
        mirror = mirror or os.environ.get("CURVLAB_MIRROR")
    file = _find_checkpoint(Path(path).expanduser())
    checkpoint = _read(file, trust)
    outdated = outdated_classes(checkpoint["config"], checkpoint.get("revisions", {}))
    if outdated:
        raise UsageError(
            f"{file} was written with {', '.join(outdated)}, which computes other numbers today: "
            "run the command again, or load the file with the version that wrote it"
        )
    paths = {"data_dir": data_dir, "mirror": mirror}
    paths = {key: folder for key, folder in paths.items() if folder is not None}
    start = Path(checkpoint.pop("directory", "."))
    content = replace_paths(checkpoint.pop("config"), paths, start)
    removed_options = _drop_unknown_options(content)
    if removed_options:
        text = ", ".join(removed_options)
        log.warning("%s: this version has no option %s, which is left out", file, text)
    config: DictConfig = OmegaConf.create(content)
    register_resolvers()
    with isolate_rng(), default_dtype(config.trainer.precision):
        lightning.seed_everything(config.seed, workers=True, verbose=False)
        task = build_task(config, DataSpec(checkpoint["facts"]))
    task.load_state_dict(checkpoint.pop("state_dict"))
    run = Run(task.eval(), config, checkpoint)
    folder = file.resolve().parents[1]
    if file.resolve() == folder / BEST:
        run.folder = folder
        run.result = read_result(folder)
    return run


def shipped_runs() -> list[str]:
    """Names of the runs that ship with curvlab, for `load`."""
    files = sorted(WEIGHTS.glob("*/*.ckpt"))
    return [file.relative_to(WEIGHTS).with_suffix("").as_posix() for file in files]


def replace_paths(node: Any, paths: Mapping[str, str | None], start: Path) -> Any:
    """Copy a configuration with other paths.

    Args:
        node: The configuration.
        paths: New values by key.
        start: Folder of relative paths. Existing paths of other keys become absolute.
    """

    def replace_value(key: str, value: Any) -> Any:
        if key in paths:
            return paths[key]
        if key in PATH_KEYS and isinstance(value, str):
            path = start / value
            return str(path) if path.exists() else value
        return value

    def replace_values(mapping: dict[str, Any]) -> dict[str, Any]:
        return {key: replace_value(key, value) for key, value in mapping.items()}

    return map_dicts(node, replace_values)


def _find_checkpoint(path: Path) -> Path:
    """The file of a path, or `best.ckpt` in the folder of a run."""
    file = path if path.is_file() else path / BEST
    if file.is_file():
        return file
    files = find_below(path, BEST)
    if files:
        latest = max(files, key=lambda file: file.stat().st_mtime)
        raise UsageError(
            f"{path} holds runs: name one of the {len(files)}, such as {latest.parents[1]}"
        )
    result = read_result(path)
    if result is not None and "search" in result.config:
        raise UsageError(
            f"{path} is a search, which keeps no model: adopt its winner by curvlab adopt {path}, "
            "and train it"
        )
    raise UsageError(
        f"{file} is not there: a run writes it when it finishes; train the model, or name the "
        "folder of a finished run or a run that ships with curvlab: "
        f"{', '.join(shipped_runs())}"
    )


def _read(file: Path, trust: bool) -> dict[str, Any]:
    """Read a checkpoint, verify its checksums, and rename classes and options of old versions."""
    try:
        check_archive(file)
        checkpoint = torch.load(file, map_location="cpu", weights_only=True)
        if trust:
            trusted.trust(checkpoint["config"])
        checkpoint = migrated(checkpoint)  # before the check: old versions name other classes
        if not trust and "config" in checkpoint:
            trusted.check(with_current_targets(checkpoint["config"]), file)
        checkpoint["config"] = with_current_targets(checkpoint["config"])
        if not {"facts", "state_dict"} <= checkpoint.keys():
            raise ValueError("no facts or weights")
        return dict(checkpoint)
    except DamagedError as damage:
        raise UsageError(
            f"{file} is damaged ({damage}): its weights are not the evaluated weights; run it "
            "again with rerun=true, or use another copy of the file"
        ) from None
    except (PermissionError, UsageError):
        raise
    except SchemaError as reason:
        raise UsageError(f"{file} cannot be used ({reason}): train it again") from None
    except Exception as error:  # torch can raise nearly anything for a file of another kind
        raise UsageError(
            f"{file} is not the best.ckpt of a run: name a run's folder, or the file of that name "
            "in its folder checkpoints"
        ) from error


def _drop_unknown_options(content: dict[str, Any]) -> list[str]:
    """Delete options that their classes no longer have from a configuration; list them."""
    removed_options: list[str] = []

    def drop(node: dict[str, Any]) -> dict[str, Any]:
        options = options_of(node.get("_target_", ""))
        if not options:
            return node
        unknown = [key for key in node if key not in options and not key.startswith("_")]
        removed_options.extend(f"{key}={node[key]}" for key in unknown)
        return {key: value for key, value in node.items() if key not in unknown}

    for group in content.values():
        if isinstance(group, dict):
            group |= {key: map_dicts(value, drop) for key, value in group.items()}
    return removed_options
