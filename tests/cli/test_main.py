"""The program `curvlab`, its verbs, and what the verb that trains does without words."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import curvlab
from curvlab.cli import train
from curvlab.cli.main import VERBS, main

ROOT = Path(__file__).resolve().parents[2]


def test_help_names_every_verb_and_the_version(capsys):
    assert main(["--help"]) == main([]) == 0
    said = capsys.readouterr().out
    assert all(f"curvlab {verb} " in said for verb in VERBS)
    assert main(["--version"]) == 0
    assert curvlab.__version__ in capsys.readouterr().out


def test_a_wrong_verb_is_answered_with_the_near_one(capsys):
    assert main(["trian", "model=gcn"]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == (
        "",
        "curvlab: there is no trian; did you mean curvlab train?\n",
    )


def test_a_search_is_named_first(capsys):
    with pytest.raises(SystemExit) as left:
        main(["search", "dataset=cora"])
    assert left.value.code == 2
    assert "as in curvlab search fpst dataset=texas" in capsys.readouterr().err


def test_help_waits_for_no_torch():
    code = (
        "import sys; from curvlab.cli.main import main; main(['--help']); "
        "sys.exit(bool({'torch', 'hydra'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0


@pytest.mark.slow
def test_the_package_is_imported_in_a_tenth_of_a_second():
    """The best of some, since other processes share the machine."""
    command = [sys.executable, "-X", "importtime", "-c", "import curvlab"]
    times = [subprocess.run(command, capture_output=True, text=True, check=True).stderr]
    times += [subprocess.run(command, capture_output=True, text=True, check=True).stderr]
    found = [re.search(r"\|\s+(\d+) \|\s+curvlab$", text, re.MULTILINE) for text in times]
    assert min(int(match[1]) for match in found if match) < 100_000  # microseconds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "begins"),
    [(["train.py"], "train.py: "), (["-m", "curvlab", "train"], "curvlab train: ")],
)
def test_messages_name_what_was_started(words, begins):
    done = subprocess.run(
        [sys.executable, *words, "model=gcn", "seed=0,1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(begins)
    typed = "python train.py" if words == ["train.py"] else "curvlab train"
    assert f"as in {typed} -m seed=0,1" in done.stderr


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
