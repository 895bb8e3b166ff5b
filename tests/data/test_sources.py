"""Raw files arrive whole or not at all, and every failure says what to do."""

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from curvlab.data.files.sources import fetch
from curvlab.errors import UsageError
from curvlab.run.parts import named_source

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
