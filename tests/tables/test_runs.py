"""Runs as rows: which are read, which deviate from their table, which may be averaged."""

import pandas as pd
import pytest

from curvlab.tables.report import build_report
from curvlab.tables.runs import draw, one_protocol_per_cell, protocols, table_runs
from stored_runs import cell, config_of, extend


@pytest.fixture
def runs(spec, tmp_path):
    return lambda report=None: table_runs(spec, tmp_path, report)


@pytest.fixture
def deviation(spec, tmp_path):
    return lambda model: cell(build_report(spec, tmp_path), model)["deviation"]


@pytest.mark.parametrize(
    "text",
    [
        b'{"status": "fin',
        b"",
        b"[1, 2]",
        b'{"status": "finished"}',
        b'{"status": "finished", "seed": 0, "config": {"model": {"name": "gcn"}}, "metrics": {}}',
    ],
)
def test_foreign_files_are_named_once_and_left_out(runs, write_run, tmp_path, caplog, text):
    write_run("gcn", "power", 0, 97.5)
    for name in ("one", "two"):
        (tmp_path / "fpst/fig3" / name).mkdir()
        (tmp_path / "fpst/fig3" / name / "result.json").write_bytes(text)
    assert len(runs()) == 1
    (record,) = caplog.records
    assert "one/result.json" in record.message
    assert "two/result.json" in record.message
    assert "power" not in record.message


def test_a_metric_that_is_not_finite_has_diverged(runs, write_run):
    extend(write_run("gcn", "power", 0, 1.0), metrics={"test": {"map": float("nan")}})
    assert runs()["status"].tolist() == ["diverged"]


def test_a_run_that_validation_ended_had_the_steps_that_it_was_given(runs, write_run):
    ended = {"max_steps": 1000, "patience": 100}
    write_run("gcn", "power", 0, 90.0, steps=230, trainer=ended)
    write_run("gcn", "power", 1, None, status="diverged", steps=40, trainer=ended)
    write_run("gcn", "power", 2, 90.0, steps=500)
    found = runs().set_index("seed")
    assert found["steps"].tolist() == [1000, 40, 500]
    assert found["patience"].fillna(0).tolist() == [100, 100, 0]


# Protocols


def numbered(values, **options):
    """Seeds of GCN on Power with these values."""
    return [("gcn", "power", seed, value, options) for seed, value in enumerate(values)]


@pytest.mark.parametrize(
    ("written", "kept", "reasons"),
    [
        (numbered([97.0] * 5), [97.0] * 5, []),  # each with a noise seed and folder of its own
        (
            [*numbered([97.0] * 3, steps=500), ("gcn", "power", 3, 99.0, {})],
            [99.0],
            ["trainer.max_steps 500 instead of 10000"],
        ),
        (
            [*numbered([97.0] * 3, steps=500), ("gcn", "power", 3, 99.0, {"steps": 600})],
            [97.0] * 3,
            ["trainer.max_steps 600 instead of 500"],
        ),
        (
            [("gcn", "power", 0, 97.0, {"steps": 500}), ("gcn", "power", 1, 99.0, {})],
            [99.0],
            ["trainer.max_steps 500 instead of 10000"],
        ),
        (
            [
                *numbered([None] * 3, status="diverged", steps=40),
                ("gcn", "power", 3, 99.0, {"optimizer": {"lr": 1e-3}}),
            ],
            [None] * 3,
            ["optimizer.lr 0.001 instead of nothing"],
        ),
        (
            [("gcn", "power", 0, 97.0, {"folder": f"{i}/seed0"}) for i in range(2)],
            [97.0],
            ["a seed that is there already"],
        ),
        (
            [
                *numbered([97.0] * 2, folder="power/gcn/seed0/previous/0123"),
                ("gcn", "power", 0, None, {"status": "diverged"}),
            ],
            [None],
            [],
        ),
    ],
    ids=["seeds", "protocol", "most seeds", "most steps", "outcomes", "copies", "set aside"],
)  # fmt: skip
def test_one_protocol_is_kept_in_each_cell(runs, write_run, written, kept, reasons):
    """The table's own, then the most seeds, then the most steps, whatever came out."""
    for model, dataset, seed, value, options in written:
        write_run(model, dataset, seed, value, **options)
    found, left_out = one_protocol_per_cell(runs())
    assert sorted(found["value"].fillna(-1)) == sorted(-1 if v is None else v for v in kept)
    assert left_out["reason"].tolist() == reasons


def test_a_fixed_seed_of_the_data_is_protocol():
    """Two graphs drawn with different seeds, each used for all training seeds, do not mix."""

    def found(*pairs):
        made = [{"seed": seed, "dataset.seed": data} for seed, data in pairs]
        return protocols(pd.DataFrame({"built": made}))

    first, second, third, fourth = found((0, 0), (1, 0), (0, 7), (1, 7))
    assert first == second != third == fourth
    one, other = found((0, 0), (1, 1))
    assert one == other


# Deviations from the table's protocol


@pytest.mark.parametrize(
    ("steps", "changed", "words"),
    [
        (250, [], "250 steps where the table's has 10,000"),
        (250, ["trainer.max_steps=250"], "250 steps where the table's has 10,000"),
        (20_000, ["trainer.max_steps=20000"], "20,000 steps where the table's has 10,000"),
        (10_000, ["trainer.max_steps=10000"], ""),
        (10_000, ["optimizer.lr=0.1"], "optimizer.lr=0.1"),
        (
            500,
            ["optimizer.lr=0.1", "trainer.max_steps=500"],
            "500 steps where the table's has 10,000, optimizer.lr=0.1",
        ),
    ],
)
def test_a_run_says_how_it_deviates(deviation, write_run, steps, changed, words):
    extend(write_run("gcn", "web_edu", 0, 79.9, steps=steps), changed=changed)
    assert deviation("gcn") == words


MEANS = {"gcn": 90.0, "gat": 91.0, "sage": 92.0, "hat": 93.0, "fpst": 94.0}
LISTED = {
    "fpst/fig3/web_edu/gcn": "model.dim 16 -> 32; trainer.max_steps 250 -> 10000",
    "fpst/fig3/web_edu/gat": "model.dim 16 -> 32; model.revision default -> 2",
    "fpst/fig3/web_edu/sage": "unknown option model.hops; say model.layers",
    "fpst/fig3/web_edu/hat": "model.dim 8 -> 16",  # which was run again since
    "fpst/fig3_dimensions/web_edu/fpst": "model.dim 16 -> 32",
}


@pytest.fixture
def listed(spec, write_run, tmp_path):
    """Two seeds of models, some of which the list calls outdated."""
    for model, mean in MEANS.items():
        for seed in (0, 1):
            folder = f"web_edu/{model}/seed{seed}"
            steps = 250 if model == "gcn" else 10_000
            options = {"folder": folder, "table": "tables/fpst/fig3", "steps": steps}
            write_run(model, "web_edu", seed, mean + seed, **options)
    cells = pd.DataFrame([(name, 2, why) for name, why in LISTED.items()])
    cells.to_csv(tmp_path / "outdated.csv", index=False, header=["cell", "runs", "why"])
    return tmp_path / "tables"


def test_each_cell_that_the_list_of_outdated_ones_has_is_marked(spec, listed):
    report = build_report(spec, listed)
    assert {model: cell(report, model)["deviation"] for model in MEANS} == {
        "gcn": "model.dim=16 where the table's has 32, 250 steps where the table's has 10,000",
        "gat": "model.dim=16 where the table's has 32, "
        "model.revision=default where the table's has 2",
        "sage": "unknown option model.hops; say model.layers",
        "hat": "",
        "fpst": "",
    }
    assert len({cell(report, model)["mark"] for model in ("gcn", "gat", "sage")} - {""}) == 3
    assert cell(report, "gcn")[["difference", "our_rank"]].isna().all()


# Draws of a split


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("public", "published"),
        ("official", "published"),
        ("hgcn", "published"),
        ("fit", "published"),
        ("geom_gcn", "published_each"),
        ("given", "published_each"),
        ("quota", "published_each"),
        ("random_per_class", "published"),
        ("shared_70_15_15", "own"),
        ("random_50_25_25", "own"),
        ("random_60_20_20", "own_each"),
        ("redrawn_50_25_25", "own_each"),
    ],
)
def test_which_draw_the_splits_have(configs, name, found):
    assert draw({"split": config_of(configs, name)}) == found


@pytest.mark.parametrize(
    ("name", "number"), [("random_per_class", 123), ("hgcn", 1234), ("quota", 3), ("public", 0)]
)
def test_other_draws_than_a_papers_own_are_ours(configs, name, number):
    split = config_of(configs, name)
    all_are = name in ("quota", "public")
    for value, expected in [
        (number, "published"),
        (number + 1, "published" if all_are else "own"),
        (None, "published_each" if all_are else "own_each"),
    ]:
        assert draw({"split": split | {"draw": value}}) == expected


def test_a_split_of_edges_stands_for_that_of_nodes(configs):
    nodes = config_of(configs, "public")
    hgcns = {"split": config_of(configs, "link_prediction__hgcn", "task")["split"]}
    assert draw({"task": hgcns, "split": nodes}) == "published"
    task = config_of(configs, "link_prediction", "task")
    assert draw({"task": task, "split": nodes}) == "own"
    task["split"]["draw"] = None
    assert draw({"task": task, "split": nodes}) == "own_each"
    assert draw({"task": {"name": "node_classification"}, "split": nodes}) == "published"
    assert draw({"task": {}}) == "none"


@pytest.mark.parametrize("target", ["no.such.Split", "curvlab.data.splits.nodes.Gone", "..", ""])
def test_a_class_that_is_not_there_is_not_known_to_be_published(target):
    assert draw({"split": {"name": "mine", "draw": 0, "_target_": target}}) == "own"
