"""What one can type: a screen for `--help`, `help=GROUP/CHOICE` for the options of a choice."""

import difflib
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from omegaconf import DictConfig, OmegaConf

from curvlab.config import folder
from curvlab.config.compose import compose
from curvlab.config.folder import comment_of, find, folders, is_group
from curvlab.config.options import GROUPS, option_of
from curvlab.config.schema import summary
from curvlab.errors import UsageError
from curvlab.program import command

SCREEN = """\
curvlab: transformers and graph networks in curved spaces.

  {program} model=fpst dataset=web_edu            train, evaluate, plot
  {program} model=fpst manifold=euclidean         the same model in another space
  {program} model.dim=8 optimizer.lr=1e-3 seed=3  any option
  {program} -m model=gcn,gat seed=0,1,2           several runs
  {program} -m table=fpst/fig3 seed=0,1           a table of a paper, or some of its cells
  {program} -m search=fpst dataset=texas          hyperparameters, by validation scores

Groups, chosen by group=choice:

{groups}

What to type next:

  {program} help=model             the models, a line each
  {program} help=model/fpst        the options of one: type, bounds, default
  {program} help=trainer           how long a run is, and on what
  {program} ... print_config=true  the configuration of a run, with the origin of each value
"""
COUNTED = ("model", "dataset", "task", "manifold", "split", "batching", "optimizer", "logger")
SWEEPS = ("table", "search", "study")
LINE = 100
LISTED = 240
"""Characters of the names that there are, where none is close."""


def screen(configs: Path, program: str) -> str:
    """What `--help` prints, on one screen."""
    lines = []
    for group in (*COUNTED, *SWEEPS):
        names = choices(configs, group)
        shown = textwrap.shorten(", ".join(names), 60, placeholder=" ...")
        lines.append(f"  {group:<10} {len(names):>3}  {shown}")
    return SCREEN.format(program=program, groups="\n".join(lines))


def page(topic: str, configs: Path) -> str:
    """What `help=TOPIC` prints: the choices of a group, or the options of a choice.

    Args:
        topic: `model`, `model/fpst`, or a part without choices, such as `trainer`.
        configs: the folder of configurations.

    Raises:
        UsageError: there is no such topic.
    """
    group, _, choice = topic.partition("/")
    known = sorted({p.name for f in folders(configs) for p in f.iterdir() if is_group(f, p.name)})
    topics = [*known, *(f"{name}/{c}" for name in known for c in choices(configs, name))]
    if topic not in topics:
        near = difflib.get_close_matches(topic, topics, n=3) or known
        raise UsageError(f"there is no help={topic}; did you mean {' or '.join(near[:3])}?")
    if choice:
        return "\n".join(_options(group, choice, configs))
    rows = [
        (f"{group}={name}", comment_of(configs, f"{group}/{name}.yaml"))
        for name in choices(configs, group)
    ]
    return "\n".join(_aligned(rows))


def choices(configs: Path, group: str) -> list[str]:
    """Names of a group's choices, sorted; tables are named with their paper."""
    return folder.choices(configs, group, "*/*.yaml" if group == "table" else "*.yaml")


def refuse(what: str, name: str, names: Sequence[str]) -> NoReturn:
    """Say that a name is none of some, and which of them the user may have meant.

    Raises:
        UsageError: there is no `what`.
    """
    names = [n for n in names if "._" not in n]  # a class or a partial is not for users
    matches = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    last = [n for n in names if n.rsplit(".", 1)[-1] == name.rsplit(".", 1)[-1] and "." in n]
    close = list(dict.fromkeys(last[:2] + matches))[:3]
    if close:
        raise UsageError(f"there is no {what}; did you mean {' or '.join(close)}?")
    listed = ", ".join(n for n in names if "." not in n and "__" not in n)  # variants of them
    if len(listed) > LISTED:
        listed = f"{listed[:LISTED].rpartition(',')[0]} ...: {command('train')} --help has them all"
    raise UsageError(f"there is no {what}; there is {listed}")


def _options(group: str, choice: str, configs: Path) -> Iterator[str]:
    """The page of a choice: what it is, then a line for each option."""
    path = find(configs, f"{group}/{choice}.yaml")
    config = compose([] if group in SWEEPS else [f"{group}={choice}"], configs)
    yield comment_of(configs, f"{group}/{choice}.yaml") or f"{group}={choice}"
    node = config.get(group)
    if not isinstance(node, DictConfig) or group in SWEEPS:
        yield from path.read_text("utf-8").splitlines()
        return
    target = str(node.get("_target_", GROUPS.get(group, "")))
    if summary(target):
        yield f"{summary(target)}  [{target}]"
    yield ""
    text = path.read_text("utf-8")
    comments = dict(re.findall(r"(?m)^(\w+):.*? # (.+)$", text))
    yield from _aligned(list(_rows(node, group, comments)))


def _rows(node: DictConfig, path: str, comments: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Keys with their values, and what the class, or a file's comment, says of them."""
    plain = OmegaConf.to_container(node)
    assert isinstance(plain, dict)
    for name, value in ((str(k), v) for k, v in plain.items()):
        key, option = f"{path}.{name}", option_of(node, path, name)
        if name.startswith("_") or name in ("name", "label", "requires", "recipe"):
            continue
        if isinstance(value, dict):
            if option is not None and option.doc:
                yield f"{key}.*", option.doc
            yield from _rows(node[name], key, {})
        elif option is not None:
            yield f"{key}={_shown(value)}", f"{option.says}: {option.doc}".rstrip(" :")
        elif name in comments:
            yield f"{key}={_shown(value)}", comments[name]


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{','.join(map(_shown, value))}]"
    return (
        str(value).lower() if isinstance(value, bool) else "null" if value is None else str(value)
    )


def _aligned(rows: list[tuple[str, str]]) -> Iterator[str]:
    width = min(44, max((len(key) for key, _ in rows), default=0))
    for key, text in rows:
        lines = textwrap.wrap(text, LINE - width - 2) or [""]
        if len(key) > width:
            yield key
            key = ""
        yield f"{key:<{width}}  {lines[0]}".rstrip()
        yield from (f"{'':<{width}}  {line}" for line in lines[1:])
