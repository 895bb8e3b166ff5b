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
from curvlab.results.result import SET_ASIDE
from curvlab.results.run_tables import row_of, runs_in_tables, text_of

CURVES = "metrics.csv"
FILTER_CLUSTERS = 5
"""Clusters of learned filters that have no true ones to compare with (PolyFormer, Figure 2)."""


def plot_run(run_dir: Path, title: str | None = None) -> list[Path]:
    """Draw the curves, embedding, ranks, filters and routing of a run into its folder `plots`."""
    title = title or run_title(run_dir)
    figures = {"curves": curves_figure(_metrics(run_dir), title)}
    if (run_dir / "embeddings.npz").exists():
        figures["embedding"] = embedding_figure(load_embedding(run_dir / "embeddings.npz"), title)
    if (run_dir / RELATIONS).exists():
        relations = pd.read_csv(run_dir / RELATIONS, keep_default_na=False)
        figures["relations"] = relations_figure(relations, title)
    if (run_dir / FILE).exists():
        figures["filters"] = filters_figure({title: filter_panel(run_dir)})
    paths = [save_figure(figure, run_dir / f"plots/{name}.png") for name, figure in figures.items()]
    if (run_dir / ROUTING).exists() and len(load_routing(run_dir / ROUTING, "test").branches) == 3:
        paths.append(plot_routing(run_dir, title))
    return paths


def run_curves(folders: Sequence[Path], metric: str) -> pd.DataFrame:
    """A metric of the runs in and below folders, except those set aside: `comparison_figure`."""
    curves_by_name: dict[str, pd.DataFrame] = {}
    for folder in folders:
        runs = sorted({*(p.parent for p in folder.rglob(CURVES)), *runs_in_tables(folder)})
        runs = [run for run in runs if SET_ASIDE not in run.relative_to(folder).parts]
        runs = [run for run in runs if text_of(run / CURVES) is not None]
        if not runs:
            raise UsageError(f"{folder} is not a folder of a run with curves, nor above one.")
        for run in runs:
            curves = _metrics(run)
            result = _result(run)
            if "step" not in curves or metric not in curves or curves[metric].isna().all():
                known = ", ".join(name for name in curves.columns if name != "step")
                raise UsageError(f"the curves of {run} have no {metric}: they have {known}.")
            name = run_title(run) if result else str(run)
            name = f"{name} ({run})" if name in curves_by_name else name
            model, dataset = _labels(result)
            curves_by_name[name] = (
                curves[["step", metric]]
                .set_axis(["step", "value"], axis=1)
                .dropna()
                .assign(name=name, model=model, dataset=dataset, seed=result.get("seed"))
            )
    return pd.concat(curves_by_name.values(), ignore_index=True)


def filter_panel(run_dir: Path, clusters: int | None = None) -> FilterPanel:
    """Clusters of a run's filters, by default five or one for each true filter."""
    name = _result(run_dir).get("config", {}).get("dataset", {}).get("filter")
    true = [f(EIGENVALUES) for f in FILTERS[name]] if name else []
    filters = load_filters(run_dir / FILE)
    coefficients = filters["coefficients"]
    count = clusters or len(true) or min(FILTER_CLUSTERS, len(coefficients))
    return filter_clusters(coefficients, str(filters["basis"]), count), true


def plot_routing(run_dir: Path, title: str | None = None) -> Path:
    """Draw the weights of a run's three branches in test queries; return the picture's path."""
    figure = ternary_figure(load_routing(run_dir / ROUTING, "test"), title or run_title(run_dir))
    return save_figure(figure, run_dir / "plots/routing_test.png")


def run_title(run_dir: Path) -> str:
    """Model, data set and seed of a run; without a result its folder's name."""
    result = _result(run_dir)
    return f"{' on '.join(_labels(result))}, seed {result['seed']}" if result else run_dir.name


def _metrics(run_dir: Path) -> pd.DataFrame:
    path = run_dir / CURVES
    text = text_of(path)
    if text is None:
        raise UsageError(f"{path} is missing: {run_dir} is not the folder of a run with curves.")
    return pd.read_csv(StringIO(text))


def _result(run_dir: Path) -> dict[str, Any]:
    path = run_dir / "result.json"
    return dict(json.loads(path.read_text("utf-8")) if path.exists() else row_of(run_dir) or {})


def _labels(result: dict[str, Any]) -> tuple[str, str]:
    parts = {part: result.get("config", {}).get(part, {}) for part in ("model", "dataset")}
    model, dataset = (str(part.get("label") or result.get(k, "")) for k, part in parts.items())
    return model, dataset
