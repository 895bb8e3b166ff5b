"""Options of the sections of a configuration that belong to no class; without torch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge

from curvlab.checked import CheckedFields
from curvlab.options import (
    FilterPair,
    Incidental,
    NonNegativeInt,
    Place,
    PositiveFloat,
    PositiveInt,
    RelativePath,
    Seed,
)

Precision = Literal["32-true", "64-true", "bf16-mixed"]
Metric = Literal[
    "accuracy", "f1_micro", "f1_macro", "f1_binary", "roc_auc", "ogb_acc", "ogb_rocauc",
    "mrr", "hits1", "hits3", "hits10", "r2",
]  # fmt: skip


def seeds_from(seeds: Any, first: int) -> list[int]:
    """The seeds of `search.seeds` or `study.seeds`.

    A number counts from `first` on; of a list each seed counts once. Empty for other values.
    """
    if isinstance(seeds, int):
        return list(range(first, first + seeds))
    is_list = isinstance(seeds, Sequence) and not isinstance(seeds, str)
    return list(dict.fromkeys(seeds)) if is_list else []


@dataclass
class RunOptions:
    """Options of the whole run.

    Attributes:
        seed: seed of initialisation, generated features and dropout.
        experiment: table that this run is a cell of; tables set it.
        rerun: repeat a run that has a finished result.
        print_config: print the resolved configuration and stop; with -m, of each run.
    """

    seed: Seed = 0
    experiment: Incidental[RelativePath | None] = None
    rerun: Incidental[bool] = False
    print_config: Incidental[bool] = False


@dataclass
class PathsOptions:
    """Folders of data, of the mirror, and of results.

    Attributes:
        data_dir: folder of raw and processed files of data sets.
        mirror: folder with the same layout that replaces the network; null: none.
        output_dir: folder of runs and tables.
    """

    data_dir: Incidental[Place] = "data"
    mirror: Incidental[Place | None] = None
    output_dir: Incidental[Place] = "outputs"


@dataclass
class DatasetOptions:
    """A data set, apart from its source and its features.

    Attributes:
        name: name in results, tables and output folders; in an identity it stands for the files.
        label: name in tables and plots.
        tasks: tasks that this data set supports.
        metric: metric that validation selects by and tables compare.
        hops: default number of smoothing hops of token models on homophilous graphs.
        batch_size: largest number of nodes of a batch, if the graph does not fit in one.
        neighbours: number of nearest points that a point is joined to, including itself; null: no
            graph.
        train_triples: number of training triples, for the length of an epoch.
        both_sides: rank heads as well as tails by default (`task.inverse_relations`).
        filtered: remove duplicate nodes (Platonov et al. 2023).
        filter: pair of spectral filters.
        row_normalise: divide bags of words by their number of words.
        recipe: data set whose recipes are used; null: this one's.
        path: path of the user's file or folder.
        target: data set class of PyTorch Geometric.
        options: arguments of that class.
        source: source that loads the graph.
        features: transform of the features; null: none.
    """

    name: str
    label: Incidental[str]
    tasks: Incidental[Sequence[str]] = ()
    metric: Metric | None = None
    hops: NonNegativeInt = 0
    batch_size: PositiveInt = 10000
    neighbours: Annotated[int, Ge(2)] | None = None
    train_triples: PositiveInt | None = None
    both_sides: Incidental[bool] = False
    filtered: bool = True
    filter: FilterPair | None = None
    row_normalise: Incidental[bool] = True
    recipe: Incidental[str | None] = None
    path: Incidental[str | None] = None
    target: str | None = None
    options: Mapping[str, Any] | None = None
    source: Callable[..., Any] | None = None
    features: Callable[..., Any] | None = None


class FixedSteps(CheckedFields):
    """A fixed number of steps; the last weights count.

    Attributes:
        max_steps: number of optimiser steps.
        steps_per_epoch: steps between points of the curves, divergence checks and checkpoints.
        accelerator: accelerator: auto, cpu, gpu, cuda or mps.
        devices: number of devices; with trainer.accelerator=cpu, number of processes.
        precision: precision of Lightning: 32-true, 64-true (double precision) or bf16-mixed.
        gradient_clip: norm at which gradients are clipped; null: none.
        threads: number of processor threads; null: all, or a fair share under a launcher.
        compile: compile with torch.compile what gains by it (on a GPU the loss of reconstruction;
            on the processor FPS-T's blocks). Compilation takes minutes.
        kernels: auto or plain. auto: C++ forms of training steps on a processor, compiled once
            where a compiler is found and a run has 500 steps or compile=true. plain: PyTorch's
            operations. Both agree to rounding in float32.
        cuda_graph: record the step on one graph and replay it, on a GPU: fewer launches, the same
            curve.
        progress: show the progress bar.
        plots: draw pictures at the end of a run.
        references: compute the test scores of simple methods on the same split at the end of a run.

    Any key of Lightning's `Trainer` may be added, as `+trainer.limit_train_batches=0.1`.
    """

    takes_options_of: ClassVar[str] = "lightning.Trainer"

    max_steps: PositiveInt = 10000
    steps_per_epoch: PositiveInt = 100
    accelerator: Incidental[Literal["auto", "cpu", "gpu", "cuda", "mps"]] = "auto"
    devices: PositiveInt = 1
    precision: Precision = "32-true"
    gradient_clip: PositiveFloat | None = None
    threads: Incidental[PositiveInt | None] = None
    compile: Incidental[bool] = False
    kernels: Incidental[Literal["auto", "plain"]] = "auto"
    cuda_graph: Incidental[bool] = False
    progress: Incidental[bool] = True
    plots: Incidental[bool] = True
    references: Incidental[bool] = True


class EarlyStopping(FixedSteps):
    """At most `max_steps` steps; the weights of the best validation score count.

    Attributes:
        validate_every: steps between validations, the best of which selects the weights.
        patience: steps without a better validation score after which a run ends; null: never.
        min_steps: steps before which a run does not end.
    """

    max_steps: PositiveInt = 1000
    steps_per_epoch: PositiveInt = 25
    validate_every: PositiveInt = 1
    patience: PositiveInt | None = 100
    min_steps: PositiveInt = 100


class Passes(EarlyStopping):
    """Passes over the triples of a knowledge graph, with a validation after each.

    Attributes:
        epochs: passes over the training triples.
        patience: passes without a better validation score after which a run ends; null: never.
    """

    epochs: PositiveInt = 200
    patience: PositiveInt | None = None
    min_steps: PositiveInt = 1


@dataclass
class SearchOptions:
    """A search of hyperparameters.

    Attributes:
        trials: number of combinations of values, including pruned ones; a larger number continues.
        minutes: total minutes of training; null: no limit.
        seeds: number of seeds of each combination, from `seed` on, or a list of seeds; their mean
            best validation score is maximised.
        sampler: sampler of values; its seed is the run's.
        pruner: pruner that ends combinations early, by the best score so far of the first run and
            by the mean before each other run; null: never.
        space: values by key of the configuration; null: not searched.
    """

    sampler: Callable[..., Any]
    space: Mapping[str, Any]
    trials: PositiveInt = 100
    minutes: PositiveFloat | None = None
    seeds: PositiveInt | Sequence[int] = (0, 1, 2)
    pruner: Callable[..., Any] | None = None


@dataclass
class StudyOptions:
    """Models in several spaces, with equal widths, seeds, steps and splits.

    Attributes:
        spaces: lists of overrides by the name of a kind of space; a model takes the first list of
            a kind that it can be built with.
        models: choices of `model=`, each compared with itself in flat space.
        seeds: number of seeds of each model in each space, from `seed` on, or a list of seeds; the
            tests pair them.
        steps: training steps; null: the task's default.
        dim: width of every model; null: the model's default.
        overrides: default overrides of every run; the command line wins.
    """

    spaces: Mapping[str, Any]
    models: Sequence[str] = ("fpst", "kappa_gcn")
    seeds: PositiveInt | Sequence[int] = 6
    steps: PositiveInt | None = 300
    dim: PositiveInt | None = None
    overrides: Sequence[str] = ()
