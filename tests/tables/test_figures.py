"""What the papers print that no sweep fills: nothing is left out, and every command is one."""

import re
import shlex
from pathlib import Path

import pytest

from curvlab.config.folder import find
from curvlab.tables import load_table, table_names
from curvlab.tables.figures import load_figures

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
PLOT = CONFIGS.parent / "src/curvlab/cli/plot.py"
PRINTED = {  # the highest number of a figure and of a table
    "fpst": (7, 5),
    "hypformer": (6, 5),
    "lrn": (2, 5),
    "cat": (2, 3),
    "polyformer": (6, 12),
}
COMMANDS = [
    shlex.split(command)[1:]
    for figure in load_figures()
    for command in filter(None, figure.command.split(" && "))
]


def numbered(text):
    """`(kind, number)` of all that a text such as `Figures 1 to 3, 5` names."""
    kind = re.search(r"(Figure|Table)", text)[0]
    words = text[text.index(kind) :].partition(":")[0]
    ranges = re.sub(r"(\d+) to (\d+)", lambda m: spelled(int(m[1]), int(m[2])), words)
    return {(kind, int(number)) for number in re.findall(r"\d+", ranges)}


def spelled(first, last):
    return ", ".join(map(str, range(first, last + 1)))


@pytest.mark.parametrize("paper", PRINTED)
def test_every_table_and_figure_of_a_paper_is_listed(paper):
    found = set()
    for name in table_names(CONFIGS):
        if name.startswith(f"{paper}/"):
            for spec in load_table(CONFIGS, name):
                found |= numbered(spec.report.title)
    for figure in load_figures():
        if figure.paper == paper:
            found |= numbered(figure.item)
    figures, tables = PRINTED[paper]
    assert found == {("Figure", n + 1) for n in range(figures)} | {
        ("Table", n + 1) for n in range(tables)
    }


def test_each_has_a_state_or_pictures_of_its_paper():
    for figure in load_figures():
        assert figure.paper in PRINTED
        assert figure.pictures or figure.state
        kind = re.compile(rf"{figure.paper}_\w+\.(png|svg)")
        assert all(map(kind.fullmatch, figure.pictures))
        for name in figure.pictures:  # where `status` and `page` look for it
            assert f"--output outputs/{name}" in figure.command or "examples/" in figure.command
        for path in re.findall(r"\b(?:src|tests|docs|configs)/[\w./]+", figure.state):
            assert (CONFIGS.parent / path).exists(), path


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_commands_are_of_choices_that_there_are(words):
    script, *rest = words
    assert (CONFIGS.parent / script).is_file()
    if script.endswith("plot.py"):
        assert f'command("{rest[0]}", plot_' in PLOT.read_text()
    if rest[0] == "curvature":
        rest = [f"dataset={name}" for name in rest[1 : rest.index("--output")]]
    for key, _, values in (word.partition("=") for word in rest):
        if key in ("model", "dataset", "table", "search"):
            for value in values.split(","):
                assert find(CONFIGS, f"{key}/{value}.yaml").is_file(), (key, value)


def test_commands_in_tables_files_are_of_choices_that_there_are():
    text = PLOT.read_text()
    named = [
        command
        for path in (CONFIGS / "table").rglob("*.yaml")
        for command in re.findall(r"scripts/plot\.py (\w+)", path.read_text())
    ]
    assert "scaling" in named
    assert all(f'command("{command}", plot_' in text for command in named), named


def test_pictures_count_as_drawn_when_all_are_there(tmp_path):
    figure = next(figure for figure in load_figures() if len(figure.pictures) > 1)
    assert not figure.drawn(tmp_path)
    (tmp_path / figure.pictures[0]).touch()
    assert not figure.drawn(tmp_path)
    for name in figure.pictures:
        (tmp_path / name).touch()
    assert figure.drawn(tmp_path)
    sketch = next(figure for figure in load_figures() if not figure.pictures)
    assert not sketch.drawn(tmp_path)
