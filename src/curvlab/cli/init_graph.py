"""Read your own graph and print its columns, its shape, and the command that trains on it.

curvlab init-graph FOLDER                      edges.csv, perhaps nodes.csv and features.npy
curvlab init-graph edges.csv --nodes people.csv --label team
curvlab init-graph graph.graphml               or .pt, a saved Data

Nothing is written. Ids are any texts; see docs/your_graph.md for the files.
"""

import argparse
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from curvlab.cli.aliases import resolve_aliases
from curvlab.cli.overrides import parse
from curvlab.cli.verbs import Verb
from curvlab.errors import UsageError

if TYPE_CHECKING:
    from torch_geometric.data import Data


READERS = {"GraphFolder": "graph_folder", "PyGObject": "pyg", "NetworkXGraph": "networkx"}
"""The data set of each class that reads a path."""

OPTIONS = {
    "nodes": "the table of nodes, if it is not nodes.csv of the folder",
    "id": "its column of ids",
    "label": "its column of classes",
}


def _init_graph(args: argparse.Namespace) -> None:
    from curvlab.data.datasets.reading import reader_of
    from curvlab.data.transforms.features import OwnFeatures

    options = {name: value for name in OPTIONS if (value := getattr(args, name))}
    try:
        source = reader_of(args.path)(path=args.path, **options)
    except TypeError:
        given = ", ".join(f"--{name}" for name in options)
        raise UsageError(f"{args.path}: {given} needs tables of edges and nodes") from None
    data = source.load(say=lambda _: None)
    print(source.report(data))
    pairs, both = data.num_edges // 2, source.counts["both_ways"]
    direction = "direction: every edge is given both ways, as in an undirected graph"
    if both != pairs:
        direction = (
            f"direction: {both:,} of {pairs:,} edges are given both ways; both are used, unless "
            "dataset.source.directed=true"
        )
    for line in (*OwnFeatures().remarks(data), direction, *_shape(data)):
        print(f"  {line}")
    words = _path_overrides(args.path, READERS[type(source).__name__])
    words += [_override(f"dataset.source.{name}", value) for name, value in options.items()]
    commands = {}
    if data.y is not None:
        commands["classes of the nodes, in a hyperbolic space"] = "hypformer"
        commands["the same in flat space, to compare"] = "gcn"
    commands["distances in the graph, in spaces of learned curvature"] = "fpst task=reconstruction"
    for comment, command in commands.items():
        print(f"\n# {comment}\ncurvlab train model={command} {' '.join(map(shlex.quote, words))}")


def _path_overrides(path: str, reader: str) -> list[str]:
    """Overrides that choose a path with its reader, and not a data set of the same name."""
    place = path if Path(path).is_absolute() else f"./{Path(path).as_posix()}"
    full = [f"dataset={reader}", _override("dataset.path", place)]
    short = f"dataset={place}"
    return [short] if "," not in place and resolve_aliases([short]) == full else full


def _override(key: str, value: str) -> str:
    """An override with a text as its value, in quotes where Hydra would read another value."""
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
    else:
        yield f"delta: {mean_delta(adjacency)[0]:.2f} of a random quadruple (0 of a tree)"
    if data.y is not None:
        labelled = data.get("labelled", torch.ones(nodes, dtype=torch.bool))
        edges = data.edge_index[:, labelled[data.edge_index].all(dim=0)]
        yield f"homophily: {homophily(edges, data.y):.0%} of the edges join nodes of one class"


main = Verb("init-graph", __doc__, _init_graph)
main.add_argument("path", metavar="PATH", help="a folder, or a file")
for name, what in OPTIONS.items():
    main.add_argument(f"--{name}", help=what)
