"""What runs have of a split decides over what ± is and what is compared with print."""

import json
from math import sqrt

import pytest
from omegaconf import OmegaConf
from scipy import stats

from curvlab.config.sources import complete
from curvlab.tables import build_report, load_table
from curvlab.tables.draws import Draw, draw_of

WORDS = {"table": "fpst/table1", "metric": "f1_micro", "steps": 1000}
VALUES = [70.0, 76.0, 82.0, 73.0, 79.0]
"""Standard deviation sqrt(22.5), mean 76."""


def config_of(configs, name):
    split = OmegaConf.load(configs / "split" / f"{name}.yaml")
    base = split.pop("defaults", [None])[0]
    if base is not None:
        split = OmegaConf.merge(OmegaConf.load(configs / "split" / f"{base}.yaml"), split)
    complete(split)
    return OmegaConf.to_container(split, resolve=False)


@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("none", Draw.none),
        ("public", Draw.published),
        ("official", Draw.published),
        ("hgcn", Draw.published),
        ("fit", Draw.published),
        ("geom_gcn", Draw.published_each),
        ("given", Draw.published_each),
        ("quota", Draw.published_each),
        ("random_per_class", Draw.published),
        ("shared_70_15_15", Draw.own),
        ("random_50_25_25", Draw.own),
        ("random_60_20_20", Draw.own_each),
        ("redrawn_50_25_25", Draw.own_each),
    ],
)
def test_what_the_splits_have(configs, name, draw):
    split = {} if name == "none" else config_of(configs, name)
    assert draw_of({"split": split}) is draw


@pytest.mark.parametrize(
    ("name", "number"), [("random_per_class", 123), ("hgcn", 1234), ("quota", 3), ("public", 0)]
)
def test_other_draws_than_a_papers_own_are_ours(configs, name, number):
    split = config_of(configs, name)
    all_are = name in ("quota", "public")
    for draw, expected in [
        (number, Draw.published),
        (number + 1, Draw.published if all_are else Draw.own),
        (None, Draw.published_each if all_are else Draw.own_each),
    ]:
        assert draw_of({"split": split | {"draw": draw}}) is expected


def test_a_split_of_edges_stands_for_that_of_nodes(configs):
    def task_of(name):
        file = OmegaConf.load(configs / "task" / f"{name}.yaml")
        complete(file)
        return OmegaConf.to_container(file)

    nodes = config_of(configs, "public")
    hgcns = {"split": task_of("link_prediction__hgcn")["split"]}
    assert draw_of({"task": hgcns, "split": nodes}) is Draw.published
    task = task_of("link_prediction")
    assert draw_of({"task": task, "split": nodes}) is Draw.own
    task["split"]["draw"] = None
    assert draw_of({"task": task, "split": nodes}) is Draw.own_each
    assert draw_of({"task": {"name": "node_classification"}, "split": nodes}) is Draw.published


@pytest.mark.parametrize(
    "target",
    ["no.such.Split", "curvlab.data.splits.nodes.Gone", "..", "Split", ""],
)
def test_a_class_that_is_not_there_is_not_known_to_be_published(target):
    assert draw_of({"split": {"name": "mine", "draw": 0, "_target_": target}}) is Draw.own


def report(table1, write_run, tmp_path, split, values=VALUES):
    for model in ("fpst", "gcn", "gat"):
        for seed, value in enumerate(values):
            write_run(model, "cora", seed, value, split=split, **WORDS)
    return build_report(table1, tmp_path)


def cell(report, row="fpst"):
    cells = report.cells
    return cells[(cells["row"] == row) & (cells["column"] == "cora")].iloc[0]


def test_one_draw_of_ours_is_not_compared(table1, write_run, tmp_path, configs):
    made = report(table1, write_run, tmp_path, config_of(configs, "shared_70_15_15"))
    own = cell(made)
    assert own["our_pm"] == pytest.approx(1.96 * sqrt(22.5 / 5))
    assert own[["difference", "our_rank", "spearman"]].isna().all()
    assert own["within"] is None
    assert own["departure"] == ""
    words = " ".join(made.caption)
    assert "± is over initialisations on one draw of the split: Cora." in words
    assert (
        "One draw of the split, not known to be the paper's, and so without difference, ≈ and "
        "rank: Cora."
    ) in words
    assert "Rank" not in words


def test_a_published_split_is_compared_by_students_interval(table1, write_run, tmp_path, configs):
    made = report(table1, write_run, tmp_path, config_of(configs, "public"))
    own = cell(made)  # printed: 82.32 +- 0.70
    student = stats.t(4).ppf(0.975) * sqrt(22.5 / 5)
    assert own["difference"] == pytest.approx(76 - 82.32)
    assert own["within"] is False
    assert sqrt(student**2 + 0.7**2) < 6.32
    assert own["ranked"] == 3
    assert "not known to be the paper's" not in " ".join(made.caption)


def test_draws_of_ours_take_the_papers_for_one_more(table1, write_run, tmp_path, configs):
    made = report(table1, write_run, tmp_path, config_of(configs, "random_60_20_20"))
    own = cell(made)
    # The same values as above: another draw of the split is not that unlikely to have 82.32.
    assert own["within"] is True
    assert stats.t(4).ppf(0.975) * sqrt(22.5 * (1 + 1 / 5)) > 6.32
    assert own["ranked"] == 3
    words = " ".join(made.caption)
    assert "± is over 5 draws of the split, one initialisation each: Cora." in words
    assert "≈ takes the paper's number for one more draw" in words
    few = [value + 40 for value in VALUES]
    far = report(table1, write_run, tmp_path, config_of(configs, "random_60_20_20"), few)
    assert cell(far)["within"] is False


def test_a_paper_that_draws_for_each_run_is_compared_by_the_means_interval(
    configs, write_run, tmp_path
):
    (spec,) = load_table(configs, "hypformer/table3")
    split = config_of(configs, "redrawn_50_25_25")
    for seed, value in enumerate(VALUES):
        path = write_run(
            "hypformer", "newsgroups20__k5", seed, value, table=spec.name, split=split,
            folder=f"{seed}",
        )  # fmt: skip
        path.write_text(json.dumps(json.loads(path.read_text()) | {"score": value}))
    made = build_report(spec, tmp_path)
    cells = made.cells
    own = cells[(cells["row"] == "hypformer") & (cells["column"] == "newsgroups20__k5")].iloc[0]
    assert own["our_t95"] < abs(own["difference"]) < own["our_t95"] * sqrt(6)
    assert own["within"] is False
    assert "one more draw" not in " ".join(made.caption)
