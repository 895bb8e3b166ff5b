"""What a configuration must satisfy before anything is built."""

import hashlib
import math
import re
from collections.abc import Iterator
from numbers import Real
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from curvlab.errors import UsageError

# What each word means wherever it stands in the configuration, so that a new model's keys are
# checked by using the words of the others.
POSITIVE_INTEGERS = {
    "dim", "layers", "heads", "head_dim", "ffn_ratio", "smallest", "num_nodes", "passes",
    "random_features", "gumbel_samples", "ffn_dim", "longest_path", "largest_degree",
    "max_steps", "steps_per_epoch", "threads", "devices", "parallel_seeds", "validate_every",
    "patience", "min_steps", "trials", "size", "epochs", "train_triples", "samples",
    "inner_steps", "inner_patience", "inner_limit", "side", "last_heads", "K",
}  # fmt: skip
POSITIVE_NUMBERS = {
    "lr", "curvature_lr", "manifold_lr", "gradient_clip", "minutes", "temperature",
    "weight_x", "weight_y", "output_scale", "margin", "radius", "time_offset", "max_scale",
    "attention_lr", "expansion", "filter_lr", "memory_gb", "inner_lr",
}  # fmt: skip
NON_NEGATIVE_NUMBERS = {
    "weight_decay", "manifold_weight_decay", "transformer_weight_decay", "bias_weight_decay",
    "edge_loss", "noise", "attention_weight_decay", "power", "filter_weight_decay",
    "inner_weight_decay", "smoothness", "connectivity", "sparsity", "tolerance", "weight", "floor",
}  # fmt: skip
NON_NEGATIVE_INTEGERS = {
    "hops", "orders", "workers", "eigenvectors", "largest", "image", "all_pairs_up_to",
}  # fmt: skip
SEEDS = {"seed"}
LARGEST_SEED = 2**32 - 1  # numpy's
FRACTIONS = {
    "dropout", "edge_dropout", "cycle_fraction", "attention_dropout", "ffn_dropout",
    "feature_dropout", "filter_dropout", "alpha", "label_smoothing", "min_decrease",
    "input_dropout", "later_dropout",
}  # fmt: skip
SHARES = {"graph_weight", "decay"}
FACTORS = {"factor"}
NUMBERS = {"kappa", "min", "max", "threshold"}
NEGATIVE_NUMBERS = {"kappa_in"}
SWITCHES = {"input_dropout", "weight"}  # of some models true or false, of others a number
OPTIONAL = {
    "head_dim", "threads", "gradient_clip", "min", "max", "patience", "minutes", "draw",
    "neighbours", "transformer_weight_decay", "output_scale", "max_scale", "margin", "ffn_dim",
    "attention_lr", "attention_weight_decay", "filter_lr", "filter_weight_decay",
    "smallest", "max_angle",
}  # fmt: skip
# Where a word of OPTIONAL has to have a value all the same: what it is told to, and the words.
NEEDED: dict[str, tuple[str, ...]] = {
    "curvlab.manifolds.Lorentz": ("max",),
    "curvlab.manifolds.PseudoHyperboloid": ("max",),
    "curvlab.models.graph_transformers.GraphTrans": ("ffn_dim",),
    "curvlab.models.graphormer.Graphormer": ("ffn_dim",),
    "curvlab.models.hypformer.Hypformer": ("head_dim",),
    "curvlab.models.nodeformer.NodeFormer": ("head_dim",),
    "torch.optim.lr_scheduler.ReduceLROnPlateau": ("patience",),
}
# Parts with keys of their own that may be left out; a model whose residual is such a part is named
# after it.
OPTIONAL_PARTS = {"features", "scheduler", "pruner"}
PARTS = OPTIONAL_PARTS | {"residual"}
CHOICES = {
    "basis": ("mono", "cheb"),
    "token_dtype": ("float32", "float16", "bfloat16"),
    "accelerator": ("auto", "cpu", "cuda", "mps"),
    "precision": ("32-true", "bf16-mixed"),
    "decoder": (
        "auto",
        "stereographic",
        "prototype",
        "linear",
        "lorentzian",
        "fermi_dirac",
    ),
    "logit_curvature": ("geometric", "paper"),
    "normalisation": ("none", "batch", "layer"),
    "curvature_mode": ("rescale", "recalibrate"),
    "input_lift": ("exp0", "exp0_ref"),
    "heads_fusion": ("mean", "concat"),
    "fusion": ("tangent", "midpoint"),
    "skip_mode": ("sequential", "aggregate_all"),
    "operator": ("centroid", "parallel_transport", "tangent_space", "space_addition"),
    "form": ("stable", "maps"),
    "ties": ("realistic", "optimistic", "pessimistic"),
    "shuffle": ("triples", "pairs"),
    "activation": ("relu", "elu", "tanh", "sigmoid"),
    "mode": ("max",),  # of a scheduler: the score that it is told is better the higher it is
}

EIGENVECTOR_FEATURES = "curvlab.data.spectrum.EigenvectorFeatures"


def validate(config: DictConfig, multirun: bool) -> None:
    """Check values and combinations of a resolved configuration.

    Args:
        config: the composed configuration.
        multirun: whether the run is one of a sweep.

    Raises:
        UsageError: the first thing that is wrong, in one sentence.
    """
    model, dataset, task, manifold = config.model, config.dataset, config.task, config.manifold
    if base_name(task.name) not in dataset.tasks:  # then values that come from both mean nothing
        raise UsageError(
            f"dataset={dataset.name} has no task {task.name}; "
            f"it has {', '.join(dataset.tasks) or 'none'}"
        )
    plain = OmegaConf.to_container(config, resolve=True)
    for path, value in _leaves(plain):
        check_value(path, value)
    check_task_of_model(config)
    if manifold.name not in model.requires.manifolds:
        raise UsageError(
            f"model={model.name} cannot be built with manifold={manifold.name}; it can with "
            f"{', '.join(model.requires.manifolds)}"
        )
    heads = model.get("heads", 1)
    if heads > 1 and model.get("head_dim") is None and model.dim % heads:
        divisors = [str(h) for h in range(1, model.dim + 1) if model.dim % h == 0]
        raise UsageError(
            f"model.heads={heads} does not divide model.dim={model.dim}; {', '.join(divisors)} do"
        )
    check_basis(config)
    check_batching(config)
    check_selection(config)
    check_devices(config, multirun)


def check_task_of_model(config: DictConfig) -> None:
    """Check that the model is made for what the task is about: nodes of a graph, or triples.

    Raises:
        UsageError: it is made for other tasks.
    """
    model, task = config.model, config.task
    of_triples = "of" in task
    tasks = model.requires.get("tasks")
    fits = not of_triples if tasks is None else base_name(task.name) in tasks
    if not fits:
        made_for = f"it is made for {', '.join(tasks)}" if tasks else "it embeds nodes of a graph"
        others = (
            f"a model made for {task.of}, such as distmult" if of_triples else "another of them"
        )
        raise UsageError(
            f"model={model.name} cannot do task={task.name} of dataset={config.dataset.name}: "
            f"{made_for}; choose {others}"
        )
    if of_triples != (config.batching.name == "triples"):
        right = "triples" if of_triples else "full"
        raise UsageError(f"task={task.name} takes batching={right}, not {config.batching.name}")


def check_basis(config: DictConfig) -> None:
    """Check that a model has the basis it is named after, with which its self-loops go.

    Raises:
        UsageError: another model has that basis, or none.
    """
    model = config.model
    bases = model.requires.get("bases")
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
    task = base_name(config.task.name)
    if "metric" not in config.task or "split" in config.task or task == "filter_regression":
        raise UsageError(
            f"batching={name}: the loss of task={config.task.name} is of the whole graph; drop "
            "batching=, or choose a dataset of node classification"
        )
    if config.model.requires.get("whole_graph", False):
        raise UsageError(
            f"batching={name}: model={config.model.name} needs the whole graph in every step; drop "
            "batching="
        )
    asks = {transform["_target_"] for transform in config.model.requires.get("transforms", ())}
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
    if "of" in task and config.split:
        raise UsageError(f"the files of dataset={dataset.name} are its split: drop split=...")
    split_of_nodes = chooses and "of" not in task and "split" not in task
    if "split" not in task and split_of_nodes != bool(config.split):
        needs = "needs a split of the nodes" if chooses else "uses all nodes"
        raise UsageError(
            f"task={task.name} {needs}: {'choose one of' if chooses else 'drop'} split=..."
        )
    if not chooses:
        return
    if task.metric is None:
        raise UsageError(f"dataset={dataset.name} names no metric: set task.metric=accuracy")
    if trainer.validate_every > trainer.max_steps:
        raise UsageError(
            f"trainer.validate_every={trainer.validate_every} exceeds trainer.max_steps="
            f"{trainer.max_steps}: no validation would choose the weights"
        )


def check_devices(config: DictConfig, multirun: bool) -> None:
    """Refuse several devices in one run where they do not help: in a sweep, on one whole graph.

    Raises:
        UsageError: with the ways out.
    """
    devices = config.trainer.devices
    if devices != 1 and multirun:
        raise UsageError(
            "several devices in one run and -m do not mix, since every process would start the "
            "whole sweep: use trainer.devices=1 with hydra/launcher=parallel (or slurm), one job a "
            "device, or drop -m"
        )
    if devices != 1 and config.batching.one_graph:
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


def check_value(path: str, value: Any) -> None:
    """Check one value by the meaning of its name.

    Raises:
        UsageError: it is of another kind or out of range.
    """
    name = path.rsplit(".", 1)[-1]
    if value is None and name in OPTIONAL:
        return
    if isinstance(value, bool) and name in SWITCHES:
        return
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if name in POSITIVE_INTEGERS and not (is_integer and value >= 1):
        raise UsageError(f"{path}={value} must be a whole number of at least 1")
    if name in NON_NEGATIVE_INTEGERS and not (is_integer and value >= 0):
        raise UsageError(f"{path}={value} must be a whole number of at least 0")
    if name in POSITIVE_NUMBERS and not (is_number and 0 < value < float("inf")):
        raise UsageError(f"{path}={value} must be a number greater than 0")
    if name in NON_NEGATIVE_NUMBERS and not (is_number and 0 <= value < float("inf")):
        raise UsageError(f"{path}={value} must be a number of at least 0")
    if name in SEEDS and not (is_integer and 0 <= value <= LARGEST_SEED):
        raise UsageError(f"{path}={value} must be a whole number from 0 to {LARGEST_SEED}")
    if name in NUMBERS and not (is_number and abs(value) < float("inf")):
        raise UsageError(f"{path}={value} must be a number")
    if name in NEGATIVE_NUMBERS and not (is_number and -float("inf") < value < 0):
        raise UsageError(f"{path}={value} must be a number less than 0")
    of_choice = name in CHOICES and not (name == "activation" and not isinstance(value, str))
    if of_choice and value not in CHOICES[name]:  # where an activation is a switch it is of relu
        raise UsageError(f"{path}={value} must be one of {', '.join(CHOICES[name])}")
    if name in FRACTIONS and not (is_number and 0 <= value < 1):
        raise UsageError(f"{path}={value} must be a number from 0 up to, but not including, 1")
    if name in SHARES and not (is_number and 0 <= value <= 1):
        raise UsageError(f"{path}={value} must be a number from 0 to 1")
    if name in FACTORS and not (is_number and 0 < value < 1):
        raise UsageError(f"{path}={value} must be a number between 0 and 1")


def check_kind(key: str, config: DictConfig, value: Any) -> None:
    """Check that a value is of the kind of the one that it replaces.

    Null may stand where it stands already, and where what is told the value knows what it means.

    Args:
        key: dotted.
        config: the composed configuration without the value.
        value: a plain one.

    Raises:
        UsageError: it is of another kind.
    """
    default = OmegaConf.select(config, key)
    shown = "null" if value is None else value
    if value is None and (default is None or _may_be_null(key, config)):
        return
    if default is None:
        _check_part(key, value)
    elif isinstance(default, DictConfig):
        if not isinstance(value, dict):
            names = [name for name in map(str, default) if not name.startswith("_")]
            first = names[0] if names else "..."
            raise UsageError(f"{key} has keys of its own, as {key}.{first}: set these, not {shown}")
    elif isinstance(default, ListConfig):
        if not isinstance(value, list):
            raise UsageError(f"{key} is a list, as in {key}={_written(default)}, not {shown}")
    else:
        _check_kind_of_one(key, default, value)


def _may_be_null(key: str, config: DictConfig) -> bool:
    """Whether a value can be taken away."""
    whole, _, name = key.rpartition(".")
    if isinstance(OmegaConf.select(config, key), DictConfig):
        return name in OPTIONAL_PARTS
    node = OmegaConf.select(config, whole) if whole else config
    needed = NEEDED.get(node.get("_target_", ""), ()) if isinstance(node, DictConfig) else ()
    return name in OPTIONAL and name not in needed


def _check_part(key: str, value: Any) -> None:
    """Check what takes the place of null: a part of a run is made of keys."""
    if key.rsplit(".", 1)[-1] in PARTS and not isinstance(value, dict):
        group = key.partition(".")[0]
        raise UsageError(
            f"{key} is null here and cannot be {value}: choose another {group}=... that has keys "
            "for it, or leave it null"
        )


def _check_kind_of_one(key: str, default: Any, value: Any) -> None:
    """Check a value that is to replace one that is neither a list nor has keys."""
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
        shown = "null" if value is None else value
        raise UsageError(f"{key} is {kind}, as in {key}={default}, not {shown}")


def _written(values: ListConfig) -> str:
    """A list as a command line has it."""
    return f"[{','.join(str(value) for value in values)}]"


def run_name(overrides: str) -> str:
    """Name a run's folder after what was set on the command line.

    Args:
        overrides: for instance `model.dim=8,trainer.max_steps=100`; empty for none.
    """
    # A sweep spells truth in capitals, and marks keys that only its cells have.
    overrides = re.sub(r"=(True|False)\b", lambda truth: truth[0].lower(), overrides)
    overrides = re.sub(r"(^|,)\+\+", r"\1", overrides)
    name = re.sub(r"[^\w.=,+-]+", "_", overrides)
    if len(name) > 100:
        name = f"{name[:83]}-{hashlib.sha256(overrides.encode()).hexdigest()[:16]}"
    return name or "default"


def base_name(name: str) -> str:
    """Whose values a variant has: `cora__per_class` those of `cora`, a plain name its own."""
    return name.partition("__")[0]


def steps_of_pass(triples: int | None, size: int, inverse_relations: bool) -> int:
    """Batches of `size` triples in a pass over them, each twice with inverse relations.

    A dataset without triples has none, so that its configuration resolves and can be refused.
    """
    return -(-(triples or 0) * (2 if inverse_relations else 1) // size)


def checksum_of(folder: str, *names: str) -> str | None:
    """A name for what some files of a folder hold, 16 hexadecimal digits; None if one is missing.

    In a dataset's configuration it keeps the result of other files from being taken for theirs.
    """
    paths = [Path(folder) / name for name in names]
    if not all(path.is_file() for path in paths):
        return None
    sums = "".join(hashlib.sha256(path.read_bytes()).hexdigest() for path in paths)
    return hashlib.sha256(sums.encode()).hexdigest()[:16]


def register_resolvers() -> None:
    """Make the functions that configurations call known to OmegaConf."""
    OmegaConf.register_new_resolver("checksum_of", checksum_of, replace=True)
    OmegaConf.register_new_resolver("steps_of_pass", steps_of_pass, replace=True)
    OmegaConf.register_new_resolver("product", lambda *factors: math.prod(factors), replace=True)
    OmegaConf.register_new_resolver("run_name", run_name, replace=True)
    OmegaConf.register_new_resolver("base_name", base_name, replace=True)
    OmegaConf.register_new_resolver("is_set", lambda value: value is not None, replace=True)
