"""All models of a task over the datasets of all tables, and the difference of two cells."""

import csv
from math import isnan, nan

import numpy as np
import pandas as pd
import pytest
from omegaconf import OmegaConf
from scipy import stats

from curvlab.analysis.figures import groups, leaderboard_figure
from curvlab.analysis.style import save_figure
from curvlab.errors import UsageError
from curvlab.statistics import critical_difference
from curvlab.tables.boards import (
    GRAPHS,
    board,
    difference,
    largest_block,
    one_protocol_per_column,
    ranks_of,
)
from curvlab.tables.spec import load_table
from stored_runs import extend

TASK = {"task": {"name": "node_classification"}}
SCORES = {
    "gcn": {"web_edu": (90.0, 91.0, 92.0), "power": (80.0, 81.0, 82.0)},
    "fpst": {"web_edu": (95.0, 97.0, 96.0), "power": (79.0, 81.0, 80.0)},
    "tokengt": {"web_edu": (94.0, 94.0, 94.0), "power": (70.0, 71.0, 72.0)},
}


@pytest.fixture
def write(write_run):
    """A run of node classification with its test and validation score."""

    def run(table, model, dataset, seed, value, val=50.0, steps=1000):
        path = write_run(model, dataset, seed, value, table=table, steps=steps, **TASK)
        extend(path, score=value, val_score=val)

    return run


@pytest.fixture
def of_task(configs, tmp_path):
    return lambda *pairs: board(configs, "node_classification", tmp_path, pairs)


@pytest.fixture
def write_scores(configs, write_run, tmp_path):
    """The board of a task with the runs of `SCORES`."""
    for model, columns in SCORES.items():
        for dataset, values in columns.items():
            for seed, value in enumerate(values):
                path = write_run(model, dataset, seed, value, task={"name": "reconstruction"})
                extend(path, score=value)
    return lambda *pairs: board(configs, "reconstruction", tmp_path, pairs)


def test_the_table_with_the_better_validation_counts_not_the_better_test(write, of_task):
    for seed in range(3):
        write("fpst/table1", "gcn", "cora", seed, 90.0, val=70.0)
        write("hypformer/table2", "gcn", "cora", seed, 80.0, val=71.0, steps=5000)
        write("hypformer/table2", "hypformer", "cora", seed, 81.0, steps=5000)
    found = of_task()
    assert found.scores.loc["GCN", "Cora"] == 80.0
    assert dict(found.beaten) == {"Hypformer": 1.0, "GCN": 0.0}
    assert found.block is None
    assert "2 models on 1 datasets: 2 of 2 cells" in found.text()


def test_the_board_of_a_table_has_its_runs_alone(write, of_task, configs, tmp_path):
    for place, model in enumerate(("gcn", "mlp", "sage")):
        for dataset in ("cora", "texas"):
            write("fpst/table1", model, dataset, 0, 90.0 - place, val=70.0)
            write("budget/node_classification", model, dataset, 0, 80.0 + place, val=60.0)
    found = board(configs, "budget/node_classification", tmp_path)
    assert found.scores.loc["GCN"].tolist() == [80.0, 80.0]
    assert dict(found.block.mean_ranks) == {"GraphSAGE": 1.0, "MLP": 2.0, "GCN": 3.0}
    assert "Node classification at one budget" in found.block.title
    assert dict(of_task().block.mean_ranks) == {"GCN": 1.0, "MLP": 2.0, "GraphSAGE": 3.0}
    with pytest.raises(UsageError, match="no table has a finished run of fpst/fig3"):
        board(configs, "fpst/fig3", tmp_path)


def test_a_model_is_judged_by_those_it_meets(write, of_task):
    scores = {
        "gcn": {"cora": 3.0, "texas": 1.0},
        "mlp": {"cora": 2.0, "texas": 2.0},
        "gat": {"cora": 1.0, "texas": 2.0},
        "sgc": {"texas": 0.0},
    }
    for model, of_model in scores.items():
        for dataset, value in of_model.items():
            write("fpst/table1", model, dataset, 0, value)
    found = of_task("gat:mlp")
    # of two others on Cora, of three on Texas, where MLP and GAT tie at 2.5 of 3
    assert dict(found.beaten) == pytest.approx(
        {"GCN": (1 + 1 / 3) / 2, "MLP": (1 / 2 + 2.5 / 3) / 2, "GAT": (2.5 / 3) / 2, "SGC": 0.0}
    )
    assert set(found.block.scores.index) == {"GCN", "MLP", "GAT"}
    assert set(found.block.scores.columns) == {"Cora", "Texas"}
    differences = found.counterparts.set_index("dataset")["difference"]
    assert dict(differences) == {"Texas": 0, "Cora": -1}
    text = found.text()
    assert "| SGC | 0 % | · | 0.00* |" in text or "| SGC | 0 % | 0.00* | · |" in text
    assert "**3.00***" in text


def test_a_graph_counts_once_however_often_it_is_split(write_run, configs, tmp_path, of_task):
    """Airport has two splits; Chameleon and Squirrel are two graphs of one class."""
    (spec,) = load_table(configs, "lrn/table1")
    graph_of = {"airport": "airport", "airport_hgcn": "airport"}
    graph_of |= {"chameleon": "chameleon", "squirrel": "squirrel"}
    values = ((3.0, 3.0, 1.0, 0.0), (2.0, 2.0, 2.0, 1.0), (1.0, 1.0, 3.0, 2.0))
    for model, of_model in zip(spec.planned_rows, values, strict=False):
        for (dataset, graph), value in zip(graph_of.items(), of_model, strict=True):
            source = OmegaConf.load(configs / f"dataset/{graph}.yaml").source
            resolved = OmegaConf.to_container(source) | {"population": False}
            data = {"name": dataset, "source": resolved}
            path = write_run(model, dataset, 0, value, table=spec.name, **TASK)
            config = {"seed": 0, "model": {"name": model}, "dataset": data, **TASK}
            extend(path, score=value, config=config)
    found = of_task()
    assert found.scores.shape == (3, 4)
    assert found.block.scores.shape == (3, 3)
    assert found.block.critical_difference == critical_difference(3, 3)
    assert found.beaten.iloc[-1] == pytest.approx(1 / 3)  # of the first: all, none and none


@pytest.mark.parametrize(
    ("deviations", "kept"),
    [
        (("", "", "50 steps"), ("", "")),
        (("", "50 steps", "50 steps"), ("50 steps", "50 steps")),
        (("",), ("",)),
        (("50 steps",), ("50 steps",)),
    ],
)
def test_a_column_keeps_one_protocol(deviations, kept):
    rows = [("a", f"model{i}", "cora", words, nan) for i, words in enumerate(deviations)]
    runs = pd.DataFrame(rows, columns=["table", "row", "column", "deviation", "val"])
    assert tuple(one_protocol_per_column(runs)["deviation"]) == kept


def test_the_largest_block_has_no_gap_and_no_other_is_larger():
    generator = np.random.default_rng(0)
    for _ in range(20):
        scores = pd.DataFrame(np.where(generator.random((6, 5)) < 0.6, 1.0, nan))
        graph = pd.Series([str(c) for c in scores.columns], scores.columns)
        found = largest_block(scores, graph)
        pairs = [(a, b) for a in range(6) for b in range(6)]
        shared = [scores.columns[scores.loc[[a, b]].notna().all()] for a, b in pairs]
        sizes = [
            int(scores[s].notna().all(axis=1).sum()) * len(s)
            for s in shared
            if len(s) > 1 and scores[s].notna().all(axis=1).sum() > 2
        ]
        if found is None:
            assert not sizes
        else:
            assert found.size == max(sizes)
            assert not any(isnan(x) for x in found.to_numpy().ravel())


def test_mean_ranks_by_hand(write_scores):
    leaders = write_scores().block
    assert dict(leaders.mean_ranks) == {"FPS-T": 1.5, "GCN": 2.0, "TokenGT": 2.5}
    assert leaders.scores.loc["FPS-T"].tolist() == [96.0, 80.0]
    # Friedman 1937: 12 / (N k (k + 1)) sum of squared rank sums - 3 N (k + 1), chi-squared
    statistic = 12 / (2 * 3 * 4) * (3**2 + 4**2 + 5**2) - 3 * 2 * 4
    p = np.exp(-statistic / 2)  # two degrees of freedom
    assert f"all are alike: p = {p:.2g}." in leaders.text()


def test_scores_that_single_precision_rounds_apart_are_tied():
    """29 of 37 right in float32, as a mean over draws."""
    scores = pd.DataFrame({"texas": [78.37837753, 78.37837677, 70.0]}, index=["a", "b", "c"])
    assert ranks_of(scores)["texas"].tolist() == [1.5, 1.5, 3.0]
    fractions = pd.DataFrame({"wn18rr": [0.4329, 0.43291, 0.4]}, index=["a", "b", "c"])
    assert ranks_of(fractions)["wn18rr"].tolist() == [2.0, 1.0, 3.0]


def test_tails_and_both_sides_are_two_columns(configs, write_run, tmp_path):
    """`cat/table1` ranks tails, `kg/reference` heads, too; Nations has one kind."""
    of_table = {"cat/table1": (False, "complex", 0.2), "kg/reference": (True, "rotate", 0.4)}
    for table, (both, model, score) in of_table.items():
        task = {"name": "kg_completion", "inverse_relations": both}
        for dataset in ("fb15k237", "nations") if both else ("fb15k237",):
            path = write_run(model, dataset, 0, score, table=table, task=task)
            extend(path, score=score)
    found = board(configs, "kg_completion", tmp_path).scores
    names = [name.partition(" (")[0] for name in found.columns]
    assert sorted(names) == ["FB15k-237, both sides", "FB15k-237, tails", "Nations"]
    assert (found.notna().sum() == 1).all()


def test_counterparts_are_paired_by_seed_and_have_measures_of_the_graph(write_scores, tmp_path):
    with (tmp_path.parent / GRAPHS).open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerows([("dataset", "mean_delta", "homophily"), ("web_edu", "0.25", "")])
    pair, other = write_scores("fpst:tokengt").counterparts.itertuples()
    (tmp_path.parent / GRAPHS).unlink()
    assert (pair.curved, pair.flat, pair.dataset) == ("FPS-T", "TokenGT", "Web-Edu")
    assert pair.difference == pytest.approx(2.0)
    # differences 1, 3, 2: standard deviation 1, t(0.975, 2) = 4.3027
    assert pair.pm == pytest.approx(4.3027 / np.sqrt(3), rel=1e-4)
    assert pair.mean_delta == 0.25
    assert np.isnan(pair.homophily)
    assert other.difference == pytest.approx(9.0)


def test_it_is_drawn(write_scores, tmp_path):
    """Bars join the longest groups."""
    found = write_scores("fpst:tokengt")
    leaders = found.block
    assert leaders.critical_difference > 1  # of three models on two datasets
    assert groups(leaders) == [(0, 2)]
    figure = leaderboard_figure(leaders, found.counterparts)
    assert save_figure(figure, tmp_path / "board.png").stat().st_size > 10_000


ONE, OTHER = [90.0, 91.5, 90.2, 92.0], [89.0, 91.9, 88.0, 90.5]


def test_the_interval_of_a_difference_is_that_of_the_paired_t_test(spec, tmp_path, write_run):
    fractions = {"gat": [x / 100 for x in ONE], "sgc": [x / 100 for x in OTHER]}
    cells = {"fpst": ONE, "tokengt": OTHER, "gcn": [50.0], **fractions}
    for name, scores in cells.items():
        for seed, score in enumerate(scores):
            write_run(name, "power", seed, score)

    def between(one, other):
        return difference(spec, tmp_path, (one, "power"), (other, "power"))

    low, high = stats.ttest_rel(ONE, OTHER).confidence_interval()
    assert between("fpst", "tokengt") == f"+1.1 ({low:+.1f} to {high:+.1f})"
    assert between("gat", "sgc") == f"+0.011 ({low / 100:+.3f} to {high / 100:+.3f})"
    assert between("fpst", "fpst") == "+0.0 with each of 4 seeds"
    with pytest.raises(UsageError, match="fpst, power and gcn, power share 1 seeds"):
        between("fpst", "gcn")


@pytest.mark.parametrize(
    ("word", "why"), [("fpst", "CURVED:FLAT"), (":gcn", "CURVED:FLAT"), ("fpst:gnc", "of gnc")]
)
def test_a_word_that_is_no_pair_is_refused(write_scores, word, why):
    with pytest.raises(UsageError, match=why):
        write_scores(word)
