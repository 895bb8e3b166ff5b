"""Which ranks, filtered or raw, and which pass of a training are nearest to published numbers."""

from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd

from curvlab.results.run_tables import text_of
from curvlab.tables.render import decimal
from curvlab.tables.report import Report

RAW = "raw"
FILTERED = "filtered"
DIGITS = 3

NEAREST_LEGEND = (
    "Root mean square of our metric minus the published number, over the methods that the paper "
    "has, MRR and Hits@10 together. The pass is the one whose validation metrics are nearest, "
    "among the passes that the runs of all methods have; the last column has the test metrics of "
    "the runs as they are."
)
RESIDUAL_LEGEND = "Our test metric minus the published number: of raw ranks (of filtered ranks)."


def panels_of_one_length(reports: Sequence[Report]) -> Sequence[Report]:
    """The panels of the first selection of runs, such as those of 20 passes; else all panels."""
    selections = [report.spec.report.where for report in reports if report.spec.report.where]
    return [r for r in reports if selections and r.spec.report.where == selections[0]] or reports


def published_residuals(reports: Sequence[Report]) -> pd.DataFrame:
    """Our test metrics minus the published numbers: a row for each cell of each report."""
    return pd.DataFrame(list(_test_residuals(reports)))


def residuals_by_pass(reports: Sequence[Report], results: Path) -> pd.DataFrame:
    """Validation metrics minus the published numbers: a row for each pass of each run.

    Args:
        reports: panels of a table whose metrics are `test.METRIC` or `test.raw_METRIC`.
        results: folder of all tables' runs.
    """
    return pd.DataFrame(list(_validation_residuals(reports, results)))


def nearest_pass_table(reports: Sequence[Report], results: Path) -> pd.DataFrame:
    """A row of text for each data set and kind of ranks: the nearest pass, and how near it is."""
    by_pass = residuals_by_pass(reports, results)
    at_test = published_residuals(reports)
    rows = []
    for column, label in _column_labels(reports[0]).items():
        for ranks in (FILTERED, RAW):
            curves = by_pass[(by_pass["column"] == column) & (by_pass["ranks"] == ranks)]
            cells = at_test[(at_test["column"] == column) & (at_test["ranks"] == ranks)]
            if curves.empty:
                continue
            methods = curves.groupby("pass")["row"].transform("nunique")
            of_all = curves[methods == methods.max()]
            distances = of_all.groupby("pass")["residual"].agg(root_mean_square)
            rows.append(
                {
                    "dataset": label,
                    "ranks": ranks,
                    "nearest pass": f"{distances.idxmin()} of {distances.index.max()}",
                    "validation, that pass": decimal(distances.min(), DIGITS),
                    "test": decimal(root_mean_square(cells["residual"]), DIGITS),
                }
            )
    return pd.DataFrame(rows)


def residual_table(reports: Sequence[Report], metric_name: Callable[[str], str]) -> pd.DataFrame:
    """A row of text for each method: its residuals on raw ranks, and in brackets on filtered.

    Args:
        reports: panels of a table, one for each metric and kind of ranks.
        metric_name: gives a metric's name for readers.
    """
    residuals = published_residuals(reports)
    index = ["row", "column", "metric"]
    by_ranks = residuals.pivot(index=index, columns="ranks", values="residual").dropna()
    rows: dict[Any, dict[str, str]] = {}
    for cell in by_ranks.reset_index().to_dict("records"):
        raw = decimal(cell[RAW], DIGITS, "+")
        filtered = decimal(cell[FILTERED], DIGITS, "+")
        label = reports[0].labels["column", cell["column"]]
        place = f"{label}, {metric_name(cell['metric'])}"
        rows.setdefault(cell["row"], {})[place] = f"{raw} ({filtered})"
    labels = [reports[0].labels["row", row] for row in reports[0].rows if row in rows]
    texts = [rows[row] for row in reports[0].rows if row in rows]
    table = pd.DataFrame(texts).sort_index(axis=1)
    table.insert(0, "method", labels)
    return table


def root_mean_square(values: "pd.Series[float]") -> float:
    """`sqrt(mean(x^2))`."""
    return float((values**2).mean() ** 0.5)


def _column_labels(report: Report) -> dict[Any, str]:
    return {column: report.labels["column", column] for column in report.columns}


def _parts(report: Report) -> tuple[str, str]:
    """Ranks and name of a report's metric: `test.raw_mrr` is raw, `mrr`."""
    name = report.spec.report.metric.removeprefix("test.")
    metric = name.removeprefix("raw_")
    return (RAW if metric != name else FILTERED), metric


def _test_residuals(reports: Sequence[Report]) -> Iterator[dict[str, Any]]:
    for report in reports:
        ranks, metric = _parts(report)
        both = report.cells.dropna(subset=["our_mean", "paper_mean"])
        for cell in both.to_dict("records"):
            residual = cell["our_mean"] - cell["paper_mean"]
            place = {"row": cell["row"], "column": cell["column"]}
            yield {**place, "ranks": ranks, "metric": metric, "residual": residual}


def _validation_residuals(reports: Sequence[Report], results: Path) -> Iterator[dict[str, Any]]:
    for report in reports:
        ranks, metric = _parts(report)
        validation = report.spec.report.metric.replace("test.", "val/")
        published = report.cells.set_index(["row", "column"])["paper_mean"].dropna()
        for run in report.runs.to_dict("records"):
            place = (run["row"], run["column"])
            steps_per_pass = (run["config"].get("trainer") or {}).get("steps_per_epoch")
            text = text_of(results / report.spec.name / Path(run["path"]).with_name("metrics.csv"))
            if place not in published.index or not steps_per_pass or text is None:
                continue
            curve = pd.read_csv(StringIO(text))
            passes = curve["step"] // steps_per_pass
            for number, value in zip(passes, curve[validation], strict=True):
                yield {
                    "row": run["row"],
                    "column": run["column"],
                    "ranks": ranks,
                    "metric": metric,
                    "pass": number,
                    "residual": value - published[place],
                }
