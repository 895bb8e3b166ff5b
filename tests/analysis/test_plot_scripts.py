"""The scripts plot.py and download.py, as they are typed; pictures show what they are given."""

import json
from math import nan

import matplotlib.image as mpimg
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch

from composing import CONFIGS, ROOT
from curvlab.analysis.embeddings import Embedding, save_embedding
from curvlab.analysis.figures import comparison_figure, curvature_figure, scaling_figure
from curvlab.analysis.plots import plot_run, run_curves
from curvlab.errors import UsageError
from curvlab.manifolds import Euclidean, Stereographic
from graphs import of_networkx
from stored_runs import result

pytestmark = pytest.mark.slow


def test_curvature_and_hyperbolicity_of_the_generated_graph(script, tmp_path):
    said = script("plot.py", "curvature", "synthetic_web", "--output", "picture.png").out
    assert "mean sectional curvature -0." in said
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    said = script("plot.py", "facts", "grid", "--output", "facts.csv").out
    assert "Gromov's delta 10 (exact)" in said
    assert pd.read_csv(tmp_path / "facts.csv").loc[0, "dataset"] == "grid"


@pytest.mark.nightly
def test_the_stored_facts_of_graphs_are_those_of_today(script, mirror, tmp_path, monkeypatch):
    monkeypatch.setenv("CURVLAB_MIRROR", str(mirror))
    names = ["cornell", "chameleon"]
    script("plot.py", "facts", *names, "--output", "facts.csv")
    stored = pd.read_csv(ROOT / "docs" / "results" / "graphs.csv", index_col="dataset")
    today = pd.read_csv(tmp_path / "facts.csv", index_col="dataset")
    pd.testing.assert_frame_equal(today, stored.loc[names])


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("plot.py", "curvature", "web_edo"), "did you mean web_edu"),
        (("plot.py", "run", "nowhere"), "nowhere"),
        (("plot.py", "curves", "nowhere"), "nowhere is not a folder of a run with curves"),
        (("plot.py", "scaling", "fpst/table1", "--results", "."), "are not sizes"),
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
    said, complained = script(*words, code=2)
    assert said == ""
    assert answer in complained
    assert complained.count("\n") == 1


def test_download_copies_from_the_mirror_and_says_where(script, mirror, tmp_path, monkeypatch):
    monkeypatch.setenv("CURVLAB_MIRROR", str(mirror.resolve()))
    said = script("download.py", "web_edu", "synthetic_web").out
    assert (tmp_path / "data/Networks/web-edu/raw/web-edu.edges.csv").is_file()
    assert "web_edu: data/Networks/web-edu/raw/web-edu.edges.csv" in said
    assert "synthetic_web: generated" in said


@pytest.mark.parametrize(("verb", "table"), [("scaling", "hypformer/fig5"), ("depth", "lrn/fig2")])
def test_a_table_of_sizes_or_depths_is_drawn(script, tmp_path, verb, table):
    shipped = str(CONFIGS.parent / "docs/results/tables")
    said = script("plot.py", verb, table, "--results", shipped, "--output", "picture.png").out
    assert said == "wrote picture.png\n"
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
    said = script(*words).out
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
    said = script("plot.py", "curves", "runs/gcn", "--metric", "val/map", code=2).err
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


def write_curves(folder, seed, height, **options):
    """A run whose loss ends at a height, without a result if it has no options."""
    folder.mkdir(parents=True)
    rows = pd.DataFrame({"step": [10, 20], "loss": [1.0, height]})
    rows.to_csv(folder / "metrics.csv", index=False)
    model = {"_target_": "curvlab.models.graph_network.GCN", "name": "gcn", "label": "GCN"}
    config = {"model": model | options, "dataset": {"name": "cora"}, "seed": seed}
    result(config, dataset="cora", seed=seed, score=height).write(folder)


def test_runs_with_other_options_have_a_line_of_their_own(tmp_path):
    """As rows of compare, with the words that compare has for them."""
    heights = {("narrow", 0): 2.0, ("narrow", 1): 4.0, ("wide", 0): 6.0, ("wide", 2): 8.0}
    for (name, seed), height in heights.items():
        options = {"dim": 8} if name == "narrow" else {}
        write_curves(tmp_path / name / str(seed), seed, height, **options)
    (axis,) = comparison_figure(run_curves([tmp_path], "loss"), "loss").axes
    lines = {line.get_label(): line.get_ydata().tolist() for line in axis.lines}
    assert lines == {"GCN (dim=default): 7": [1, 7], "GCN (dim=8): 3": [1, 3]}
    (axis,) = comparison_figure(run_curves([tmp_path / "wide"], "loss"), "loss").axes
    assert [line.get_label() for line in axis.lines] == ["GCN: 7"]
    alone = [tmp_path / "narrow" / "1", tmp_path / "wide" / "2"]
    (axis,) = comparison_figure(run_curves(alone, "loss"), "loss").axes
    assert len(axis.lines) == 2
    assert axis.get_title(loc="left") == "cora, seeds 1, 2"


def test_a_long_legend_does_not_take_the_place_of_the_lines():
    point = {"dataset": "Cora", "seed": 0, "step": 10, "value": 1.0}
    rows = [point | {"name": f"run {i}", "model": f"{i}" + 80 * "a"} for i in range(25)]
    figure = comparison_figure(pd.DataFrame(rows), "loss")
    figure.draw_without_rendering()
    (axis,) = figure.axes
    (legend,) = figure.legends
    inches = figure.dpi_scale_trans.inverted()
    assert legend.get_window_extent().transformed(inches).height > 4
    assert axis.get_window_extent().transformed(inches).height > 1.5


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


def test_histogram_shares_sum_to_one_and_split_at_zero():
    values = np.array([-1.0, -0.02, 0.0, 0.03, 0.5])
    figure = curvature_figure({"A": (values, values.mean()), "B": (values[:2], -0.51)})
    for axis, negative in zip(figure.axes, (2 / 5, 1), strict=True):
        bars = [bar for bar in axis.patches if bar.get_height() > 0]
        assert sum(bar.get_height() for bar in bars) == pytest.approx(1)
        below = [bar for bar in bars if bar.get_x() + bar.get_width() < 1e-9]
        assert sum(bar.get_height() for bar in below) == pytest.approx(negative)
        assert len({bar.get_facecolor() for bar in below}) == 1


@pytest.mark.parametrize("space", [Stereographic(2, kappa=-0.7), Euclidean(2)])
def test_a_runs_pictures_are_made_from_its_folder(space, tmp_path):
    steps = np.arange(10, 110, 10)
    columns = {"step": steps, "loss": 1 / steps, "map": 90 + steps / 20, "kappa/0/0": -steps / 100}
    pd.DataFrame(columns).to_csv(tmp_path / "metrics.csv", index=False)
    points = space.expmap0(torch.randn(12, 4))
    edges, _ = of_networkx(nx.star_graph(11))
    save_embedding(tmp_path / "embeddings.npz", Embedding(points, space, edges))
    result = {"model": "fpst", "dataset": "web_edu", "seed": 3}
    (tmp_path / "result.json").write_text(json.dumps(result))
    paths = plot_run(tmp_path)
    assert paths == [tmp_path / "plots" / f"{name}.png" for name in ("curves", "embedding")]
    assert all(mpimg.imread(path).std() > 0.01 for path in paths)
