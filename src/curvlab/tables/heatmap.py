"""A table as a heat map: how far each cell is from the printed number, in units of the interval."""

import json
from collections import Counter
from collections.abc import Mapping
from html import escape
from io import StringIO
from math import hypot, isfinite, isnan
from pathlib import Path
from typing import Any

import pandas as pd

from curvlab.program import command
from curvlab.results.run_tables import text_of
from curvlab.tables.report import Report
from curvlab.tables.spec import Better, Coordinate, TableSpec

JUDGED = {True: "within", False: "outside", None: "not judged"}
Run = dict[Any, Any]
"""A row of what `collect` returns."""

NUMBERS = {"ours": "our_mean", "printed": "paper_mean", "difference": "difference"}
"""What a cell can show, by the page's names."""

NONE = "·"

FULL = 5.0
"""The difference, in intervals, that has the full colour."""

POINTS = 60
"""Of a curve, at most."""

WHY = {
    "cited": "the paper has this number from elsewhere",
    "missing": "curvlab does not have this model or this dataset",
    "hours": "nobody has had the hours; other models have run on this dataset",
    "files": "no model has run on this dataset yet: its files are downloaded first",
}
"""Why a cell has no run."""


def count(report: Report) -> Counter[str]:
    """Cells of a table by how they compare, in the order of the page.

    `printed` are those with a number in the paper, `full protocol` those of ours that have all
    seeds of the table's own protocol; `within`, `below` and `above` compare the two, and
    `not run` is what the sweep would still run.
    """
    cells = report.cells
    own = (cells["seeds"] > 0) & (cells["mark"] == "")
    outside = cells["within"] == False  # noqa: E712  (the column holds None too)
    return Counter(
        {
            "printed": int(cells["paper_mean"].notna().sum()),
            "full protocol": int((own & (cells["status"] == "finished")).sum()),
            "within": int((cells["within"] == True).sum()),  # noqa: E712
            "below": int((outside & (cells["difference"] < 0)).sum()),
            "above": int((outside & (cells["difference"] > 0)).sum()),
            "other protocol": int(((cells["seeds"] > 0) & (cells["mark"] != "")).sum()),
            "not run": int((cells["status"] == "not run").sum()),
        }
    )


def heatmap(spec: TableSpec, report: Report, runs: pd.DataFrame, results: Path) -> str:
    """The table in HTML: one button a cell, with its three numbers and, as JSON, its runs.

    Args:
        spec: Where the table is from.
        report: The table.
        runs: Its runs, as `collect` returns them.
        results: The folder of the table's results, with the curves of those runs that kept them.
    """
    columns_run = set(runs["column"])
    by_place = {(cell["row"], cell["column"]): cell for cell in report.cells.to_dict("records")}
    of_cell: dict[tuple[Coordinate, Coordinate], list[Run]] = {}
    for run in runs.to_dict("records"):
        of_cell.setdefault((run["row"], run["column"]), []).append(run)
    head = "".join(
        f'<th scope="col"><button type="button">{escape(report.labels["column", column])}</button>'
        "</th>"
        for column in report.columns
    )
    body = "\n".join(
        f'<tr><th scope="row">{escape(report.labels["row", row])}</th>'
        + "".join(
            _cell(
                by_place[row, column],
                report,
                _details(by_place[row, column], of_cell.get((row, column), []), report)
                | {
                    "why": _why(by_place[row, column], column in columns_run),
                    "command": cell_command(spec, row, column),
                    "curves": _curves(of_cell.get((row, column), []), spec, results),
                },
            )
            for column in report.columns
        )
        + "</tr>"
        for row in report.rows
    )
    return (
        f'<div class="wide"><table class="heat">\n<thead><tr><th></th>{head}</tr></thead>\n'
        f"<tbody>{body}</tbody>\n</table></div>"
    )


def cell_command(spec: TableSpec, row: Coordinate, column: Coordinate) -> str:
    """What runs a cell; empty for one that the sweep does not have."""
    if row not in spec.planned_rows or column not in spec.planned_columns:
        return ""
    words = (
        f"{path.removesuffix('.name')}={value}"
        for path, value in ((spec.report.rows, row), (spec.report.columns, column))
    )
    return f"{command('train')} -m table={spec.name} {' '.join(words)}"


def _why(cell: Mapping[Any, Any], others: bool) -> str:
    """Why a cell has no run; empty where it has one."""
    status = cell["status"]
    return WHY.get(("hours" if others else "files") if status == "not run" else status, "")


def _curves(runs: list[Run], spec: TableSpec, results: Path) -> list[list[tuple[int, float]]]:
    """The curve of each run that has kept its own: the score at each evaluation."""
    found = (
        curve(results / run["path"], spec.report.metric)
        for run in sorted(runs, key=lambda run: (run["seed"], run["path"]))
    )
    return [points for points in found if points]


def curve(result: Path, metric: str) -> list[tuple[int, float]]:
    """Step and score of a run's evaluations, thinned; empty where there is no `metrics.csv`.

    Args:
        result: The result's file, beside which the curves lie.
        metric: `test.NAME`; validation's is taken where there is one.
    """
    text = text_of(result.parent / "metrics.csv")
    if text is None:
        return []
    table = pd.read_csv(StringIO(text))
    name = metric.rpartition(".")[2]
    key = next((key for key in (f"val/{name}", f"test/{name}", name) if key in table), None)
    if key is None or "step" not in table:
        return []
    known = table[["step", key]].dropna()
    known = known.iloc[:: -(-len(known) // POINTS) or 1]
    return [(int(step), float(f"{value:.4g}")) for step, value in known.to_numpy()]


def _cell(cell: Mapping[Any, Any], report: Report, details: Mapping[str, Any]) -> str:
    """A cell: its three numbers to choose from, what it is sorted by, and its details."""
    shown, values = "", ""
    for name, key in NUMBERS.items():
        text = _fixed(cell[key], report.decimals, "+" if name == "difference" else "")
        if name == "ours":
            text = f"{text}{cell['mark']}" if text else cell["status"]
        shown += f'<span class="{name}">{text or NONE}</span>'
        if isfinite(cell[key]):
            values += f' data-{name}="{cell[key]}"'
    heat = _heat(cell, report)
    style = f' style="--heat:{abs(heat):.0f}%"' if heat else ""
    side = "" if not heat else " better" if heat > 0 else " worse"
    kind = "other" if cell["mark"] else "" if details["runs"] else "empty"
    words = escape(json.dumps(details, ensure_ascii=False), quote=True)
    label = escape(f"{details['row']}, {details['column']}", quote=True)
    return (
        f'<td class="{kind}{side}"{style}{values}><button type="button" '
        f'data-cell="{words}" title="{label}">{shown}</button></td>'
    )


def _heat(cell: Mapping[Any, Any], report: Report) -> float:
    """How far ours is on the better (+) or worse (-) side, in percent of the full colour."""
    nothing = isnan(cell["difference"]) or cell["within"] is not False
    if nothing or report.better is Better.neither:
        return 0.0
    paper = 0.0 if isnan(cell["paper_pm"]) else cell["paper_pm"]
    interval = hypot(cell["our_t95"], paper)
    distance = cell["difference"] / interval if interval else FULL
    sign = -1.0 if report.better is Better.lower else 1.0
    return sign * max(-1.0, min(1.0, distance / FULL)) * 100


def _details(cell: Mapping[Any, Any], runs: list[Run], report: Report) -> dict[str, Any]:
    digits = report.decimals
    return {
        "row": report.labels["row", cell["row"]],
        "column": report.labels["column", cell["column"]],
        "ours": _spread(cell["our_mean"], cell["our_pm"], digits),
        "printed": _spread(cell["paper_mean"], cell["paper_pm"], digits),
        "difference": _fixed(cell["difference"], digits, "+"),
        "judged": JUDGED[cell["within"]] if runs else cell["status"],
        "protocol": cell["departure"] or ("the table's" if runs else ""),
        "runs": [
            {
                "seed": run["seed"],
                "value": _fixed(run["value"], digits) or run["status"],
                "kappa": _curvatures(run["curvatures"]),
                "steps": f"{run['steps']:,}",
                "seconds": "" if isnan(run["seconds"]) else f"{run['seconds']:,.0f}",
                "device": run["device"],
                "commit": run["commit"][:8],
                "file": run["path"],
            }
            for run in sorted(runs, key=lambda run: (run["seed"], run["path"]))
        ],
    }


def _curvatures(found: Mapping[str, Any]) -> str:
    """The range of all curvatures of a run."""
    flat = [
        value
        for values in found.values()
        for value in (values if isinstance(values, list) else [values])
        if isinstance(value, int | float)
    ]
    if not flat:
        return ""
    low, high = min(flat), max(flat)
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def _spread(mean: float, pm: float, decimals: int) -> str:
    return " ± ".join(filter(None, [_fixed(mean, decimals), _fixed(pm, decimals)]))


def _fixed(value: float, decimals: int, sign: str = "") -> str:
    text = "" if isnan(value) else f"{value:{sign}.{decimals}f}"
    return text.replace("-", "\N{MINUS SIGN}")
