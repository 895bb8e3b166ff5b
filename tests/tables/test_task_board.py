"""All models of a task over the datasets of all tables."""

import json
from math import isnan, nan

import numpy as np
import pandas as pd
import pytest
from omegaconf import OmegaConf

from curvlab.errors import UsageError
from curvlab.statistics import critical_difference
from curvlab.tables import load_table
from curvlab.tables.leaderboard import leaderboard
from curvlab.tables.task_board import (
    chosen_cells,
    largest_block,
    one_protocol_per_column,
    task_board,
    task_board_text,
)

TASK = {"task": {"name": "node_classification"}}


@pytest.fixture
def write(write_run):
    """A run of node classification with its test and validation score."""

    def run(table, model, dataset, seed, value, val=50.0, steps=1000):
        path = write_run(model, dataset, seed, value, table=table, steps=steps, **TASK)
        result = json.loads(path.read_text())
        path.write_text(json.dumps(result | {"score": value, "val_score": val}))

    return run


@pytest.fixture
def specs(configs):
    return [*load_table(configs, "fpst/table1"), *load_table(configs, "hypformer/table2")]


def test_the_table_with_the_better_validation_counts_not_the_better_test(write, specs, tmp_path):
    for seed in range(3):
        write("fpst/table1", "gcn", "cora", seed, 90.0, val=70.0)
        write("hypformer/table2", "gcn", "cora", seed, 80.0, val=71.0, steps=5000)
        write("hypformer/table2", "hypformer", "cora", seed, 81.0, steps=5000)
    board = task_board("node_classification", specs, tmp_path)
    assert board.scores.loc["GCN", "Cora"] == 80.0
    assert dict(board.beaten) == {"Hypformer": 1.0, "GCN": 0.0}
    assert board.block is None
    assert "2 models on 1 datasets: 2 of 2 cells" in task_board_text(board)


def test_a_model_is_judged_by_those_it_meets(write, specs, tmp_path):
    scores = {
        "gcn": {"cora": 3.0, "texas": 1.0},
        "mlp": {"cora": 2.0, "texas": 2.0},
        "gat": {"cora": 1.0, "texas": 2.0},
        "sgc": {"texas": 0.0},
    }
    for model, of_model in scores.items():
        for dataset, value in of_model.items():
            write("fpst/table1", model, dataset, 0, value)
    board = task_board("node_classification", specs, tmp_path, [("gat", "mlp")])
    # of two others on Cora, of three on Texas, where MLP and GAT tie at 2.5 of 3
    assert dict(board.beaten) == pytest.approx(
        {"GCN": (1 + 1 / 3) / 2, "MLP": (1 / 2 + 2.5 / 3) / 2, "GAT": (2.5 / 3) / 2, "SGC": 0.0}
    )
    assert set(board.block.scores.index) == {"GCN", "MLP", "GAT"}
    assert set(board.block.scores.columns) == {"Cora", "Texas"}
    assert [(twin.dataset, twin.difference) for twin in board.twins] == [("Texas", 0), ("Cora", -1)]
    text = task_board_text(board)
    assert "| SGC | 0 % | 0.00* | · |" in text
    assert "| GCN | 67 % | 1.00* | **3.00*** |" in text


def test_a_column_of_a_shorter_protocol_is_shown_and_not_ranked(write, specs, tmp_path):
    for model, value in (("gcn", 1.0), ("mlp", 2.0), ("gat", 3.0)):
        write("fpst/table1", model, "cora", 0, value)
        write("fpst/table1", model, "texas", 0, -value, steps=50)
    board = task_board("node_classification", specs, tmp_path)
    assert list(board.scores.columns) == ["Texas (50 steps)", "Cora"]
    assert board.judged == {"Cora"}
    assert list(board.beaten.index) == ["GAT", "MLP", "GCN"]
    assert board.block is None
    assert "**-1" not in task_board_text(board)


def test_a_graph_counts_once_however_often_it_is_split(write_run, configs, tmp_path):
    """Airport has two splits; Chameleon and Squirrel are two graphs of one class."""
    (spec,) = load_table(configs, "lrn/table1")
    graph_of = {"airport": "airport", "airport_hgcn": "airport"}
    graph_of |= {"chameleon": "chameleon", "squirrel": "squirrel"}
    first, second, third = spec.planned_rows[:3]
    scores = {
        first: (3.0, 3.0, 1.0, 0.0),
        second: (2.0, 2.0, 2.0, 1.0),
        third: (1.0, 1.0, 3.0, 2.0),
    }
    for model, values in scores.items():
        for (dataset, graph), value in zip(graph_of.items(), values, strict=True):
            path = write_run(model, dataset, 0, value, table=spec.name, **TASK)
            result = json.loads(path.read_text()) | {"score": value}
            source = OmegaConf.load(configs / f"dataset/{graph}.yaml").source
            resolved = OmegaConf.to_container(source) | {"population": False}
            result["config"]["dataset"] = {"name": dataset, "source": resolved}
            path.write_text(json.dumps(result))
    board, whole = leaderboard(spec, tmp_path), task_board("node_classification", [spec], tmp_path)
    assert board.scores.shape == whole.block.scores.shape == (3, 3)
    assert board.critical_difference == critical_difference(3, 3)
    assert board.left_out == ("Airport (HGCN split, leaks)",)
    assert whole.beaten.iloc[-1] == pytest.approx(1 / 3)  # of the first: all, none and none
    assert whole.scores.shape == (3, 4)


def test_a_task_without_runs_is_said(specs, tmp_path):
    with pytest.raises(UsageError, match="no table has a finished run of task=kg_completion"):
        task_board("kg_completion", specs, tmp_path)


def frame(*runs):
    return pd.DataFrame(runs, columns=["table", "row", "column", "departure", "val"])


def test_without_validation_the_first_table_counts():
    runs = frame(("a", "gcn", "cora", "", nan), ("b", "gcn", "cora", "", nan))
    assert list(chosen_cells(runs)["table"]) == ["a"]


@pytest.mark.parametrize(
    ("departures", "kept"),
    [
        (("", "", "50 steps"), ("", "")),
        (("", "50 steps", "50 steps"), ("50 steps", "50 steps")),
        (("",), ("",)),
        (("50 steps",), ("50 steps",)),
    ],
)
def test_a_column_keeps_one_protocol(departures, kept):
    runs = frame(*[("a", f"model{i}", "cora", words, nan) for i, words in enumerate(departures)])
    assert tuple(one_protocol_per_column(runs)["departure"]) == kept


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
