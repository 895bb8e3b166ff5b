"""Files that can be read in two ways: the usual one is taken and said, or the file is refused."""

import gzip
import io
import zlib

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from curvlab.data.datasets import own_graph
from curvlab.data.datasets.graph_folder import GraphFolder
from curvlab.data.datasets.reading import read_graph
from curvlab.errors import UsageError


@pytest.fixture
def read(tmp_path, monkeypatch):
    """`read(edges, nodes, key=value, ...)`: the graph of these tables, and what is said of it."""

    def make(edges, nodes=None, name="edges.csv", **options):
        (tmp_path / name).write_bytes(edges if isinstance(edges, bytes) else edges.encode())
        if nodes is not None:
            (tmp_path / "nodes.csv").write_text(nodes)
        said = []
        monkeypatch.setenv(own_graph.REPORTED, "")
        data = GraphFolder(str(tmp_path), **options).load(said.append)
        return data, said[0]

    return make


def refusal(make):
    """The one sentence of a refusal."""
    with pytest.raises(UsageError) as refused:
        make()
    said = str(refused.value)
    assert "\n" not in said
    assert len(said) <= 500
    return said


def arcs(data):
    """The edges of a directed graph, by ids."""
    names = data.vocabulary.nodes
    return {(names[u], names[v]) for u, v in data.edge_index[:, data.edge_forward].T.tolist()}


def pairs(data):
    """The edges of a graph, by ids."""
    names = data.vocabulary.nodes
    return {frozenset((names[u], names[v])) for u, v in data.edge_index.T.tolist()}


def weights(data):
    """Weights by pairs of ids."""
    names = data.vocabulary.nodes
    ends = data.edge_index.T.tolist()
    return {
        frozenset((names[u], names[v])): weight
        for (u, v), weight in zip(ends, data.edge_weight.tolist(), strict=True)
    }


RING = pd.DataFrame({"from": ["a", "b", "c", "d"], "to": ["b", "c", "d", "a"]})


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize(
    "values", [[0.5, 1.25, 3.0, 12.0], [0.125, 1.25, 1.5, 2.0], [1e-7, 1, 2, 3]]
)
def test_decimal_commas_as_pandas_writes_them(read, header, separator, values):
    """In quotes where a comma also separates the columns."""
    table = RING.assign(weight=values)
    text = table.to_csv(index=False, header=header, sep=separator, decimal=",")
    data, said = read(text, weighted=True)
    expected = {frozenset(row[:2]): row[2] for row in table.itertuples(index=False, name=None)}
    assert weights(data) == pytest.approx(expected)
    assert "is read as" not in said
    again = pd.read_csv(io.StringIO(text), sep=separator, decimal=",", header=None)
    assert [float(str(x).replace(",", ".")) for x in again[2][int(header) :]] == values


@pytest.mark.parametrize("separator", [",", ";", "\t", " "])
def test_decimal_commas_of_features(read, separator):
    table = pd.DataFrame({"id": [*"abcd"], "score": [0.5, 1.25, 3.0, np.nan], "size": [1, 2, 3, 4]})
    edges = RING.to_csv(index=False)
    data, said = read(edges, table.to_csv(index=False, sep=separator, decimal=",", na_rep="NA"))
    assert data.vocabulary.features == ("score", "size")
    filled = table.score.fillna(table.score.mean())
    assert data.x[:, 0].tolist() == pytest.approx([*filled])
    assert "is read as" not in said


@pytest.mark.parametrize("header", ["from,to,weight\n", ""])
def test_thousands_are_read_as_pandas_reads_them(read, header):
    """Where one of the numbers cannot have decimal commas."""
    text = header + 'a,b,"1,250"\nb,c,"12,300.5"\nc,d,7\nd,a,"1,000,000"\n'
    data, said = read(text, weighted=True)
    table = pd.read_csv(io.StringIO(text), thousands=",", header=0 if header else None)
    expected = {frozenset(row[:2]): row[2] for row in table.itertuples(index=False, name=None)}
    assert weights(data) == expected
    assert "is read as" not in said


@pytest.mark.parametrize(
    ("separator", "number", "line"),
    [
        (",", 1250, "weight: 1,250 is read as 1250 (guess: write 1.250 for decimals)"),
        (";", 1.25, "weight: 1,250 is read as 1.250 (guess: write 1250 for thousands)"),
        ("\t", 1.25, "weight: 1,250 is read as 1.250 (guess: write 1250 for thousands)"),
        (" ", 1.25, "weight: 1,250 is read as 1.250 (guess: write 1250 for thousands)"),
    ],
)
def test_a_number_that_has_decimals_or_thousands_is_said(read, separator, number, line):
    rows = [("a", "b", '"1,250"'), ("b", "c", "300"), ("c", "a", "12")]
    data, said = read("\n".join(map(separator.join, rows)), weighted=True)
    assert weights(data)[frozenset("ab")] == number
    assert said.count(line) == 1
    nodes = separator.join(["id", "weight"]) + "\n"
    nodes += "\n".join(separator.join((a, size)) for a, _, size in rows)
    data, said = read("a,b\nb,c\n", nodes)
    assert data.x.flatten().tolist() == [number, 300, 12]
    assert said.count(line) == 1


@pytest.mark.parametrize("other", ['"1,250.5"', "0.5"])
@pytest.mark.parametrize("separator", [",", ";"])
def test_commas_with_two_meanings_are_refused(read, other, separator):
    rows = [("a", "b", '"0,5"'), ("b", "c", other), ("c", "a", "12")]
    text = "\n".join(map(separator.join, [("from", "to", "weight"), *rows]))
    said = refusal(lambda: read(text, weighted=True))
    assert "line 2, column 'weight': '0,5'" in said
    assert "write 0.5 for decimals and 1250 for thousands" in said
    nodes = f"id{separator}v\n" + "\n".join(separator.join((a, size)) for a, _, size in rows)
    assert "column 'v': '0,5'" in refusal(lambda: read("a,b\nb,c\n", nodes))


NUMBERED = nx.gnm_random_graph(12, 40, seed=0)


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("name", ["id", "edge_id", "eid", "edge", "no", "Index", "row", "x", None])
@pytest.mark.parametrize("form", ["{}", "n{}"])
@pytest.mark.parametrize("weighted", [True, False])
def test_numbers_of_edges_are_no_ends(read, start, name, form, weighted):
    """As pandas writes its index, with and without a header."""
    rows = [(form.format(u), form.format(v), 0.5 + u) for u, v in NUMBERED.edges]
    table = pd.DataFrame(rows, columns=["person", "friend", "weight"])
    table.index = pd.RangeIndex(start, start + len(table), name=name)
    data, said = read(table.to_csv(header=name is not None), weighted=weighted)
    assert pairs(data) == {frozenset(row[:2]) for row in rows}
    if weighted:
        assert weights(data) == {frozenset(row[:2]): row[2] for row in rows}
    if name in ("id", "edge_id", "eid", "edge"):
        assert f"'person' - 'friend' (guess: dataset.source.ends=[{name},person])" in said
    elif name is None:
        assert "column 2 - column 3 (guess: dataset.source.ends=[1,2])" in said


@pytest.mark.parametrize(
    "text",
    ["0,1,2\n1,2,3\n2,1,3\n3,3,4\n", "id,person,friend\n1,1,2\n2,2,3\n3,1,3\n4,3,4\n"],
)
def test_few_numbers_of_edges(read, text):
    data, said = read(text)
    assert pairs(data) == {frozenset(pair) for pair in ("12", "23", "13", "34")}
    assert "(guess: dataset.source.ends=[" in said
    table = pd.read_csv(io.StringIO(text), header=None).iloc[-4:]
    first, _ = read(text, ends=[1, 2])
    assert pairs(first) == {
        frozenset(r) for r in table[[0, 1]].astype(str).to_numpy() if len({*r}) > 1
    }


@pytest.mark.parametrize("name", ["edge_id", "eid", "key"])
def test_a_name_above_numbers_of_edges_is_one_of_a_header(read, name):
    data, _ = read(f"{name},person,friend\n1,ann,bob\n2,bob,cem\n3,cem,ann\n")
    assert pairs(data) == {frozenset(p) for p in (("ann", "bob"), ("bob", "cem"), ("cem", "ann"))}


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("separator", [" ", ","])
@pytest.mark.parametrize(
    ("targets", "values", "is_said"),
    [
        (range(1, 9), [1.5] * 8, False),
        (range(1, 9), [1] * 8, False),
        (range(1, 9), [3, 5, 2, 7, 4, 4, 1, 6], True),
        ([1, 2, 3, 4, 5, 6, 7, 0], [1, 2, 3, 1, 2, 3, 1, 2], True),
        ([3, 0, 0, 1, 1, 1, 2, 2], [9, 9, 8, 1, 7, 7, 7, 8], False),
    ],
)
def test_first_ends_that_count_stay_ends(read, targets, values, is_said, separator, weighted):
    """A path, a ring and a tree, one line for each node; whole weights could be ids."""
    rows = [*zip(range(8), targets, values, strict=True)]
    data, said = read("\n".join(separator.join(map(str, row)) for row in rows), weighted=weighted)
    assert pairs(data) == {frozenset(map(str, row[:2])) for row in rows}
    assert ("column 1 - column 2 (guess: dataset.source.ends=[2,3])" in said) == is_said
    if weighted and not is_said:
        expected = nx.Graph()
        for u, v, weight in rows:
            old = expected.get_edge_data(u, v, {"weight": 0})["weight"]
            expected.add_edge(u, v, weight=old + weight)
        assert weights(data) == {
            frozenset(map(str, (u, v))): w for u, v, w in expected.edges(data="weight")
        }


def test_a_damaged_archive_is_refused(read, tmp_path):
    """Each of its bytes but those of the header, the last ones included."""
    raw = gzip.compress(RING.to_csv(index=False).encode(), mtime=0)
    for place in range(10, len(raw) - 4):
        damaged = raw[:place] + bytes([raw[place] ^ 0x55]) + raw[place + 1 :]
        with pytest.raises((zlib.error, OSError, EOFError)):
            gzip.decompress(damaged)
        assert "is not a complete .gz" in refusal(
            lambda raw=damaged: read(raw, name="edges.csv.gz")
        )


@pytest.mark.parametrize("separator", [" ", "\t", ","])
@pytest.mark.parametrize("header", ["", "from,sign,to,w\n", "x,y,z,w\n"])
@pytest.mark.parametrize("ends", [None, [1, 3], [3, 1]])
def test_arrows_point_at_the_second_end_or_the_first(read, separator, header, ends):
    """Per line; `ends` in reverse turns all of them."""
    rows = [
        ("a", "->", "b"),
        ("c", "<-", "b"),
        ("c", "-->", "d"),
        ("a", "<--", "d"),
        ("a", "→", "c"),
    ]
    text = header.replace(",", separator)
    text += "\n".join(separator.join((*row, str(i))) for i, row in enumerate(rows, 1))
    data, said = read(text, ends=ends, directed=True, weighted=True)
    if ends == [3, 1]:
        expected = {(v, u) for u, _, v in rows}
    else:
        expected = {(v, u) if "<" in arrow else (u, v) for u, arrow, v in rows}
        assert "2 edges of <- go to the first end" in said
    assert arcs(data) == expected
    forward = data.edge_weight[data.edge_forward]
    assert sorted(forward.tolist()) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("arrow", ["--", "<->"])
def test_arrows_without_a_direction(read, arrow):
    data, said = read(f"a {arrow} b\nb {arrow} c\n", directed=True)
    assert arcs(data) == {("a", "b"), ("b", "c")}
    assert "go to the first end" not in said


WEIGHTED = np.array([[0, 2, 0, 1.5], [1, 0, 0, 0], [0, 3, 0, 4], [0, 0, 1, 0]])
ADJACENCY = nx.to_numpy_array(nx.path_graph(4)).astype(int)


@pytest.mark.parametrize("separator", [",", "\t", " "])
@pytest.mark.parametrize("matrix", [ADJACENCY, WEIGHTED], ids=["graph", "weights"])
@pytest.mark.parametrize("names", [[*"abcd"], [0, 1, 2, 3], [7, 3, 9, 5]], ids=str)
@pytest.mark.parametrize("corner", [None, "", "node"])
@pytest.mark.parametrize("header", [True, False])
def test_matrices_are_refused(read, matrix, names, corner, header, separator):
    """As pandas writes them, with names of rows (`corner`), of columns, of both and of neither."""
    table = pd.DataFrame(matrix, index=names, columns=names)
    index = {"index": corner is not None, "index_label": corner or None}
    text = table.to_csv(sep=separator, header=header, **index)
    if not header and corner is not None and names != [0, 1, 2, 3]:
        return  # such rows may be edges with three values
    if header and corner is None and names == [7, 3, 9, 5]:
        return  # five rows of four numbers
    said = refusal(lambda: read(text))
    assert "has 4 rows and 4 columns, as an adjacency matrix has: write one line per edge" in said
    assert "networkx.write_edgelist" in said


def test_a_matrix_of_r_is_refused(read):
    text = '"a" "b" "c"\n"a" 0 1 1\n"b" 1 0 0\n"c" 1 0 0\n'
    assert "as an adjacency matrix has" in refusal(lambda: read(text))


@pytest.mark.parametrize(
    "text",
    [
        "source,target,weight,time\n1,2,3,4\n2,3,1,5\n3,4,4,6\n4,1,2,7\n",
        "from,to,km,time\n1,2,3,4\n2,3,1,5\n3,4,4,6\n4,1,2,7\n",
        "1,2,3,4\n2,3,1,5\n3,4,4,6\n4,1,2,7\n4,2,1,1\n",
        "1,2,3\n2,3,5\n3,4,2\n1,4,6\n",
        "4,1,3\n1,2,5\n2,3,1\n3,4,9\n",
    ],
)
def test_edges_with_numbers_are_no_matrix(read, text):
    assert pairs(read(text)[0]) >= {frozenset(pair) for pair in ("12", "23", "34", "14")}


@pytest.mark.parametrize("form", ["{}", "n{}"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("order", ["given", "longest first", "shortest first"])
def test_lists_of_neighbours_are_refused_unless_their_name_says_so(
    read, tmp_path, form, seed, order
):
    graph = nx.gnm_random_graph(8, 12, seed=seed)
    lines = [" ".join([form.format(n), *map(form.format, graph[n])]) for n in graph if graph[n]]
    if order != "given":
        lines.sort(key=lambda line: len(line.split()), reverse=order == "longest first")
    text = "\n".join(lines)
    assert ".adjlist" in refusal(lambda: read(text))
    (tmp_path / "list.adjlist").write_text(text)
    data, _ = read_graph(tmp_path / "list.adjlist")
    assert pairs(data) == {frozenset(map(form.format, pair)) for pair in graph.edges}


@pytest.mark.parametrize(
    "text", ["0 1 2 3 4\n1 0 2\n2 0 1 3\n", "0 1 2\n1 0\n2 0\n", "1 0 2\n2 0 1 3\n3 0 1 2\n"]
)
def test_short_lists_of_neighbours(read, text):
    assert ".adjlist" in refusal(lambda: read(text))


@pytest.mark.parametrize("separator", [" ", ",", "\t"])
def test_a_first_edge_without_the_weight_of_all_others_is_no_header(read, separator):
    rows = [("a", "b"), ("b", "c", "1"), ("c", "a", "2")]
    said = refusal(lambda: read("\n".join(map(separator.join, rows))))
    assert "write as many fields in every line" in said


def test_edges_of_which_some_have_a_weight_are_no_list_of_neighbours(read):
    assert pairs(read("a b 1\nb c\nc a 2\n")[0]) == {frozenset(pair) for pair in ("ab", "bc", "ca")}


@pytest.mark.parametrize(
    "text",
    [
        "(0, 1)\n(1, 2)\n",
        "('a', 'b'),\n('b', 'c'),\n",
        "(0, 1, 2.5)\n(1, 2, 0.5)\n",
        "(0, 1, {'weight': 2.5})\n(1, 2, {'weight': 0.5})\n",
        "((0, 0), (0, 1))\n((0, 1), (1, 1))\n",
        "source,target\n(0, 1)\n(1, 2)\n",
        "\n".join(nx.generate_edgelist(nx.grid_graph((2, 2)))),
        "\n".join(nx.generate_edgelist(nx.grid_graph((2, 2)), data=False)),
    ],
)
def test_printed_tuples_are_refused(read, text):
    assert "write one line per edge without brackets, such as a,b" in refusal(lambda: read(text))


@pytest.mark.parametrize("data", [True, False])
def test_nodes_that_are_tuples_need_tabs(read, data):
    graph = nx.grid_graph((2, 3))
    lines = nx.generate_edgelist(graph, delimiter="\t", data=data)
    assert pairs(read("\n".join(lines))[0]) == {frozenset(map(str, e)) for e in graph.edges}


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, np.int64])
@pytest.mark.parametrize("delimiter", [" ", "\t", ","])
def test_weights_of_numpy_that_networkx_writes(read, kind, delimiter):
    graph = nx.path_graph(5)
    for u, v in graph.edges:
        graph.edges[u, v].update(weight=kind(u + 2), old=np.True_, city=np.str_("Oslo (N)"))
    text = "\n".join(nx.generate_edgelist(graph, delimiter=delimiter))
    data, said = read(text, weighted=True)
    expected = {frozenset(map(str, (u, v))): w for u, v, w in graph.edges(data="weight")}
    assert weights(data) == expected
    assert "weight: 'weight'; not used: old, city" in said


def test_edges_that_are_commented_out(read):
    """As networkx reads them; the guess is said."""
    text = "1 2\n#2 3\n3 4\n2 4 # by hand\n# 1 4\n"
    data, said = read(text)
    graph = nx.parse_edgelist(text.split("\n"))
    assert pairs(data) == {frozenset(pair) for pair in graph.edges}
    assert "'#2 3' is a comment (guess: write #2 in quotes for a name)" in said


@pytest.mark.parametrize("mark", ["#", "%"])
@pytest.mark.parametrize("separator", [" ", ",", "\t"])
def test_names_with_a_mark_are_names(read, mark, separator):
    rows = [("other", "foo"), (f"{mark}tag", "other"), (f"{mark}tag", "foo"), ("foo", "bar")]
    data, said = read("\n".join(map(separator.join, rows)))
    assert pairs(data) == {frozenset(row) for row in rows}
    assert f"'{mark}tag' is a name (guess: write a blank after {mark} in comments)" in said
    rows = [*rows[1:], (f"{mark}tag", "bar")]
    data, _ = read("\n".join(map(separator.join, rows)))
    assert pairs(data) == {frozenset(row) for row in rows}
    rows = [*rows[1:], (f"{mark}tag", "bar")]
    data, _ = read("\n".join(map(separator.join, rows)))
    assert pairs(data) == {frozenset(row) for row in rows}
    quoted = [("a", "b"), (f'"{mark}a"', "b"), ("b", f"{mark}a")]
    data, said = read("\n".join(map(separator.join, quoted)))
    assert pairs(data) == {frozenset("ab"), frozenset((f"{mark}a", "b"))}
    assert "guess: write" not in said


TREE = pd.DataFrame({"parent": [0, 0, 1, 1, 2], "child": [1, 2, 3, 4, 5]})
IDS = pd.DataFrame({"id": range(6), "age": [1.5, 2, 3, 4, 5, 6]})


@pytest.mark.parametrize("nodes", [None, IDS, IDS.assign(id=IDS.id.astype(float))])
@pytest.mark.parametrize("columns", [["child"], ["parent"], ["parent", "child"]])
@pytest.mark.parametrize("header", [True, False])
def test_whole_numbers_that_pandas_has_written_as_floats_are_ids(read, nodes, columns, header):
    """In the columns that had a missing value, or in the table of nodes."""
    table = TREE.astype(dict.fromkeys(columns, float))
    text = table.to_csv(index=False, header=header)
    data, said = read(text, None if nodes is None else nodes.to_csv(index=False))
    names = [str(float(name)) for name in data.vocabulary.nodes]
    assert sorted(names) == [f"{i}.0" for i in range(6)]
    expected = {frozenset(map(str, map(float, row))) for row in TREE.to_numpy()}
    assert {frozenset(str(float(name)) for name in pair) for pair in pairs(data)} == expected
    if nodes is not None:
        rows = dict(zip(names, data.x.flatten().tolist(), strict=True))
        assert rows == dict(zip(map(str, map(float, IDS.id)), IDS.age, strict=True))
    if nodes is None and len(columns) == 1:
        assert "is read as" in said


def test_whole_floats_are_rows_of_an_array(read, tmp_path):
    np.save(tmp_path / "features.npy", np.eye(6))
    data, _ = read(TREE.astype(float).to_csv(index=False))
    assert pairs(data) == {frozenset(map(str, row)) for row in TREE.to_numpy()}


def test_ids_that_the_nodes_have_in_both_forms_stay(read):
    data, _ = read("from,to\n1.0,1\n2.0,2\n1.0,2\n", "id,f\n1,1\n1.0,2\n2,3\n2.0,4\n")
    assert data.vocabulary.nodes == ("1", "1.0", "2", "2.0")
    assert pairs(data) == {frozenset(p) for p in (("1.0", "1"), ("2.0", "2"), ("1.0", "2"))}


def test_one_number_in_two_forms_is_said(read):
    data, said = read("from,to\n01,2\n1,2\n3,01\n")
    assert data.num_nodes == 4
    assert "ids: 01 and 1 are two nodes (guess: write them alike for one)" in said


@pytest.mark.parametrize(
    ("nodes", "answer"),
    [
        ("id,f\n01,1\n02,2\n03,3\n", "'1' (and 1 more) not in the table of nodes, which has '01'"),
        ("id,f\n1,1\n2,2\n4,3\n", "'3' not in the table of nodes: add a line for it there"),
        ("id,key,f\na,1,0.5\nb,2,1\nc,3,2\n", "the ids of the edges are in 'key': add id=key"),
    ],
)
def test_ids_that_the_table_of_nodes_has_otherwise(read, nodes, answer):
    with pytest.raises(UsageError) as refused:
        read("from,to\n1,2\n1,3\n", nodes)
    assert answer in str(refused.value)


def test_ids_in_another_case(read):
    said = refusal(lambda: read("from,to\nann,Bob\nBob,Cem\n", "id,f\nAnn,1\nBob,2\nCem,3\n"))
    assert "'ann' not in the table of nodes, which has 'Ann': write ids alike in both" in said
