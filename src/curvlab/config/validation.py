"""Check a configuration: values by their classes' annotations, and rules between groups."""

import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any

from omegaconf import DictConfig, OmegaConf

from curvlab.checked import format_value
from curvlab.config.folder import CONFIGS, choices, find
from curvlab.config.schema import GROUPS, Option, attribute, is_subclass, options_of, spaces_of
from curvlab.errors import UsageError

DECISIVE = (
    "model", "manifold", "dataset", "split", "task", "batching", "optimizer", "trainer",
    "callbacks", "search", "seed",
)  # fmt: skip


def option_of(node: Mapping[str, Any] | DictConfig, path: str, name: str) -> Option | None:
    """The option of a key of a node; None if no signature has it."""
    target = node.get("_target_", GROUPS.get(path))
    return options_of(str(target)).get(name) if target else None


def keys_of(config: DictConfig) -> list[str]:
    """All keys of a configuration, nested ones included."""
    nodes = mappings(OmegaConf.to_container(config, resolve=False))
    return [f"{path}.{name}".lstrip(".") for path, node in nodes for name in node]


def check_options(config: DictConfig) -> None:
    """Check every value of a composed configuration, resolved."""
    raw = dict(mappings(OmegaConf.to_container(config, resolve=False)))
    for path, node in mappings(OmegaConf.to_container(config, resolve=True)):
        for name, value in node.items():
            key = f"{path}.{name}".lstrip(".")
            option = option_of(node, path, str(name))
            reference = re.fullmatch(r"\$\{([\w.]+)\}", str(raw.get(path, {}).get(name)))
            if reference and option is not None:
                key = reference[1]
            _check_value(key, option, value)


def check_keys(config: DictConfig) -> None:
    """Refuse unknown keys of a search or a study, which nothing would read."""
    for group in ("search", "study"):
        known = options_of(GROUPS[group])
        for name in config.get(group) or ():
            if name not in known:
                raise UsageError(
                    f"{group}.{name} is not an option of a {group}, which has {', '.join(known)}"
                )


def check_setting(key: str, config: DictConfig, value: Any) -> None:
    """Check one value that replaces another one."""
    path, _, name = key.rpartition(".")
    node = OmegaConf.select(config, path) if path else config
    option = option_of(node, path, name) if isinstance(node, DictConfig) else None
    _check_value(key, option, value)


def _check_value(key: str, option: Option | None, value: Any) -> None:
    if key.endswith("_target_") and not isinstance(value, str):
        raise UsageError(f"{key}={format_value(value)} must name a class")
    if option is not None and not option.spaces and option.problem(value) is not None:
        typed = f"{key} with keys" if isinstance(value, dict) else f"{key}={format_value(value)}"
        raise UsageError(f"{typed} must be {option.says}")


def mappings(node: Any, path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Dotted paths and mappings of a nested container, outermost first."""
    if isinstance(node, dict):
        yield path, node
        for key, value in node.items():
            yield from mappings(value, f"{path}.{key}".lstrip("."))
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from mappings(value, f"{path}[{i}]")


def leaves(node: Mapping[Any, Any] | DictConfig, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted keys and values of the leaves below a node."""
    for name, value in node.items():
        if isinstance(value, Mapping | DictConfig) and value:
            yield from leaves(value, f"{prefix}{name!s}.")
        else:
            yield f"{prefix}{name!s}", value


def decides(key: str, config: Mapping[str, Any]) -> bool:
    """Whether a key, or the choice of a group, can decide the result of a configuration."""
    first, *rest = key.split(".")
    if first not in DECISIVE:
        return False
    node: Any = config.get(first)
    for name in rest:
        if not isinstance(node, Mapping):
            return True
        option = options_of(str(node.get("_target_", ""))).get(name)
        if option is not None and option.incidental:
            return False
        node = node.get(name)
    return True


def validate(config: DictConfig) -> None:
    """Check values and combinations of a resolved configuration; the first fault is raised."""
    # The data set's tasks come first: other values depend on data set and task.
    rules = (_task_of_dataset, check_keys, check_options, _model, check_space, _batching)
    for rule in (*rules, _selection, check_machine):
        rule(config)


def is_of_triples(config: DictConfig) -> bool:
    """Whether the task is about the triples of a knowledge graph."""
    return attribute(config.task._target_, "data_kind") == "triples"


def is_if_needed(split: Mapping[str, Any] | DictConfig) -> bool:
    """Whether tasks that use all nodes ignore a split of the nodes."""
    return bool(attribute(str(split.get("_target_", "")), "if_needed", False))


def _kind(task: DictConfig) -> str:
    return str(task.get("recipe", task.name))


def _targets(group: str) -> dict[str, str]:
    """Classes of a group's choices."""
    files = [find(CONFIGS, f"{group}/{name}.yaml") for name in choices(CONFIGS, group)]
    targets = {path.stem: OmegaConf.select(OmegaConf.load(path), "_target_") for path in files}
    return {name: target for name, target in targets.items() if target}


def _task_of_dataset(config: DictConfig) -> None:
    dataset = config.dataset
    task = config.task
    if _kind(task) not in dataset.tasks:
        tasks = ", ".join(dataset.tasks) or "none"
        if "path" in dataset and is_of_triples(config):
            tasks += "; triples of your own are dataset=kg_folder"
        raise UsageError(f"dataset={dataset.name} has no task {task.name}; it has {tasks}")


def check_space(config: DictConfig) -> None:
    """Check that the model can be built with the space, by the annotation of its maker."""
    spaces = spaces_of(config.model._target_)

    def fits(space: str) -> bool:
        return any(is_subclass(space, base) for base in spaces)

    if fits(config.manifold._target_):
        return
    fitting = ", ".join(n for n, space in _targets("manifold").items() if fits(space))
    says = (
        f"model={config.model.name} cannot be built with manifold={config.manifold.name}; it can "
        f"with {fitting}"
    )
    options = options_of(config.model._target_).values()
    if not any(option.spaces for option in options) and not _is_own(config.model._target_):
        kind = config.manifold._target_.rpartition(".")[2]
        says += (
            f"; for other spaces its constructor needs the argument manifold: SpaceMaker[{kind}] = "
            f"{kind} (docs/adding.md, A model)"
        )
    raise UsageError(says)


def _is_own(target: str) -> bool:
    """Whether a class is one of this package's."""
    return target.partition(".")[0] == __name__.partition(".")[0]


def _model(config: DictConfig) -> None:
    model = config.model
    task = config.task
    of_triples = is_of_triples(config)
    tasks = attribute(model._target_, "tasks")
    fits = _kind(task) in tasks if tasks else not of_triples
    if not fits:
        purpose = f"it is made for {', '.join(tasks)}" if tasks else "it embeds nodes of a graph"
        choice = "a model made for triples, such as distmult" if of_triples else "another task"
        raise UsageError(
            f"model={model.name} cannot do task={task.name} of dataset={config.dataset.name}: "
            f"{purpose}; choose {choice}"
        )
    if of_triples != (config.batching.name == "triples"):
        right = "triples" if of_triples else "full"
        raise UsageError(f"task={task.name} takes batching={right}, not {config.batching.name}")
    directed = OmegaConf.select(config.dataset, "source.directed")
    if directed and not attribute(model._target_, "directed", False):
        models = [n for n, target in _targets("model").items() if attribute(target, "directed")]
        raise UsageError(
            f"dataset.source.directed=true: model={model.name} sees both directions of every "
            f"edge; omit dataset.source.directed=, or choose one of {', '.join(models)}"
        )


def _batching(config: DictConfig) -> None:
    name = config.batching.name
    task = config.task
    model = config.model
    if config.batching.one_graph:
        return
    if "metric" not in task or "split" in task or _kind(task) == "filter_regression":
        raise UsageError(
            f"batching={name}: the loss of task={task.name} is of the whole graph; omit "
            "batching=, or choose a dataset of node classification"
        )
    if attribute(model._target_, "whole_graph", False):
        raise UsageError(
            f"batching={name}: model={model.name} needs the whole graph in every step; omit "
            "batching="
        )
    if name == "tokens" and not attribute(model._target_, "takes_tokens", False):
        raise UsageError(
            f"batching=tokens: model={model.name} reads more of the graph than the polynomial "
            "tokens of its nodes; omit batching=, or choose a model of tokens, such as polyformer"
        )


def _selection(config: DictConfig) -> None:
    task = config.task
    dataset = config.dataset
    trainer = config.trainer
    split = config.split
    chooses = "metric" in task
    triples = is_of_triples(config)
    if chooses != ("validate_every" in trainer):
        rule = "selects its weights by validation" if chooses else "keeps the last weights"
        default = "early_stopping" if chooses else "default"
        raise UsageError(f"task={task.name} {rule}: use trainer={default}, its default")
    if triples and split:
        raise UsageError(f"the files of dataset={dataset.name} are its split: omit split=")
    of_nodes = chooses and not triples and "split" not in task
    unused = bool(split) and not of_nodes and is_if_needed(split)
    if "split" not in task and of_nodes != bool(split) and not unused:
        if chooses:
            raise UsageError(f"task={task.name} needs a split of the nodes: choose one by split=")
        raise UsageError(f"task={task.name} uses all nodes: choose split=none")
    if chooses and task.metric is None:
        raise UsageError(f"dataset={dataset.name} names no metric: set task.metric=accuracy")
    if chooses and trainer.validate_every > trainer.max_steps:
        raise UsageError(
            f"trainer.validate_every={trainer.validate_every} exceeds trainer.max_steps="
            f"{trainer.max_steps}: no validation would choose the weights"
        )


def check_machine(config: DictConfig) -> None:
    """Refuse a logger that is not installed, and options that need another number of devices."""
    target = OmegaConf.select(config, "logger._target_") or ""
    logger = re.fullmatch(r"curvlab\.callbacks\.(\w+)_logger", target)
    if logger and find_spec(logger[1]) is None:
        name = logger[1]
        raise UsageError(f"logger={name} needs {name}: pip install 'curvlab[{name}]'")
    devices = config.trainer.devices
    if config.trainer.cuda_graph and (devices > 1 or not config.batching.one_graph):
        raise UsageError(
            "trainer.cuda_graph=true: only steps of one device on one whole graph are recorded"
        )
    if devices == 1:
        return
    for several in ("search", "study"):
        if several in config:
            raise UsageError(
                f"trainer.devices={devices}: the runs of a {several} have one device each: use "
                "trainer.devices=1"
            )
    if config.batching.one_graph and not attribute(config.task._target_, "shares_loss", False):
        raise UsageError(
            f"trainer.devices={devices}: a model trained on one whole graph has one batch and "
            "nothing to share; use trainer.devices=1 (and -m hydra/launcher=joblib for several "
            "runs at once), or batching=partition for mini-batches"
        )
