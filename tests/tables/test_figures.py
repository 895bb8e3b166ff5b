"""What the papers print that no sweep fills: nothing is left out, and every command is one."""

import re
import shlex
from math import nan

import pandas as pd
import pytest

from composing import CONFIGS
from curvlab.cli.main import VERBS
from curvlab.cli.plot import COMMANDS as PLOTS
from curvlab.config.folder import find
from curvlab.tables.overview import overview, paper_figures, totals_in_words, verdicts
from curvlab.tables.report import build_report
from curvlab.tables.spec import load_table, table_names

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
    both, _ = overview(specs, lambda spec: build_report(spec, STORED))
    first, _ = overview(specs[:1], lambda spec: build_report(spec, STORED))
    assert both["again"].tolist() == [False, True]
    assert both["undecided"].iloc[1] > 0
    judged = totals_in_words(both).partition("judge")[2]
    assert judged == totals_in_words(first).partition("judge")[2]


def test_a_panel_of_some_runs_does_not_count_after_one_of_all():
    """CAT's Table 1 has panels of all runs and of those of 20 passes."""
    for name, panels in (("cat/table1", 1), ("hypformer/fig6_curvature", 7)):
        specs = load_table(CONFIGS, name)
        assert len(specs) > panels or all(spec.report.where for spec in specs)
        rows, _ = overview(specs, lambda spec: build_report(spec, STORED))
        assert len(rows) == panels


@pytest.mark.parametrize("name", table_names(CONFIGS))
def test_of_columns_with_the_same_published_numbers_one_counts(name):
    for spec in load_table(CONFIGS, name):
        report = spec.report
        groups = {}
        for copy, original in report.paper_columns.items():
            groups.setdefault(original, {original}).add(copy)
        for group in groups.values():
            assert len(group - report.repeated) == 1
        assert report.repeated <= set().union(*groups.values())


def test_a_repeated_column_and_an_unknown_draw_are_counted_apart():
    """Of equal published numbers one cell counts; the rule of one more draw is no Welch test."""
    cells = pd.DataFrame(
        [
            ("≈", "confirmed", 0.1, True, True),
            ("≈", "undecided", 0.1, True, True),
            ("≈", "contradicted", -3.0, False, True),
            ("≈", "contradicted", 3.0, False, True),
            ("≈", "confirmed", 0.1, True, False),
            ("‡", "undecided", 9.0, True, True),
            ("‡", "contradicted", 30.0, False, True),
            ("", "not run", nan, None, True),
        ],
        columns=["rule", "verdict", "difference", "within", "counted"],
    )
    found = verdicts(cells)
    assert list(found.values()) == [1, 1, 1, 1, 1, 2]
    own = {"again": False, "table": "", "title": "", "part": 1, "off protocol": 0}
    tables = pd.DataFrame([own | found])
    tables[["cells", "cells planned", "runs", "runs planned", "hours"]] = 8
    said = totals_in_words(tables)
    assert "1 are confirmed, 2 contradicted (1 of ours are below, 1 above) and 1 undecided" in said
    assert "Of 2 more, whose split is not published, 1 lie in the interval" in said
