"""Raw files that are missing or damaged, as a run meets them, on a small network of the test's."""

import hashlib
import re

import pytest
from tiny_runs import FAST

from curvlab.errors import UsageError

PATH = "Networks/tiny/raw/tiny.edges.csv"
CONTENT = "".join(f"{node},{node // 2}\n" for node in range(1, 40))
FPST = ("model=fpst", "model.eigenvectors=4")


@pytest.fixture
def tiny(tmp_path):
    """Words that name the network, and its raw file in a mirror."""
    raw = tmp_path / "mirror" / PATH
    raw.parent.mkdir(parents=True)
    raw.write_text(CONTENT)
    checksum = hashlib.sha256(CONTENT.encode()).hexdigest()
    words = {
        "folder": PATH.rpartition("/")[0],
        "url": "http://127.0.0.1:9",  # a port that refuses connections
        "files": f"[{{path: tiny.edges.csv, sha256: {checksum}}}]",
        "statistics": "{num_nodes: 40, num_edges: 39, max_degree: 3}",
    }
    settings = [f"dataset.source.{key}={value}" for key, value in words.items()]
    # Not of this graph: the number of nodes of the generated one.
    return [word for word in FAST if "num_nodes" not in word] + ["dataset=web_edu", *settings], raw


def mirrored(raw):
    return f"paths.mirror={raw.parents[3]}"


def test_with_neither_network_nor_mirror_the_error_says_what_to_put_where(run_here, tiny, tmp_path):
    words, _ = tiny
    with pytest.raises(UsageError) as caught:
        run_here(*words)
    sentence = str(caught.value)
    assert str(tmp_path / "data" / PATH) in sentence
    assert "http://127.0.0.1:9/tiny.edges.csv" in sentence
    assert "CURVLAB_MIRROR" in sentence
    assert "\n" not in sentence


def test_a_corrupt_raw_file_is_named_with_its_checksum(run_here, tiny, tmp_path):
    words, raw = tiny
    raw.write_text(CONTENT + "0,1\n")
    with pytest.raises(UsageError, match=f"{re.escape(str(raw))} is corrupt: its SHA-256 is"):
        run_here(*words, mirrored(raw))
    there = tmp_path / "data" / PATH
    there.parent.mkdir(parents=True)
    there.write_text("")
    with pytest.raises(UsageError, match=f"{re.escape(str(there))} is corrupt.*delete it"):
        run_here(*words)


def test_a_corrupt_cache_is_rebuilt(run_here, tiny, tmp_path, caplog):
    words, raw = tiny
    first = run_here(*words, *FPST, mirrored(raw), folder="first")
    entries = list((tmp_path / "data").rglob("*.pt"))
    assert {entry.parent.name for entry in entries} == {"cache", "processed"}
    for entry in entries:
        entry.write_bytes(entry.read_bytes()[:-100])
    second = run_here(*words, *FPST, mirrored(raw), folder="second")
    assert second.metrics == first.metrics
    assert caplog.text.count("computing it again") == len(entries)
    run_here(*words, *FPST, mirrored(raw), folder="third")
    assert caplog.text.count("computing it again") == len(entries)
