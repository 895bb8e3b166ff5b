"""The weights that a run's result is about, in one file with all that is needed to use them."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import torch
from lightning import LightningModule
from omegaconf import DictConfig, OmegaConf

from curvlab.data.loaders.datamodule import GraphDataModule
from curvlab.results.files import arriving
from curvlab.results.folder import BEST
from curvlab.results.result import Result, package_versions
from curvlab.run.parts import data_spec


def save_best(
    folder: Path, task: LightningModule, data: GraphDataModule, config: DictConfig, result: Result
) -> None:
    """Write the weights that were evaluated, and all that is needed to use them.

    What is in `checkpoints/best.ckpt` is plain, so that `torch.load(weights_only=True)` reads it:

        state_dict      the task's weights
        score, val_score, step, metrics     what they reached, and when
        config, config_hash, revisions, schema, versions    what identifies the run
        vocabulary      names by number of nodes, classes, entities and relations; None without
        facts           sizes of inputs, numbers of classes ...: what constructors take of the data
        normalisation   what transforms of the features have taken from the data, in their order
        directory       where the run was started, from which relative paths are seen
    """
    whole = OmegaConf.to_container(config, resolve=True)
    assert isinstance(whole, dict)
    names = asdict(data.vocabulary)
    content = {
        "state_dict": {  # copied, since of a view all that it is a view of would be written
            name: weight.detach().clone().cpu() for name, weight in task.state_dict().items()
        },
        "score": result.score,
        "val_score": result.val_score,
        "step": result.best_step,
        "metrics": result.metrics,
        "config": whole,
        "config_hash": result.config_hash,
        "schema": result.schema,
        "revisions": result.revisions,
        "versions": package_versions(),
        "vocabulary": {k: None if v is None else list(map(str, v)) for k, v in names.items()},
        "facts": data_spec(config, data),
        "normalisation": [
            {
                "tied": each.transductive_reason,
                "fitted": {k: v.cpu() for k, v in each.fitted.items()},
            }
            for each in data.transforms
        ],
        "directory": str(Path.cwd()),
    }
    # A file's errors say what the system refused; torch's do not.
    with arriving(folder / BEST) as partial, partial.open("wb") as file:
        torch.save(content, file)


def by_part(scores: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Metrics `test/map` ... as `{"test": {"map": ...}, ...}`."""
    parts: dict[str, dict[str, float]] = {}
    for name, value in scores.items():
        part, metric = name.split("/", maxsplit=1)
        parts.setdefault(part, {})[metric] = value
    return parts
