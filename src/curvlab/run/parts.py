"""Build the parts of a run from its configuration: data, model, task, logger, trainer."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import torch
from hydra.utils import get_class
from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.loggers import Logger
from lightning.pytorch.plugins.environments import LightningEnvironment
from lightning.pytorch.strategies import DDPStrategy
from lightning.pytorch.utilities.exceptions import MisconfigurationException
from omegaconf import DictConfig, OmegaConf
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.callbacks import BestValidation, PlainFiles
from curvlab.config.building import build, build_group, name_keys_in_errors
from curvlab.config.compose import compose
from curvlab.config.file_contents import user_file_checksums
from curvlab.config.folder import CONFIGS, choices
from curvlab.config.schema import attribute, options_of
from curvlab.config.validation import is_if_needed
from curvlab.data.files.sources import GraphSource
from curvlab.data.loaders.datamodule import GraphDataModule
from curvlab.data.transforms.graph import GraphTransform
from curvlab.errors import UsageError, refuse
from curvlab.files import atomic_path
from curvlab.finite import Scores, finite_scores
from curvlab.models.encoder import Encoder
from curvlab.options import FROM_DATA
from curvlab.results.folder import BEST
from curvlab.results.identity import FILES, MISSING_FILE
from curvlab.results.result import Result, package_versions
from curvlab.run.group import local_devices
from curvlab.run.hardware import trainer_devices


def build_source(dataset: DictConfig, paths: Mapping[str, Any] | DictConfig) -> GraphSource:
    """Build a data set's source; a source of files takes the name and the folders, too."""
    signature = options_of(dataset.source._target_)
    places = {"name": dataset.name, "data_dir": paths["data_dir"], "mirror": paths["mirror"]}
    return build(dataset.source, **{k: v for k, v in places.items() if k in signature})


def check_user_files(config: DictConfig, checksums: Mapping[str, str]) -> None:
    """Refuse a run without the user's files, whose content identifies it.

    Args:
        config: the run's configuration.
        checksums: checksums of its files by key, as its result has them.
    """
    missing = [key for key, checksum in checksums.items() if checksum == MISSING_FILE]
    if not missing:
        return
    source = config.dataset.source
    with name_keys_in_errors(source):
        build_source(config.dataset, config.paths).download()  # names what is missing
    value = OmegaConf.select(config, missing[0])
    raise UsageError(
        f"{missing[0]}={value} has no file whose content identifies this run: give the path of a "
        "file, or of a folder with files"
    )


def named_source(name: str, data_dir: Path | None = None) -> GraphSource:
    """Build the source of a data set by name, `named_source("cora").load()`."""
    paths = compose().paths
    if data_dir is not None:
        paths.data_dir = str(data_dir)
    return build_source(dataset_config(name), paths)


def dataset_config(name: str) -> DictConfig:
    """A data set's configuration, resolved."""
    names = choices(CONFIGS, "dataset")
    if name not in names:
        refuse(f"dataset {name}", name, names)
    dataset = compose([f"dataset={name}"]).dataset
    OmegaConf.resolve(dataset)
    return dataset


def build_transforms(config: DictConfig) -> list[GraphTransform]:
    """Build the transforms of the features and those that the model requires, in order of use."""
    features = [build(config.dataset.features)] if config.dataset.features else []
    return [*features, *required_transforms(config.model)]


def required_transforms(model: DictConfig) -> Sequence[GraphTransform]:
    """The transforms that a model with the configured options requires of the graph."""
    defaults = {name: option.default for name, option in options_of(model._target_).items()}
    configured = OmegaConf.to_container(model, resolve=True)
    assert isinstance(configured, dict)
    options = defaults | {str(name): value for name, value in configured.items()}
    encoder: type[Encoder] = get_class(model._target_)
    return encoder.required_transforms(options)


def build_data(config: DictConfig) -> GraphDataModule:
    """Build the data module: data set, split, features, and what the model requires."""
    split = config.task.get("split") or config.split
    if split is config.split and split and is_if_needed(split) and "metric" not in config.task:
        split = None
    return build_group(config.batching)(
        source=build_source(config.dataset, config.paths),
        transforms=build_transforms(config),
        steps_per_epoch=min(config.trainer.steps_per_epoch, config.trainer.max_steps),
        seed=config.seed,
        cache_dir=Path(config.paths.data_dir) / "cache",
        split=build(split) if split else None,
        one_logit=config.dataset.get("metric") == "roc_auc",
    )


def prepare_data(config: DictConfig) -> GraphDataModule:
    """Build the data module and read its graph."""
    data = build_data(config)
    data.prepare_data()
    data.setup()
    return data


class DataSpec(SimpleNamespace):
    """Arguments that constructors take from a data module, to build a task without data."""

    inputs: dict[str, int]

    def __init__(self, facts: Mapping[str, Any]) -> None:
        values = dict(facts["taken"])
        for name, value in values.items():
            if isinstance(value, dict):
                values[name] = Data(**value)
        super().__init__(inputs=facts["inputs"], **values)


def data_spec(config: DictConfig, data: GraphDataModule) -> dict[str, Any]:
    """Plain values and tensors that `build_task` takes from a data module (see `DataSpec`)."""
    options = {**options_of(config.model._target_), **options_of(config.task._target_)}
    names = [name for name, option in options.items() if FROM_DATA in option.marks]
    values = {name: getattr(data, name) for name in names}
    for name, value in values.items():
        if isinstance(value, Data):
            tensors = {k: v for k, v in value if isinstance(v, Tensor)}
            dense = {k: v.cpu() for k, v in tensors.items() if v.layout == torch.strided}
            values[name] = dense
    return {"inputs": dict(data.inputs), "taken": values}


def build_encoder(config: DictConfig, data: GraphDataModule | DataSpec) -> nn.Module:
    """Build the model."""
    return build_group(config.model, data, config.manifold, **data.inputs)


def build_task(config: DictConfig, data: GraphDataModule | DataSpec) -> Any:
    """Build the task, a LightningModule."""
    encoder = build_encoder(config, data)
    optimizer = build(config.optimizer)
    return build_group(config.task, data, encoder=encoder, optimizer=optimizer)


def build_selection(config: DictConfig, data: GraphDataModule) -> BestValidation:
    """Build the callback that selects weights, and ends the run, by validation."""
    options = config.trainer
    patience = options.patience
    if patience is not None and "epochs" in options:  # counted in passes
        patience *= options.steps_per_epoch
    return BestValidation(
        options.validate_every, patience, options.min_steps, data.evaluation_batch
    )


def build_logger(
    options: DictConfig | Mapping[str, Any] | None,
    result: Result,
    folder: Path,
    resumed_at: int | None,
) -> AbstractContextManager[Logger | None]:
    """Build the logger, if there is one, as a context manager."""
    if not options:
        return nullcontext()
    # A cell of two tables is one run in the group of each.
    table = f"{result.experiment.replace('/', '-')}-" if result.experiment else ""
    names = {key: getattr(result, key) for key in ("model", "dataset", "manifold", "task")}
    (flat,) = pd.json_normalize(result.config, sep="/").to_dict("records")
    return build(
        dict(options),
        _recursive_=False,  # the run's configuration is passed, not built
        _convert_="all",
        folder=str(folder),
        name=f"{result.dataset}/{result.model}/seed{result.seed}",
        run_id=f"{table}{result.config_hash}",
        resumed_at=resumed_at,
        group=result.experiment or result.task,
        job_type=result.model,
        tags=list(names.values()),
        run_config={**names, **flat},
    )


def build_trainer(
    config: DictConfig,
    device: torch.device,
    folder: Path,
    callbacks: list[Callback],
    logger: Logger | None,
    **extra: Any,
) -> Trainer:
    """Build Lightning's trainer; an epoch is `steps_per_epoch` steps on the same graph."""
    options = config.trainer
    if options.devices > 1:
        unused = attribute(config.model._target_, "unused_parameters", False)
        extra["strategy"] = DDPStrategy(find_unused_parameters=unused)
    users = [build(part) for part in (config.get("callbacks") or {}).values()]
    arguments = {
        "max_steps": options.max_steps,
        "max_epochs": -1,
        "devices": trainer_devices(device, local_devices(options.devices)),
        "num_nodes": options.devices // local_devices(options.devices),
        "precision": options.precision,
        "gradient_clip_val": options.gradient_clip,
        "accumulate_grad_batches": config.batching.get("accumulate", 1),
        # Not SLURM's environment, which saves and requeues by itself: `run.group` translates it.
        "plugins": [PlainFiles(), LightningEnvironment()],
        "log_every_n_steps": options.steps_per_epoch,
        "num_sanity_val_steps": 0,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "enable_checkpointing": any(isinstance(part, ModelCheckpoint) for part in users),
        # An evaluation may make tensors that later steps differentiate, which inference mode
        # forbids.
        "inference_mode": False,
        "use_distributed_sampler": False,
        **extra,
        **_lightning_arguments(options),
    }
    try:
        return Trainer(
            accelerator=device.type,
            callbacks=[*users, *callbacks],
            logger=logger or False,
            default_root_dir=folder,
            **arguments,
        )
    except (MisconfigurationException, TypeError, ValueError) as error:
        raise UsageError(f"Lightning refuses trainer: {' '.join(str(error).split())}") from error


def _lightning_arguments(trainer: DictConfig) -> dict[str, Any]:
    """Arguments of Lightning's `Trainer` that a configuration adds."""
    options = OmegaConf.to_container(trainer, resolve=True)
    assert isinstance(options, dict)
    added = {
        name: options[name]
        for name, option in options_of(trainer._target_).items()
        if name in options and not option.settable
    }
    return {name: build(v) if isinstance(v, dict) else v for name, v in added.items()}


def save_best(
    folder: Path, task: LightningModule, data: GraphDataModule, config: DictConfig, result: Result
) -> None:
    """Write the evaluated weights and what is needed to use them to `checkpoints/best.ckpt`.

    Plain values, which `torch.load(weights_only=True)` reads: `state_dict`; the result's `score`,
    `val_score`, `step` and `metrics`; `config`, `config_hash`, `revisions`, `schema` and
    `versions`, which identify the run; the `vocabulary` of nodes, classes, entities and relations;
    `facts` and `normalisation`, taken from the data; checksums of the user's `files`, as the
    result has them and one by one; and the `directory` of relative paths.
    """
    names = asdict(data.vocabulary)
    plain = OmegaConf.to_container(config, resolve=True)
    assert isinstance(plain, dict)
    of_result = ("score", "val_score", "metrics", "config_hash", "schema", "revisions")
    content = {name: getattr(result, name) for name in of_result} | {
        "state_dict": {  # copies: of a view, torch would write the whole tensor
            name: weight.detach().clone().cpu() for name, weight in task.state_dict().items()
        },
        "step": result.best_step,
        "config": plain,
        "versions": package_versions(),
        "vocabulary": {k: None if v is None else list(map(str, v)) for k, v in names.items()},
        "facts": data_spec(config, data),  # arguments that constructors take from the data
        "normalisation": [  # statistics of the features that transforms have fitted
            {
                "tied": each.transductive_reason,
                "fitted": {k: v.cpu() for k, v in each.fitted.items()},
            }
            for each in data.transforms
        ],
        "files": result.config.get(FILES, {}),
        "each_file": user_file_checksums(plain),
        "directory": str(Path.cwd()),  # that relative paths start from
    }
    # Errors of a plain file name the cause; torch's do not.
    with atomic_path(folder / BEST) as partial, partial.open("wb") as file:
        torch.save(content, file)


def evaluate_parts(trainer: Trainer, task: Any, data: GraphDataModule) -> Scores:
    """Evaluate each part of the data; a score that is not finite is an error."""

    def test() -> Scores:
        parts: Scores = {}
        for name, value in trainer.test(task, datamodule=data, verbose=False)[0].items():
            part, metric = name.split("/", maxsplit=1)
            parts.setdefault(part, {})[metric] = value
        return parts

    return finite_scores(task, task.score, test)
