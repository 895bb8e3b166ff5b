"""What the papers print that no sweep fills: nothing is left out, and every command is one."""

import re
import shlex

import pytest

from composing import CONFIGS
from curvlab.cli.main import VERBS
from curvlab.cli.plot import COMMANDS as PLOTS
from curvlab.config.folder import find
from curvlab.tables import load_table, table_names
from curvlab.tables.overview import overview, paper_figures, totals_in_words

STORED = CONFIGS.parent / "docs/results/tables"
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
    ranges = re.findall(r"(\d+)(?: to (\d+))?", words)
    return {(kind, n) for first, last in ranges for n in range(int(first), int(last or first) + 1)}


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


def test_published_numbers_are_judged_once():
    """By the first table that has them: `fpst/table1_width16` repeats those of `fpst/table1`."""
    names = "fpst/table1", "fpst/table1_width16"
    specs = [spec for name in names for spec in load_table(CONFIGS, name)]
    both, _ = overview(specs, STORED)
    first, _ = overview(specs[:1], STORED)
    assert both["again"].tolist() == [False, True]
    assert both["within"].iloc[1] > 0
    judged = totals_in_words(both).partition("judged")[2]
    assert judged == totals_in_words(first).partition("judged")[2]
