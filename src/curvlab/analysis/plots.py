"""The pictures of a run, from the files in its folder."""

import json
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd

from curvlab.analysis.embeddings import load_embedding
from curvlab.analysis.figures import curves_figure
from curvlab.analysis.filters import EIGENVALUES, FILE, filter_clusters, load_filters
from curvlab.analysis.model_figures import (
    FilterPanel,
    embedding_figure,
    filters_figure,
    relations_figure,
    ternary_figure,
)
from curvlab.analysis.ranks import RELATIONS
from curvlab.analysis.routing import FILE as ROUTING
from curvlab.analysis.routing import load_routing
from curvlab.analysis.style import save_figure
from curvlab.data.datasets.filter_images import FILTERS
from curvlab.errors import UsageError
from curvlab.files import find_below
from curvlab.results.result import SET_ASIDE, read_result
from curvlab.results.run_tables import read_row, runs_in_tables, text_of
from curvlab.results.settings import differing_settings, setting_texts

CURVES = "metrics.csv"
FILTER_CLUSTERS = 5
"""Number of clusters of learned filters without true filters (PolyFormer, Figure 2)."""


def plot_run(run_dir: Path, title: str | None = None) -> list[Path]:
    """Draw the curves, embedding, ranks, filters and routing of a run into its folder `plots`."""
    title = title or run_title(run_dir)
    figures = {"curves": curves_figure(_metrics(run_dir), title)}
    embeddings = run_dir / "embeddings.npz"
    if embeddings.exists():
        figures["embedding"] = embedding_figure(load_embedding(embeddings), title)
    if (run_dir / RELATIONS).exists():
        relations = pd.read_csv(run_dir / RELATIONS, keep_default_na=False)
        figures["relations"] = relations_figure(relations, title)
    if (run_dir / FILE).exists():
        figures["filters"] = filters_figure({title: filter_panel(run_dir)})
    folder = run_dir / "plots"
    paths = [save_figure(figure, folder / f"{name}.png") for name, figure in figures.items()]
    if (run_dir / ROUTING).exists():
        branches = load_routing(run_dir / ROUTING, "test").branches
        if len(branches) == 3:
            paths.append(plot_routing(run_dir, title))
    return paths


def run_curves(folders: Sequence[Path], metric: str) -> pd.DataFrame:
    """Read a metric of all runs in and below folders, for `comparison_figure`.

    Runs in folders `previous` are left out. Runs of one model and data set that differ in more than
    the seed have their settings in the column `model`.
    """
    tables: dict[str, pd.DataFrame] = {}
    runs = [run for folder in folders for run in _runs_with_curves(folder)]
    for run, model in zip(runs, _models(runs), strict=True):
        result = _result(run)
        name = run_title(run) if result else str(run)
        if name in tables:
            name = f"{name} ({run})"
        _, dataset = _labels(result)
        table = _curve(run, metric)
        seed = result.get("seed")
        tables[name] = table.assign(name=name, model=model, dataset=dataset, seed=seed)
    return pd.concat(tables.values(), ignore_index=True)


def _models(runs: Sequence[Path]) -> list[str]:
    """The label of each run's model, with the settings that differ between runs of equal labels."""
    labels = [_labels(_result(run)) for run in runs]
    models = [model for model, _ in labels]
    for label in set(labels):
        results = {i: read_result(runs[i]) for i in range(len(runs)) if labels[i] == label}
        known = {i: result for i, result in results.items() if result is not None}
        settings = differing_settings(list(known.values()))
        for (i, result), own in zip(known.items(), settings, strict=True):
            texts = setting_texts(own, result.config)
            if texts:
                models[i] += f" ({', '.join(texts)})"
    return models


def _runs_with_curves(folder: Path) -> list[Path]:
    """Sorted runs in and below a folder, without earlier results of a run."""
    runs = {path.parent for path in find_below(folder, CURVES)}
    runs.update(runs_in_tables(folder))
    current = []
    for run in sorted(runs):
        is_earlier = SET_ASIDE in run.relative_to(folder).parts
        if not is_earlier and text_of(run / CURVES) is not None:
            current.append(run)
    if not current:
        raise UsageError(f"{folder} is not a folder of a run with curves, nor above one.")
    return current


def _curve(run: Path, metric: str) -> pd.DataFrame:
    """The columns `step` and `value` of a run's metric."""
    curves = _metrics(run)
    if "step" not in curves or metric not in curves or curves[metric].isna().all():
        names = ", ".join(name for name in curves.columns if name != "step")
        raise UsageError(f"the curves of {run} have no {metric}: they have {names}.")
    return curves[["step", metric]].set_axis(["step", "value"], axis=1).dropna()


def filter_panel(run_dir: Path, clusters: int | None = None) -> FilterPanel:
    """Clusters of a run's filters, by default one for each true filter, or five."""
    dataset = _result(run_dir).get("config", {}).get("dataset", {})
    true_filters = FILTERS[dataset["filter"]] if dataset.get("filter") else ()
    true_responses = [function(EIGENVALUES) for function in true_filters]
    filters = load_filters(run_dir / FILE)
    coefficients = filters["coefficients"]
    count = clusters or len(true_responses) or min(FILTER_CLUSTERS, len(coefficients))
    return filter_clusters(coefficients, str(filters["basis"]), count), true_responses


def plot_routing(run_dir: Path, title: str | None = None) -> Path:
    """Draw the weights of a run's three branches in test queries; return the picture's path."""
    routing = load_routing(run_dir / ROUTING, "test")
    figure = ternary_figure(routing, title or run_title(run_dir))
    return save_figure(figure, run_dir / "plots/routing_test.png")


def run_title(run_dir: Path) -> str:
    """Model, data set and seed of a run; without a result the folder's name."""
    result = _result(run_dir)
    if not result:
        return run_dir.name
    model, dataset = _labels(result)
    return f"{model} on {dataset}, seed {result['seed']}"


def _metrics(run_dir: Path) -> pd.DataFrame:
    path = run_dir / CURVES
    text = text_of(path)
    if text is None:
        raise UsageError(f"{path} is missing: {run_dir} is not the folder of a run with curves.")
    return pd.read_csv(StringIO(text))


def _result(run_dir: Path) -> dict[str, Any]:
    """The result of a run, from its file or from a table of runs; empty without a result."""
    path = run_dir / "result.json"
    if path.exists():
        return dict(json.loads(path.read_text("utf-8")))
    return dict(read_row(run_dir) or {})


def _labels(result: dict[str, Any]) -> tuple[str, str]:
    """Labels of a result's model and data set; names without labels."""
    config = result.get("config", {})
    model = config.get("model", {}).get("label") or result.get("model", "")
    dataset = config.get("dataset", {}).get("label") or result.get("dataset", "")
    return str(model), str(dataset)
