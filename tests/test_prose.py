"""The check of English finds the faults that it names, where `help` reads its lines."""

from pathlib import Path

import pytest
from scripts.prose import options, own_words, prose

CLASS = '''class Layer:
    """A layer.

    Args:
        dropout: {}
    """
'''


@pytest.mark.parametrize("says", ["of the output.", "what a layer reads.", "makes the space."])
def test_an_option_without_a_subject_is_found_in_its_line(tmp_path: Path, says: str):
    path = tmp_path / "layer.py"
    path.write_text(CLASS.format(says))
    assert [finding.number for finding in options([path])] == [5]


@pytest.mark.parametrize("says", ["dropout of the output.", "drop out the output."])
def test_an_option_with_a_noun_or_an_imperative_passes(tmp_path: Path, says: str):
    path = tmp_path / "layer.py"
    path.write_text(CLASS.format(says))
    assert not list(options([path]))


@pytest.mark.parametrize("text", ["# one's own\n", "a: 1\nkey: 3 # one's own\n"])
def test_comments_of_configurations_are_read(tmp_path: Path, text: str):
    path = tmp_path / "gcn.yaml"
    path.write_text(text)
    assert [f.number for f in own_words(prose(path))] == [text.count("\n")]


def test_hashes_in_values_are_no_comments(tmp_path: Path):
    path = tmp_path / "gcn.yaml"
    path.write_text("address: page#one's own\n")
    assert not list(own_words(prose(path)))
