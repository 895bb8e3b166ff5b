"""What values keys may have: of which kind, between which bounds, and where null means something.

Keys are known by the last word of their path, which means the same wherever it stands, so that a
new model's keys are checked by using the words of the others.
"""

from numbers import Real
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from curvlab.errors import UsageError

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
BOOLEANS = {"deterministic"}  # of those that are null by default
OPTIONAL = {
    "head_dim", "threads", "gradient_clip", "min", "max", "patience", "minutes", "draw",
    "neighbours", "transformer_weight_decay", "output_scale", "max_scale", "margin", "ffn_dim",
    "attention_lr", "attention_weight_decay", "filter_lr", "filter_weight_decay",
    "smallest", "max_angle", "midpoint", "inner", "linear_maps", "deterministic",
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
    "precision": ("32-true", "64-true", "bf16-mixed"),
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
    "inner": ("as_released",),
    "linear_maps": ("per_branch",),
    "heads_fusion": ("mean", "concat"),
    "fusion": ("tangent", "midpoint"),
    "midpoint": ("paper",),
    "skip_mode": ("sequential", "aggregate_all"),
    "operator": ("centroid", "parallel_transport", "tangent_space", "space_addition"),
    "form": ("stable", "maps"),
    "ties": ("realistic", "optimistic", "pessimistic"),
    "shuffle": ("triples", "pairs"),
    "activation": ("relu", "elu", "tanh", "sigmoid"),
    "mode": ("max",),  # of a scheduler: the score that it is told is better the higher it is
}


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
    if name in BOOLEANS and not isinstance(value, bool):
        raise UsageError(f"{path}={value} must be true, false or null")
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
