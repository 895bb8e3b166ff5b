"""The verb that trains: what it does without words."""

import sys

import pytest

from curvlab.cli import train


@pytest.fixture
def started(monkeypatch):
    """Words that Hydra would get; nothing is trained."""
    words = []
    monkeypatch.setattr(sys, "argv", ["train.py"])
    monkeypatch.setattr(train.signals, "install", lambda **_: None)
    monkeypatch.setattr(train, "run", lambda: words.append(sys.argv[1:]))
    return words


def test_without_words_a_short_run_is_made_and_the_next_one_named(started, capsys):
    assert train.main([]) == 0
    assert started == [list(train.FIRST)]
    first, last = capsys.readouterr().out.splitlines()
    assert first.endswith(" ".join(train.FIRST))
    assert last.startswith("next: ")


def test_with_words_nothing_is_added(started, capsys):
    assert train.main(["model=gcn", "dataset=synthetic_web"]) == 0
    assert started == [["model=gcn", "dataset=synthetic_web"]]
    assert capsys.readouterr().out == ""
