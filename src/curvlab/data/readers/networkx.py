"""Files that networkx reads: GraphML, GML, GEXF, Pajek, and lists of neighbours."""

import re
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
            graph = _parse_pajek(text, says)
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


def _parse_pajek(text: str, says: list[str]) -> nx.Graph:
    """Pajek's network without its layout; partitions become columns."""
    network, *parts = re.split(r"(?im)^(?=\*(?:partition|vector|cluster|permutation)\b)", text)
    pieces = re.split(r'("[^"\n]*")', network)
    pieces[::2] = [piece.replace("'", r"\'") for piece in pieces[::2]]  # no quotes in Pajek
    graph = nx.parse_pajek("".join(pieces).split("\n"))
    for _, facts in graph.nodes(data=True):
        for name in LAYOUT:
            facts.pop(name, None)
    for part in parts:
        title, *lines = part.strip().split("\n")
        kind, _, name = title.partition(" ")
        values = [line.strip() for line in lines if line.strip() and not line.startswith("*")]
        if kind.casefold() == "*partition" and len(values) == len(graph):
            column = name.strip() or "partition"
            nx.set_node_attributes(graph, dict(zip(graph, values, strict=True)), column)
            says.append(f"{title} is the column {column!r}")
        else:
            says.append(f"{title} is not used")
    return graph


def _label_nodes(graph: Any, says: list[str]) -> nx.Graph:
    """Call the nodes of GEXF by their labels if those are all there and differ."""
    labels = {node: facts.pop("label", "") for node, facts in graph.nodes(data=True)}
    if all(labels.values()) and len({*labels.values()}) == len(labels):
        return nx.relabel_nodes(graph, labels)
    says.append("nodes are called by their id, since labels are missing or repeated")
    return graph
