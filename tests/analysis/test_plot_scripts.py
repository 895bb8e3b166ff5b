"""The scripts plot.py and download.py, as they are typed."""

import json
from math import nan

import pandas as pd
import pytest

from commands_of_pages import ROOT
from composing import CONFIGS
from curvlab.analysis.figures import comparison_figure, scaling_figure
from curvlab.analysis.plots import run_curves
from curvlab.errors import UsageError

pytestmark = pytest.mark.slow


def test_curvature_and_hyperbolicity_of_the_generated_graph(script, tmp_path):
    code, said, _ = script("plot.py", "curvature", "synthetic_web", "--output", "picture.png")
    assert code == 0
    assert "mean sectional curvature -0." in said
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    code, said, _ = script("plot.py", "facts", "grid", "--output", "facts.csv")
    assert code == 0
    assert "Gromov's delta 10 (exact)" in said
    assert pd.read_csv(tmp_path / "facts.csv").loc[0, "dataset"] == "grid"


def test_the_stored_facts_of_graphs_are_those_of_today(script, mirror, tmp_path, monkeypatch):
    monkeypatch.setenv("CURVLAB_MIRROR", str(mirror))
    names = ["cornell", "chameleon"]
    assert script("plot.py", "facts", *names, "--output", "facts.csv")[0] == 0
    stored = pd.read_csv(ROOT / "docs" / "results" / "graphs.csv", index_col="dataset")
    today = pd.read_csv(tmp_path / "facts.csv", index_col="dataset")
    pd.testing.assert_frame_equal(today, stored.loc[names])


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("plot.py", "curvature", "web_edo"), "did you mean web_edu"),
        (("plot.py", "run", "nowhere"), "nowhere"),
        (("plot.py", "curves", "nowhere"), "nowhere is not a folder of a run with curves"),
        (("plot.py", "scaling", "fpst/table1", "--results", "."), "no sizes"),
        (("plot.py", "scaling", "hypformer/fig5", "--results", "."), "nothing to draw"),
        (
            ("plot.py", "depth", "lrn/fig2", "--results", "."),
            "no depth has a number of HyboNet and of another",
        ),
        (("plot.py", "filters", "nowhere"), "runs of polyattn_mono"),
        (("download.py", "powr"), "did you mean power"),
    ],
)
def test_wrong_words_get_one_sentence_and_exit_code_2(script, words, answer):
    code, said, complained = script(*words)
    assert (code, said) == (2, "")
    assert answer in complained
    assert complained.count("\n") == 1


def test_download_copies_from_the_mirror_and_says_where(script, mirror, tmp_path, monkeypatch):
    monkeypatch.setenv("CURVLAB_MIRROR", str(mirror.resolve()))
    code, said, _ = script("download.py", "web_edu", "synthetic_web")
    assert code == 0
    assert (tmp_path / "data/Networks/web-edu/raw/web-edu.edges.csv").is_file()
    assert "web_edu: data/Networks/web-edu/raw/web-edu.edges.csv" in said
    assert "synthetic_web: generated" in said


@pytest.mark.parametrize(("verb", "table"), [("scaling", "hypformer/fig5"), ("depth", "lrn/fig2")])
def test_a_table_of_sizes_or_depths_is_drawn(script, tmp_path, verb, table):
    shipped = str(CONFIGS.parent / "docs/results/tables")
    code, said, _ = script("plot.py", verb, table, "--results", shipped, "--output", "picture.png")
    assert (code, said) == (0, "wrote picture.png\n")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_curves_of_several_runs_stand_on_one_axis(script, tmp_path):
    for model, last in (("gcn", 0.3), ("cat", 0.5)):
        for folder in (tmp_path / "runs" / model, tmp_path / "runs" / model / "previous" / "a"):
            folder.mkdir(parents=True)
            rows = pd.DataFrame({"step": [5, 10, 12], "loss": 1.0, "val/mrr": [0.1, last, None]})
            rows.to_csv(folder / "metrics.csv", index=False)
            names = {"model": model, "dataset": "wn18rr", "seed": 0}
            (folder / "result.json").write_text(json.dumps(names))
    words = ("plot.py", "curves", "runs", "--metric", "val/mrr", "--output", "curves.png")
    code, said, _ = script(*words)
    assert code == 0
    assert "wrote curves.png" in said
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    lines = run_curves([tmp_path / "runs"], "val/mrr")
    assert lines.groupby("name")["value"].agg(list).to_dict() == {
        "cat on wn18rr, seed 0": [0.1, 0.5],
        "gcn on wn18rr, seed 0": [0.1, 0.3],
    }
    (axis,) = comparison_figure(lines, "val/mrr").axes
    assert [line.get_label() for line in axis.lines] == ["cat: 0.5", "gcn: 0.3"]
    assert axis.get_title(loc="left") == "wn18rr, seed 0"
    assert axis.get_ylabel() == "validation MRR"
    code, _, said = script("plot.py", "curves", "runs/gcn", "--metric", "val/map")
    assert code == 2
    assert "have no val/map: they have loss, val/mrr" in said


def test_seeds_of_one_model_are_their_mean_in_its_interval():
    rows = [
        {"name": f"run {seed}", "model": "GCN", "dataset": "Cora", "seed": seed} | point
        for seed, height in enumerate((2.0, 3.0, 4.0))
        for point in ({"step": 10, "value": 1.0}, {"step": 20, "value": height})
    ]
    (axis,) = comparison_figure(pd.DataFrame(rows), "loss").axes
    (line,) = axis.lines
    assert line.get_ydata().tolist() == [1, 3]
    (band,) = axis.collections
    low, high = band.get_datalim(axis.transData).intervaly
    half = 4.302653 / 3**0.5  # Student's t of two degrees of freedom
    assert (low, high) == (pytest.approx(3 - half), pytest.approx(3 + half))
    assert axis.get_title(loc="left") == "Cora, 3 seeds, mean and 95% interval: 0, 1, 2"


def test_slopes_are_those_of_the_logarithms():
    sizes = pd.Index([10_000, 100_000, 1_000_000])
    lines = {"linear": [1.0, 10.0, 100.0], "square": [3.0, 300.0, nan]}
    lines |= {"one": [1.0, nan, nan], "none": [nan] * 3}
    costs, nothing = pd.DataFrame(lines, sizes), pd.DataFrame({"none": [nan] * 3}, sizes)
    (axis,) = scaling_figure({"time, ms": costs, "nothing": nothing}, "nodes").axes
    labels = axis.get_legend_handles_labels()[1]
    assert labels == ["linear (slope 1.00)", "square (slope 2.00)", "one"]
    with pytest.raises(UsageError, match="nothing to draw"):
        scaling_figure({"nothing": nothing}, "nodes")
