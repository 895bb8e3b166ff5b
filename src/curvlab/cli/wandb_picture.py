"""The dashboard of W&B as a picture, from stored runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd

from curvlab.analysis.style import legend_below, panels, save_figure, styled
from curvlab.results.result import Result
from curvlab.run.reporting import summary
from curvlab.tables.wandb_report import COSTS


@styled
def draw_dashboard(found: Sequence[tuple[Result, pd.DataFrame]], file: Path) -> Path:
    """Draw the panels of the dashboard from results and their curves, with matplotlib."""
    names = [{"model": result.model, "dataset": result.dataset} for result, _ in found]
    numbers = [summary(result) for result, _ in found]
    runs = pd.DataFrame([number | name for number, name in zip(numbers, names, strict=True)])
    each = zip(found, names, strict=True)
    curves = pd.concat([rows.assign(**name) for (_, rows), name in each])
    shown = {"score": "score", **{name: title for name, title in COSTS.items() if name in runs}}
    kappas = [name for name in curves if str(name).startswith("kappa/")]
    curved = curves.assign(kappa=curves[kappas].mean(axis=1)).dropna(subset="kappa")
    datasets = list(curved["dataset"].value_counts().index[:1])
    models = sorted(set(runs["model"]))
    colors: dict[str, Any] = {
        model: mpl.colormaps["tab20"](i % 20) for i, model in enumerate(models)
    }
    title = f"{len(runs)} runs, drawn with matplotlib"
    figure, axes = panels(len(shown) + len(datasets), 5.4, 2.8, title, columns=2)
    for axis, (name, heading) in zip(axes, shown.items(), strict=False):
        means = runs.pivot_table(name, "dataset", "model")
        color = [colors[str(model)] for model in means]
        means.plot.bar(ax=axis, title=heading, xlabel="", rot=0, legend=False, color=color)
        if name != "score":
            axis.set_yscale("log")
    for axis, dataset in zip(axes[len(shown) :], datasets, strict=True):
        own = curved[curved["dataset"] == dataset].pivot_table("kappa", "step", "model")
        color = [colors[str(model)] for model in own]
        own.interpolate().plot(
            ax=axis, title=f"mean curvature on {dataset}", xlabel="step", legend=False, color=color
        )
    legend_below(figure, axes[0])
    return save_figure(figure, file)
