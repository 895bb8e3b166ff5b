"""Read your own graph and print its columns, its shape, and the command that trains on it.

curvlab init-graph FOLDER                      edges.csv, perhaps nodes.csv and features.npy
curvlab init-graph edges.csv nodes=people.csv label=team ignore=[email]
curvlab init-graph graph.graphml               or .pt, a saved Data
curvlab init-graph FOLDER                      with train.txt, valid.txt, test.txt: triples
curvlab init-graph triples.tsv test_share=0.1 valid_share=0.1
curvlab init-graph FOLDER label=team --yaml mine/dataset/friends.yaml

Options that it suggests can be given after the path, with or without dataset.source. Nothing is
written but the file of --yaml. Ids are any texts; see docs/your_graph.md for the files.
"""

import argparse
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import OmegaConf

from curvlab.cli.aliases import path_key, resolve_aliases
from curvlab.cli.overrides import parse
from curvlab.cli.verbs import Verb
from curvlab.config.building import name_keys_in_errors
from curvlab.config.compose import compose
from curvlab.config.folder import CONFIGS, choices
from curvlab.config.validation import check_options
from curvlab.data.readers.endings import reader_name, refuse_ending
from curvlab.errors import UsageError
from curvlab.files import atomic_write
from curvlab.program import print_if_slow

if TYPE_CHECKING:
    from torch_geometric.data import Data


OPTIONS = {
    "nodes": "table of nodes, if it is not nodes.csv of the folder",
    "id": "column of ids in that table",
    "label": "column of classes in that table",
}

SOURCE = "dataset.source."

PATHS = ("dataset.path", "dataset.source.path", "dataset.source.nodes")
"""Keys of paths of a user's files."""

EXAMPLE = "--yaml mine/dataset/friends.yaml"

MOST_DELTA_NODES = 20_000
"""Largest graph whose delta is estimated; its distances take minutes on larger ones."""


def _init_graph(args: argparse.Namespace) -> None:
    refuse_ending(args.path)
    invalid = [option for option in args.options if "=" not in option]
    if invalid:
        raise UsageError(f"{invalid[0]}: write KEY=VALUE after the path, such as label=team")
    options = [*map(_source_override, args.options)]
    flags = {name: getattr(args, name) for name in OPTIONS}
    options += [_override(SOURCE + name, text) for name, text in flags.items() if text]
    if not Path(args.path).expanduser().exists():
        raise UsageError(f"{args.path} does not exist: give the path of a folder or a file")
    overrides = [*_path_overrides(args.path, options), *options]
    config = compose(resolve_aliases(overrides))
    check_options(config)
    with print_if_slow("loading PyTorch"):
        from curvlab.run.parts import build_source

    OmegaConf.resolve(config.dataset)
    source: Any = build_source(config.dataset, {**config.paths, "data_dir": None})
    commands = {}
    with name_keys_in_errors(config.dataset.source):
        if config.dataset.name == "kg_folder":
            with print_if_slow(f"reading {args.path}"):
                report = source.report(source.read())
            print(report, flush=True)
            source.load()
            commands["missing ends of triples, in flat space"] = "distmult"
            commands["the same in three kinds of space, to compare"] = "cat"
        else:
            with print_if_slow(f"reading {args.path}"):
                data = source.load(say=lambda _: None)
            report = source.report(data)
            print(report, flush=True)
            _print_shape(data, source)
            if data.y is not None:
                commands["classes of the nodes, in a hyperbolic space"] = "hypformer"
                commands["the same in flat space, to compare"] = "gcn"
            distances = "distances in the graph, in spaces of learned curvature"
            commands[distances] = "fpst task=reconstruction"
    if args.yaml is not None:
        _write_yaml(args.yaml, resolve_aliases(overrides), report)
        folder = args.yaml.parent.parent.as_posix()
        overrides = ["--config-dir", folder, f"dataset={args.yaml.stem}"]
    words = " ".join(map(shlex.quote, overrides))
    for comment, command in commands.items():
        print(f"\n# {comment}\ncurvlab train model={command} {words}")


def _write_yaml(file: Path, overrides: Sequence[str], report: str) -> None:
    """Write the data set of overrides to `DIR/dataset/NAME.yaml`, with absolute paths."""
    if file.parent.name != "dataset" or not re.fullmatch(r"[A-Za-z]\w*\.yaml", file.name):
        raise UsageError(f"--yaml {file}: name DIR/dataset/NAME.yaml, as in {EXAMPLE}")
    if file.exists() or file.stem in choices(CONFIGS, "dataset"):
        raise UsageError(f"--yaml {file}: there is a data set {file.stem}: take another name")
    values = {override.key_or_group: override.value() for override in map(parse, overrides)}
    config = OmegaConf.create({"defaults": [values.pop("dataset"), "_self_"]})
    for key, value in values.items():
        is_path = key in PATHS
        content = str(Path(str(value)).expanduser().absolute()) if is_path else value
        OmegaConf.update(config, key.removeprefix("dataset."), content)
    comment = "".join(f"# {line}\n" for line in report.splitlines())
    atomic_write(file, comment + OmegaConf.to_yaml(config))
    print(f"\nwritten: {file}")


def _print_shape(data: "Data", source: Any) -> None:
    from curvlab.data.transforms.features import OwnFeatures

    pairs = data.num_edges // 2
    two_way = source.counts["both_ways"]
    direction = "direction: every edge is given both ways, as in an undirected graph"
    if two_way != pairs:
        direction = (
            f"direction: {two_way:,} of {pairs:,} edges are given both ways; both are used, unless "
            "dataset.source.directed=true"
        )
    for line in (*OwnFeatures().remarks(data), direction, *_shape(data)):
        print(f"  {line}")


def _source_override(option: str) -> str:
    """The override of an option: `dataset.source.label=team` for `label=team`."""
    key, _, value = option.partition("=")
    if key in ("features.kind", "features.scale"):
        return f"dataset.{option}"
    key = key if key.startswith("dataset.") else SOURCE + key
    with suppress(UsageError):
        parse(f"{key}={value}")
        return f"{key}={value}"
    return _override(key, value)


def _path_overrides(path: str, options: Sequence[str]) -> list[str]:
    """Overrides that choose a path with its reader, not a data set of the same name."""
    place = path if Path(path).is_absolute() else f"./{Path(path).as_posix()}"
    names = [option.partition("=")[0].removeprefix(SOURCE) for option in options]
    reader = reader_name(path, names) or "graph_folder"
    full = [f"dataset={reader}", _override(path_key(reader), place)]
    short = f"dataset={place}"
    if "," in place or resolve_aliases([*options, short]) != [*resolve_aliases(options), *full]:
        return full
    return [short]


def _override(key: str, value: str) -> str:
    """An override whose value is a text, quoted if Hydra would read another value."""
    with suppress(UsageError):
        if parse(f"{key}={value}").value() == value:
            return f"{key}={value}"
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"{key}='{escaped}'"


def _shape(data: "Data") -> Iterator[str]:
    import torch
    from scipy.sparse.csgraph import connected_components
    from torch_geometric.utils import degree, homophily

    from curvlab.analysis.hyperbolicity import EXACT, adjacency_matrix, hyperbolicity, mean_delta

    nodes = int(data.num_nodes or 0)
    adjacency = adjacency_matrix(data.edge_index, nodes)
    count, _ = connected_components(adjacency, directed=False)
    degrees = degree(data.edge_index[0], nodes)
    yield (
        f"shape: {count:,} component{'s' if count > 1 else ''}, degree {degrees.mean():.1f} on "
        f"average and {int(degrees.max()):,} at most"
    )
    if nodes <= EXACT:
        delta, _, diameter = hyperbolicity(data.edge_index, nodes)
        fit = "tree-like: hyperbolic spaces fit" if 8 * delta <= diameter else "not tree-like"
        yield f"delta: {delta:g} at a diameter of {diameter:g} (0 of a tree), {fit}"
    elif nodes > MOST_DELTA_NODES:
        yield f"delta: not estimated on more than {MOST_DELTA_NODES:,} nodes"
    else:
        yield f"delta: {mean_delta(adjacency)[0]:.2f} of a random quadruple (0 of a tree)"
    if data.y is not None:
        labelled = data.get("labelled", torch.ones(nodes, dtype=torch.bool))
        edges = data.edge_index[:, labelled[data.edge_index].all(dim=0)]
        yield f"homophily: {homophily(edges, data.y):.0%} of the edges join nodes of one class"


main = Verb("init-graph", __doc__, _init_graph)
main.add_argument("path", metavar="PATH", help="folder or file")
main.add_argument("options", metavar="KEY=VALUE", nargs="*", help="options such as ends=[a,b]")
description = "write a data set to this file, DIR/dataset/NAME.yaml"
main.add_argument("--yaml", type=Path, metavar="FILE", help=description)
for name, description in OPTIONS.items():
    main.add_argument(f"--{name}", help=description)
