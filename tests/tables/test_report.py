"""Cells of a table: means, verdicts, ranks, and the sentences around them."""

from dataclasses import replace
from math import nan, sqrt

import pandas as pd
import pytest
from omegaconf import OmegaConf
from scipy import stats

from composing import CONFIGS
from curvlab.config.sources import complete
from curvlab.tables import build_report, load_table
from curvlab.tables.claims import judge
from curvlab.tables.render import markdown
from curvlab.tables.report import _with_ranks as with_ranks
from curvlab.tables.spec import Better
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


@pytest.mark.parametrize(
    ("seeds", "planned", "status"), [(range(5), 5, "finished"), (range(1, 6), 4, "partial")]
)
def test_planned_seeds_finish_a_cell(report, write_run, seeds, planned, status):
    for seed in seeds:
        write_run("fpst", "web_edu", seed, 90.0 + 0.01 * seed)
    fpst = cell(report(), "fpst")
    assert (fpst["seeds"], fpst["planned_seeds"], fpst["status"]) == (5, planned, status)
    assert fpst["within"] is False


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


def test_caption_says_which_interval_which_seeds_have(report, write_run):
    for seed in range(5):
        write_run("fpst", "web_edu", seed, 98.7 + seed / 100)
    assert "mean ± 1.96 std/√n, number of seeds" in report().caption[0]
    for seed in range(4):
        write_run("gcn", "web_edu", seed, 80.0 + seed / 100)
    found = report()
    few = "mean ± 1.96 std/√n, of fewer than five seeds Student's 95% interval, number of seeds"
    assert few in found.caption[0]
    assert cell(found, "gcn")["our_pm"] == cell(found, "gcn")["our_t95"]
    assert cell(found, "fpst")["our_pm"] < cell(found, "fpst")["our_t95"]


def test_a_model_that_the_paper_does_not_have_gets_a_row(report, write_run):
    write_run("my_model", "web_edu", 0, 99.5)
    mine = cell(report(), "my_model")
    assert mine["our_mean"] == 99.5
    assert mine[["paper_mean", "difference"]].isna().all()


def test_own_runs_stand_before_shipped_ones_of_a_cell(spec, write_run, tmp_path):
    """A copied shipped run does not count as your own."""
    for folder, model, values in [
        ("own", "fpst", [98.0, 98.2]),
        ("own", "gat", [88.0]),
        ("shipped", "fpst", [99.0, 99.2]),
        ("shipped", "gat", [88.0]),
    ]:
        for seed, value in enumerate(values):
            write_run(model, "web_edu", seed, value, table=f"{folder}/fpst/fig3")
    found = build_report(spec, tmp_path / "own", tmp_path / "shipped")
    fpst, gat = cell(found, "fpst"), cell(found, "gat")
    assert (fpst["source"], fpst["our_mean"], fpst["shipped_mean"]) == ("own", 98.1, 99.1)
    assert fpst["difference"] == pytest.approx(-0.9)
    assert (gat["source"], gat["seeds"], gat["shipped_seeds"]) == ("shipped", 1, 0)
    fpst_lines = markdown(found).partition("**FPS-T**")[2].splitlines()
    assert [line.split(" | ")[1].strip() for line in fpst_lines[1:3]] == ["ours", "shipped"]
    assert (
        "Shipped: runs of the repository, compared where there are none of ours." in found.caption
    )


@pytest.mark.parametrize("cited", [True, False])
def test_a_cell_that_no_sweep_has_is_cited_or_missing(configs, tmp_path, cited):
    (spec,) = load_table(configs, "polyformer/table5")
    if not cited:
        spec = replace(spec, report=replace(spec.report, cited=[]))
    found = build_report(spec, tmp_path)
    status = "cited" if cited else "missing"
    assert cell(found, "gprgnn_printed", "pokec")["status"] == status
    assert cell(found, "polyformer", "pokec")["status"] == "not run"


# Verdicts


def compared(table1, write_run, tmp_path, split, values=VALUES):
    for model in ("fpst", "gcn", "gat"):
        for seed, value in enumerate(values):
            write_run(model, "cora", seed, value, split=split, **WORDS)
    return build_report(table1, tmp_path)


def test_one_draw_of_ours_is_not_compared(table1, write_run, tmp_path, configs):
    found = compared(table1, write_run, tmp_path, config_of(configs, "shared_70_15_15"))
    own = cell(found, "fpst", "cora")
    assert own["our_pm"] == pytest.approx(1.96 * sqrt(22.5 / 5))
    assert own[["difference", "our_rank", "spearman"]].isna().all()
    assert own["within"] is None
    assert own["deviation"] == ""
    words = " ".join(found.caption)
    assert "± is over initialisations on one draw of the split: Cora." in words
    assert "One draw of the split, not known to be the paper's, and so without" in words
    assert "Rank" not in markdown(found)


def test_a_published_split_is_compared_by_students_interval(table1, write_run, tmp_path, configs):
    found = compared(table1, write_run, tmp_path, config_of(configs, "public"))
    own = cell(found, "fpst", "cora")  # published: 82.32 +- 0.70
    student = stats.t(4).ppf(0.975) * sqrt(22.5 / 5)
    assert own["difference"] == pytest.approx(76 - 82.32)
    assert own["within"] is False
    assert sqrt(student**2 + 0.7**2) < 6.32
    assert own["ranked"] == 3
    assert "not known to be the paper's" not in " ".join(found.caption)


def test_draws_of_ours_take_the_papers_for_one_more(table1, write_run, tmp_path, configs):
    split = config_of(configs, "random_60_20_20")
    found = compared(table1, write_run, tmp_path, split)
    own = cell(found, "fpst", "cora")
    # The same values as above: another draw of the split is not that unlikely to have 82.32.
    assert own["within"] is True
    assert own["difference_pm"] == pytest.approx(stats.t(4).ppf(0.975) * sqrt(22.5 * (1 + 1 / 5)))
    words = " ".join(found.caption)
    assert "± is over 5 draws of the split, one initialisation each: Cora." in words
    assert "≈ takes the paper's number for one more draw" in words
    far = compared(table1, write_run, tmp_path, split, [value + 40 for value in VALUES])
    assert cell(far, "fpst", "cora")["within"] is False


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


@pytest.mark.parametrize("table", ["cat/table1", "cat/table3", "hypformer/table2"])
def test_our_spread_is_a_deviation_where_the_papers_is(table, tmp_path, write_run):
    spec = load_table(CONFIGS, table)[0]
    row, column = spec.planned_rows[0], spec.planned_columns[0]
    group, _, key = spec.report.metric.rpartition(".")
    for seed in (0, 1, 2):
        value = 0.5 + 0.1 * seed
        path = write_run(row, column, seed, 1.0, table=table, folder=f"run{seed}")
        extend(path, score=value, metrics={group: {key: value}})
    found = build_report(spec, tmp_path)
    own = cell(found, row, column)
    assert own["our_pm"] == own["our_std"] > 0
    assert "± the sample standard deviation" in found.caption[0]


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


def ranked(better, **columns):
    """Cells of one column for each word: (paper, ours) of the methods a, b, c ..."""
    cells = [
        {
            "row": row,
            "column": column,
            "paper_mean": paper,
            "our_mean": ours,
            "difference": ours - paper if row != "x" else nan,
            "deviation": "250 steps" if row == "x" else "",
        }
        for column, pairs in columns.items()
        for row, (paper, ours) in pairs.items()
    ]
    return with_ranks(pd.DataFrame(cells).astype({"our_mean": float}), 2, better)


def pairs(*numbers):
    return dict(zip("abcdef", numbers, strict=False))


def test_ranks_are_of_the_methods_that_have_both_numbers():
    cells = ranked(Better.higher, y=pairs((90, 70), (95, nan), (80, 75), (85, 60), (nan, 99)))
    both = cells[cells["our_rank"].notna()]
    assert both["row"].tolist() == ["a", "c", "d"]
    assert both["paper_rank"].tolist() == [1, 3, 2]
    assert both["our_rank"].tolist() == [2, 1, 3]
    assert cells["ranked"].tolist() == [3] * 5
    # 1 - 6 sum d^2 / (n (n^2 - 1)), d = 1, -2, 1
    assert cells["spearman"].tolist() == pytest.approx([1 - 6 * 6 / (3 * 8)] * 5)


def test_lower_may_be_better():
    cells = ranked(Better.lower, y=pairs((1, 10), (2, 20), (3, 30)))
    assert cells["our_rank"].tolist() == cells["paper_rank"].tolist() == [1, 2, 3]
    assert cells["spearman"].tolist() == pytest.approx([1, 1, 1])
    assert cells["our_place"].tolist() == [1, 2, 0]


def test_where_no_number_is_better_none_is_ranked():
    cells = ranked(Better.neither, y=pairs((1, 10), (2, 20), (3, 30)))
    assert cells[["our_rank", "paper_rank", "spearman"]].isna().all(axis=None)
    assert not cells[["our_place", "paper_place", "ranked"]].any(axis=None)


def test_numbers_of_another_protocol_are_not_ranked():
    """The best of ours is one: the paper's order of the others is ours."""
    cells = ranked(Better.higher, y={"x": (90, 99), **pairs((80, 60), (95, 75), (85, 70))})
    assert cells["our_rank"].isna().tolist() == [True, False, False, False]
    assert cells["our_rank"].dropna().tolist() == cells["paper_rank"].dropna().tolist() == [3, 1, 2]
    assert cells["ranked"].tolist() == [3] * 4
    assert cells["our_place"].tolist() == [0, 0, 1, 2]
    assert cells["paper_place"].tolist() == [2, 0, 1, 0]


def test_two_methods_have_no_order():
    cells = ranked(Better.higher, y=pairs((1, 2), (3, 4)), z=pairs((1, 2), (2, 1), (3, 3)))
    by_column = cells.groupby("column")
    assert by_column["our_rank"].count().to_dict() == {"y": 0, "z": 3}
    assert by_column["spearman"].first().isna().to_dict() == {"y": True, "z": False}
    assert by_column["ranked"].first().to_dict() == {"y": 0, "z": 3}


def test_numbers_that_are_written_alike_have_one_rank():
    cells = ranked(Better.higher, y=pairs((3, 50.001), (2, 49.999), (1, 40)))
    assert cells["our_rank"].tolist() == [1, 1, 3]
    assert cells["our_place"].tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("ours", "expected"),
    [([1, 2, 3, 4], 1), ([4, 3, 2, 1], -1), ([2, 1, 4, 3], 0.6), ([5, 5, 5, 5], nan)],
)
def test_spearman(ours, expected):
    cells = ranked(Better.higher, y=pairs(*zip([1, 2, 3, 4], ours, strict=True)))
    assert cells["spearman"].iloc[0] == pytest.approx(expected, nan_ok=True)


# Captions and footnotes


def trainer(steps, patience):
    return {"trainer": {"max_steps": steps, "patience": patience}}


def test_caption_counts_the_runs_of_another_protocol(report, write_run):
    write_run("gcn", "power", 0, 97.0, steps=500)
    write_run("gat", "power", 0, 97.0)
    caption = report().caption
    words = "ᵃ Not the table's protocol, 1 of 2 runs: 500 steps where the table's has 10,000."
    assert words in caption
    assert "Steps, at most: 10,000." in caption


def test_footnotes_name_what_was_left_out(report, write_run):
    for seed in (0, 1):
        write_run("gcn", "power", seed, 97.0, steps=500)
    write_run("gcn", "power", 2, 99.0)
    (note,) = report().footnotes
    assert note.startswith("GCN, Power: 1 run left out (trainer.max_steps 10000")


def test_caption_names_the_cells_that_were_shorter(configs, write_run, tmp_path):
    (spec,) = load_table(configs, "hypformer/table2")
    for model, steps in (("gcn", 5000), ("sgc", 5000), ("gat", 500)):
        path = write_run(model, "cora", 0, 80.0, table=spec.name, steps=steps)
        extend(path, score=80.0)
    found = build_report(spec, tmp_path)
    assert "Steps, at most: 5,000 if no note says otherwise." in found.caption
    assert "Steps, at most: 500 of GAT, Cora." in found.footnotes


def test_caption_says_the_usual_patience_and_which_cells_have_another(report, write_run):
    for model in ("gcn", "gat", "sgc"):
        write_run(model, "power", 0, 90.0, **trainer(1000, 100))
    write_run("fpst", "power", 0, 90.0, **trainer(1000, 1200))  # which ends no run
    write_run("gat", "web_edu", 0, 90.0, **trainer(1000, 600))
    write_run("gcn", "facebook", 0, 90.0, **trainer(1000, None))
    write_run("gat", "facebook", 0, 90.0, **trainer(1000, None))
    found = report()
    what = "Ends after steps without a better validation score"
    assert f"{what}: 100 if no note says otherwise." in found.caption
    assert [note for note in found.footnotes if note.startswith(what)] == [
        f"{what}: never of Facebook; FPS-T, Power.",
        f"{what}: 600 of GAT, Web-Edu.",
    ]


def test_the_column_of_whole_cells_is_named_once(tmp_path):
    (table2,) = load_table(CONFIGS, "hypformer/table2")
    notes = build_report(table2, tmp_path).footnotes
    (of_airport,) = (note for note in notes if "caption says accuracy" in note)
    assert of_airport.startswith("Paper, Airport; Airport (HGCN split, leaks): ")


def test_splits_are_named_and_never_mixed(table1, write_run, tmp_path):
    """The configuration has the dataset's split of its nodes too, which link prediction ignores."""
    words = {"table": "fpst/table1", "metric": "f1_micro"}
    nodes = {"name": "random_60_20_20", "draw": None}
    file = OmegaConf.load(CONFIGS / "task" / "link_prediction.yaml")
    complete(file)
    task = OmegaConf.to_container(file)
    write_run("gcn", "airport", 0, 80.0, split={"name": "shared_70_15_15", "draw": 0}, **words)
    write_run("gcn", "airport_hgcn", 0, 92.0, split={"name": "hgcn", "draw": 1234}, **words)
    write_run("gcn", "texas", 0, 80.0, task=task, split=nodes, **words)
    redrawn = {"split": {**task["split"], "val": 0.125, "draw": None}}
    write_run("gcn", "cora", 0, 81.0, task=redrawn, split=nodes, **words)
    write_run("gcn", "actor", 0, 82.0, task={"name": "node_classification"}, split=nodes, **words)
    found = build_report(table1, tmp_path)
    assert cell(found, "gcn", "airport")["our_mean"] == 80.0
    assert cell(found, "gcn", "airport_hgcn")["our_mean"] == 92.0
    (said,) = (line for line in found.caption if line.startswith("Split"))
    for part in (
        "shared_70_15_15 of Airport",
        "hgcn of Airport (HGCN split, leaks)",
        "edges 85/5/10 (one for all runs) of Texas",
        "random_60_20_20 (another for each seed) of Actor",
        "edges 77.5/12.5/10 (another for each seed) of Cora",
    ):
        assert part in said


def test_rows_of_another_precision_and_the_device_are_named(report, write_run):
    for model, precision in (("gcn", "32-true"), ("gat", "32-true"), ("fpst", "bf16-mixed")):
        for seed in (0, 1):
            path = write_run(model, "web_edu", seed, 80.0, trainer={"precision": precision})
            extend(path, device="cuda:1")
    caption = report().caption
    assert "Precision: 32-true if no note says otherwise." in caption
    assert "Ours ran on cuda." in caption


def test_panels_share_their_runs(fig4, write_run, tmp_path):
    path = write_run("gcn", "power", 0, 2.5, table="fpst/fig4", metric="inference_ms", steps=1)
    extend(path, metrics={"test": {"inference_ms": 2.5, "inference_mb": 96.0}})
    time, memory = (cell(build_report(panel, tmp_path), "gcn", "power") for panel in fig4)
    assert (time["our_mean"], time["paper_mean"]) == (2.5, 2.54)
    assert (memory["our_mean"], memory["paper_mean"]) == (96.0, 96.32)


def test_a_bootstrap_interval_is_compared_as_an_interval(write_run, tmp_path):
    """Ours are further off than our Student's t alone explains, but not than Welch's does."""
    (spec,) = load_table(CONFIGS, "polyformer/table4")
    place = "nagphormer", "citeseer__quota"
    printed = cell(build_report(spec, tmp_path), *place)
    for seed, away in enumerate([0.5, 0.7, 0.9]):
        path = write_run(*place, seed, 1.0, table=spec.name, folder=f"run{seed}")
        extend(path, score=(printed["paper_mean"] + away) / spec.report.scale)
    found = build_report(spec, tmp_path)
    ours = cell(found, *place)
    assert ours["our_t95"] < ours["difference"] < ours["difference_pm"]
    assert ours["within"] is True
    assert ours["our_pm"] == ours["our_t95"]
    assert "mean ± Student's 95% interval" in found.caption[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("fpst/table1", "percent; ± is 1.96 std/√n, over 10 runs"),
        ("polyformer/table4", "± is the distance to the farther end of the mean's 95% bootstrap"),
        ("polyformer/table5", "95% bootstrap interval, where that is known"),
        ("cat/table1", "± is the standard deviation"),
        ("cat/table3", "± is the population standard deviation"),
        ("hypformer/table2", "± is not defined; its code prints the sample standard deviation"),
        ("lrn/table1", "does not say what its ± is"),
        ("cat/table2", "no spread printed"),
    ],
)
def test_the_papers_spread_is_the_papers(table, said, tmp_path):
    """Not the formula of ours, which need not be the same."""
    for spec in load_table(CONFIGS, table):
        (sentence,) = (s for s in build_report(spec, tmp_path).caption if s.startswith("Paper"))
        assert said in sentence
