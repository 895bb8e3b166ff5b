"""Cells of a table: means, verdicts, ranks, and the sentences around them."""

from math import nan, sqrt

import pandas as pd
import pytest
from scipy import stats

from composing import CONFIGS
from curvlab.statistics import printed_std, summarise, welch_pm
from curvlab.tables import build_report, load_table
from curvlab.tables.claims import judge
from curvlab.tables.render import markdown
from curvlab.tables.report import _add_ranks as with_ranks
from stored_runs import cell, config_of, extend

WORDS = {"table": "fpst/table1", "metric": "f1_micro", "steps": 1000}
VALUES = [70.0, 76.0, 82.0, 73.0, 79.0]
"""Standard deviation sqrt(22.5), mean 76."""


@pytest.fixture
def report(spec, tmp_path):
    return lambda: build_report(spec, tmp_path)


def test_ours_is_next_to_the_papers(report, write_run):
    for seed, value in enumerate([98.5, 98.9, 99.3]):
        write_run("fpst", "web_edu", seed, value)
    fpst = cell(report(), "fpst")
    assert fpst["our_mean"] == pytest.approx(98.9)
    assert fpst["our_pm"] == pytest.approx(4.303 * 0.4 / 3**0.5, abs=1e-3)
    assert fpst["difference"] == pytest.approx(-0.1)
    assert fpst["within"] is True
    assert (fpst["seeds"], fpst["status"]) == (3, "partial")


def test_notes_on_a_cell_say_what_differs_from_most_of_the_table(configs, write_run, tmp_path):
    (spec,) = load_table(configs, "hypformer/table2")
    for model, steps in (("gcn", 5000), ("sgc", 5000), ("gat", 500)):
        path = write_run(model, "cora", 0, 80.0, table=spec.name, steps=steps)
        extend(path, score=80.0)
    found = build_report(spec, tmp_path)
    assert "Steps, at most: 5,000 in most cells." in found.caption
    assert found.cell_notes["gat", "cora"] == ["Steps, at most: 500"]
    assert not found.cell_notes["gcn", "cora"]
    (note,) = found.cell_notes["gcn", "airport"]
    assert note.startswith("paper: caption says accuracy")


def test_unfinished_runs_are_counted_and_never_averaged(report, write_run):
    for seed in range(3):
        write_run("fpst", "web_edu", seed, 99.0)
    write_run("fpst", "web_edu", 3, 12.0, status="diverged", steps=40)
    write_run("fpst", "web_edu", 4, None, status="failed", steps=40)
    write_run("fpst", "facebook", 0, None, status="out_of_memory", steps=0)
    found = report()
    fpst, facebook = cell(found, "fpst"), cell(found, "fpst", "facebook")
    assert fpst["our_mean"] == 99.0
    assert (fpst["seeds"], fpst["diverged"], fpst["failed"]) == (3, 1, 1)
    assert facebook["status"] == "out_of_memory"
    assert pd.isna(facebook["our_mean"])


def test_two_seeds_show_both_values_and_are_not_judged(report, write_run):
    write_run("fpst", "web_edu", 0, 99.0)
    for seed, value in enumerate([90.2, 90.0]):
        write_run("tokengt", "web_edu", seed, value)
    found = report()
    one, two = cell(found, "fpst"), cell(found, "tokengt")
    assert pd.isna(one["our_pm"])
    assert pd.isna(two["our_pm"])
    assert one["within"] is two["within"] is None
    assert (two["our_low"], two["our_high"]) == (90.0, 90.2)
    assert two["difference"] == pytest.approx(0.54)
    assert "mean, number of seeds in brackets (1 to 2, 5 planned)" in found.caption[0]
    assert "of two seeds both values instead" in found.caption[0]


def test_own_runs_stand_before_shipped_ones_of_a_cell(spec, write_run, tmp_path):
    """A copied shipped run does not count as your own."""
    for folder, model, values in [
        ("own", "fpst", [98.0, 98.2]),
        ("own", "gat", [88.0]),
        ("shipped", "fpst", [99.0, 99.2]),
        ("shipped", "gat", [88.0]),
    ]:
        for seed, value in enumerate(values):
            steps = 500 if (folder, model) == ("own", "fpst") else 10_000
            write_run(model, "web_edu", seed, value, table=f"{folder}/fpst/fig3", steps=steps)
    found = build_report(spec, tmp_path / "own", tmp_path / "shipped")
    fpst, gat = cell(found, "fpst"), cell(found, "gat")
    assert (fpst["source"], fpst["our_mean"], fpst["shipped_mean"]) == ("own", 98.1, 99.1)
    assert (fpst["mark"], fpst["shipped_mark"]) == ("ᵃ", "")  # only ours is of another protocol
    assert (gat["source"], gat["seeds"], gat["shipped_seeds"]) == ("shipped", 1, 0)
    fpst_lines = markdown(found).partition("**FPS-T**")[2].splitlines()
    assert [line.split(" | ")[1].strip() for line in fpst_lines[1:3]] == ["ours", "shipped"]
    assert (
        "Shipped: runs of the repository, compared where there are none of ours." in found.caption
    )


# Verdicts


MORE = stats.t(4).ppf(0.975) * sqrt(22.5 * (1 + 1 / 5))
"""Half of the interval of one more value."""

WELCH = welch_pm(summarise(VALUES), printed_std(0.7, "ci95", 10), 10, 0.005)


@pytest.mark.parametrize(
    ("split", "within", "pm", "said"),
    [
        (
            "shared_70_15_15",
            None,
            nan,
            "One draw of the split, not known to be the paper's, and so",
        ),
        ("public", False, WELCH, ""),
        # another draw of the split is not that unlikely to have 82.32
        ("random_60_20_20", True, MORE, "paper's number for one more"),
    ],
)
def test_a_difference_is_judged_by_the_draws_of_the_split(
    table1, write_run, tmp_path, configs, split, within, pm, said
):
    for model in ("fpst", "gcn", "gat"):
        for seed, value in enumerate(VALUES):
            write_run(model, "cora", seed, value, split=config_of(configs, split), **WORDS)
    found = build_report(table1, tmp_path)
    own = cell(found, "fpst", "cora")  # published: 82.32 +- 0.70
    assert own["within"] is within
    assert own["difference"] == pytest.approx(nan if within is None else 76 - 82.32, nan_ok=True)
    assert own["difference_pm"] == pytest.approx(pm, nan_ok=True)
    assert own["ranked"] == (0 if within is None else 3)
    assert own["deviation"] == ""
    assert said in " ".join(found.caption)


def test_a_paper_that_draws_for_each_run_is_compared_by_the_means_interval(
    configs, write_run, tmp_path
):
    (spec,) = load_table(configs, "hypformer/table3")
    column, split = "newsgroups20__k5", config_of(configs, "redrawn_50_25_25")
    for seed, value in enumerate(VALUES):
        words = {"table": spec.name, "split": split, "folder": f"{seed}"}
        extend(write_run("hypformer", column, seed, value, **words), score=value)
    found = build_report(spec, tmp_path)
    own = cell(found, "hypformer", column)
    assert own["our_t95"] < abs(own["difference"]) < own["our_t95"] * sqrt(6)
    assert own["within"] is False
    assert "one more draw" not in " ".join(found.caption)


@pytest.mark.parametrize(
    ("table", "row", "column", "judged"),
    [
        ("hypformer/table2", "hypformer", "airport_hgcn", True),
        ("hypformer/table2", "gcn", "airport_hgcn", False),  # of another paper (C.4)
        ("lrn/table2", "lrn_sgformer", "chameleon", False),
        ("polyformer/table4", "nagphormer", "citeseer__quota", True),  # a bootstrap interval
    ],
)
def test_a_printed_deviation_is_judged_where_its_kind_is_known(
    table, row, column, judged, write_run, tmp_path
):
    (spec,) = load_table(CONFIGS, table)
    printed = cell(build_report(spec, tmp_path), row, column)
    for seed, away in enumerate([0.9, 1.0, 1.1]):
        path = write_run(row, column, seed, 1.0, table=spec.name, folder=f"run{seed}")
        score = printed["paper_mean"] + away * printed["paper_pm"]
        extend(path, score=score / spec.report.scale)
    ours = cell(build_report(spec, tmp_path), row, column)
    if judged:
        assert ours["our_t95"] < ours["difference"] < ours["difference_pm"]
    assert ours["within"] is (True if judged else None)


def test_a_claim_is_judged_where_runs_of_the_tables_protocol_share_seeds(spec, write_run, tmp_path):
    """The paper prints FPS-T above TokenGT on all four graphs."""
    ours = {"web_edu": (99.0, 89.0), "power": (90.0, 99.0), "facebook": (86.0, 85.9)}
    for column, (fpst, tokengt) in ours.items():
        for seed, noise in enumerate((0.0, 0.5, -0.4)):
            write_run("fpst", column, seed, fpst + noise)
            write_run("tokengt", column, seed, tokengt - noise)
    for model in ("fpst", "tokengt"):
        write_run(model, "bio_worm", 0, 97.0, steps=250)
    report = build_report(spec, tmp_path)
    claim = {"paper": "", "claim": "", "link": "", "method": "fpst", "other": "tokengt"}
    judged = judge(claim, report)
    assert (judged["published"], judged["ours"]) == ("4 of 4", "2 of 3")
    assert judged["verdict"] == "1 confirmed, 1 contradicted, 2 open"


# Ranks


HIGHER, LOWER, NEITHER = "higher", "lower", "neither"


@pytest.mark.parametrize(
    ("better", "numbers", "ours", "papers", "places", "spearman"),
    [
        # of the methods that have both numbers; 1 - 6 sum d^2 / (n (n^2 - 1)), d = 1, -2, 1
        (
            *(HIGHER, [(90, 70), (95, nan), (80, 75), (85, 60), (nan, 99)]),
            *([2, nan, 1, 3, nan], [1, nan, 3, 2, nan], [0, 0, 2, 0, 1], 1 - 6 * 6 / (3 * 8)),
        ),
        (HIGHER, [(1, 2), (2, 1), (3, 4), (4, 3)], [3, 4, 1, 2], [4, 3, 2, 1], [0, 0, 1, 2], 0.6),
        (LOWER, [(1, 10), (2, 20), (3, 30)], [1, 2, 3], [1, 2, 3], [1, 2, 0], 1),
        (NEITHER, [(1, 10), (2, 20), (3, 30)], [nan] * 3, [nan] * 3, [0] * 3, nan),
        # the first is of another protocol: the paper's order of the others is ours
        (
            *(HIGHER, [(90, 99, "x"), (80, 60), (95, 75), (85, 70)]),
            *([nan, 3, 1, 2], [nan, 3, 1, 2], [0, 0, 1, 2], 1),
        ),
        (HIGHER, [(1, 2), (3, 4)], [nan] * 2, [nan] * 2, [0, 1], nan),  # two have no order
        # numbers that are written alike
        (HIGHER, [(3, 50.001), (2, 49.999), (1, 40)], [1, 1, 3], [1, 2, 3], [1, 1, 0], 0.75**0.5),
    ],
)
def test_ranks(better, numbers, ours, papers, places, spearman):
    cells = [
        {
            "row": str(i),
            "column": "y",
            "paper_mean": paper,
            "our_mean": float(our),
            "difference": nan if other else our - paper,
            "deviation": "250 steps" if other else "",
        }
        for i, (paper, our, *other) in enumerate(numbers)
    ]
    cells = with_ranks(pd.DataFrame(cells), 2, better)
    assert cells["our_rank"].tolist() == pytest.approx(ours, nan_ok=True)
    assert cells["paper_rank"].tolist() == pytest.approx(papers, nan_ok=True)
    assert cells["our_place"].tolist() == places
    assert cells["spearman"].tolist() == pytest.approx([spearman] * len(cells), nan_ok=True)
