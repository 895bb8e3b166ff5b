"""No name in a file of another steers the terminal, and none is a formula in a spreadsheet."""

import io
import re

import pandas as pd
import pytest
from rich.text import Text

from curvlab.cli import Output
from curvlab.cli.verbs import write
from curvlab.program import escape_controls, plain_console

CONTROLS = [*map(chr, range(32)), *map(chr, range(127, 160)), "\u202e", "\u2066", "\u200f"]
KEPT = "\n\t"
TITLE = "\x1b]0;owned\x07\x1b[2J\x9b31m"


@pytest.fixture
def terminal():
    """A stream as the command line has it."""
    return Output(io.BytesIO(), "utf-8", "replace", write_through=True)


def said(terminal):
    return terminal.buffer.getvalue().decode()


@pytest.mark.parametrize("control", CONTROLS, ids=lambda sign: f"{ord(sign):x}")
def test_a_control_character_is_written_as_text(terminal, control):
    print(f"a{control}b", file=terminal)
    shown = control if control in KEPT else ascii(control)[1:-1]
    assert said(terminal) == f"a{shown}b\n"


def test_a_console_keeps_its_styles_and_no_others(terminal):
    console = plain_console(file=terminal, force_terminal=True, color_system="standard", width=200)
    console.print(Text(f"name {TITLE}", style="bold"))
    console.print(f"plain {TITLE}")
    shown = escape_controls(TITLE.replace("\x07", ""))  # which Rich drops
    assert said(terminal).count(shown) == 2
    assert set(re.findall(r"\x1b[^m]*m", said(terminal))) == {"\x1b[1m", "\x1b[0m"}


def test_a_bar_may_return_to_the_start_of_its_line(terminal):
    terminal.write("\r 5/10")
    terminal.write("a\rb")
    assert said(terminal) == "\r 5/10a\\rb"


def test_names_that_a_spreadsheet_would_run_are_texts_by_an_option(tmp_path):
    names = ["=1+1", "+1", "-1", "@SUM(A1)", " =1+1", "\t=1", "plain", "a=1", ""]
    frame = pd.DataFrame({"id": names, "=class": -1.5, "label": None})
    write(frame, tmp_path / "plain.csv")
    write(frame, tmp_path / "safe.csv", spreadsheet=True)
    plain, safe = (
        pd.read_csv(tmp_path / f"{name}.csv", keep_default_na=False) for name in ("plain", "safe")
    )
    assert list(plain["id"]) == names
    assert list(plain) == ["id", "=class", "label"]
    assert list(safe["id"]) == [f"'{name}" for name in names[:6]] + names[6:]
    assert list(safe) == ["id", "'=class", "label"]
    assert list(safe["'=class"]) == [-1.5] * len(names)
