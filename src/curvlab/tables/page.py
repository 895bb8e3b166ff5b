"""All tables of a paper as a self-contained HTML page of heat maps."""

from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from curvlab.errors import UsageError
from curvlab.tables.render import decimal, plus_minus
from curvlab.tables.report import Report, build_report
from curvlab.tables.spec import load_table, table_names

FULL = 5.0  # the difference, in intervals, that has the full colour
# colours of cells
BETTER = "0, 114, 178"
WORSE = "230, 159, 0"


def page(configs: Path, paper: str, results: Path) -> str:
    """The page of a paper: each table with its command."""
    names = [name for name in table_names(configs) if name.startswith(f"{paper}/")]
    if not names:
        papers = sorted({name.partition("/")[0] for name in table_names(configs)})
        raise UsageError(f"no tables of {paper}: there are those of {', '.join(papers)}")
    reports = [build_report(s, results) for name in names for s in load_table(configs, name)]
    notes = [escape(" ".join([*report.caption, *report.footnotes])) for report in reports]
    sections = [
        f"<section>\n<h2>{escape(report.title)}</h2>\n"
        f"<p><code>curvlab train -m table={escape(report.spec.name)}</code></p>\n"
        f"{heatmap(report)}\n<p>{note}</p></section>"
        for report, note in zip(reports, notes, strict=True)
    ]
    template = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    title = escape(reports[0].title.partition(",")[0])
    return template.replace("{{title}}", title).replace("{{body}}", "\n".join(sections))


def heatmap(report: Report) -> str:
    """The table in HTML: each cell has our number, a colour, and its runs as a title."""
    cells = report.cells
    outside = cells["within"].eq(False) & (report.better != "neither")
    interval = np.hypot(cells["our_t95"], cells["paper_pm"].fillna(0))
    with np.errstate(divide="ignore", invalid="ignore"):
        heat = (cells["difference"] / interval).clip(-FULL, FULL).where(outside, 0.0) / FULL
    heat *= -1 if report.better == "lower" else 1
    runs = report.collected.sort_values(["seed", "path"])
    by_cell = {
        cell: cell_runs.to_dict("records") for cell, cell_runs in runs.groupby(["row", "column"])
    }
    rows = {row: f'<th scope="row">{escape(report.labels["row", row])}</th>' for row in report.rows}
    for cell, hot in zip(cells.to_dict("records"), heat, strict=True):
        color = f"rgba({BETTER if hot > 0 else WORSE}, {abs(hot) * 0.6:.2f})"
        style = f' style="background: {color}"' if hot else ""
        cell_runs = by_cell.get((cell["row"], cell["column"]), [])
        words = escape(_details(cell, cell_runs, report), quote=True)
        text = decimal(cell["our_mean"], report.decimals) + cell["mark"]
        content = text if cell["seeds"] else f"<small>{cell['status']}</small>"
        rows[cell["row"]] += f'<td{style} title="{words}">{content}</td>'
    head = "".join(f"<th>{escape(report.labels['column', c])}</th>" for c in report.columns)
    body = "\n".join(f"<tr>{row}</tr>" for row in rows.values())
    return (
        f'<div class="wide"><table class="heat">\n<thead><tr><th></th>{head}</tr></thead>\n'
        f"<tbody>{body}</tbody>\n</table></div>"
    )


def _details(cell: dict[Any, Any], runs: list[dict[Any, Any]], report: Report) -> str:
    digits = report.decimals
    facts = {
        "ours": plus_minus(cell["our_mean"], cell["our_pm"], digits),
        "published": plus_minus(cell["paper_mean"], cell["paper_pm"], digits),
        "difference": decimal(cell["difference"], digits, "+"),
        "protocol": cell["deviation"],
    }
    lines = [f"{key}: {value}" for key, value in facts.items() if value]
    lines = [report.name_of(cell), *lines, *report.cell_notes[cell["row"], cell["column"]]]
    for run in runs:
        kappas = sorted(kappa for layer in run["curvatures"].values() for kappa in layer)
        ends = dict.fromkeys(f"{kappa:.3g}" for kappa in (*kappas[:1], *kappas[-1:]))
        value = decimal(run["value"], digits) or run["status"]
        seconds = decimal(run["seconds"], 0)
        words = [f"seed {run['seed']}: {value}", "κ " * bool(ends) + " to ".join(ends)]
        words += [f"{run['steps']:,} steps", seconds + " s" * bool(seconds)]
        words += [run["device"], run["commit"][:8], run["path"]]
        lines.append(", ".join(filter(None, words)))
    return "\n".join(lines)
