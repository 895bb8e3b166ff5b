"""Rendering of reports for the terminal, in Markdown, LaTeX or CSV.

Each row of a table takes up to seven lines, so that compared numbers are below each other.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from math import isnan, nan
from typing import Any, Literal

import pandas as pd
from rich import box
from rich.markup import escape as rich_escape
from rich.table import Table
from rich.text import Text

from curvlab.errors import UsageError
from curvlab.program import plain_console
from curvlab.statistics import count_of_runs
from curvlab.tables.cells import LETTERS, NEXT_DRAW, WELCH
from curvlab.tables.report import Report
from curvlab.tables.runs import LOST

Format = Literal["terminal", "markdown", "latex", "csv"]

UNTRIED = ("not run", "cited", "missing")  # statuses of a cell without a run
KIND_STYLES = {"difference": "dim", "rank": "dim", "lost": "yellow"}
_MARKED = re.compile(r"(?ms)^<!-- tables\.py (?P<words>[^\n]+?) -->\n.*?^<!-- end -->$")
_CELL = re.compile(
    r"<!-- (?P<words>(cell|paired|claim|verdict|leaders) [^\n>]+?) -->[^\n]*?<!-- /cell -->"
)
_MARK = re.compile(r"(?m)^<!-- (tables\.py .*|end) -->$")


@dataclass(frozen=True)
class Entry:
    """A number with a remark, its `place` in the column (1, 2 or 0), and `grey` if it deviates."""

    number: str = ""
    remark: str = ""
    place: int = 0
    grey: bool = False

    def format(self, marks: Sequence[str], grey: str, escape: Callable[[str], str] = str) -> str:
        """Apply a format's templates for the places 0, 1 and 2, and for grey."""
        number = marks[self.place].format(escape(self.number)) if self.number else ""
        text = " ".join(filter(None, [number, escape(self.remark)]))
        return grey.format(text) if self.grey else text


EMPTY = Entry()


def text_frame(
    report: Report, format_entry: Callable[[Entry], str], bold: str = "{}"
) -> pd.DataFrame:
    """The lines of a table as text, by their kind, without empty ones.

    The first column is the row's label, on its first line only; the second names the line.
    """
    cells = report.cells.to_dict("records")
    columns = len(report.columns)
    lines: list[tuple[str, ...]] = []
    for i, row in enumerate(report.rows):
        label = bold.format(report.labels["row", row])
        of_row = [_entries(cell, report) for cell in cells[i * columns : (i + 1) * columns]]
        for kind in of_row[0]:
            entries = [entry[kind] for entry in of_row]
            if any(entry != EMPTY for entry in entries):
                name = report.second if kind == "second" else kind
                lines.append((kind, label, name, *map(format_entry, entries)))
                label = ""
    if any(cell["ranked"] for cell in cells[:columns]):
        texts = []
        for cell in cells[:columns]:
            order = f"{decimal(cell['spearman'], 2)} ({cell['ranked']})" if cell["ranked"] else ""
            texts.append(format_entry(Entry(remark=order)))
        lines.append(("rank", bold.format("Spearman"), "rank", *texts))
    if report.with_references:
        for i, (method, points) in enumerate(report.references.iterrows()):
            texts = []
            for column in report.columns:
                number = decimal(points.get(column, nan), report.decimals)
                texts.append(format_entry(Entry(number)))
            label = bold.format("Reference points") if i == 0 else ""
            lines.append(("reference", label, str(method), *texts))
    header = ["kind", " ", "  ", *(report.labels["column", c] for c in report.columns)]
    return pd.DataFrame(lines, columns=header, dtype=object).set_index("kind")


def _entries(cell: Mapping[Any, Any], report: Report) -> dict[str, Entry]:
    digits = report.decimals
    mark = cell["mark"]

    def summary(kind: str, runs: int, seeds: int, place: int = 0, mark: str = mark) -> Entry:
        """Mean, spread and number of seeds; two seeds have no spread but both values."""
        remark = f"({count_of_runs(runs, seeds)})"
        if seeds == 2:
            low = decimal(cell[f"{kind}_low"], digits)
            high = decimal(cell[f"{kind}_high"], digits)
            remark = f"({low}, {high})"
        number = plus_minus(cell[f"{kind}_mean"], cell[f"{kind}_pm"], digits)
        return Entry(number, f"{remark} {mark}".rstrip(), place, bool(mark))

    untried = cell["status"] if cell["status"] in UNTRIED else "\N{EN DASH}"
    runs = cell["runs"] + sum(cell[status] for status in LOST)
    lost = (f"{cell[key]} of {runs} {word}" for key, word in LOST.items() if cell[key])
    paper = plus_minus(cell["paper_mean"], cell["paper_pm"], digits)
    kinds = ("paper", "ours", "shipped", "second", "difference", "rank", "lost")
    sign = cell["rule"] if cell["within"] or cell["rule"] == NEXT_DRAW else ""
    judged = f"{sign} {cell['verdict']}".strip() if cell["rule"] else ""
    entries = dict.fromkeys(kinds, EMPTY) | {
        "paper": Entry(paper, place=cell["paper_place"]),
        "ours": Entry(remark=f"{untried} {mark}".rstrip(), grey=bool(mark)),
        "difference": Entry(decimal(cell["difference"], digits, "+"), judged),
        "lost": Entry(remark=", ".join(lost)),
    }
    if cell["seeds"]:
        entries["ours"] = summary("our", cell["runs"], cell["seeds"], cell["our_place"])
    if cell["source"] == "shipped":
        entries["shipped"] = entries["ours"]
        entries["ours"] = EMPTY
    if cell["other_seeds"]:
        source = "ours" if cell["source"] == "shipped" else "shipped"
        counts = cell["other_runs"], cell["other_seeds"]
        entries[source] = summary("other", *counts, mark=cell["other_mark"])
    if cell["second_seeds"]:
        entries["second"] = summary("second", cell["second_runs"], cell["second_seeds"])
    if not isnan(cell["our_rank"]):
        words = f"{cell['our_rank']:.0f}, paper {cell['paper_rank']:.0f}"
        entries["rank"] = Entry(remark=words)
    return entries


def decimal(value: float, digits: int, sign: str = "") -> str:
    """Format a number; empty for NaN."""
    text = "" if isnan(value) else f"{value:{sign}.{digits}f}"
    return text.replace("-", "\N{MINUS SIGN}")


def plus_minus(mean: float, pm: float, digits: int, sign: str = "") -> str:
    """A number with its spread, if that is known."""
    return " ± ".join(filter(None, [decimal(mean, digits, sign), decimal(pm, digits)]))


def legend(report: Report, second: str, grey: str) -> str:
    """The meaning of the marks that tables share, in one format."""
    words = f"Bold: best of its column, paper and ours apart; {second}: second."
    if report.better == "neither":
        words = "No ranks: the order of these numbers says nothing."
    rules = set(report.cells["rule"]) - {""}
    if rules:
        margin = report.cells["margin"].iloc[0]
        words += f" {number_legend(f'±{margin:.3g}')}"
    if WELCH in rules:
        words += f" {WELCH}: 0 lies in the interval (Welch's t)."
    if NEXT_DRAW in rules:
        words += f" {NEXT_DRAW}: by the interval of one more draw, t s √(1 + 1/n), not of a mean."
    if report.cells["ranked"].any():
        words += (
            " Rank: among the methods of a column with a difference; Spearman: the correlation "
            "of these ranks, number of methods in brackets."
        )
    if (report.cells["mark"] != "").any():
        words += f" {grey.capitalize()}, with a letter: another protocol than the table's."
    return words


def number_legend(margin: str) -> str:
    """The meaning of the verdicts on published numbers."""
    return (
        f"Confirmed: the 95% interval of the difference lies within {margin}; contradicted: "
        "otherwise, if it does not hold 0; undecided: neither. No verdict where the paper's "
        "standard deviation or number of runs is unknown."
    )


def render(reports: Sequence[Report], form: Format) -> str:
    """A table, or the panels of a figure one below the other; without colours in a terminal."""
    if form == "csv":  # unrounded; the columns are those of `Report.cells`
        cells = pd.concat([report.cells for report in reports])
        return cells.to_csv(index=False, lineterminator="\n")
    writers: dict[str, Callable[[Report], str]]
    writers = {"terminal": terminal, "markdown": markdown, "latex": latex}
    return "\n".join(map(writers[form], reports))


def terminal(report: Report, width: int = 100, styled: bool = False) -> str:
    """The report for a terminal; columns that exceed the width go into blocks below."""
    out = StringIO()
    console = plain_console(file=out, width=width, force_terminal=styled, no_color=not styled)
    endless = plain_console(file=out, width=100_000)
    console.print(Text(report.title, style="bold"))
    marks = ("{}", "[bold]{}[/]", "[underline]{}[/]")
    grey = "[dim]{}[/]"
    frame = text_frame(report, lambda entry: entry.format(marks, grey, rich_escape), "[bold]{}[/]")
    first = 2
    last = len(frame.columns)
    while first < last:
        for end in range(last, first, -1):
            table = _block(frame.iloc[:, [0, 1, *range(first, end)]])
            if endless.measure(table).maximum <= width or len(table.columns) < 4:
                break
        console.print(table, "")
        first += len(table.columns) - 2
    notes = [*report.caption, legend(report, "underlined", "dim")]
    notes += [f"[{i}] {note}" for i, note in enumerate(report.footnotes, start=1)]
    for note in notes:
        console.print(Text(note, style="dim"))
    return _strip(out.getvalue())


def _block(frame: pd.DataFrame) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    for name in frame:
        table.add_column(str(name), no_wrap=True)
    for kind, label, *texts in frame.itertuples():
        if label:
            table.add_section()
        if label or any(texts[1:]):
            marked = map(Text.from_markup, (label, *texts))
            table.add_row(*marked, style=KIND_STYLES.get(kind, ""))
    return table


def terminal_table(frame: pd.DataFrame, width: int = 120) -> str:
    """A DataFrame of text for a terminal, with right-aligned numbers; names are not broken."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in frame:
        is_number = frame[name].str.fullmatch(r"[\d.,]*( of \d+)?").all()
        is_first = name == frame.columns[0]
        table.add_column(
            str(name),
            justify="right" if is_number else "left",
            overflow="fold",
            no_wrap=is_first,
        )
    for row in frame.itertuples(index=False):
        table.add_row(*row)
    return terminal_text(table, width=width)


def terminal_text(*parts: Any, width: int = 120) -> str:
    """Render with rich, without colours."""
    out = StringIO()
    plain_console(file=out, width=width, no_color=True).print(*parts, sep="\n")
    return _strip(out.getvalue())


def _strip(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def markdown(report: Report, with_legend: bool = True) -> str:
    """The report as a GitHub table, padded so that its source is readable too."""
    marks = ("{}", "**{}**", "*{}*")
    grey = "<sub>{}</sub>"
    frame = text_frame(report, lambda entry: entry.format(marks, grey), "**{}**")
    legends = [legend(report, "italic", "small")] if with_legend else []
    words = " ".join([*report.caption, *legends])
    notes = (f"{i}. {note}\n" for i, note in enumerate(report.footnotes, start=1))
    table = markdown_table(frame, padded=True)
    text = "".join([f"### {report.title}\n\n{table}\n{words}\n\n", *notes])
    return f"{text.rstrip()}\n"


def markdown_table(frame: pd.DataFrame, padded: bool = False) -> str:
    """A DataFrame of text as a table in Markdown."""
    lines = [[str(text).strip() for text in frame.columns], *frame.to_numpy().tolist()]
    lines = [[text.replace("|", "\\|") for text in line] for line in lines]
    widths = [0] * len(lines[0])
    if padded:
        widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * (width or 3) for width in widths])
    rows = []
    for line in lines:
        texts = [text.ljust(width) for text, width in zip(line, widths, strict=True)]
        rows.append(f"| {' | '.join(texts)} |\n")
    return "".join(rows)


LATEX: dict[str, Any] = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "±": r"$\pm$",
    "\N{MINUS SIGN}": "$-$", "≈": r"$\approx$",
    "‡": r"$\ddagger$", "√": r"$\surd$", "\N{EN DASH}": "--",
    "κ": r"$\kappa$", **{sign: rf"\{sign}" for sign in "&%$#_{}"},
    **{a: rf"\textsuperscript{{{unicodedata.normalize('NFKC', a)}}}" for a in LETTERS},
}  # fmt: skip


def latex_escape(text: str) -> str:
    """Replace characters that LaTeX reads as commands or cannot set."""
    return text.translate(str.maketrans(LATEX))


def latex(report: Report) -> str:
    r"""The report as a `table` environment; the document needs `\usepackage{booktabs,xcolor}`."""
    marks = ("{}", r"\textbf{{{}}}", r"\underline{{{}}}")
    grey = r"\textcolor{{gray}}{{{}}}"
    frame = text_frame(report, lambda entry: entry.format(marks, grey, latex_escape))
    frame[[" ", "  "]] = frame[[" ", "  "]].map(latex_escape)
    caption = [f"{report.title}.", *report.caption, legend(report, "underlined", "grey")]
    text = (
        frame.reset_index(drop=True)
        .rename(columns=latex_escape)
        .style.hide(axis="index")
        .to_latex(
            hrules=True,
            caption=latex_escape(" ".join(caption)),
            position_float="centering",
            column_format="ll" + "r" * len(report.columns),
        )
    )
    notes = (rf"\par\footnotesize {latex_escape(note)}" + "\n" for note in report.footnotes)
    end = "\\end{table}\n"
    body = text.removesuffix(end)
    return "".join(["% needs \\usepackage{booktabs,xcolor}\n", body, *notes, end])


def sentence(report: Report, row: str, column: str) -> str:
    """One cell as a text: our number, the second number and the published one, if they exist."""
    cell = _cell(report, row, column)
    entries = _entries({**cell, "our_place": 0, "paper_place": 0}, report)
    names = {"ours": "ours", "second": report.second, "paper": "paper"}
    texts = []
    for kind, name in names.items():
        if entries[kind] != EMPTY:
            texts.append(f"{name} {entries[kind].format(('{}',), '<sub>{}</sub>')}")
    numbers = ", ".join(texts)
    labels = report.labels["row", cell["row"]], report.labels["column", cell["column"]]
    return f"{', '.join(labels)}: {numbers}.\n"


def number(report: Report, row: str, column: str, source: str = "ours") -> str:
    """The mean of one cell without its interval: ours, or `paper` for the published one."""
    key = "our_mean" if source == "ours" else "paper_mean"
    mean = _cell(report, row, column)[key]
    if isnan(mean):
        raise UsageError(f"{report.title} has no value '{source}' for {row}, {column}")
    return decimal(mean, report.decimals)


def numbers_of_seeds(report: Report, row: str, column: str) -> str:
    """The number of each finished run of one cell, in the order of the seeds."""
    cell = _cell(report, row, column)
    of_cell = (report.runs["row"] == cell["row"]) & (report.runs["column"] == cell["column"])
    finished = report.runs[of_cell & (report.runs["status"] == "finished")]
    if finished.empty:
        raise UsageError(f"{report.title} has no finished run of {row}, {column}")
    values = finished.sort_values("seed")["value"]
    return listed([decimal(value, report.decimals) for value in values])


def listed(words: Sequence[str]) -> str:
    """Words of a sentence: `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def verdict(report: Report, row: str, column: str) -> str:
    """The verdict on a published number, or the reason why there is none."""
    cell = _cell(report, row, column)
    if cell["verdict"]:
        return str(cell["verdict"])
    return f"not judged ({cell['seeds']} seed{'s' * (cell['seeds'] != 1)})"


def _cell(report: Report, row: str, column: str) -> dict[Any, Any]:
    for name, coordinates in ((row, report.rows), (column, report.columns)):
        if name not in map(str, coordinates):
            names = ", ".join(map(str, coordinates))
            raise UsageError(f"'{name}' is none of {names}: say a row and a column")
    cells = report.cells.astype({"row": str, "column": str})
    (place,) = cells.index[(cells["row"] == row) & (cells["column"] == column)]
    return report.cells.loc[place].to_dict()


def refresh(text: str, write: Callable[[str], str]) -> str:
    """Regenerate the text between each `<!-- tables.py WORDS -->` and `<!-- end -->`.

    Within a line, the text between `<!-- cell ... -->` or `<!-- paired ... -->` and
    `<!-- /cell -->` is regenerated.
    """
    if len(_MARK.findall(text)) != 2 * len(_MARKED.findall(text)):
        raise UsageError(
            "generated text must be between a line <!-- tables.py TABLE --> and a line <!-- end -->"
        )

    def write_block(match: re.Match[str]) -> str:
        words = match["words"]
        return f"<!-- tables.py {words} -->\n\n{write(words).strip()}\n\n<!-- end -->"

    def write_cell(match: re.Match[str]) -> str:
        words = match["words"]
        return f"<!-- {words} -->{write(words).strip()}<!-- /cell -->"

    return _CELL.sub(write_cell, _MARKED.sub(write_block, text))
