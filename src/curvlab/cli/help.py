"""Print help: one screen for `--help`, the options of a choice for `help=GROUP/CHOICE`."""

import re
import textwrap
from collections.abc import Iterator, Sequence

from omegaconf import DictConfig, OmegaConf

from curvlab.checked import format_value
from curvlab.config.compose import compose
from curvlab.config.folder import CONFIGS, choices, comment_of, find, folders, is_group
from curvlab.config.schema import GROUPS, MISSING, Option, options_of, signature_of
from curvlab.config.sources import read
from curvlab.config.validation import keys_of, option_of
from curvlab.errors import refuse

SCREEN = """\
curvlab: transformers and graph networks in curved spaces.

  curvlab train model=fpst dataset=web_edu            train, evaluate, plot
  curvlab train model=fpst manifold=euclidean         the same model in another space
  curvlab train model.dim=8 optimizer.lr=1e-3 seed=3  any option
  curvlab train -m model=gcn,gat seed=0,1,2           several runs
  curvlab train -m table=fpst/fig3 seed=0,1           a table of a paper, or some of its cells
  curvlab train -m search=fpst dataset=texas          search hyperparameters by validation

Groups, chosen by group=choice:

{groups}

What to type next:

  curvlab list models                  one line per model; also datasets, manifolds, tables, runs
  curvlab train help=model/fpst        options of a model: type, bounds, default
  curvlab train help=trainer           length of a run, device, precision
  curvlab train ... print_config=true  configuration of a run, with the origin of each value
  curvlab train ... --dry-run          number of runs and estimated hours; nothing runs
"""
SWEEPS = ("table", "search", "study")
LISTED = (
    *("model", "dataset", "task", "manifold", "split", "batching", "optimizer", "logger", "debug"),
    *SWEEPS,
)


def screen() -> str:
    """The text of `--help`, on one screen."""
    lines = []
    for group in LISTED:
        names = choices(CONFIGS, group)
        listed = textwrap.shorten(", ".join(names), 60, placeholder=" ...")
        lines.append(f"  {group:<10} {len(names):>3}  {listed}")
    return SCREEN.format(groups="\n".join(lines))


def page(topic: str, overrides: Sequence[str] = ()) -> str:
    """Text of `help=TOPIC`: choices of a group, options of a choice, or one option.

    Args:
        topic: The topic.
        overrides: Other overrides of the command, which decide whose option it is.
    """
    if "." in topic:
        return "\n".join(_option_lines(topic, overrides))
    groups: set[str] = set()
    for folder in folders():
        groups.update(path.name for path in folder.iterdir() if is_group(folder, path.name))
    topics = sorted(groups)
    for group in sorted(groups):
        topics += [f"{group}/{choice}" for choice in choices(CONFIGS, group)]
    candidates = [topic, *(f"{group}/{topic}" for group in LISTED)]
    matches = [candidate for candidate in candidates if candidate in topics]
    if not matches:
        refuse(f"help={topic}", topic, topics)
    group, _, choice = matches[0].partition("/")
    if choice:
        return "\n".join(_options(group, choice))
    names = {f"{group}={name}": f"{group}/{name}" for name in choices(CONFIGS, group)}
    rows = [(override, comment_of(CONFIGS, name)) for override, name in names.items()]
    listed = [*_align(rows)]
    if group in SWEEPS and group in GROUPS:  # all its choices have these
        listed += ["", "Options, with their defaults:", "", *_align(_rows_of_several(group))]
    return "\n".join(listed)


def _rows_of_several(group: str) -> list[tuple[str, str]]:
    """The options that all searches or studies have."""
    return [
        (f"{group}.{name}={_default(option)}", f"{option.says}: {option.doc}")
        for name, option in options_of(GROUPS[group]).items()
    ]


def _default(option: Option) -> str:
    return "..." if option.default is MISSING else format_value(option.default)


def _options(group: str, choice: str) -> Iterator[str]:
    name = f"{group}/{choice}"
    yield comment_of(CONFIGS, name) or f"{group}={choice}"
    node = None if group in SWEEPS else compose([f"{group}={choice}"]).get(group)
    if not isinstance(node, DictConfig):
        yield from find(CONFIGS, f"{name}.yaml").read_text("utf-8").splitlines()
        return
    target = str(node.get("_target_", GROUPS.get(group, "")))
    summary = signature_of(target).summary
    if summary:
        yield f"{summary}  [{target}]"
    yield ""
    yield from _align(list(_rows(node, group, _comments(name))))


def _comments(name: str) -> dict[str, str]:
    path = find(CONFIGS, f"{name}.yaml")
    text = path.read_text("utf-8") if path.is_file() else ""
    return dict(re.findall(r"(?m)^(\w+):.*? # (.+)$", text))


def _rows(node: DictConfig, path: str, comments: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Keys, values, and their descriptions from the class or the file's comments."""
    plain = OmegaConf.to_container(node)
    assert isinstance(plain, dict)
    for name_in_file, value in plain.items():
        name = str(name_in_file)
        key = f"{path}.{name}"
        option = option_of(node, path, name)
        if isinstance(value, dict):
            if option is not None and option.doc:
                yield f"{key}.*", option.doc
            yield from _rows(node[name], key, {})
        elif option is not None and ("." in path or name not in ("name", "label", "recipe")):
            yield f"{key}={format_value(value)}", f"{option.says}: {option.doc}".rstrip(" :")
        elif name in comments:
            yield f"{key}={format_value(value)}", comments[name]


def _option_lines(key: str, overrides: Sequence[str]) -> Iterator[str]:
    """Lines of an option and of those below it, after the choice that has them.

    Without other overrides the choice is the first one that has the option.
    """
    group, _, name = key.partition(".")
    below = re.compile(rf"{re.escape(key)}[.=]")
    if group in SWEEPS and group in GROUPS:
        matches = [row for row in _rows_of_several(group) if below.match(row[0])]
        yield from _align(matches or refuse(f"help={key}", key, options_of(GROUPS[group])))
        return
    files = {f"{group}={c}": read(CONFIGS, f"{group}/{c}") for c in choices(CONFIGS, group)}
    targets = {choice: str(file.get("_target_")) for choice, file in files.items() if file}
    choices_with_it = [choice for choice, target in targets.items() if name in options_of(target)]
    candidates = [[], *([choice] for choice in choices_with_it)]
    for words in [overrides] if overrides else candidates:
        node = compose(words).get(group)
        if isinstance(node, DictConfig):
            rows = _rows(node, group, _comments(f"{group}/{node.get('name')}"))
            matches = [row for row in rows if below.match(row[0])]
            if matches:
                if node.get("name"):
                    yield f"of {group}={node.name}"
                yield from _align(matches)
                return
    refuse(f"help={key}", key, keys_of(compose(overrides)))


def _align(rows: list[tuple[str, str]]) -> Iterator[str]:
    width = min(44, max((len(key) for key, _ in rows), default=0))
    for key, text in rows:
        first, *further = textwrap.wrap(text, 98 - width) or [""]
        if len(key) > width:
            yield key
            key = ""
        yield f"{key:<{width}}  {first}".rstrip()
        yield from (f"{'':<{width}}  {line}" for line in further)
