"""The weights that a run's result is about, in one file, and the way back from it to the score."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import lightning
import torch
from lightning import LightningModule
from omegaconf import DictConfig, OmegaConf

from curvlab.callbacks import PointShares
from curvlab.config.resolvers import register_resolvers
from curvlab.data.loaders.datamodule import GraphDataModule
from curvlab.errors import UsageError
from curvlab.process import default_dtype
from curvlab.results.files import arriving
from curvlab.results.folder import BEST
from curvlab.results.identity import older
from curvlab.results.migrations import migrated
from curvlab.results.result import Result, package_versions
from curvlab.run import reporting
from curvlab.run.hardware import prepare_determinism, prepare_processor
from curvlab.run.parts import build_data, build_task, build_trainer


class Restored(NamedTuple):
    """A run as it was when it was evaluated.

    Attributes:
        task: with the weights that the score is of.
        data: what it is evaluated on.
        config: the run's configuration, resolved.
        kept: what else is in the file: `score`, `val_score`, `step`, `config_hash`, `versions`.
    """

    task: LightningModule
    data: GraphDataModule
    config: DictConfig
    kept: dict[str, Any]


def save_best(folder: Path, task: LightningModule, config: DictConfig, result: Result) -> None:
    """Write the weights that were evaluated, and whose they are, to `checkpoints/best.ckpt`.

    What is in it is plain, so that `torch.load(weights_only=True)` reads it.

    Args:
        folder: of the run.
        task: with these weights.
        config: of the run.
        result: its scores.
    """
    content = {
        "state_dict": {  # copied, since of a view all that it is a view of would be written
            name: weight.detach().clone().cpu() for name, weight in task.state_dict().items()
        },
        "score": result.score,
        "val_score": result.val_score,
        "step": result.best_step,
        "config": OmegaConf.to_container(config, resolve=True),
        "config_hash": result.config_hash,
        "schema": result.schema,
        "revisions": result.revisions,
        "versions": package_versions(),
    }
    with arriving(folder / BEST) as partial:
        torch.save(content, partial)


def restore(folder: Path | str, data_dir: str | None = None, mirror: str | None = None) -> Restored:
    """Build a run's task and data again, with the weights that its result is about.

    Args:
        folder: of the run, with its `checkpoints/best.ckpt`.
        data_dir: where raw and processed files are now, if elsewhere than then.
        mirror: likewise.

    Raises:
        UsageError: the folder has no such file, or a class has another revision now.
    """
    path = Path(folder) / BEST
    if not path.is_file():
        raise UsageError(
            f"{path} is not there: a run writes it when it finishes; train it, or give the folder "
            "of a run that has"
        )
    moved = {"data_dir": data_dir, "mirror": mirror}
    places = {key: place for key, place in moved.items() if place is not None}
    kept = migrated(torch.load(path, map_location="cpu", weights_only=True))
    aged = older(kept["config"], kept.get("revisions", {}))
    if aged:
        raise UsageError(
            f"{path} was written with {', '.join(aged)}, which computes other numbers today: run "
            "it again, or restore it with the version that wrote it"
        )
    config = OmegaConf.create(_placed(kept.pop("config"), places))
    assert isinstance(config, DictConfig)
    register_resolvers()
    lightning.seed_everything(config.seed, workers=True, verbose=False)
    with default_dtype(config.trainer.precision):
        data = build_data(config)
        task = build_task(config, data)
    task.load_state_dict(kept.pop("state_dict"))
    task.eval()
    return Restored(task, data, config, kept)


def evaluate(run: Restored) -> dict[str, dict[str, float]]:
    """Evaluate a restored run as it was: `{"test": {"map": 98.91}, ...}`.

    On the same device, with as many threads, these are the metrics of its result to the last digit.
    As for a run, threads and kernels of this process are set for it.
    """
    config = OmegaConf.merge(run.config, {"trainer": {"devices": 1}})
    assert isinstance(config, DictConfig)
    prepare_processor(config.trainer.threads)
    prepare_determinism(config.trainer.deterministic, config.trainer.accelerator)
    with default_dtype(config.trainer.precision), reporting.quiet():
        # Sparse matrices of inference mode, in which these are seen first here, have no transpose.
        options = {"enable_progress_bar": False, "inference_mode": False}
        trainer = build_trainer(config, Path(), [PointShares()], None, **options)
        (scores,) = trainer.test(run.task, datamodule=run.data, verbose=False)
    return by_part(scores)


def by_part(scores: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Metrics `test/map` ... as `{"test": {"map": ...}, ...}`."""
    parts: dict[str, dict[str, float]] = {}
    for name, value in scores.items():
        part, metric = name.split("/", maxsplit=1)
        parts.setdefault(part, {})[metric] = value
    return parts


def _placed(node: Any, places: Mapping[str, str]) -> Any:
    """A copy of a configuration with other folders wherever it names them."""
    if isinstance(node, dict):
        return {k: places[k] if k in places else _placed(v, places) for k, v in node.items()}
    return [_placed(v, places) for v in node] if isinstance(node, list) else node
