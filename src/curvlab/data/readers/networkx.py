"""Files that networkx reads: GraphML, GML, GEXF, Pajek, and lists of neighbours."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd

from curvlab.data.readers.endings import ending_of
from curvlab.data.readers.tables import Table
from curvlab.data.readers.texts import SEPARATORS, blank_comments, find_separator, read_text
from curvlab.data.readers.words import join_names
from curvlab.errors import UsageError

LAYOUT = ("id", "x", "y", "shape")
"""Attributes of a Pajek file that say where and how nodes are drawn."""

Links = Iterator[tuple[str, str, dict[str, Any]]]

HEADER = re.compile(r"#.*\n# GMT .*\n#.*\n")
"""The lines that networkx writes before an adjacency list."""


def read_networkx(path: Path, directed: bool) -> tuple[Table, Table, list[str]]:
    """Tables of edges and of nodes (ids in `id`), and remarks on how they were read."""
    text, _ = read_text(path)
    ending = ending_of(path)
    says = list[str]()
    try:
        if ending == ".gml":
            graph = _parse_gml(text, says)
        elif ending == ".adjlist":
            graph = _parse_neighbours(text, directed, says)
        elif ending in (".net", ".paj"):
            graph = _parse_pajek(text, directed, says)
        elif ending == ".gexf":
            graph = _label_nodes(nx.read_gexf(path), says)
        else:
            graph = nx.read_graphml(path)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    except Exception as error:  # each format fails in its own way
        reason = " ".join(str(error).split())[:160] or type(error).__name__
        raise UsageError(
            f"{path} is not read as {ending.removeprefix('.')} ({reason}): correct the file, or "
            "write it again by networkx."
        ) from error
    if directed and not graph.is_directed():
        raise UsageError(f"{path} is undirected: drop directed=True.")
    pairs = [(str(a), str(b), facts) for a, b, facts in graph.edges(data=True)]
    facts = pd.DataFrame([facts for *_, facts in pairs], index=range(len(pairs)))
    facts = facts.drop(columns=["id", "key"], errors="ignore")
    facts = facts.rename(columns={name: f"{name} " for name in ("source", "target")})
    ends = pd.DataFrame([pair[:2] for pair in pairs], columns=["source", "target"], dtype=str)
    rows = pd.DataFrame([facts for _, facts in graph.nodes(data=True)], index=range(len(graph)))
    rows = rows.drop(columns="id", errors="ignore")
    rows.insert(0, "id", [str(node) for node in graph])
    rows = rows.set_axis([repr(node) for node in rows["id"]])
    return Table(path, ends.join(facts), "edge"), Table(path, rows, "node"), says


def _parse_gml(text: str, says: list[str]) -> nx.Graph:
    """GML by the labels of its nodes, else by their ids; repeated edges are kept."""
    multigraph = text
    if not re.search(r"\bmultigraph\b", text):
        multigraph = re.sub(r"\bgraph\s*\[", "graph [ multigraph 1", text, count=1)
    tries = [(form, label) for label in ("label", "id") for form in (text, multigraph)]
    for form, label in tries:
        try:
            graph = nx.parse_gml(form.split("\n"), label=label)
        except nx.NetworkXError:
            if (form, label) == tries[-1]:
                raise
        else:
            if label == "id":
                says.append("nodes are called by their id, since labels are missing or repeated")
            return graph
    raise AssertionError


def _parse_neighbours(text: str, directed: bool, says: list[str]) -> nx.Graph:
    """A line for each node with its neighbours, separated as lists of edges are."""
    by_networkx = HEADER.match(text)
    text = text[by_networkx.end() :] if by_networkx else blank_comments(text)[0]
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    separator, _ = find_separator(lines, quoted=False)
    mark = None if separator == "space" else SEPARATORS[separator]
    if mark is not None and not any(mark in line for line in lines):
        mark = None
    rows = [[name.strip() for name in line.split(mark)] for line in lines]
    nodes_of_lines = {row[0] for row in rows}
    has_other_names = any(name not in nodes_of_lines for row in rows for name in row)
    if by_networkx and has_other_names:
        rows = join_names(line.split() for line in lines)  # networkx writes a line for each node
        says.append("names have blanks, and each node has a line (guess: write tabs between names)")
    graph = nx.DiGraph() if directed else nx.MultiGraph()
    graph.add_nodes_from(row[0] for row in rows)
    graph.add_edges_from((row[0], name) for row in rows for name in row[1:] if name)
    return graph


def _parse_pajek(text: str, directed: bool, says: list[str]) -> nx.Graph:
    """Pajek's network without its layout; partitions become columns.

    Arcs go one way, edges both ways. They are directed if there are arcs.
    """
    lines = [line.strip() for line in text.split("\n")]
    lines = [line for line in lines if line and not line.startswith("%")]
    starts = [i for i, line in enumerate(lines) if line.startswith("*")]
    sections = [lines[i:j] for i, j in zip(starts, [*starts[1:], None], strict=True)]
    kinds = [section[0].split()[0].casefold() for section in sections]
    has_arcs = any(kind in ARCS for kind in kinds)
    if has_arcs and directed and any(kind.startswith("*edges") for kind in kinds):
        says.append("*edges go both ways")
    graph = nx.MultiDiGraph() if has_arcs else nx.MultiGraph()
    names = dict[str, str]()
    for kind, (title, *rows) in zip(kinds, sections, strict=True):
        fields = [_split_quoted(row) for row in rows]
        if kind == "*vertices":
            names = _add_vertices(graph, title, fields, says)
        elif kind in LINKS:
            if ":" in title:
                says.append(f"{title}: read as all other edges")
            for one, two, facts in LINKS[kind](fields, [*names]):
                ends = _named_ends((one, two), names)
                graph.add_edge(*ends, **facts)
                if kind.startswith("*edges") and has_arcs and directed:
                    graph.add_edge(*reversed(ends), **facts)
        elif kind == "*partition" and len(rows) == len(graph):
            column = title.partition(" ")[2].strip() or "partition"
            nx.set_node_attributes(graph, dict(zip(graph, rows, strict=True)), column)
            says.append(f"{title} is the column {column!r}")
        elif kind != "*network" or rows:
            says.append(f"{title} is not used")
    if nx.get_edge_attributes(graph, "weight"):
        for *_, facts in graph.edges(data=True):
            facts.setdefault("weight", 1.0)  # as Pajek has it
    return graph


def _split_quoted(line: str) -> list[str]:
    """Words of a line, of which those in double quotes may have blanks."""
    return [quoted or word for quoted, word in re.findall(r'"([^"]*)"|(\S+)', line)]


def _add_vertices(
    graph: nx.Graph, title: str, rows: Sequence[Sequence[str]], says: list[str]
) -> dict[str, str]:
    """Add all vertices, by their labels if those differ; return their names by number."""
    count = int(title.split()[1])
    facts = {row[0]: row[1:] for row in rows}
    numbers = [*facts]
    if len(facts) < count:  # vertices without a line
        numbers = [*dict.fromkeys((*facts, *map(str, range(1, count + 1))))]
    if len(facts) < len(rows) or len(numbers) != count:
        raise UsageError(
            f"*vertices {count} has {len(rows)} lines with the numbers of {len(facts)} vertices: "
            f"number them from 1 to {count}"
        )
    numbers.sort(key=int)
    labels = [" ".join(facts.get(number, ())[:1]) or number for number in numbers]
    if len({*labels}) < count:
        says.append("vertices are called by their number, since labels are repeated")
        labels = numbers
    for number, label in zip(numbers, labels, strict=True):
        further = facts.get(number, ())[4:]  # after the label, x, y and shape
        attributes = dict(zip(further[::2], further[1::2], strict=False))
        graph.add_node(label, **{k: v for k, v in attributes.items() if k not in LAYOUT})
    return dict(zip(numbers, labels, strict=True))


def _named_ends(numbers: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """The names of the two vertices of an edge."""
    unknown = [number for number in numbers if names and number not in names]
    if unknown:
        raise UsageError(
            f"an edge has the vertex {unknown[0]!r}, and *vertices has 1 to {len(names)}: correct "
            "the edge"
        )
    return [names.get(number, number) for number in numbers]


def _edge_lines(rows: Sequence[Sequence[str]], _: Sequence[str]) -> Links:
    """Lines with two vertices, perhaps a weight, and names of facts with their values."""
    for row in rows:
        if len(row) < 2:
            raise UsageError(f"an edge has one vertex, {row[0]!r}: write two in its line")
        one, two, *further = row
        facts = dict[str, Any]()
        with suppress(ValueError, IndexError):
            facts["weight"] = float(further[0])
            further = further[1:]
        yield one, two, facts | dict(zip(further[::2], further[1::2], strict=False))


def _neighbour_lines(rows: Sequence[Sequence[str]], _: Sequence[str]) -> Links:
    """Lines with a vertex and all its neighbours."""
    for one, *others in rows:
        yield from ((one, other, {}) for other in others)


def _matrix_lines(rows: Sequence[Sequence[str]], numbers: Sequence[str]) -> Links:
    """Rows of weights, where 0 is no edge."""
    for one, row in zip(numbers, rows, strict=True):
        for other, weight in zip(numbers, map(float, row), strict=True):
            if weight:
                yield one, other, {"weight": weight}


LINKS = {
    "*edges": _edge_lines,
    "*arcs": _edge_lines,
    "*edgeslist": _neighbour_lines,
    "*arcslist": _neighbour_lines,
    "*matrix": _matrix_lines,
}
"""Readers of the lines below a title in a Pajek file."""

ARCS = ("*arcs", "*arcslist", "*matrix")
"""Titles in a Pajek file whose lines have a direction."""


def _label_nodes(graph: Any, says: list[str]) -> nx.Graph:
    """Call the nodes of GEXF by their labels if those are all there and differ."""
    labels = {node: facts.pop("label", "") for node, facts in graph.nodes(data=True)}
    if all(labels.values()) and len({*labels.values()}) == len(labels):
        return nx.relabel_nodes(graph, labels)
    says.append("nodes are called by their id, since labels are missing or repeated")
    return graph
