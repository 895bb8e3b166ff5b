"""A report on a user's graph, and the task that the graph's labels choose."""

import sys
from collections.abc import Sequence
from functools import partial

from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from curvlab.cli.overrides import chooses, first, parsed, spelt_out
from curvlab.config.building import build, in_words_of
from curvlab.config.compose import compose
from curvlab.config.folder import CONFIGS
from curvlab.config.options import check_options
from curvlab.config.schema import is_subclass

OWN = "curvlab.data.datasets.own_graph.OwnGraph"
LABELLED = "node_classification"
ELSEWHERE = ("table", "help")
"""Words with which no single graph is trained on."""


def with_task_of_labels(words: Sequence[str], only_shown: bool = False) -> list[str]:
    """Read a user's graph, say what is in it, and add the task that its labels choose.

    Without `task=` a graph with labels is for node classification, one without has the data set's
    own task. Words of another data set, of several graphs and wrong ones come back as they are.
    With `only_shown` nothing stays in the cache, and the report goes to stderr.
    """
    config = _config(words)
    if config is None:
        return list(words)
    # These need torch, as `--help` does not.
    from curvlab.data.datasets.named import build_source

    say = partial(print, file=sys.stderr if only_shown else sys.stdout)
    kept = {"data_dir": None} if only_shown else {}
    source = build_source(config.dataset, {**config.paths, **kept})
    with in_words_of(config.dataset.source):
        data = source.load(say=say)  # type: ignore[call-arg]
    labelled = data.y is not None
    if config.dataset.features and not str(config.batching.name).startswith("tokens"):
        for remark in getattr(build(config.dataset.features), "remarks", lambda _: ())(data):
            say(f"  {remark}")
    if any(word.lstrip("+").startswith("task=") for word in words):
        return list(words)
    task = LABELLED if labelled else str(config.task.name)
    say(f"task={task}, since its nodes have {'' if labelled else 'no '}labels")
    return [*words, f"task={task}"]


def _config(words: Sequence[str]) -> DictConfig | None:
    """Compose the data overrides; None if they are wrong or name no graph of your own."""
    try:
        overrides = [parsed(word) for word in words if word not in ("-m", "--multirun")]
        if any(override.key_or_group in ELSEWHERE for override in overrides):
            return None
        of_data = [o for o in overrides if o.key_or_group.split(".")[0] in ("dataset", "paths")]
        if any(override.is_sweep_override() for override in of_data):
            return None
        groups = [o for o in overrides if chooses(o.key_or_group, CONFIGS) and spelt_out(o)]
        settings = [str(override.input_line) for override in of_data if override not in groups]
        config = compose([*map(first, groups), *settings])
        check_options(config)
        own = is_subclass(str(OmegaConf.select(config, "dataset.source._target_")), OWN)
        return config if own else None
    except (HydraException, OmegaConfBaseException, TypeError, ValueError, RecursionError):
        return None  # Python's are Hydra's of odd values; the check of all words says what is wrong
