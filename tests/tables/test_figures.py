"""What the papers print that no sweep fills: nothing is left out, and every command is one."""

import re
import shlex
from pathlib import Path

import pytest

from curvlab.cli.main import VERBS
from curvlab.cli.plot import COMMANDS as PLOTS
from curvlab.config.folder import find
from curvlab.tables import load_table, table_names
from curvlab.tables.overview import paper_figures

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
PRINTED = {  # the highest number of a figure and of a table
    "fpst": (7, 5),
    "hypformer": (6, 5),
    "lrn": (2, 5),
    "cat": (2, 3),
    "polyformer": (6, 12),
}
FIGURES = list(paper_figures().itertuples(index=False))
COMMANDS = [
    shlex.split(command)[1:]
    for figure in FIGURES
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
    for figure in FIGURES:
        if figure.paper == paper:
            found |= numbered(figure.item)
    figures, tables = PRINTED[paper]
    assert found == {("Figure", n + 1) for n in range(figures)} | {
        ("Table", n + 1) for n in range(tables)
    }


def test_each_has_a_state_or_pictures_of_its_paper():
    for figure in FIGURES:
        assert figure.paper in PRINTED
        assert figure.pictures or figure.state
        kind = re.compile(rf"{figure.paper}_\w+\.(png|svg)")
        names = figure.pictures.split()
        assert all(map(kind.fullmatch, names))
        for name in names:  # where `status` and `page` look for it
            assert f"--output outputs/{name}" in figure.command or "examples/" in figure.command
        for path in re.findall(r"\b(?:src|tests|docs|configs)/[\w./]+", figure.state):
            assert (CONFIGS.parent / path).exists(), path


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_commands_are_of_choices_that_there_are(words):
    verb, *rest = words
    assert verb in VERBS or (CONFIGS.parent / verb).is_file()
    if verb == "plot":
        assert rest[0] in PLOTS
    if rest[0] == "curvature":
        rest = [f"dataset={name}" for name in rest[1 : rest.index("--output")]]
    for key, _, values in (word.partition("=") for word in rest):
        if key in ("model", "dataset", "table", "search"):
            for value in values.split(","):
                assert find(CONFIGS, f"{key}/{value}.yaml").is_file(), (key, value)


def test_commands_in_tables_files_are_of_choices_that_there_are():
    named = [
        command
        for path in (CONFIGS / "table").rglob("*.yaml")
        for command in re.findall(r"curvlab plot (\w+)", path.read_text())
    ]
    assert "scaling" in named
    assert set(named) <= PLOTS.keys()
