"""Cells of a table: means, verdicts, ranks, and the sentences around them."""

from math import isnan, nan, sqrt

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from composing import CONFIGS
from curvlab.statistics import holm, published_std, summarise, welch_pm
from curvlab.tables.cells import add_ranks as with_ranks
from curvlab.tables.claim_texts import (
    agenda_in_words,
    claims_table,
    comparison_table,
    verdict_in_words,
)
from curvlab.tables.claims import Claim, agenda
from curvlab.tables.render import markdown
from curvlab.tables.report import build_report
from curvlab.tables.spec import load_table
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


def test_own_runs_at_the_protocol_stand_before_shipped_ones_of_a_cell(spec, write_run, tmp_path):
    """A copied shipped run does not count as your own; a trial stands beside the shipped runs."""
    for folder, model, values in [
        ("own", "fpst", [98.0, 98.2]),
        ("own", "tokengt", [87.0, 87.2]),
        ("own", "gat", [88.0]),
        ("shipped", "fpst", [99.0, 99.2]),
        ("shipped", "tokengt", [89.0, 89.2]),
        ("shipped", "gat", [88.0]),
    ]:
        for seed, value in enumerate(values):
            steps = 500 if (folder, model) == ("own", "tokengt") else 10_000
            write_run(model, "web_edu", seed, value, table=f"{folder}/fpst/fig3", steps=steps)
    found = build_report(spec, tmp_path / "own", tmp_path / "shipped")
    fpst, trial, gat = (cell(found, model) for model in ("fpst", "tokengt", "gat"))
    assert (fpst["source"], fpst["our_mean"], fpst["other_mean"]) == ("own", 98.1, 99.1)
    assert (trial["source"], trial["our_mean"], trial["other_mean"]) == ("shipped", 89.1, 87.1)
    assert (trial["mark"], trial["other_mark"]) == ("", "ᵃ")  # only ours is of another protocol
    assert (gat["source"], gat["seeds"], gat["other_seeds"]) == ("shipped", 1, 0)
    fpst_lines = markdown(found).partition("**FPS-T**")[2].splitlines()
    assert [line.split(" | ")[1].strip() for line in fpst_lines[1:3]] == ["ours", "shipped"]
    assert (
        "Shipped: runs of the repository, compared where there are none of ours at the table's "
        "protocol." in found.caption
    )
    lines = markdown(found).partition("**TokenGT**")[2].splitlines()[1:3]
    assert [[text.strip() for text in line.split("|")[2:4]] for line in lines] == [
        ["ours", "<sub>87.10 (87.00, 87.20) ᵃ</sub>"],
        ["shipped", "*89.10* (89.00, 89.20)"],
    ]


@pytest.mark.parametrize("where", ["own", "shipped"])
def test_a_trial_changes_no_number_that_is_compared(spec, write_run, tmp_path, where):
    """Short runs of every seed leave means, ranks and correlations as they are."""
    means = {"gcn": 80.0, "gat": 85.0, "tokengt": 90.0, "fpst": 99.0}
    for model, mean in means.items():
        write_run(model, "web_edu", 0, mean, table="shipped/fpst/fig3")
    compared = ["our_mean", "seeds", "difference", "our_rank", "our_place", "ranked", "spearman"]

    def numbers():
        report = build_report(spec, tmp_path / "own", tmp_path / "shipped")
        return report.cells[compared]

    before = numbers()
    assert before["ranked"].max() == len(means)
    for place, model in enumerate(means):
        for seed in range(5):
            folder = f"trial/{model}/seed{seed}"
            options = {"table": f"{where}/fpst/fig3", "steps": 50, "folder": folder}
            write_run(model, "web_edu", seed, 60.0 - place, **options)
    pd.testing.assert_frame_equal(numbers(), before)


# Verdicts


MORE = stats.t(4).ppf(0.975) * sqrt(22.5 * (1 + 1 / 5))
"""Half of the interval of one more value."""

WELCH = welch_pm(summarise(VALUES), published_std(0.7, "ci95", 10), 10, 0.005)


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
        ("random_60_20_20", True, MORE, "‡ takes the paper's number for one more draw"),
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
    rule, verdict = {None: ("", ""), False: ("≈", "contradicted"), True: ("‡", "undecided")}[within]
    assert (own["rule"], own["verdict"]) == (rule, verdict)
    assert ("‡ undecided" in markdown(found)) == bool(within)


@pytest.mark.parametrize(
    ("away", "noise", "verdict"),
    [
        (0.1, 0.1, "confirmed"),  # an interval of 0.1 +- 0.25
        (0.5, 1.0, "undecided"),  # of 0.5 +- 2.5
        (-3.0, 0.1, "contradicted"),
        (0.9, 0.1, "contradicted"),  # neither 0 nor all of it within a point
    ],
)
def test_a_published_number_is_confirmed_within_a_point(report, write_run, away, noise, verdict):
    for seed, sign in enumerate((-1, 0, 1)):
        write_run("fpst", "web_edu", seed, 99.0 + away + sign * noise)
    found = report()
    own = cell(found, "fpst")
    low, high = own["difference"] - own["difference_pm"], own["difference"] + own["difference_pm"]
    assert own["verdict"] == verdict
    assert (verdict == "confirmed") == (low >= -1 and high <= 1)
    assert (verdict == "contradicted") == (verdict != "confirmed" and not low <= 0 <= high)
    assert own["rule"] == "≈"
    assert f"{verdict}" in markdown(found).partition("**FPS-T**")[2].splitlines()[2]


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


def claim_of(report, method, other):
    return Claim("paper", "claim", report.spec.name, method, other, "link", report)


def test_a_claim_is_judged_where_runs_of_the_tables_protocol_share_seeds(spec, write_run, tmp_path):
    """The paper prints FPS-T above TokenGT on all four graphs."""
    ours = {"web_edu": (99.0, 89.0), "power": (90.0, 99.0), "facebook": (86.0, 85.9)}
    for column, (fpst, tokengt) in ours.items():
        for seed, noise in enumerate((0.0, 0.5, -0.4)):
            write_run("fpst", column, seed, fpst + noise)
            write_run("tokengt", column, seed, tokengt - noise)
    for model in ("fpst", "tokengt"):
        write_run(model, "bio_worm", 0, 97.0, steps=250)
    claim = claim_of(build_report(spec, tmp_path), "fpst", "tokengt")
    by_column = {one.column: one for one in claim.counted}
    words = {column: one.verdict.word for column, one in by_column.items()}
    assert words == {
        "web_edu": "confirmed",
        "power": "contradicted",
        "facebook": "undecided",
        "bio_worm": "not run",
    }
    assert list(claim.counts.values()) == [1, 1, 0, 1, 1]
    # never less than half of the published difference: 99.00 and 89.56, 99.18 and 99.08
    assert by_column["web_edu"].margin == pytest.approx(4.72)
    assert by_column["power"].margin == 1.0
    raw = stats.ttest_1samp([10.0, 11.0, 9.2], 0).pvalue
    others = stats.ttest_1samp([-9.0, -8.0, -9.8], 0).pvalue
    assert by_column["web_edu"].p == pytest.approx(max(2 * raw, 3 * min(raw, others)))
    (trial,) = (one for one in claim.comparisons if not one.counted)
    assert (trial.column, trial.note) == ("bio_worm", "250 steps where the table's has 10,000")
    table = claims_table([claim])
    assert table["comparisons"].tolist() == ["4", "1"]
    assert comparison_table(claim)["verdict"].tolist()[:2] == ["confirmed", "contradicted"]


def test_a_sentence_names_data_sets_but_not_many_that_were_not_run(spec, write_run, tmp_path):
    def words():
        return verdict_in_words(claim_of(build_report(spec, tmp_path), "fpst", "tokengt"))

    def write(column):
        for seed, noise in enumerate((0.0, 0.5, -0.4)):
            write_run("fpst", column, seed, 99.0 + noise)
            write_run("tokengt", column, seed, 89.0 - noise)

    assert words() == "not run on any of 4 data sets"
    write("web_edu")
    assert words() == "confirmed on Web-Edu, not run on Power, Facebook and Bio-Worm"
    write("power")
    assert words() == "confirmed on Web-Edu and Power, not run on Facebook and Bio-Worm"
    (of_graphs,) = load_table(CONFIGS, "hypformer/table2")
    claim = claim_of(build_report(of_graphs, tmp_path), "hypformer", "sgformer")
    assert verdict_in_words(claim) == "not run on any of 5 data sets"
    assert claims_table([claim])["hours"].tolist() == ["?"]
    for model, score in (("hypformer", 80.0), ("sgformer", 70.0)):
        extend(write_run(model, "disease", 0, score, table=of_graphs.name), score=score)
    claim = claim_of(build_report(of_graphs, tmp_path), "hypformer", "sgformer")
    assert verdict_in_words(claim) == "undecided on Disease, not run on 4 others"


def test_a_published_comparison_counts_once(configs, write_run, tmp_path):
    """Holm's m is of the published comparisons: other splits of them change no verdict."""
    (spec,) = load_table(configs, "hypformer/table2")
    rng = np.random.default_rng(0)

    def write(columns):
        for column in columns:
            for seed in range(5):
                for model, mean in (("hypformer", 81.0), ("sgformer", 80.0)):
                    value = mean + rng.normal(0, 0.3)
                    path = write_run(model, column, seed, value, table=spec.name)
                    extend(path, score=value)

    def claim():
        return claim_of(build_report(spec, tmp_path), "hypformer", "sgformer")

    write(["airport_hgcn", "cora__per_class", "citeseer__per_class"])
    before = claim().counted
    write(["airport", "cora", "citeseer", "disease_synthetic"])
    after = claim()
    assert len(before) == len(after.counted) == 5  # the paper has five graphs
    assert [one.p for one in before] == pytest.approx([one.p for one in after.counted], nan_ok=True)
    others = [one.column for one in after.comparisons if not one.counted]
    assert others == ["airport", "cora", "citeseer", "disease_synthetic"]
    tested = [one.pairs.p_t for one in after.counted if one.pairs.pairs]
    assert [one.p for one in after.counted if one.pairs.pairs] == pytest.approx(holm(tested))
    assert claims_table([after])["comparisons"].tolist() == ["5", "4"]


def test_a_verdict_that_needed_more_seeds_than_planned_says_so(configs, write_run, tmp_path):
    """Five seeds are planned. On Chameleon eight decide what five do not, on Squirrel five do."""
    (spec,) = load_table(configs, "lrn/table1")
    chameleon = [2.0, 2.1, 1.9, 2.0, -1.0, 2.0, 2.0, 2.0]
    differences = {"chameleon": chameleon, "squirrel": [3.0, 3.1] * 3}
    for column, values in differences.items():
        for seed, difference in enumerate(values):
            for model, score in (("lrn", 50.0 + difference), ("hybonet", 50.0)):
                extend(write_run(model, column, seed, score, table=spec.name), score=score)
    claim = claim_of(build_report(spec, tmp_path), "lrn", "hybonet")
    by_column = {one.column: one for one in claim.counted}
    raw = {c: stats.ttest_1samp(values[:5], 0).pvalue for c, values in differences.items()}
    assert raw["squirrel"] < 0.05 < raw["chameleon"]  # Holm multiplies the larger one by 1
    found = comparison_table(claim).set_index("dataset")
    said = "confirmed; undecided with the 5 planned seeds"
    assert found.loc["Chameleon", ["seeds", "verdict"]].tolist() == ["8", said]
    assert found.loc["Squirrel", ["seeds", "verdict"]].tolist() == ["6", "confirmed"]
    assert by_column["squirrel"].at_first is not None
    assert by_column["chameleon"].pairs.pairs == 8  # the word itself is that of all seeds


def test_a_verdict_that_depends_on_another_comparison_s_seeds_says_so(configs, write_run, tmp_path):
    """Holm multiplies Squirrel's p by 2 while Chameleon's is larger, and by 1 then."""
    (spec,) = load_table(configs, "lrn/table1")
    squirrel = [0.2, 0.9, 0.3, 0.6, 0.0]
    p = stats.ttest_1samp(squirrel, 0).pvalue
    assert p < 0.1
    chameleon = [2.0, 2.1, 1.9, 2.0, -1.0, 2.0, 2.0, 2.0]
    for column, values in {"chameleon": chameleon, "squirrel": squirrel}.items():
        for seed, difference in enumerate(values):
            for model, score in (("lrn", 50.0 + difference), ("hybonet", 50.0)):
                extend(write_run(model, column, seed, score, table=spec.name), score=score)
    claim = claim_of(build_report(spec, tmp_path), "lrn", "hybonet")
    by_column = {one.column: one for one in claim.counted}
    first = holm([p, stats.ttest_1samp(chameleon[:5], 0).pvalue])[0]
    last = holm([p, stats.ttest_1samp(chameleon, 0).pvalue])[0]
    assert by_column["squirrel"].p == pytest.approx(last)
    assert last != pytest.approx(first)
    assert by_column["squirrel"].at_first is not None


@pytest.mark.parametrize(("seeds", "left"), [(5, "5 more splits"), (9, "1 more split")])
def test_no_more_seeds_are_asked_for_than_there_are_published_splits(
    seeds, left, configs, write_run, tmp_path
):
    """Chameleon comes with ten splits: a run with seed=10 and nothing else ends with an error."""
    (spec,) = load_table(configs, "lrn/table1")
    options = {"table": spec.name, "split": config_of(configs, "given")}
    for seed in range(seeds):
        for model, score in (("lrn", 50.0 + (-3.0) ** (seed % 2)), ("hybonet", 50.0)):
            extend(write_run(model, "chameleon", seed, score, **options), score=score)
    claim = claim_of(build_report(spec, tmp_path), "lrn", "hybonet")
    (found,) = (one for one in claim.counted if one.column == "chameleon")
    assert found.verdict.missing_seeds > 10 - seeds
    assert found.verdict_in_words.endswith(f"more seeds); {left}")
    assert found.command.endswith("'seed=range(10)'")
    assert found in agenda([claim])


@pytest.mark.parametrize("rounds", [1, 3])
def test_beyond_the_published_splits_further_seeds_begin_again(
    rounds, configs, write_run, tmp_path
):
    """Runs on one split are one pair, and what is asked for are whole rounds of all splits."""
    (spec,) = load_table(configs, "lrn/table1")
    rng = np.random.default_rng(1)
    scores = {"lrn": rng.normal(50, 2, 10 * rounds), "hybonet": rng.normal(50, 2, 10 * rounds)}
    for seed in range(10 * rounds):
        given = config_of(configs, "given") | ({"cycle": 10} if seed >= 10 else {})
        for model, values in scores.items():
            value = float(values[seed])
            shipped = {"table": f"shipped/{spec.name}", "split": given}
            path = write_run(model, "chameleon", seed, value, **shipped)
            changed = ["split.cycle=10"] if seed >= 10 else []
            extend(path, score=value, wall_seconds=36.0, changed=changed)
    report = build_report(spec, tmp_path / "shipped")
    claim = claim_of(report, "lrn", "hybonet")
    (found,) = (one for one in claim.counted if one.column == "chameleon")
    means = [values.reshape(rounds, 10).mean(0) for values in scores.values()]
    expected = stats.ttest_rel(*means)
    assert (found.pairs.pairs, found.pairs.runs) == (10, 10 * rounds)
    assert found.pairs.p_t == pytest.approx(expected.pvalue)
    low, high = expected.confidence_interval(0.95)
    assert (found.pairs.mean - found.pairs.pm, found.pairs.mean + found.pairs.pm) == (
        pytest.approx((low, high))
    )
    assert report.runs["deviation"].eq("").all()
    cell = report.cells.set_index(["row", "column"]).loc[("lrn", "chameleon")]
    assert (cell["seeds"], cell["runs"]) == (10, 10 * rounds)
    assert cell["our_std"] == pytest.approx(means[0].std(ddof=1))
    own = {"table": f"own/{spec.name}", "split": config_of(configs, "given")}
    extend(write_run("lrn", "chameleon", 0, 50.0, **own), score=50.0)
    beside = build_report(spec, tmp_path / "own", tmp_path / "shipped")
    for text in (markdown(report), markdown(beside)):
        assert text.count("(30 on 10 splits)") == (2 if rounds == 3 else 0)
    # further rounds, each of a seed for every split
    assert found.verdict.word == "undecided"
    wanted = found.seeds.stop
    assert wanted % 10 == 0
    assert found.command.endswith(f"'seed=range(10,{wanted})' split.cycle=10")
    assert found.verdict_in_words == (
        f"undecided ({wanted - 10 * rounds} more seeds on the same 10 splits)"
    )
    assert found.seconds == pytest.approx(2 * 36.0 * (wanted - 10 * rounds))
    assert found in agenda([claim])


def test_what_decides_most_per_hour_comes_first(spec, write_run, tmp_path):
    """Costs are those of stored runs, of shorter ones in proportion, for the missing seeds."""
    costs = {"web_edu": 100.0, "power": 10.0, "facebook": 1.0}
    for column, seconds in costs.items():
        steps = 1000 if column == "facebook" else 10_000  # a tenth of the table's
        for model in ("fpst", "tokengt"):
            extend(write_run(model, column, 0, 90.0, steps=steps), wall_seconds=seconds)
    claim = claim_of(build_report(spec, tmp_path), "fpst", "tokengt")
    found = agenda([claim])
    assert [one.column for one in found] == ["power", "facebook", "web_edu", "bio_worm"]
    # two more seeds of two models; of Facebook all three, ten times as long
    assert [one.seconds for one in found] == pytest.approx([40, 60, 400, nan], nan_ok=True)
    command = "curvlab train -m table=fpst/fig3 model=fpst,tokengt dataset=power seed=0,1,2"
    assert found[0].command == command
    lines = list(agenda_in_words([claim]))
    assert lines[0].split("  ")[-1] == "claim, Power: undecided (2 more seeds)"
    assert lines[-1].startswith("open comparisons: 4, about 0.1 hours on this machine")
    assert lines[-1].endswith("; no stored run tells the time of 1 of them")


def test_the_hours_of_shorter_runs_are_unknown_if_the_table_states_no_length(
    configs, write_run, tmp_path
):
    """The fits end where they no longer improve, after at most 50,000 steps by their recipe."""
    spec, _ = load_table(configs, "polyformer/table2")
    column = "filter_images__mixed_low_pass"
    for model in ("polyattn_cheb", "chebnet2"):
        options = {"table": spec.name, "steps": 500, "metric": "r2"}
        extend(write_run(model, column, 0, 0.9, **options), wall_seconds=60.0)
    whole = claim_of(build_report(spec, tmp_path), "polyattn_cheb", "chebnet2").counted[0]
    assert whole.seconds == pytest.approx(4 * 60.0)
    for model in ("polyattn_cheb", "chebnet2"):
        path = tmp_path / spec.name / column / model / "" / "seed0" / "result.json"
        extend(path, changed=["trainer.max_steps=500"])
    shorter = claim_of(build_report(spec, tmp_path), "polyattn_cheb", "chebnet2").counted[0]
    assert isnan(shorter.seconds)


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
