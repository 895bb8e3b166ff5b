"""Raw files arrive whole or not at all; edge lists become the graphs that they promise."""

import hashlib
import re
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from composing import CONFIGS
from curvlab.data.datasets.networks import EdgeListNetwork, read_edge_list, undirected_graph
from curvlab.data.files.sources import fetch, git_blob_hash
from curvlab.errors import UsageError
from curvlab.run.parts import named_source
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


CONTENT = b"0,1\n1,2\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
PATH = "Networks/tiny/raw/tiny.edges.csv"
# Port 9 (discard) of this machine refuses connections: a network that is not there.
FILE = (PATH, "http://127.0.0.1:9/tiny.edges.csv", SHA256)


@pytest.fixture
def tiny_mirror(tmp_path, put):
    put(PATH, CONTENT)
    return tmp_path / "mirror"


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A web server on this machine; yields its address and the folder that it serves."""
    folder = tmp_path / "served"
    folder.mkdir()
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}", folder
        running.shutdown()
        thread.join()


def test_a_source_is_built_by_its_name(tmp_path):
    cora = named_source("cora", tmp_path)
    assert (cora.name, cora.data_dir, cora.given) == ("cora", str(tmp_path), "public")
    assert (cora.folder, cora.files[0]["path"]) == ("Planetoid/Cora/raw", "ind.cora.x")
    assert named_source("synthetic_web").load().num_nodes == 3000


def leftovers(folder):
    return [path for path in folder.rglob("*") if path.is_file() and path.name.startswith(".")]


def test_copies_from_the_mirror_into_the_same_place(tmp_path, tiny_mirror):
    path = fetch(*FILE, tmp_path / "data", tiny_mirror)
    assert path == tmp_path / "data" / PATH
    assert path.read_bytes() == CONTENT
    assert leftovers(tmp_path / "data") == []


def test_downloads_when_the_mirror_lacks_the_file(tmp_path, server):
    address, folder = server
    (folder / "tiny.edges.csv").write_bytes(CONTENT)
    (tmp_path / "empty").mkdir()
    file = (PATH, f"{address}/tiny.edges.csv", SHA256)
    assert fetch(*file, tmp_path / "data", tmp_path / "empty").read_bytes() == CONTENT


def test_a_download_with_the_wrong_content_leaves_nothing_behind(tmp_path, server):
    address, folder = server
    (folder / "tiny.edges.csv").write_bytes(b"something else")
    file = (PATH, f"{address}/tiny.edges.csv", SHA256)
    with pytest.raises(UsageError, match="corrupt") as caught:
        fetch(*file, tmp_path / "data")
    assert file[1] in str(caught.value)
    assert [path for path in (tmp_path / "data").rglob("*") if path.is_file()] == []


def test_corrupt_raw_file_names_file_both_sums_and_remedy(tmp_path, tiny_mirror):
    path = fetch(*FILE, tmp_path / "data", tiny_mirror)
    path.write_bytes(CONTENT + b"2,3\n")
    with pytest.raises(UsageError) as caught:
        fetch(*FILE, tmp_path / "data", tiny_mirror)
    found = hashlib.sha256(CONTENT + b"2,3\n").hexdigest()
    for said in (str(path), SHA256, found, "delete it"):
        assert said in str(caught.value)


@pytest.mark.parametrize("content", [b"", CONTENT, bytes(range(256)) * 9000])
def test_the_hash_of_a_blob_is_gits(content, tmp_path):
    (tmp_path / "file").write_bytes(content)
    command = ["git", "hash-object", "--no-filters", str(tmp_path / "file")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert git_blob_hash(tmp_path / "file") == printed.strip()


def test_a_file_without_sha256_is_verified_by_its_hash_in_git(tmp_path, tiny_mirror):
    known = git_blob_hash(tiny_mirror / PATH)
    address, data = FILE[1], tmp_path / "data"
    path = fetch(PATH, address, None, data, tiny_mirror, known)
    assert path.read_bytes() == CONTENT
    path.write_bytes(CONTENT + b"2,3\n")
    with pytest.raises(UsageError, match=f"its git blob hash is .*, expected {known}; delete it"):
        fetch(PATH, address, None, data, tiny_mirror, known)


def test_hashes_in_git_of_shipped_files_are_verified():
    """No file has a hash in a comment alone."""
    for file in (CONFIGS / "dataset").rglob("*.yaml"):
        text = file.read_text()
        assert "hash-object" not in text, file
        for known in re.findall(r"git_blob: (.*?)[,}]", text):
            assert re.fullmatch("[0-9a-f]{40}", known), file


def test_corrupt_mirror_file_is_refused_and_not_copied(tmp_path, tiny_mirror):
    (tiny_mirror / PATH).write_bytes(b"damaged")
    with pytest.raises(UsageError, match="repair the mirror"):
        fetch(*FILE, tmp_path / "data", tiny_mirror)
    assert not (tmp_path / "data" / PATH).exists()


def test_a_mirror_that_is_no_folder_is_refused(tmp_path):
    with pytest.raises(UsageError, match="not a folder"):
        fetch(*FILE, tmp_path / "data", tmp_path / "absent")


def test_many_at_once_all_get_the_whole_file(tmp_path, tiny_mirror):
    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(fetch, *FILE, tmp_path / "data", tiny_mirror) for _ in range(32)]
    assert {job.result().read_bytes() for job in jobs} == {CONTENT}
    assert leftovers(tmp_path / "data") == []
