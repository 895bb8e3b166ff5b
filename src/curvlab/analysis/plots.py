"""The pictures of a run, made from the files in its folder."""

import json
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from curvlab.analysis.classes import CLASSES, plot_classes
from curvlab.analysis.disks import disks_figure, disks_of
from curvlab.analysis.distances import adjacency_matrix, distances_from
from curvlab.analysis.embeddings import (
    Embedding,
    load_embedding,
    principal_components,
    tangent_coordinates,
)
from curvlab.analysis.figures import Curve, NodeLooks, curves_figure, embedding_figure
from curvlab.analysis.filters import EIGENVALUES, filter_clusters, load_filters
from curvlab.analysis.model_figures import FilterPanel, filters_figure, ternary_figure
from curvlab.analysis.routing import FILE, load_routing
from curvlab.analysis.style import save_figure
from curvlab.data.datasets.filter_images import FILTERS
from curvlab.errors import UsageError
from curvlab.results.result import SET_ASIDE
from curvlab.results.run_tables import row_of, runs_in_tables, text_of

CURVES = "metrics.csv"
FILTER_CLUSTERS = 5
"""Of learned filters that have no true ones to compare with (PolyFormer, Figure 2)."""

COLORS = {
    "degree": "number of neighbours",
    "depth": "edges from the best-connected node",
    "class": "class",
}


def plot_run(run_dir: Path, title: str | None = None, color: str | None = None) -> list[Path]:
    """Draw what there is of a run into its folder `plots` and return the paths.

    Reads `metrics.csv` (the curves) and, where they are, `embeddings.npz` and `routing.npz`.

    Args:
        run_dir: Folder of the run.
        title: Heading of both pictures; by default what `result.json` says was run.
        color: What colours the nodes, `degree`, `depth` or `class`; by default their class if they
            have one, else their degree.

    Raises:
        UsageError: The folder has no curves, a file in it is damaged, or nodes have no classes.
    """
    title = title or run_title(run_dir)
    plots = run_dir / "plots"
    paths = [save_figure(curves_figure(_metrics(run_dir), title), plots / "curves.png")]
    if (run_dir / "embeddings.npz").exists():
        embedding = load_embedding(run_dir / "embeddings.npz")
        color = color or ("degree" if embedding.classes is None else "class")
        projection = principal_components(tangent_coordinates(embedding.points, embedding.space))
        looks = NodeLooks(
            node_values(embedding, color),
            COLORS[color],
            categorical=color == "class",
            parts=None if embedding.parts is None else embedding.parts.numpy(),
            names=embedding.class_names,
        )
        edges = embedding.edge_index.numpy()
        words = embedding.space.in_words(embedding.points.shape[1])
        figure = embedding_figure(projection, edges, looks, title, words)
        paths.append(save_figure(figure, plots / "embedding.png"))
        disks = disks_of(embedding.points, embedding.space)
        if disks:
            figure = disks_figure(disks, edges, looks, title)
            paths.append(save_figure(figure, plots / "poincare.png"))
    if (run_dir / CLASSES).exists():
        paths += plot_classes(run_dir, title)
    if (run_dir / "filters.npz").exists():
        figure = filters_figure({title: filter_panel(run_dir)})
        paths.append(save_figure(figure, plots / "filters.png"))
    if (run_dir / FILE).exists() and len(load_routing(run_dir / FILE, "test").branches) == 3:
        paths.append(plot_routing(run_dir, "test", title))
    return paths


def run_curves(folders: Sequence[Path], metric: str) -> list[Curve]:
    """A metric of runs by their steps, named by the runs, or folders where those are no help.

    Args:
        folders: Of runs, or above runs; `previous/` of an older configuration is left out.
        metric: A column of `metrics.csv`, such as `loss` or `val/mrr`.

    Raises:
        UsageError: There is no run, a file is damaged, or a run does not have the metric.
    """
    found: dict[str, Curve] = {}
    for folder in folders:
        runs = sorted({*(p.parent for p in folder.rglob(CURVES)), *runs_in_tables(folder)})
        runs = [run for run in runs if SET_ASIDE not in run.relative_to(folder).parts]
        runs = [run for run in runs if text_of(run / CURVES) is not None]
        if not runs:
            raise UsageError(f"{folder} is no folder of a run with curves, nor above one.")
        for run in runs:
            curves = _metrics(run)
            if "step" not in curves or metric not in curves or curves[metric].isna().all():
                known = ", ".join(name for name in curves.columns if name != "step")
                raise UsageError(f"the curves of {run} have no {metric}: they have {known}.")
            name = run_title(run) if _result(run) else str(run)
            name = f"{name} ({run})" if name in found else name
            values = curves.set_index("step")[metric].dropna()
            found[name] = Curve(name, values, *_labels(run), _result(run).get("seed"))
    return list(found.values())


def filter_panel(run_dir: Path, clusters: int | None = None) -> FilterPanel:
    """Clusters of the filters of a run's nodes, and the true filters where there are some.

    Args:
        run_dir: Folder of the run.
        clusters: Number of clusters; by default one for each true filter, or five.

    Raises:
        UsageError: The folder has no filters, or there are not so many nodes.
    """
    name = _result(run_dir).get("config", {}).get("dataset", {}).get("filter")
    true = [f(EIGENVALUES) for f in FILTERS[name]] if name else []
    filters = load_filters(run_dir / "filters.npz")
    count = clusters or len(true) or min(FILTER_CLUSTERS, len(filters.coefficients))
    return FilterPanel(filter_clusters(filters, count), true)


def plot_routing(run_dir: Path, part: str, title: str | None = None) -> Path:
    """Draw the weights of a run's three branches into its folder `plots`; return the path.

    Args:
        run_dir: Folder of the run.
        part: Whose queries, `test` or `train`.
        title: Heading; by default what `result.json` says was run.

    Raises:
        UsageError: The run has no such weights.
    """
    routing = load_routing(run_dir / FILE, part)
    corners = [name.replace("_", " ") for name in routing.branches]
    subtitle = f"weights of the branches, {len(routing.weights):,} {part} queries"
    figure = ternary_figure(routing.weights, corners, title or run_title(run_dir), subtitle)
    return save_figure(figure, run_dir / "plots" / f"routing_{part}.png")


def node_values(embedding: Embedding, color: str) -> np.ndarray:
    """Class or degree of each node, or its distance from the best-connected one, `[nodes]`.

    Raises:
        UsageError: Nodes have no classes.
    """
    if color == "class":
        if embedding.classes is None:
            raise UsageError("the run's nodes have no class: colour them by degree or depth.")
        return np.asarray(embedding.classes)
    adjacency = adjacency_matrix(embedding.edge_index, len(embedding.points))
    degree = np.diff(adjacency.indptr)
    if color == "degree":
        return np.maximum(degree, 1)  # for a logarithmic scale
    depth = distances_from(adjacency, np.array([degree.argmax()]))[0]
    return np.where(np.isfinite(depth), depth, depth[np.isfinite(depth)].max() + 1)


def _metrics(run_dir: Path) -> pd.DataFrame:
    path = run_dir / CURVES
    try:
        text = text_of(path)
        curves = None if text is None else pd.read_csv(StringIO(text))
    except ValueError as error:
        raise UsageError(f"{path} is not a table of curves: run the model again.") from error
    if curves is None:
        raise UsageError(f"{path} is missing: {run_dir} is not the folder of a run with curves.")
    return curves


def _result(run_dir: Path) -> dict[str, Any]:
    path = run_dir / "result.json"
    if path.exists():
        return dict(json.loads(path.read_text(encoding="utf-8")))
    return dict(row_of(run_dir) or {})


def run_title(run_dir: Path) -> str:
    """What a run is called, by its result or else its folder."""
    result = _result(run_dir)
    if not result:
        return run_dir.name
    return f"{' on '.join(_labels(run_dir))}, seed {result['seed']}"


def _labels(run_dir: Path) -> tuple[str, str]:
    """What a run's model and data set are called; nothing without a result."""
    result = _result(run_dir)
    config = result.get("config", {})
    model, dataset = (
        str(config.get(part, {}).get("label") or result.get(part, ""))
        for part in ("model", "dataset")
    )
    return model, dataset
