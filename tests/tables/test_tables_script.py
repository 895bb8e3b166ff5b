"""The script tables.py, as it is typed."""

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("fpst/fig33",), "fpst/fig3"),
        (("fpst/fig3", "--results", "typo"), "no folder typo"),
        (("nothing", "at", "all"), "estimate TABLE"),
        (("estimate",), "estimate TABLE"),
        (("page",), "page PAPER"),
        (("estimate", "fpst/fig33"), "fpst/fig3"),
        (("estimate", "fpst/fig3", "model=gnc"), "gcn"),
        (("estimate", "fpst/fig3", "model=gcn", "foo=1"), "foo"),
        (("estimate", "fpst/fig3", "bar"), "key=value"),
        (("estimate", "fpst/fig3", "model=gcn", "seed=x"), "seed"),
        (("page", "nobody"), "fpst"),
        (("page", "fpst", "--format", "latex"), "drop --format"),
        (("status", "--format", "csv"), "drop --format"),
    ],
)
def test_wrong_words_get_one_sentence(script, words, answer):
    code, _, complained = script("tables.py", *words)
    assert code == 2
    assert complained.count("\n") == 1
    assert answer in complained


def test_status_counts_what_the_sweep_plans_and_no_other_runs(script, write_run, tmp_path):
    for seed in (0, 1, 10, 11):
        write_run("gcn", "power", seed, 97.5)
        write_run("sgformer", "power", seed, 97.5)
        write_run("gcn", "wordnet", seed, 97.5)
    for seed in range(10, 15):  # as many as planned, but others
        write_run("gat", "power", seed, 97.5)
    for seed in (*range(5), 10):
        write_run("mlp", "power", seed, 97.5)
    words = ("status", "--results", str(tmp_path), "--format", "markdown")
    _, said, _ = script("tables.py", *words)
    (line,) = (line for line in said.splitlines() if line.startswith("| fpst/fig3 "))
    assert line.split(" | ")[1:3] == ["1 of 48", "7 of 240"]
