import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from omegaconf import OmegaConf

from curvlab import statistics, tables
from curvlab.config.sources import complete
from curvlab.errors import UsageError
from curvlab.tables import build_report, load_table, table_names
from curvlab.tables.render import terminal
from curvlab.tables.spec import Better, ReportBlock, paper_numbers

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
SPLITS = CONFIGS / "split"
NAMED = sorted(path.stem for path in SPLITS.glob("*.yaml") if path.stem != "none")


def cell(report, row, column):
    cells = report.cells
    return cells[(cells["row"] == row) & (cells["column"] == column)].iloc[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", table_names(CONFIGS))
def test_every_table_reads_its_paper_and_plans_its_cells(name, tmp_path):
    for spec in load_table(CONFIGS, name):
        cells = build_report(spec, tmp_path).cells
        assert cells["paper_mean"].notna().any() == (spec.report.paper is not None)
        assert (cells["status"] == "not run").sum() == len(spec.planned_rows) * len(
            spec.planned_columns
        )
        assert spec.planned_seeds


def test_printed_numbers_of_figure_3(spec, tmp_path):
    report = build_report(spec, tmp_path)
    fpst = cell(report, "fpst", "web_edu")
    assert (fpst["paper_mean"], fpst["paper_pm"]) == (99.00, 0.08)
    assert cell(report, "tokengt", "power")["paper_pm"] == 0.0
    assert len(report.rows) == 12
    assert report.columns == ["web_edu", "power", "facebook", "bio_worm"]
    assert report.decimals == 2
    assert report.cells["paper_mean"].notna().all()


def test_rows_that_the_paper_cites_are_called_so(configs, tmp_path):
    (spec,) = load_table(configs, "polyformer/table5")
    report = build_report(spec, tmp_path)
    assert cell(report, "gprgnn_printed", "pokec")["status"] == "cited"
    assert cell(report, "polyformer", "pokec")["status"] == "not run"
    assert "cited" in terminal(report, 160)


def test_models_that_are_not_swept_are_missing(configs, tmp_path):
    (spec,) = load_table(configs, "polyformer/table5")
    report = build_report(replace(spec, report=replace(spec.report, cited=[])), tmp_path)
    assert cell(report, "gprgnn_printed", "pokec")["status"] == "missing"
    assert "missing" in terminal(report, 160)


def test_ours_beside_the_papers(spec, write_run, tmp_path):
    for seed, value in enumerate([98.5, 98.9, 99.3]):
        write_run("fpst", "web_edu", seed, value)
    fpst = cell(build_report(spec, tmp_path), "fpst", "web_edu")
    assert fpst["our_mean"] == pytest.approx(98.9)
    assert fpst["our_pm"] == pytest.approx(4.303 * 0.4 / 3**0.5, abs=1e-3)
    assert fpst["difference"] == pytest.approx(-0.1)
    assert fpst["within"] is True
    assert (fpst["seeds"], fpst["status"]) == (3, "partial")


def test_all_planned_seeds_make_a_finished_cell(spec, write_run, tmp_path):
    for seed in range(5):
        write_run("fpst", "web_edu", seed, 90.0 + 0.01 * seed)
    fpst = cell(build_report(spec, tmp_path), "fpst", "web_edu")
    assert fpst["status"] == "finished"
    assert fpst["within"] is False


def test_seeds_that_are_not_planned_do_not_finish_a_cell(spec, write_run, tmp_path):
    for seed in range(1, 6):
        write_run("fpst", "web_edu", seed, 90.0)
    fpst = cell(build_report(spec, tmp_path), "fpst", "web_edu")
    assert (fpst["seeds"], fpst["planned_seeds"], fpst["status"]) == (5, 4, "partial")


def test_unfinished_runs_are_counted_and_never_averaged(spec, write_run, tmp_path):
    for seed in range(3):
        write_run("fpst", "web_edu", seed, 99.0)
    write_run("fpst", "web_edu", 3, 12.0, status="diverged", steps=40)
    write_run("fpst", "web_edu", 4, None, status="failed", steps=40)
    write_run("fpst", "facebook", 0, None, status="out_of_memory", steps=0)
    report = build_report(spec, tmp_path)
    fpst = cell(report, "fpst", "web_edu")
    assert fpst["our_mean"] == 99.0
    assert (fpst["seeds"], fpst["diverged"], fpst["failed"]) == (3, 1, 1)
    facebook = cell(report, "fpst", "facebook")
    assert facebook["status"] == "out_of_memory"
    assert pd.isna(facebook["our_mean"])


def test_one_seed_has_no_interval_and_no_judgement(spec, write_run, tmp_path):
    write_run("fpst", "web_edu", 0, 99.0)
    fpst = cell(build_report(spec, tmp_path), "fpst", "web_edu")
    assert pd.isna(fpst["our_pm"])
    assert fpst["within"] is None


def test_two_seeds_show_both_values_and_are_not_judged(spec, write_run, tmp_path):
    for seed, value in enumerate([90.2, 90.0]):
        write_run("tokengt", "web_edu", seed, value)
    report = build_report(spec, tmp_path)
    tokengt = cell(report, "tokengt", "web_edu")
    assert pd.isna(tokengt["our_pm"])
    assert (tokengt["our_low"], tokengt["our_high"]) == (90.0, 90.2)
    assert tokengt["difference"] == pytest.approx(0.54)
    assert tokengt["within"] is None
    assert (
        "mean, number of seeds in brackets (2, 5 planned), of two seeds both values instead"
        in (report.caption[0])
    )


def test_caption_says_which_interval_which_seeds_have(spec, write_run, tmp_path):
    for seed in range(5):
        write_run("fpst", "web_edu", seed, 98.7 + seed / 100)
    (ours, *_) = build_report(spec, tmp_path).caption
    assert "mean ± 1.96 std/√n, number of seeds" in ours
    for seed in range(4):
        write_run("gcn", "web_edu", seed, 80.0 + seed / 100)
    report = build_report(spec, tmp_path)
    few = "mean ± 1.96 std/√n, of fewer than five seeds Student's 95% interval, number of seeds"
    assert few in report.caption[0]
    assert cell(report, "gcn", "web_edu")["our_pm"] == cell(report, "gcn", "web_edu")["our_t95"]
    assert cell(report, "fpst", "web_edu")["our_pm"] < cell(report, "fpst", "web_edu")["our_t95"]


def test_a_model_that_the_paper_does_not_have_gets_a_row(spec, write_run, tmp_path):
    write_run("my_model", "web_edu", 0, 99.5)
    report = build_report(spec, tmp_path)
    mine = cell(report, "my_model", "web_edu")
    assert mine["our_mean"] == 99.5
    assert pd.isna(mine["paper_mean"])
    assert pd.isna(mine["difference"])


def test_dimensions_are_sorted_and_matched_by_number(dimensions, write_run, tmp_path):
    write_run("fpst", "web_edu", 0, 93.0, dim=4, table="fpst/fig3_dimensions")
    report = build_report(dimensions, tmp_path)
    assert report.columns == [2, 4, 8, 16]
    fpst = cell(report, "fpst", 4)
    assert (fpst["paper_mean"], fpst["our_mean"], fpst["difference"]) == (92.0, 93.0, 1.0)
    assert pd.isna(cell(report, "fpst", 16)["paper_mean"])
    assert cell(report, "tokengt", 16)["paper_mean"] == 89.13


def test_caption_says_when_the_protocol_was_reduced(spec, write_run, tmp_path):
    write_run("gcn", "power", 0, 97.0, steps=500)
    write_run("gcn", "power", 1, 97.0, steps=500)
    words = " ".join(build_report(spec, tmp_path).caption)
    assert "ᵃ Not the table's protocol: 500 steps where the table's has 10,000." in words
    assert "2, 5 planned" in words
    assert "± is 1.96 std/√n" in words


def test_caption_names_what_the_command_line_said_against_the_table(spec, write_run, tmp_path):
    """The length once, as what it is."""
    write_run("gat", "power", 0, 97.0)
    path = write_run("gcn", "power", 0, 97.0, steps=500)
    words = ["optimizer.lr=0.1", "trainer.max_steps=500"]
    path.write_text(json.dumps(json.loads(path.read_text()) | {"changed": words}))
    caption = build_report(spec, tmp_path).caption
    assert (
        "ᵃ Not the table's protocol, 1 of 2 runs: 500 steps where the table's has 10,000, "
        "optimizer.lr=0.1."
    ) in caption


def test_caption_counts_the_runs_that_are_short_beside_others(spec, write_run, tmp_path):
    write_run("gcn", "power", 0, 97.0, steps=500)
    write_run("gat", "power", 0, 97.0)
    words = " ".join(build_report(spec, tmp_path).caption)
    assert "Not the table's protocol, 1 of 2 runs: 500 steps where the table's has 10,000" in words
    assert "Each run without a letter has 10,000 steps." in words


def test_footnotes_name_what_was_left_out(spec, write_run, tmp_path):
    write_run("gcn", "power", 0, 97.0, steps=500)
    write_run("gcn", "power", 1, 97.0, steps=500)
    write_run("gcn", "power", 2, 99.0)
    write_run("gat", "power", 0, 99.0)
    notes = build_report(spec, tmp_path).footnotes
    assert any("GCN, Power: 1 run left out (trainer.max_steps 10000" in note for note in notes)
    assert not any(note.startswith("500 steps") for note in notes)  # its mark says so


def test_footnotes_name_what_was_shorter_where_the_table_has_no_length(
    configs, write_run, tmp_path
):
    (spec,) = load_table(configs, "hypformer/table2")
    for model, steps in (("gcn", 5000), ("gat", 500)):
        path = write_run(model, "cora", 0, 80.0, table=spec.name, steps=steps)
        path.write_text(json.dumps(json.loads(path.read_text()) | {"score": 80.0}))
    report = build_report(spec, tmp_path)
    assert "500 steps: GAT, Cora." in report.footnotes
    assert "Each run has 5,000 steps if no note says otherwise." in report.caption


def test_notes_of_single_paper_cells_are_footnotes(dimensions, tmp_path):
    notes = build_report(dimensions, tmp_path).footnotes
    assert any("FPS-T, dim 4" in note and "no layer norm" in note for note in notes)


GOOD = "title: t, metric: m, better: higher, rows: model.name, columns: dataset.name"


def write_table(configs, name, block):
    path = configs / "table" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block)


def test_a_sweep_may_be_written_as_a_range(tmp_path):
    block = (
        "title: t, paper: p, select: {}, metric: m, better: higher, rows: model.name, "
        "columns: model.dim"
    )
    write_table(
        tmp_path,
        "paper/t",
        "hydra: {sweeper: {params: {seed: 'range(0, 4)', model: gcn, model.dim: 'choice(2, 8)'}}}\n"
        f"report: {{{block}}}\n",
    )
    (spec,) = load_table(tmp_path, "paper/t")
    assert spec.planned_seeds == (0, 1, 2, 3)
    assert spec.planned_rows == ("gcn",)
    assert spec.planned_columns == (2, 8)
    assert spec.planned_length == {}


@pytest.mark.parametrize(
    ("block", "key"),
    [
        ("report: {title: t}", "paper"),
        ("report: {tilte: t}", "tilte"),
        ("report: [{title: t}, {better: bigger}]", "paper"),
        ("report: {better: bigger}", "bigger"),
        ("seed: 0", "title"),
        ("report: 5", "report"),
        ("report: [5]", "report"),
        ("report: {title: [", "line 1"),
        ("- report", "keys and values"),
        ("5", "keys and values"),
        ("trainer: 5", "trainer"),
        ("hydra: {sweeper: {params: 5}}", "hydra.sweeper.params"),
        ("hydra: {sweeper: {params: {seed: 'range('}}}\nreport: {GOOD}", "params.seed"),
    ],
)
def test_a_wrong_file_is_one_sentence_that_names_it_and_the_key(tmp_path, block, key):
    write_table(tmp_path, "paper/t", block.replace("GOOD", GOOD))
    with pytest.raises(UsageError, match=key) as error:
        load_table(tmp_path, "paper/t")
    assert "\n" not in str(error.value)
    assert "paper/t" in str(error.value)


def test_a_paper_file_that_does_not_exist_is_named():
    block = ReportBlock("t", "no.csv", {}, "m", Better.higher, "model.name", "dataset.name")
    with pytest.raises(UsageError, match=r"no\.csv"):
        paper_numbers(block)


def test_numbers_beside_the_table_need_three_columns(tmp_path):
    block = ReportBlock("t", "own.csv", {}, "m", better=Better.higher)
    block.rows, block.columns = "model.name", "dataset.name"
    (tmp_path / "own.csv").write_text("model,dataset,mean,pm\ngcn,power,12.5,0.3\n")
    (found,) = paper_numbers(block, tmp_path).to_dict("records")
    cell = ("row", "column", "mean", "pm", "pm_kind", "note")
    assert [found[name] for name in cell] == ["gcn", "power", "12.5", "0.3", "unknown", ""]
    for text, why in (
        ("model,mean\ngcn,12\n", "no column dataset"),
        ("model,dataset,score\ngcn,power,12\n", "no column 'mean'"),
        ("model,dataset,mean\ngcn,power,high\n", "numbers in the column mean"),
    ):
        (tmp_path / "own.csv").write_text(text)
        with pytest.raises(UsageError, match=why) as error:
            paper_numbers(block, tmp_path)
        assert "\n" not in str(error.value)
    block.paper, block.select = "fpst_fig3_reconstruction.csv", {"panel": "left"}
    with pytest.raises(UsageError, match="no column panel"):
        paper_numbers(block, tmp_path)


def test_paper_cells_without_coordinates_are_refused(dimensions):
    dimensions.report.paper_cells.pop("fpst__d4")
    with pytest.raises(UsageError, match="fpst__d4"):
        paper_numbers(dimensions.report)


def test_caption_says_when_validation_ends_a_run(spec, write_run, tmp_path):
    for seed, steps in enumerate((230, 410)):
        trainer = {"max_steps": 10_000, "patience": 100}
        write_run("gcn", "power", seed, 90.0, steps=steps, trainer=trainer)
        write_run("mlp", "power", seed, 80.0, steps=steps + 50, trainer=trainer)
    report = build_report(spec, tmp_path)
    (sentence,) = [line for line in report.caption if "steps" in line]
    assert sentence.startswith("Each run has at most 10,000 steps and ends after 100 steps without")
    assert not any("steps" in line for line in report.footnotes)


def trainer(steps, patience):
    return {"trainer": {"max_steps": steps, "patience": patience}}


def test_caption_says_the_usual_patience_and_notes_name_the_others(spec, write_run, tmp_path):
    for model in ("gcn", "gat", "sgc"):
        write_run(model, "power", 0, 90.0, **trainer(1000, 100))
    write_run("gcn", "web_edu", 0, 90.0, **trainer(1000, 100))
    write_run("fpst", "power", 0, 90.0, **trainer(1000, 1200))
    write_run("gat", "web_edu", 0, 90.0, **trainer(1000, 600))
    write_run("gcn", "facebook", 0, 90.0, **trainer(200, 200))
    write_run("gat", "facebook", 0, 90.0, steps=200, **trainer(200, None))
    report = build_report(spec, tmp_path)
    (sentence,) = [line for line in report.caption if "better" in line]
    assert sentence == (
        "Each run has at most 1,000 steps and ends after 100 to 600 steps (100 if no note says "
        "otherwise) without a better validation score, whose weights are tested."
    )
    assert [note for note in report.footnotes if "nds " in note] == [
        "Ends after 600 steps without a better score: GAT, Web-Edu.",
        "Never ends early: Facebook; FPS-T, Power.",
    ]


def test_what_holds_for_a_whole_row_is_said_once(spec, write_run, tmp_path):
    for dataset in ("web_edu", "power", "facebook"):
        write_run("gcn", dataset, 0, 90.0, **trainer(1000, 100))
        write_run("gat", dataset, 0, 90.0, **trainer(1000, 100))
    for dataset in ("web_edu", "power"):
        write_run("fpst", dataset, 0, 90.0, **trainer(1000, 300))
    write_run("sgc", "power", 0, 90.0, **trainer(1000, 300))
    (note,) = (n for n in build_report(spec, tmp_path).footnotes if n.startswith("Ends after"))
    assert note == "Ends after 300 steps without a better score: FPS-T; SGC, Power."


def test_caption_names_no_patience_that_ends_no_run(spec, write_run, tmp_path):
    write_run("gcn", "power", 0, 8.0, steps=1, trainer={"max_steps": 1, "patience": 200})
    caption = " ".join(build_report(spec, tmp_path).caption)
    assert "Each run has 1 step." in caption


def test_the_papers_number_stands_beside_both_columns_of_one_graph(table1, tmp_path):
    report = build_report(table1, tmp_path)
    assert report.columns[4:6] == ["airport", "airport_hgcn"]
    assert len(report.columns) == 9
    for column in ("airport", "airport_hgcn"):
        assert cell(report, "gcn", column)["paper_mean"] == 92.00
        assert cell(report, "q_gcn", column)["status"] == "not run"
    assert report.labels["column", "airport_hgcn"] == "Airport (HGCN split, leaks)"
    assert any("HGCN's split" in note for note in report.footnotes)


def test_leaking_and_disjoint_runs_are_never_averaged(table1, write_run, tmp_path):
    words = {"table": "fpst/table1", "metric": "f1_micro"}
    write_run("gcn", "airport", 0, 80.0, split={"name": "shared_70_15_15", "draw": 0}, **words)
    write_run("gcn", "airport_hgcn", 0, 92.0, split={"name": "hgcn", "draw": 1234}, **words)
    write_run("gcn", "cora", 0, 81.0, split={"name": "random_60_20_20", "draw": None}, **words)
    report = build_report(table1, tmp_path)
    assert cell(report, "gcn", "airport")["our_mean"] == 80.0
    assert cell(report, "gcn", "airport_hgcn")["our_mean"] == 92.0
    (sentence,) = [line for line in report.caption if line.startswith("Splits")]
    assert sentence == (
        "Splits: shared_70_15_15 of Airport; hgcn of Airport (HGCN split, leaks); "
        "random_60_20_20 (another for each seed) of Cora."
    )


def test_the_split_of_edges_is_named_where_the_task_brings_one(table1, write_run, tmp_path):
    """The configuration has the dataset's split of its nodes too, which link prediction ignores."""
    file = OmegaConf.load(CONFIGS / "task" / "link_prediction.yaml")
    complete(file)
    task = OmegaConf.to_container(file)
    nodes = {"name": "random_60_20_20", "draw": None}
    words = {"table": "fpst/table1", "metric": "f1_micro", "split": nodes}
    write_run("gcn", "texas", 0, 80.0, task=task, **words)
    redrawn = {"split": {**task["split"], "val": 0.125, "draw": None}}
    write_run("gcn", "cora", 0, 81.0, task=redrawn, **words)
    write_run("gcn", "actor", 0, 82.0, task={"name": "node_classification"}, **words)
    (said,) = (line for line in build_report(table1, tmp_path).caption if "Splits" in line)
    assert said == (
        "Splits: edges 85/5/10 (one for all runs) of Texas; random_60_20_20 (another for each "
        "seed) of Actor; edges 77.5/12.5/10 (another for each seed) of Cora."
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMED)
def test_every_split_is_named_in_the_caption(name, table1, write_run, tmp_path):
    split = OmegaConf.to_container(OmegaConf.load(SPLITS / f"{name}.yaml"))
    words = {"table": "fpst/table1", "metric": "f1_micro"}
    write_run("gcn", "cora", 0, 80.0, split=split, **words)
    (said,) = (line for line in build_report(table1, tmp_path).caption if "Splits" in line)
    assert split["name"] in said
    assert ("another for each seed" in said) == (split.get("draw", 0) is None)


def test_rows_of_another_precision_are_named(spec, write_run, tmp_path):
    for model, precision in (("gcn", "32-true"), ("fpst", "bf16-mixed")):
        for seed in (0, 1):
            trainer = {"precision": precision}
            write_run(model, "web_edu", seed, 80.0, trainer=trainer)
    said = [line for line in build_report(spec, tmp_path).caption if "bf16" in line]
    assert said == ["In bf16-mixed: FPS-T."]


def test_panels_share_their_runs(fig4, write_run, tmp_path):
    path = write_run("gcn", "power", 0, 2.5, table="fpst/fig4", metric="inference_ms", steps=1)
    result = json.loads(path.read_text())
    result["metrics"]["test"]["inference_mb"] = 96.0
    result["device"] = "cuda:1"
    path.write_text(json.dumps(result))
    time, memory = (build_report(panel, tmp_path) for panel in fig4)
    assert (cell(time, "gcn", "power")["our_mean"], cell(time, "gcn", "power")["paper_mean"]) == (
        2.5,
        2.54,
    )
    assert cell(memory, "gcn", "power")["our_mean"] == 96.0
    assert cell(memory, "gcn", "power")["paper_mean"] == 96.32
    assert "Ours ran on cuda." in time.caption
    assert "Each run has 1 step." in time.caption


def test_a_panels_wrong_block_is_found(tmp_path):
    good = (
        "{title: t, paper: p, select: {}, metric: m, better: lower, rows: model.name, "
        "columns: dataset.name}"
    )
    write_table(tmp_path, "paper/t", f"report: [{good}, {{title: u}}]\n")
    with pytest.raises(UsageError, match="paper/t"):
        load_table(tmp_path, "paper/t")


def test_what_holds_for_a_whole_column_is_said_once(tmp_path):
    (table2,) = load_table(CONFIGS, "hypformer/table2")
    notes = build_report(table2, tmp_path).footnotes
    (of_airport,) = (note for note in notes if "caption says accuracy" in note)
    assert of_airport.startswith("Paper, Airport; Airport (HGCN split, leaks): ")


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


def test_every_kind_of_printed_spread_has_its_words():
    for path in (Path(tables.__file__).parent / "papers").glob("*.csv"):
        numbers = pd.read_csv(path, dtype=str, keep_default_na=False)
        kinds = set(numbers.loc[numbers["pm"] != "", "pm_kind"])
        assert kinds <= {*statistics.PRINTED_SPREADS, "unknown"}, path.name


def test_a_bootstrap_interval_is_compared_as_an_interval(write_run, tmp_path):
    """Ours are further off than our Student's t alone explains, but not than Welch's does."""
    (spec,) = load_table(CONFIGS, "polyformer/table4")
    printed = cell(build_report(spec, tmp_path), "nagphormer", "citeseer__quota")
    for seed, away in enumerate([0.5, 0.7, 0.9]):
        words = {"table": spec.name, "folder": f"run{seed}"}
        path = write_run("nagphormer", "citeseer__quota", seed, 1.0, **words)
        score = {"score": (printed["paper_mean"] + away) / spec.report.scale}
        path.write_text(json.dumps(json.loads(path.read_text()) | score))
    report = build_report(spec, tmp_path)
    ours = cell(report, "nagphormer", "citeseer__quota")
    assert ours["our_t95"] < ours["difference"] < ours["difference_pm"]
    assert ours["within"] is True
    assert ours["our_pm"] == ours["our_t95"]
    assert "mean ± Student's 95% interval" in report.caption[0]
    assert any("≈: 0 lies in the difference's 95% interval" in line for line in report.caption)


@pytest.mark.parametrize(
    ("table", "row", "column", "judged"),
    [
        ("hypformer/table2", "hypformer", "airport_hgcn", True),
        ("hypformer/table2", "gcn", "airport_hgcn", False),  # of another paper (C.4)
        ("lrn/table2", "lrn_sgformer", "chameleon", False),
    ],
)
def test_a_printed_deviation_is_an_uncertainty_where_its_kind_is_known(
    table, row, column, judged, write_run, tmp_path
):
    (spec,) = load_table(CONFIGS, table)
    printed = cell(build_report(spec, tmp_path), row, column)
    for seed, away in enumerate([0.9, 1.0, 1.1]):
        words = {"table": spec.name, "folder": f"run{seed}"}
        path = write_run(row, column, seed, 1.0, **words)
        score = {"score": printed["paper_mean"] + away * printed["paper_pm"]}
        path.write_text(json.dumps(json.loads(path.read_text()) | score))
    ours = cell(build_report(spec, tmp_path), row, column)
    if judged:
        assert ours["our_t95"] < ours["difference"] < ours["difference_pm"]
    assert ours["within"] is (True if judged else None)


@pytest.mark.parametrize("table", ["cat/table1", "cat/table3", "hypformer/table2"])
def test_our_spread_is_a_deviation_where_the_papers_is(table, tmp_path, write_run):
    spec = load_table(CONFIGS, table)[0]
    row, column = spec.planned_rows[0], spec.planned_columns[0]
    for seed in (0, 1, 2):
        folder = f"run{seed}"
        path = write_run(row, column, seed, 1.0, table=table, folder=folder)
        result = json.loads(path.read_text()) | {"score": 0.5 + 0.1 * seed}
        group, _, key = spec.report.metric.rpartition(".")
        result["metrics"] = {group: {key: result["score"]}}
        path.write_text(json.dumps(result))
    report = build_report(spec, tmp_path)
    assert cell(report, row, column)["our_pm"] == cell(report, row, column)["our_std"] > 0
    assert report.caption[0].find("± the sample standard deviation") > 0
