"""Orders of methods, by numbers that can be ranked by hand."""

import re
from math import isnan, nan

import pandas as pd
import pytest

from curvlab.tables import build_report, load_table
from curvlab.tables.ranking import marks, rank_correlation, with_ranks
from curvlab.tables.render import csv, markdown, render, terminal
from curvlab.tables.spec import Better


def table(**columns):
    """Cells of one column for each word: (paper, ours) of the methods a, b, c ..."""
    cells = [
        {
            "row": row,
            "column": column,
            "paper_mean": paper,
            "our_mean": ours,
            "difference": ours - paper,
            "departure": "",
        }
        for column, pairs in columns.items()
        for row, (paper, ours) in zip("abcdef", pairs, strict=False)
    ]
    return pd.DataFrame(cells)


def test_ranks_are_of_the_methods_that_have_both_numbers():
    cells = with_ranks(
        table(x=[(90, 70), (95, nan), (80, 75), (85, 60), (nan, 99)]), 2, Better.higher
    )
    ranked = cells[cells["our_rank"].notna()]
    assert ranked["row"].tolist() == ["a", "c", "d"]
    assert ranked["paper_rank"].tolist() == [1, 3, 2]
    assert ranked["our_rank"].tolist() == [2, 1, 3]
    assert cells["ranked"].tolist() == [3] * 5
    # 1 - 6 sum d^2 / (n (n^2 - 1)), d = 1, -2, 1
    assert cells["spearman"].tolist() == pytest.approx([1 - 6 * 6 / (3 * 8)] * 5)


def test_lower_may_be_better():
    cells = with_ranks(table(x=[(1, 10), (2, 20), (3, 30)]), 2, Better.lower)
    assert cells["our_rank"].tolist() == cells["paper_rank"].tolist() == [1, 2, 3]
    assert cells["spearman"].tolist() == pytest.approx([1, 1, 1])
    best = marks(cells, "our", 2, Better.lower)
    assert [best[row, "x"] for row in "abc"] == [1, 2, 0]


def test_where_no_number_is_better_none_is_ranked():
    cells = with_ranks(table(x=[(1, 10), (2, 20), (3, 30)]), 2, Better.neither)
    assert cells[["our_rank", "paper_rank", "spearman"]].isna().all(axis=None)
    assert marks(cells, "our", 2, Better.neither) == {}


def test_no_time_of_cats_table_2_is_ranked(configs, write_run, tmp_path):
    _, times = load_table(configs, "cat/table2")
    for seed, model in enumerate(("cat_euclidean", "cat_hyperbolic", "cat")):
        write_run(
            model, "wn18rr", 0, seed + 1.5, table="cat/table2", metric="inference_ms", steps=1
        )
    page = markdown(build_report(times, tmp_path))
    assert "| ours" in page
    assert not re.search(r"rank |Spearman|Bold|\*\d", page)


def test_numbers_that_are_not_compared_are_not_ranked():
    """The best of ours is of another protocol: the paper's order of the others is ours."""
    cells = table(x=[(90, 99), (80, 60), (95, 75), (85, 70)])
    cells.loc[0, ["difference", "departure"]] = nan, "250 steps"
    ranked = with_ranks(cells, 2, Better.higher)
    assert ranked["our_rank"].isna().tolist() == [True, False, False, False]
    assert ranked["our_rank"].dropna().tolist() == [3, 1, 2]
    assert ranked["paper_rank"].dropna().tolist() == [3, 1, 2]
    assert ranked["spearman"].tolist() == pytest.approx([1] * 4)
    assert ranked["ranked"].tolist() == [3] * 4
    assert marks(cells, "our", 2, Better.higher) == {
        ("b", "x"): 0,
        ("c", "x"): 1,
        ("d", "x"): 2,
    }
    assert marks(cells, "paper", 2, Better.higher)["a", "x"] == 2


def test_two_methods_have_no_order():
    cells = with_ranks(table(x=[(1, 2), (3, 4)], y=[(1, 2), (2, 1), (3, 3)]), 2, Better.higher)
    by_column = cells.groupby("column")
    assert by_column["our_rank"].count().to_dict() == {"x": 0, "y": 3}
    assert by_column["spearman"].first().isna().to_dict() == {"x": True, "y": False}
    assert by_column["ranked"].first().to_dict() == {"x": 0, "y": 3}


def test_numbers_that_are_printed_alike_have_one_rank():
    cells = with_ranks(table(x=[(3, 50.001), (2, 49.999), (1, 40)]), 2, Better.higher)
    assert cells["our_rank"].tolist() == [1, 1, 3]


@pytest.mark.parametrize(
    ("ours", "expected"),
    [([1, 2, 3, 4], 1), ([4, 3, 2, 1], -1), ([2, 1, 4, 3], 0.6), ([10, 100, 1e3, 1e9], 1)],
)
def test_rank_correlation(ours, expected):
    assert rank_correlation(pd.Series(ours), pd.Series([1, 2, 3, 4])) == pytest.approx(expected)


def test_no_order_is_no_correlation():
    assert isnan(rank_correlation(pd.Series([5.0, 5, 5]), pd.Series([1.0, 2, 3])))


@pytest.fixture
def ranked(spec, write_run, tmp_path):
    """Ours on Web-Edu: GCN before FPS-T before GAT; the paper has FPS-T, GAT, GCN."""
    for model, value in [("gcn", 91.0), ("fpst", 90.0), ("gat", 80.0)]:
        write_run(model, "web_edu", 0, value)
    for model, value in [("gcn", 91.0), ("fpst", 92.0)]:
        write_run(model, "power", 0, value)
    return build_report(spec, tmp_path)


def test_ranks_stand_below_the_numbers(ranked):
    text = terminal(ranked, 120)
    lines = [line.split() for line in text.splitlines() if " rank " in line]
    assert [" ".join(line) for line in lines] == [
        "rank 1, paper 3",
        "rank 3, paper 2",
        "rank 2, paper 1",
        "Spearman rank \N{MINUS SIGN}0.50 (3)",
    ]
    assert any(line.startswith("Rank: ") for line in ranked.caption)


def test_ranks_are_in_every_format(ranked):
    assert "1, paper 3" in markdown(ranked)
    assert "**Spearman**" in markdown(ranked)
    text = render([ranked], "latex")
    assert r"Spearman & rank & $-$0.50 (3) &  &  &  \\" in text
    assert len(re.findall(r"& \d, paper \d ", text)) == 3
    (line,) = [line for line in csv([ranked]).splitlines() if ",gcn,web_edu," in line]
    assert line.endswith("1.0,3.0,3,-0.5")


def test_a_table_without_an_order_says_nothing_of_it(spec, write_run, tmp_path):
    write_run("gcn", "web_edu", 0, 91.0)
    report = build_report(spec, tmp_path)
    assert "Spearman" not in markdown(report)
    assert not any("Rank" in line for line in report.caption)


def test_the_fastest_is_marked(fig4, write_run, tmp_path):
    words = {"table": "fpst/fig4", "metric": "inference_ms", "steps": 1}
    for model, value in [("gcn", 3.0), ("gat", 9.0), ("tokengt", 7.0)]:
        write_run(model, "power", 0, value, **words)
    text = markdown(build_report(fig4[0], tmp_path))
    assert "**3.00** (1)" in text
    assert "*7.00* (1)" in text
    assert "**2.35**" in text  # SGC, the paper's fastest


def test_panels_come_below_each_other(fig4, tmp_path):
    reports = [build_report(panel, tmp_path) for panel in fig4]
    for form in ("terminal", "markdown", "latex"):
        text = render(reports, form)
        assert text.index("(left)") < text.index("(right)")
    header, *cells = csv(reports).splitlines()
    assert header.startswith("metric,row,column,")
    assert {cell.split(",")[0] for cell in cells} == {"test.inference_ms", "test.inference_mb"}
