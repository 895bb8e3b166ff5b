"""All tables and figures of a paper as one HTML page that needs no other file."""

import base64
from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files
from pathlib import Path

from curvlab.errors import UsageError
from curvlab.program import command
from curvlab.tables.figures import load_figures
from curvlab.tables.layout import Entry, Line, layout, legend
from curvlab.tables.report import Report, build_report
from curvlab.tables.spec import TableSpec, load_table, table_names


def page(configs: Path, paper: str, results: Path) -> str:
    """The page of a paper: each table with its command, then the pictures beside the results.

    Columns sort by a click on their name, by our numbers and, where there is none, the paper's.

    Args:
        configs: The folder of configurations.
        paper: For instance `fpst`.
        results: The folder of all tables' runs; pictures are `PAPER_*.png` in the folder above it.

    Raises:
        UsageError: There is no table of that paper.
    """
    names = [name for name in table_names(configs) if name.startswith(f"{paper}/")]
    if not names:
        papers = sorted({name.partition("/")[0] for name in table_names(configs)})
        raise UsageError(f"no tables of {paper}: there are those of {', '.join(papers)}")
    tables = {name: load_table(configs, name) for name in names}
    sections = [
        _section(spec, build_report(spec, results)) for specs in tables.values() for spec in specs
    ]
    captions = {
        name: f"{figure.item}: {figure.shows}"
        for figure in load_figures()
        for name in figure.pictures
    }
    paths = sorted(results.resolve().parent.glob(f"{paper}_*.png"))
    pictures = (
        _picture(path, captions.get(path.name) or _caption(path.stem, tables)) for path in paths
    )
    body = "\n".join([*sections, *pictures])
    template = (files("curvlab.tables") / "page.html").read_text(encoding="utf-8")
    return template.replace("{{title}}", escape(paper)).replace("{{body}}", body)


def _section(spec: TableSpec, report: Report) -> str:
    header = "".join(
        f'<th scope="col"><button type="button">{escape(report.labels["column", column])}'
        "</button></th>"
        for column in report.columns
    )
    rows = "\n".join(_rows(lines) for lines in layout(report, report.columns) if lines)
    notes = "".join(f"<li>{escape(note)}</li>" for note in report.footnotes)
    words = escape(" ".join([*report.caption, legend(report, "underlined", "grey")]))
    table = f"""<div class="wide"><table>
<thead><tr><th></th><th></th>{header}</tr></thead>
{rows}
</table></div>
<p class="words">{words}</p>
{f"<ol>{notes}</ol>" if notes else ""}"""
    if not report.cells["seeds"].any():
        table = f"<details><summary>no finished run yet</summary>{table}</details>"
    return f"""<section>
<h2>{escape(report.title)}</h2>
<p><code>{command("train")} -m table={escape(spec.name)}</code></p>
{table}
</section>"""


def _rows(lines: Iterable[Line]) -> str:
    """The lines of one row of the table, which stay together when a column is sorted."""
    body = "".join(
        f'<tr class="{line.kind}"><th scope="row">{escape(line.label)}</th>'
        f"<td>{escape(line.name)}</td>"
        + "".join(_cell(entry, line.kind) for entry in line.entries)
        + "</tr>"
        for line in lines
    )
    return f"<tbody>{body}</tbody>"


def _cell(entry: Entry, kind: str) -> str:
    number = " ± ".join(filter(None, [entry.mean, entry.pm]))
    tag = ("", "b", "u")[entry.rank]
    marked = f"<{tag}>{escape(number)}</{tag}>" if tag else escape(number)
    words = " ".join(filter(None, [marked, escape(entry.remark)]))
    grey = ' class="grey"' if entry.grey else ""
    sorted_by = kind in ("paper", "ours") and entry.mean
    value = f' data-value="{escape(entry.mean)}"' if sorted_by else ""
    return f"<td{grey}{value}>{words}</td>"


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
    image = f'<img src="data:image/png;base64,{data}" alt="{name}">'
    return f"<figure>{image}<figcaption>{name}</figcaption></figure>"
