"""All tables and figures of a paper as one HTML page that needs no other file."""

import base64
from collections import Counter
from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files
from pathlib import Path

import numpy as np

from curvlab.errors import UsageError
from curvlab.program import command
from curvlab.tables.collect import collect
from curvlab.tables.figures import load_figures
from curvlab.tables.heatmap import count, heatmap
from curvlab.tables.layout import Entry, Line, layout, legend
from curvlab.tables.report import Report, report_of
from curvlab.tables.spec import TableSpec, load_table, table_names

KINDS = {".png": "png", ".svg": "svg+xml"}
"""Of pictures."""


def page(configs: Path, paper: str, results: Path) -> str:
    """The page of a paper: totals, each table with its command, the pictures beside the results.

    A table is a heat map of the differences; a click on a cell lists its runs, a click on the name
    of a column sorts by it. The same numbers in words are folded below it.

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
    tables = {name: load_table(configs, name) for name in names}
    sections, counts, seconds = [], Counter[str](), dict[str, float]()
    for spec in (spec for specs in tables.values() for spec in specs):
        runs = collect(results / spec.name, spec.report)
        seconds |= {
            f"{spec.name}/{path}": s for path, s in zip(runs["path"], runs["seconds"], strict=True)
        }
        report = report_of(spec, runs, results)
        sections.append(_section(spec, report, heatmap(spec, report, runs, results / spec.name)))
        counts.update(count(report))
    captions = {
        name: f"{figure.item}: {figure.shows}"
        for figure in load_figures()
        for name in figure.pictures
    }
    above = results.resolve().parent
    paths = sorted(path for kind in KINDS for path in above.glob(f"{paper}_*{kind}"))
    pictures = (
        _picture(path, captions.get(path.name) or _caption(path.stem, tables)) for path in paths
    )
    hours = {"hours": f"{np.nansum(list(seconds.values())) / 3600:,.1f}"}  # panels share runs
    total = "".join(f"<div><dt>{k}</dt><dd>{n}</dd></div>" for k, n in {**counts, **hours}.items())
    body = "\n".join([f'<dl class="totals">{total}</dl>', *sections, *pictures])
    title = tables[names[0]][0].report.title.partition(",")[0]
    template = (files("curvlab.tables") / "page.html").read_text(encoding="utf-8")
    return template.replace("{{title}}", escape(title)).replace("{{body}}", body)


def _section(spec: TableSpec, report: Report, heat: str) -> str:
    header = "".join(
        f'<th scope="col">{escape(report.labels["column", column])}</th>'
        for column in report.columns
    )
    rows = "\n".join(_rows(lines) for lines in layout(report, report.columns) if lines)
    notes = "".join(f"<li>{escape(note)}</li>" for note in report.footnotes)
    words = escape(" ".join([*report.caption, legend(report, "underlined", "grey")]))
    return f"""<section>
<h2>{escape(report.title)}</h2>
<p><code>{command("train")} -m table={escape(spec.name)}</code></p>
{heat}
<details><summary>in words: intervals, differences, ranks, protocol</summary>
<div class="wide"><table class="words">
<thead><tr><th></th><th></th>{header}</tr></thead>
{rows}
</table></div>
<p class="words">{words}</p>
{f"<ol>{notes}</ol>" if notes else ""}
</details>
</section>"""


def _rows(lines: Iterable[Line]) -> str:
    """The lines of one row of the table."""
    body = "".join(
        f'<tr class="{line.kind}"><th scope="row">{escape(line.label)}</th>'
        f"<td>{escape(line.name)}</td>" + "".join(map(_cell, line.entries)) + "</tr>"
        for line in lines
    )
    return f"<tbody>{body}</tbody>"


def _cell(entry: Entry) -> str:
    number = " ± ".join(filter(None, [entry.mean, entry.pm]))
    tag = ("", "b", "u")[entry.rank]
    marked = f"<{tag}>{escape(number)}</{tag}>" if tag else escape(number)
    words = " ".join(filter(None, [marked, escape(entry.remark)]))
    grey = ' class="grey"' if entry.grey else ""
    return f"<td{grey}>{words}</td>"


def _caption(stem: str, tables: Mapping[str, list[TableSpec]]) -> str:
    """The title of the table whose picture it is, `PAPER_NAME`, or of one dataset of it after that.

    The words of the file's name where there is no such table.
    """
    for name in sorted(tables, key=len, reverse=True):
        flat = name.replace("/", "_")
        if stem == flat or stem.startswith(f"{flat}_"):
            titles = [spec.report.title.partition(": ") for spec in tables[name]]
            dataset = stem.removeprefix(flat).removeprefix("_")
            what = "; ".join(dict.fromkeys(title for _, _, title in titles))
            if dataset:
                what = tables[name][0].label("dataset.name", dataset)
            return f"{titles[0][0]}: {what}"
    return stem.replace("_", " ")


def _picture(path: Path, caption: str) -> str:
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    name = escape(caption)
    image = f'<img src="data:image/{KINDS[path.suffix]};base64,{data}" alt="{name}">'
    return f"<figure>{image}<figcaption>{name}</figcaption></figure>"
