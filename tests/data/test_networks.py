"""Edge lists become the undirected graphs that their statistics promise."""

import hashlib

import numpy as np
import pytest

from curvlab.data.datasets.networks import EdgeListNetwork, read_edge_list, undirected_graph
from curvlab.errors import UsageError
from graphs import is_connected, is_simple


def tiny_network(tmp_path, text="7,3\n3,9\n9,7\n9,4\n", **statistics):
    """A network whose raw file is already in the data folder."""
    path = "Networks/tiny/raw/tiny.edges.csv"
    raw = tmp_path / path
    raw.parent.mkdir(parents=True, exist_ok=True)
    raw.write_text(text)
    expected = {"num_nodes": 4, "num_edges": 4, "max_degree": 3} | statistics
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    files = [{"path": "tiny.edges.csv", "sha256": sha256}]
    return EdgeListNetwork(
        folder="Networks/tiny/raw", files=files, statistics=expected, data_dir=tmp_path
    )


def test_numbered_by_first_appearance_and_symmetric(tmp_path):
    graph = tiny_network(tmp_path).load()
    # 7, 3, 9, 4 become 0, 1, 2, 3
    expected = [[0, 0, 1, 1, 2, 2, 2, 3], [1, 2, 0, 2, 0, 1, 3, 2]]
    assert graph.edge_index.tolist() == expected
    assert graph.num_nodes == 4


def test_duplicates_reverses_and_self_loops_are_dropped():
    edges = np.array([[5, 6], [6, 5], [5, 6], [8, 8], [6, 7]])
    edge_index, num_nodes = undirected_graph(edges)
    assert num_nodes == 4  # the node that has only a self-loop stays, alone
    assert edge_index.tolist() == [[0, 1, 1, 3], [1, 0, 3, 1]]


def test_blank_lines_spaces_and_windows_line_ends_are_read(tmp_path):
    file = tmp_path / "edges.csv"
    file.write_bytes(b"0, 1\r\n\r\n1,2\r\n")
    assert read_edge_list(file).tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    "line", ["1", "1,2,3", "a,b", "1;2", "-1,2", "1.5,2", "1,", "\x00\x01,2", "source,target"]
)
def test_malformed_line_is_refused(tmp_path, line):
    file = tmp_path / "edges.csv"
    file.write_text(f"0,1\n\n1,2\n{line}\n2,3\n")
    with pytest.raises(ValueError):  # noqa: PT011 - of pandas, mostly
        read_edge_list(file)


@pytest.mark.parametrize("text", ["", "\n\n", "1,2\na,b\n"])
def test_a_malformed_file_is_one_sentence(tmp_path, text):
    with pytest.raises(UsageError, match=r"raw files of graph in .* cannot be read .*delete them"):
        tiny_network(tmp_path, text).load()


@pytest.mark.parametrize("name", ["web_edu", "power", "facebook", "bio_worm"])
def test_real_networks_have_the_papers_statistics_and_are_connected(name, mirror, source):
    graph = source(name, mirror).load()  # asserts nodes, edges, largest degree
    assert is_connected(graph)
    assert is_simple(graph)
