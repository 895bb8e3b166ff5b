"""All tables and figures of a paper as one HTML page that needs no other file.

A table is a heat map: how far each cell is from the published number, in units of the interval.
"""

import base64
import json
from collections.abc import Iterator, Mapping
from html import escape
from importlib.resources import files
from math import hypot, isnan
from pathlib import Path
from typing import Any

import pandas as pd

from curvlab.errors import UsageError
from curvlab.program import command
from curvlab.tables.overview import paper_figures, verdicts
from curvlab.tables.render import fixed, html, plus_minus
from curvlab.tables.report import Report, build_report
from curvlab.tables.spec import Better, Coordinate, TableSpec, load_table, table_names

KINDS = {".png": "png", ".svg": "svg+xml"}
"""Of pictures."""

JUDGED = {True: "within", False: "outside", None: "not judged"}
NUMBERS = {"ours": "our_mean", "printed": "paper_mean", "difference": "difference"}
"""What a cell can show, by the page's names."""

NONE = "·"
FULL = 5.0
"""The difference, in intervals, that has the full colour."""

WHY = {
    "cited": "the paper has this number from elsewhere",
    "missing": "curvlab does not have this model or this dataset",
    "hours": "nobody has had the hours; other models have run on this dataset",
    "files": "no model has run on this dataset yet: its files are downloaded first",
}
"""Why a cell has no run."""


def page(configs: Path, paper: str, results: Path) -> str:
    """The page of a paper: totals, each table with its command, the pictures beside the results.

    A click on a cell lists its runs, a click on the name of a column sorts by it. The same numbers
    in words are folded below the table.

    Args:
        configs: The folder of configurations.
        paper: For instance `fpst`.
        results: The folder of all tables' runs; pictures are `PAPER_*.svg` or `.png` above it.

    Raises:
        UsageError: There is no table of that paper.
    """
    names = [name for name in table_names(configs) if name.startswith(f"{paper}/")]
    if not names:
        papers = sorted({name.partition("/")[0] for name in table_names(configs)})
        raise UsageError(f"no tables of {paper}: there are those of {', '.join(papers)}")
    specs = [spec for name in names for spec in load_table(configs, name)]
    reports = [build_report(spec, results) for spec in specs]
    sections = [
        f"<section>\n<h2>{escape(report.title)}</h2>\n"
        f"<p><code>{command('train')} -m table={escape(spec.name)}</code></p>\n"
        f"{heatmap(report)}\n"
        "<details><summary>in words: intervals, differences, ranks, protocol</summary>\n"
        f"{html(report)}\n</details>\n</section>"
        for spec, report in zip(specs, reports, strict=True)
    ]
    runs = pd.concat(
        report.collected.assign(table=spec.name)
        for spec, report in zip(specs, reports, strict=True)
    ).drop_duplicates(["table", "path"])  # which panels share
    counts = pd.DataFrame([count(report) for report in reports]).sum()
    total = {**counts, "hours": f"{runs['seconds'].sum() / 3600:,.1f}"}
    listed = "".join(f"<div><dt>{key}</dt><dd>{n}</dd></div>" for key, n in total.items())
    body = "\n".join([f'<dl class="totals">{listed}</dl>', *sections, *_pictures(paper, results)])
    template = (files("curvlab.tables") / "page.html").read_text(encoding="utf-8")
    title = escape(specs[0].report.title.partition(",")[0])
    return template.replace("{{title}}", title).replace("{{body}}", body)


def count(report: Report) -> dict[str, int]:
    """Cells of a table by how they compare, in the order of the page.

    `printed` are those with a number in the paper, `full protocol` those of ours that have all
    seeds of the table's own protocol; `within`, `below` and `above` compare the two, and `not run`
    is what the sweep would still run.
    """
    cells = report.cells
    other = (cells["seeds"] > 0) & (cells["mark"] != "")
    return {
        "printed": int(cells["paper_mean"].notna().sum()),
        "full protocol": int(((cells["status"] == "finished") & ~other).sum()),
        **verdicts(cells),
        "other protocol": int(other.sum()),
        "not run": int((cells["status"] == "not run").sum()),
    }


def heatmap(report: Report) -> str:
    """The table in HTML: one button per cell, with its three numbers and, as JSON, its runs."""
    runs = report.collected.sort_values(["seed", "path"])
    of_cell = {cell: own.to_dict("records") for cell, own in runs.groupby(["row", "column"])}
    columns_run = set(runs["column"])
    rows: dict[Coordinate, str] = {}
    for cell in report.cells.to_dict("records"):
        own = of_cell.get((cell["row"], cell["column"]), [])
        details = _details(cell, own, report)
        status = cell["status"]
        if status == "not run":
            status = "hours" if cell["column"] in columns_run else "files"
        details["why"] = WHY.get(status, "")
        details["command"] = _command(report.spec, cell)
        rows[cell["row"]] = rows.get(cell["row"], "") + _cell(cell, report, details)
    head = "".join(
        f'<th scope="col"><button type="button">{escape(report.labels["column", column])}</button>'
        "</th>"
        for column in report.columns
    )
    body = "\n".join(
        f'<tr><th scope="row">{escape(report.labels["row", row])}</th>{cells}</tr>'
        for row, cells in rows.items()
    )
    return (
        f'<div class="wide"><table class="heat">\n<thead><tr><th></th>{head}</tr></thead>\n'
        f"<tbody>{body}</tbody>\n</table></div>"
    )


def _command(spec: TableSpec, cell: Mapping[Any, Any]) -> str:
    """The command that runs a cell; empty for one that the sweep does not have."""
    if cell["row"] not in spec.planned_rows or cell["column"] not in spec.planned_columns:
        return ""
    pairs = ((spec.report.rows, cell["row"]), (spec.report.columns, cell["column"]))
    overrides = " ".join(f"{path.removesuffix('.name')}={value}" for path, value in pairs)
    return f"{command('train')} -m table={spec.name} {overrides}"


def _cell(cell: Mapping[Any, Any], report: Report, details: Mapping[str, Any]) -> str:
    """A cell: its three numbers to choose from, what it is sorted by, and its details."""
    shown, values = "", ""
    for name, key in NUMBERS.items():
        text = fixed(cell[key], report.decimals, "+" if name == "difference" else "")
        if name == "ours":
            text = f"{text}{cell['mark']}" if text else cell["status"]
        shown += f'<span class="{name}">{text or NONE}</span>'
        if not isnan(cell[key]):
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
    if cell["within"] is not False or report.better is Better.neither:
        return 0.0
    paper = 0.0 if isnan(cell["paper_pm"]) else cell["paper_pm"]
    interval = hypot(cell["our_t95"], paper)
    distance = cell["difference"] / interval if interval else FULL
    sign = -1.0 if report.better is Better.lower else 1.0
    return sign * max(-1.0, min(1.0, distance / FULL)) * 100


def _details(cell: Mapping[Any, Any], runs: list[dict[Any, Any]], report: Report) -> dict[str, Any]:
    digits = report.decimals
    listed = []
    for run in runs:
        kappas = [kappa for layer in run["curvatures"].values() for kappa in layer]
        ends = dict.fromkeys(f"{end:.3g}" for end in (min(kappas), max(kappas))) if kappas else ()
        listed.append(
            {
                "seed": run["seed"],
                "value": fixed(run["value"], digits) or run["status"],
                "kappa": " to ".join(ends),
                "steps": f"{run['steps']:,}",
                "seconds": "" if isnan(run["seconds"]) else f"{run['seconds']:,.0f}",
                "device": run["device"],
                "commit": run["commit"][:8],
                "file": run["path"],
            }
        )
    return {
        "row": report.labels["row", cell["row"]],
        "column": report.labels["column", cell["column"]],
        "ours": plus_minus(cell["our_mean"], cell["our_pm"], digits),
        "printed": plus_minus(cell["paper_mean"], cell["paper_pm"], digits),
        "difference": fixed(cell["difference"], digits, "+"),
        "judged": JUDGED[cell["within"]] if runs else cell["status"],
        "protocol": cell["deviation"] or ("the table's" if runs else ""),
        "runs": listed,
    }


def _pictures(paper: str, results: Path) -> Iterator[str]:
    """The pictures next to the results, with what they show."""
    above = results.resolve().parent
    captions = {
        name: f"{figure['item']}: {figure['shows']}"
        for figure in paper_figures().to_dict("records")
        for name in figure["pictures"].split()
    }
    for path in sorted(path for kind in KINDS for path in above.glob(f"{paper}_*{kind}")):
        caption = escape(captions.get(path.name) or path.stem.replace("_", " "))
        data = base64.b64encode(path.read_bytes()).decode("ascii")
        image = f'<img src="data:image/{KINDS[path.suffix]};base64,{data}" alt="{caption}">'
        yield f"<figure>{image}<figcaption>{caption}</figcaption></figure>"
