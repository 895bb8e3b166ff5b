"""Overrides as people type them: aliases, hints, and graphs of their own."""

import re
import sys
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path

from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from curvlab.cli.overrides import parse, variations
from curvlab.config.building import build, name_keys_in_errors
from curvlab.config.compose import compose
from curvlab.config.folder import CONFIGS, choices, is_group
from curvlab.config.options import check_options
from curvlab.config.schema import is_subclass
from curvlab.errors import UsageError

ALIASES = {
    "manifold": {"flat": "euclidean", "hyperboloid": "lorentz", "spherical": "sphere"},
    "task": {"lp": "link_prediction", "nc": "node_classification", "kgc": "kg_completion"},
}

HINTS = {
    "debug=anomaly": "say debug=nan",
    "manifold=hyperbolic": "say manifold=poincare for the ball, manifold=lorentz for the "
    "hyperboloid",
    "epochs": "say trainer.max_steps, which are epochs where a batch is the whole graph, or "
    "trainer.epochs where the task has batches",
}
"""Answers to keys and choices that do not exist and could mean several things."""

READERS = {
    "pyg": (".pt", ".pth"),
    "networkx": (".graphml", ".gml", ".gexf", ".net", ".edgelist", ".adjlist", ".edges", ".txt"),
    "graph_folder": (".csv", ".tsv", ".parquet"),
}
"""Data sets that read a user's file, by its ending, `.gz` left out."""


OWN = "curvlab.data.datasets.own_graph.OwnGraph"
LABELLED = "node_classification"
ELSEWHERE = ("table", "help")  # words with which no single graph is trained on


def resolve_aliases(words: Sequence[str]) -> list[str]:
    """Replace aliases of choices, other spellings (`model=FPS-T`) and paths of graphs."""
    words = _add_reader(words)
    return [_resolve(word) for word in words]


def squash(name: str) -> str:
    """Normalise a name: lower case, without hyphens and underscores."""
    return name.lower().replace("-", "").replace("_", "")


def _resolve(word: str) -> str:
    group, _, value = word.partition("=")
    if group in HINTS:
        raise UsageError(f"{word}: {HINTS[group]}")
    if not value or not group.isidentifier() or not is_group(CONFIGS, group):
        return word
    names = choices(CONFIGS, group)
    spellings = {squash(name): name for name in names} | ALIASES.get(group, {})
    resolved = []
    for choice in value.split(","):
        hint = HINTS.get(f"{group}={choice}")
        if hint and choice not in names:
            raise UsageError(f"{group}={choice}: {hint}")
        name = choice if choice in names else spellings.get(squash(choice), choice)
        resolved.append("'nan'" if name == "nan" else name)  # unquoted it is a number to Hydra
    return f"{group}={','.join(resolved)}"


def _add_reader(words: Sequence[str]) -> list[str]:
    """Add the data set that reads a user's files: `dataset=FOLDER`, `dataset=edges.csv`."""
    found = [word.partition("=")[2] for word in words if word.startswith("dataset=")]
    chosen = found[-1] if found else ""
    readers = {_reader(value) for value in chosen.split(",")}
    names = {*READERS, *choices(CONFIGS, "dataset")}
    shown = any(word.lstrip("+").lower() == "print_config=true" for word in words)
    for said in _clashes(chosen.split(","), names):
        print(said, file=sys.stderr if shown else sys.stdout)
    if chosen and len(readers) == 1 and readers != {""} and not names.issuperset(chosen.split(",")):
        (reader,) = readers
        path = "dataset.source.path" if reader == "kg_folder" else "dataset.path"
        value = chosen if re.fullmatch(r"[\w./~+,-]+", chosen) else f"'{chosen}'"
        kept = [word for word in words if not word.startswith("dataset=")]
        words, chosen = [*kept, f"dataset={reader}", f"{path}={value}"], reader
    if chosen not in READERS:
        return list(words)
    kind = r"^dataset\.features=(?!null$)(?=[\w+,]+$)"
    return [re.sub(kind, "dataset.features.kind=", word) for word in words]


def _clashes(values: Sequence[str], names: Collection[str]) -> Iterator[str]:
    """Say which of a data set and a folder with one name is taken."""
    spellings = {squash(name): name for name in names}
    for value in values:
        name = spellings.get(squash(value))
        if name is None or not _is_graph_folder(Path(value).expanduser()):
            continue
        if value in names:
            yield f"dataset={value} is curvlab's data set; your folder is dataset=./{value}"
        else:
            yield f"dataset={value} is your folder; curvlab's data set is dataset={name}"


def _is_graph_folder(place: Path) -> bool:
    return (place.is_dir() and any(place.glob("edges.*"))) or (place / "train.txt").is_file()


def _reader(value: str) -> str:
    """The data set that reads a path; empty if it is not a path."""
    place = Path(value).expanduser()
    if place.is_dir():
        triples = any((place / f"train.txt{end}").exists() for end in ("", ".gz"))
        return "kg_folder" if triples else "graph_folder"
    ending = Path(place.name.removesuffix(".gz")).suffix
    return next((name for name, endings in READERS.items() if ending in endings), "")


def add_task_of_labels(words: Sequence[str], only_shown: bool = False) -> list[str]:
    """Read a user's graph, report its content, and add the task that its labels imply."""
    config = _config(words)
    if config is None:
        return list(words)
    # These need torch, as `--help` does not.
    from curvlab.run.parts import build_source

    say = partial(print, file=sys.stderr if only_shown else sys.stdout)
    kept = {"data_dir": None} if only_shown else {}
    source = build_source(config.dataset, {**config.paths, **kept})
    with name_keys_in_errors(config.dataset.source):
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
    """Compose the first run; None if the words are wrong or name no graph of your own."""
    try:
        overrides = [parse(word) for word in words if word not in ("-m", "--multirun")]
        if any(override.key_or_group in ELSEWHERE for override in overrides):
            return None
        of_data = [o for o in overrides if o.key_or_group.split(".")[0] in ("dataset", "paths")]
        if any(override.is_sweep_override() for override in of_data):
            return None
        config = compose(next(variations(overrides)))
        check_options(config)
        own = is_subclass(str(OmegaConf.select(config, "dataset.source._target_")), OWN)
        return config if own else None
    except (HydraException, OmegaConfBaseException, TypeError, ValueError, RecursionError):
        return None  # Python's are Hydra's of odd values; the check of all words says what is wrong
