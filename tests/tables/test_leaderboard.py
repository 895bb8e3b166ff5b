"""Mean ranks, critical differences and twins of a table's models."""

import csv

import numpy as np
import pytest

from curvlab.analysis.style import save_figure
from curvlab.analysis.table_figures import groups, leaderboard_figure, pareto_front
from curvlab.errors import UsageError
from curvlab.tables.leaderboard import leaderboard, leaderboard_text
from curvlab.tables.spec import Better
from curvlab.tables.twins import FACTS, pairs_of, twins

SCORES = {
    "gcn": {"web_edu": (90.0, 91.0, 92.0), "power": (80.0, 81.0, 82.0)},
    "fpst": {"web_edu": (95.0, 97.0, 96.0), "power": (79.0, 81.0, 80.0)},
    "tokengt": {"web_edu": (94.0, 94.0, 94.0), "power": (70.0, 71.0, 72.0)},
}


@pytest.fixture
def written(write_run):
    for model, columns in SCORES.items():
        for dataset, values in columns.items():
            for seed, value in enumerate(values):
                write_run(model, dataset, seed, value, metric="map")


def test_mean_ranks_by_hand(spec, written, tmp_path):
    board = leaderboard(spec, tmp_path)
    assert dict(board.mean_ranks) == {"FPS-T": 1.5, "GCN": 2.0, "TokenGT": 2.5}
    assert board.scores.loc["FPS-T"].tolist() == [96.0, 80.0]
    # Friedman 1937: 12 / (N k (k + 1)) sum of squared rank sums - 3 N (k + 1), chi-squared
    statistic = 12 / (2 * 3 * 4) * (3**2 + 4**2 + 5**2) - 3 * 2 * 4
    assert board.p == pytest.approx(np.exp(-statistic / 2))  # two degrees of freedom


def test_lower_is_better_where_the_table_says_so(spec, written, tmp_path):
    spec.report.better = Better.lower
    assert list(leaderboard(spec, tmp_path).mean_ranks.index) == ["TokenGT", "GCN", "FPS-T"]


def test_a_cell_of_another_protocol_takes_no_part(spec, written, write_run, tmp_path):
    write_run("sgc", "web_edu", 0, 99.0, steps=250, max_steps=250)
    board = leaderboard(spec, tmp_path)
    assert "SGC" not in board.scores.index


def test_a_column_that_a_ranked_model_lacks_is_left_out_by_name(spec, written, write_run, tmp_path):
    write_run("gcn", "facebook", 0, 99.0)
    write_run("fpst", "facebook", 0, 98.0)
    board = leaderboard(spec, tmp_path)
    assert list(board.scores.columns) == ["Web-Edu", "Power"]
    assert board.left_out == ("Facebook",)
    assert "Facebook" in leaderboard_text(board)


def test_nothing_to_rank_is_said(spec, tmp_path):
    with pytest.raises(UsageError, match="nothing to rank"):
        leaderboard(spec, tmp_path)


def test_twins_are_paired_by_seed_and_have_what_is_known_of_the_graph(spec, written, tmp_path):
    results = tmp_path
    with (tmp_path.parent / FACTS).open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerows([("dataset", "mean_delta", "homophily"), ("web_edu", "0.25", "")])
    pair, other = twins(spec, results, pairs_of(["fpst:tokengt"]))
    (tmp_path.parent / FACTS).unlink()
    assert (pair.curved, pair.flat, pair.dataset) == ("FPS-T", "TokenGT", "Web-Edu")
    assert pair.difference == pytest.approx(2.0)
    # differences 1, 3, 2: standard deviation 1, t(0.975, 2) = 4.3027
    assert pair.pm == pytest.approx(4.3027 / np.sqrt(3), rel=1e-4)
    assert pair.delta == 0.25
    assert np.isnan(pair.homophily)
    assert other.difference == pytest.approx(9.0)


@pytest.mark.parametrize("word", ["fpst", "fpst:", ":gcn"])
def test_a_word_that_is_no_pair_is_refused(word):
    with pytest.raises(UsageError, match="CURVED:FLAT"):
        pairs_of([word])


def test_a_twin_that_is_no_row_is_refused(spec, tmp_path):
    with pytest.raises(UsageError, match="no row gnc"):
        twins(spec, tmp_path, [("fpst", "gnc")])


def test_bars_join_the_longest_groups(spec, written, tmp_path):
    board = leaderboard(spec, tmp_path)
    assert board.critical_difference > 1  # of three models on two datasets
    assert groups(board) == [(0, 2)]


def test_no_model_of_the_front_is_beaten_by_a_cheaper_one(spec, written, tmp_path):
    board = leaderboard(spec, tmp_path)
    cost = board.cost["seconds"].copy()
    cost[:] = [1.0, 3.0, 2.0]  # in the table's order GCN, TokenGT, FPS-T
    scores = board.scores.mean(axis=1)
    ordered = cost.sort_values().index
    best = np.maximum.accumulate(scores[ordered])
    expected = [m for i, m in enumerate(ordered) if i == 0 or scores[m] > best.iloc[i - 1]]
    assert pareto_front(cost, scores, board.better) == expected


def test_it_is_drawn(spec, written, tmp_path):
    pairs = twins(spec, tmp_path, [("fpst", "tokengt")])
    figure = leaderboard_figure(leaderboard(spec, tmp_path), pairs)
    assert save_figure(figure, tmp_path / "board.png").stat().st_size > 10_000
