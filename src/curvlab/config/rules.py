"""Rules between the groups of a configuration, checked before anything is built."""

from collections.abc import Iterator, Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf

from curvlab.config.folder import CONFIGS, choices, find
from curvlab.config.options import check_options
from curvlab.config.schema import attribute, is_subclass, spaces_of
from curvlab.errors import UsageError

EIGENVECTOR_FEATURES = "curvlab.data.transforms.spectrum.EigenvectorFeatures"


def validate(config: DictConfig) -> None:
    """Check values and combinations of a resolved configuration.

    Args:
        config: the composed configuration.

    Raises:
        UsageError: the first thing that is wrong, in one sentence.
    """
    dataset, task = config.dataset, config.task
    if kind_of(task) not in dataset.tasks:  # then values that come from both mean nothing
        own = "path" in dataset and is_of_triples(config)
        raise UsageError(
            f"dataset={dataset.name} has no task {task.name}; "
            f"it has {', '.join(dataset.tasks) or 'none'}"
            f"{'; triples of your own are dataset=kg_folder' if own else ''}"
        )
    check_options(config)
    check_task_of_model(config)
    check_space(config)
    check_direction(config)
    check_basis(config)
    check_batching(config)
    check_selection(config)
    check_devices(config)


def kind_of(task: DictConfig) -> str:
    """Which task one is, or is a variant of."""
    return str(task.get("recipe", task.name))


def transforms_of(config: DictConfig) -> list[DictConfig]:
    """What the model asks to be made of the graph."""
    return list(OmegaConf.select(config.model, "requires.transforms") or [])


def check_space(config: DictConfig) -> None:
    """Check that the model can be built with the space: by the type of the maker that it takes.

    Raises:
        UsageError: with the choices of `manifold=` that fit.
    """
    spaces = spaces_of(config.model._target_)
    if not _fits(config.manifold._target_, spaces):
        files = [find(CONFIGS, f"manifold/{name}.yaml") for name in choices(CONFIGS, "manifold")]
        others = {path.stem: OmegaConf.select(OmegaConf.load(path), "_target_") for path in files}
        raise UsageError(
            f"model={config.model.name} cannot be built with manifold={config.manifold.name}; it "
            f"can with {', '.join(name for name, space in others.items() if _fits(space, spaces))}"
        )


def _fits(space: str, spaces: tuple[str, ...]) -> bool:
    return any(is_subclass(space, base) for base in spaces)


def is_of_triples(config: DictConfig) -> bool:
    """Whether the task is about the triples of a knowledge graph, not the nodes of a graph."""
    return attribute(config.task._target_, "data_kind") == "triples"


def check_task_of_model(config: DictConfig) -> None:
    """Check that the model is made for what the task is about: nodes of a graph, or triples.

    Raises:
        UsageError: it is made for other tasks.
    """
    model, task = config.model, config.task
    of_triples = is_of_triples(config)
    tasks = attribute(model._target_, "tasks")
    if not (kind_of(task) in tasks if tasks else not of_triples):
        made_for = f"it is made for {', '.join(tasks)}" if tasks else "it embeds nodes of a graph"
        others = "a model made for triples, such as distmult" if of_triples else "another of them"
        raise UsageError(
            f"model={model.name} cannot do task={task.name} of dataset={config.dataset.name}: "
            f"{made_for}; choose {others}"
        )
    if of_triples != (config.batching.name == "triples"):
        right = "triples" if of_triples else "full"
        raise UsageError(f"task={task.name} takes batching={right}, not {config.batching.name}")


def check_direction(config: DictConfig) -> None:
    """Check that the model uses the direction of edges, where the data set keeps it.

    Raises:
        UsageError: with the models that do.
    """
    if not OmegaConf.select(config.dataset, "source.directed"):
        return
    if not attribute(config.model._target_, "directed", False):
        raise UsageError(
            f"dataset.source.directed=true: model={config.model.name} sees both directions of "
            f"every edge; drop the word, or take one of {', '.join(models_with('directed'))}"
        )


def models_with(name: str) -> list[str]:
    """The models whose class has an attribute that is neither None nor false."""
    files = [find(CONFIGS, f"model/{model}.yaml") for model in choices(CONFIGS, "model")]
    targets = {path.stem: OmegaConf.select(OmegaConf.load(path), "_target_") for path in files}
    found = {model: attribute(it, name) for model, it in targets.items() if it}
    return [model for model, value in found.items() if value not in (None, False)]


def check_basis(config: DictConfig) -> None:
    """Check that a model has the basis it is named after, with which its self-loops go.

    Raises:
        UsageError: another model has that basis, or none.
    """
    model = config.model
    bases = OmegaConf.select(model, "requires.bases")
    if not bases:
        return
    right = bases.get(model.basis)
    if right is None:
        raise UsageError(f"model.basis={model.basis} must be one of {', '.join(bases)}")
    if right != model.name:
        raise UsageError(
            f"model={model.name} with model.basis={model.basis} would keep the label and the "
            f"self-loops of its own basis: use model={right}"
        )


def check_batching(config: DictConfig) -> None:
    """Check that task and model can do with parts of the graph, where they are given parts.

    Raises:
        UsageError: the loss is of the whole graph, or the model needs more than a part, or would
            keep what it makes of one.
    """
    name = config.batching.name
    if config.batching.one_graph:
        return
    task = kind_of(config.task)
    if "metric" not in config.task or "split" in config.task or task == "filter_regression":
        raise UsageError(
            f"batching={name}: the loss of task={config.task.name} is of the whole graph; drop "
            "batching=, or choose a dataset of node classification"
        )
    if attribute(config.model._target_, "whole_graph", False):
        raise UsageError(
            f"batching={name}: model={config.model.name} needs the whole graph in every step; drop "
            "batching="
        )
    asks = {transform["_target_"] for transform in transforms_of(config)}
    if name == "tokens" and EIGENVECTOR_FEATURES in asks:
        raise UsageError(
            f"batching=tokens: model={config.model.name} adds eigenvectors to the features, which "
            "come from the graph in memory; drop batching=, or choose another model of tokens, "
            "such as polyformer"
        )
    for path, value in _leaves(OmegaConf.to_container(config.model, resolve=True)):
        if path.rsplit(".", 1)[-1] == "cached" and value is True:
            raise UsageError(
                f"model.{path}=true would keep the edges of the first batch: leave it false with "
                f"batching={name}"
            )


def check_selection(config: DictConfig) -> None:
    """Check that a task whose weights are chosen by validation has what that takes, and no other.

    Raises:
        UsageError: it lacks the metric, the split or the trainer, or has one without a use.
    """
    task, dataset, trainer = config.task, config.dataset, config.trainer
    chooses = "metric" in task
    if chooses != ("validate_every" in trainer):
        way = "chooses its weights by validation" if chooses else "keeps the last weights"
        other = "early_stopping" if chooses else "default"
        raise UsageError(f"task={task.name} {way}: use trainer={other}, its default")
    if is_of_triples(config) and config.split:
        raise UsageError(f"the files of dataset={dataset.name} are its split: drop split=...")
    split_of_nodes = chooses and not is_of_triples(config) and "split" not in task
    unused = bool(config.split) and not split_of_nodes and is_if_needed(config.split)
    if "split" not in task and split_of_nodes != bool(config.split) and not unused:
        needs = "needs a split of the nodes" if chooses else "uses all nodes"
        way_out = "choose one of split=..." if chooses else "choose split=none"
        raise UsageError(f"task={task.name} {needs}: {way_out}")
    if not chooses:
        return
    if task.metric is None:
        raise UsageError(f"dataset={dataset.name} names no metric: set task.metric=accuracy")
    if trainer.validate_every > trainer.max_steps:
        raise UsageError(
            f"trainer.validate_every={trainer.validate_every} exceeds trainer.max_steps="
            f"{trainer.max_steps}: no validation would choose the weights"
        )


def is_if_needed(split: Mapping[str, Any] | DictConfig) -> bool:
    """Whether a split of the nodes is left out by tasks that use all nodes."""
    return bool(attribute(str(split.get("_target_", "")), "if_needed", False))


def check_devices(config: DictConfig) -> None:
    """Refuse several devices in one run where they do not help: searches, one whole graph.

    A task whose `shares_loss` is true divides the work of one graph.

    Raises:
        UsageError: with the ways out.
    """
    devices = config.trainer.devices
    for several in ("search", "study"):
        if devices != 1 and several in config:
            raise UsageError(
                f"trainer.devices={devices}: the runs of a {several} have one device each: use "
                "trainer.devices=1"
            )
    shared = attribute(config.task._target_, "shares_loss", False)
    if devices != 1 and config.batching.one_graph and not shared:
        raise UsageError(
            f"trainer.devices={devices}: a model trained on one whole graph has one batch and "
            "nothing to share; use trainer.devices=1 (and -m hydra/launcher=parallel for several "
            "runs at once), or batching=partition for mini-batches"
        )
    if devices != 1 and config.trainer.parallel_seeds != 1:
        raise UsageError(
            f"trainer.devices={devices} and trainer.parallel_seeds={config.trainer.parallel_seeds} "
            "would both start processes: keep one of them"
        )


def _leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted paths and values of a nested container."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _leaves(value, f"{path}.{key}" if path else str(key))
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from _leaves(value, f"{path}[{i}]")
    else:
        yield path, node
