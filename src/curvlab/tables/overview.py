"""All tables at a glance: finished cells, comparisons, cost, and what is missing."""

from pathlib import Path

import pandas as pd

from curvlab.tables.render import markdown_table, terminal_table, terminal_text
from curvlab.tables.report import Report, build_report, deviations
from curvlab.tables.spec import TableSpec

LEGEND = (
    "Cells and runs: finished, of those planned. *Within*: 0 lies in the difference's 95% interval "
    "(Welch's t). *Below* / *above*: our mean is lower / higher. Not judged: cells of another "
    "protocol than the table's, of one draw of a split that is not known to be the paper's, of "
    "fewer than three runs, and where the paper's standard deviation or number of runs is unknown. "
    "Hours: what the runs took."
)
OF_PLANNED = ("cells", "runs")
VERDICTS = ("within", "below", "above")


def overview(specs: list[TableSpec], results: Path) -> tuple[pd.DataFrame, list[str]]:
    """A row per table, and remarks; panels of the same runs count once."""
    panels: dict[tuple[object, ...], TableSpec] = {}
    for spec in specs:
        of_runs = (spec.name, spec.report.rows, spec.report.columns, *spec.report.where.items())
        panels.setdefault(of_runs, spec)
    rows, remarks, published = [], [], set()
    for spec in panels.values():
        report = build_report(spec, results, ranks=False)
        numbers = spec.report.paper, str(spec.report.select)
        cells = report.cells
        cells = cells[
            cells["row"].isin(spec.planned_rows) & cells["column"].isin(spec.planned_columns)
        ]
        planned = len(spec.planned_rows) * len(spec.planned_columns)
        hours = report.collected["seconds"].sum() / 3600
        rows.append(
            {
                "table": spec.name,
                "cells": int((cells["status"] == "finished").sum()),
                "cells planned": planned,
                "runs": int(cells["planned_seeds"].sum()),
                "runs planned": planned * len(spec.planned_seeds),
                **verdicts(cells),
                "again": numbers in published,
                "hours": hours,
                "title": spec.report.title,
            }
        )
        published.add(numbers)
        remarks += [
            f"{spec.name}: {s[0].lower()}{s[1:]}" for s in deviations(report.collected).values()
        ]
        if cited := _rows_of("cited", report):
            remarks.append(f"{spec.name}: {cited} have published numbers only.")
        if absent := _rows_of("missing", report):
            remarks.append(f"{spec.name} has no {absent}.")
    return pd.DataFrame(rows), list(dict.fromkeys(remarks))


def verdicts(cells: pd.DataFrame) -> dict[str, int]:
    """How many cells are within the interval of the difference, below and above it."""
    outside = cells.loc[cells["within"].eq(False), "difference"]
    counts = int(cells["within"].eq(True).sum()), int((outside < 0).sum()), int((outside > 0).sum())
    return dict(zip(VERDICTS, counts, strict=True))


def _rows_of(status: str, report: Report) -> str:
    others = set(report.cells.loc[report.cells["status"] != status, "row"])
    return ", ".join(report.labels["row", row] for row in report.rows if row not in others)


def totals(tables: pd.DataFrame, pages: Path) -> str:
    """One line per paper, with a link to its page, and one for all: sums of `overview`."""
    papers = tables["table"].str.partition("/")[0]
    counts = _counts(tables)
    sums = counts.groupby(papers, sort=False).sum()
    sums.index = pd.Index(
        [f"[{p}]({p}.md)" if (pages / f"{p}.md").is_file() else p for p in sums.index]
    )
    sums.loc["all"] = counts.sum()
    whole = sums.drop(columns="hours").astype(int).assign(hours=sums["hours"])
    return markdown_table(
        _texts(whole.reset_index(names="paper"), ",d").assign(
            hours=whole["hours"].map("{:,.1f}".format).to_numpy()
        )
    )


def _counts(tables: pd.DataFrame) -> pd.DataFrame:
    """The columns that are summed; published numbers are judged by the first table with them."""
    counts = tables.drop(columns=["table", "title", "again"])
    counts.loc[tables["again"], list(VERDICTS)] = 0
    return counts


def totals_in_words(tables: pd.DataFrame) -> str:
    """The sums of `overview` as one sentence."""
    sums = _counts(tables).sum()
    return (
        f"{sums['cells']:.0f} of {sums['cells planned']:,.0f} cells are complete; of those that "
        f"can be judged, {sums['within']:.0f} agree with the paper, {sums['below']:.0f} are below "
        f"and {sums['above']:.0f} above it"
    )


def _texts(tables: pd.DataFrame, form: str = "d") -> pd.DataFrame:
    others = [f"{name} planned" for name in OF_PLANNED]
    texts = tables.drop(columns=[*others, "again"], errors="ignore")
    for name in OF_PLANNED:
        pairs = zip(tables[name], tables[f"{name} planned"], strict=True)
        texts[name] = [f"{done:{form}} of {planned:{form}}" for done, planned in pairs]
    hours = texts["hours"].map(lambda hours: f"{hours:.1f}" if hours else "")
    return texts.assign(hours=hours).astype(str)


def status(tables: pd.DataFrame, remarks: list[str], results: Path, form: str) -> str:
    """One line per table, remarks, and the state of figures that no sweep fills."""
    texts, figures = _texts(tables), paper_figures()
    above = results.resolve().parent
    states = []
    for names, state in zip(figures.pop("pictures").str.split(), figures["state"], strict=True):
        drawn = all((above / name).is_file() for name in names)
        words = "" if not names else "drawn" if drawn else "not drawn"
        if names and drawn and form == "markdown":
            words = ", ".join(f"[drawn]({name})" for name in names)
        states.append("; ".join(filter(None, [words, state])))
    figures["state"] = states
    if form == "markdown":
        figures["command"] = figures["command"].map(lambda text: f"`{text}`" if text else "")
        listed = "".join(f"- {sentence}\n" for sentence in remarks)
        return f"{markdown_table(texts)}\n{LEGEND}\n\n{listed}\n{markdown_table(figures)}"
    commands = "The commands of these: curvlab tables status --format markdown\n"
    notes = terminal_text(LEGEND.replace("*", ""), *remarks)
    pictures = terminal_table(figures.drop(columns="command"))
    return "\n".join([terminal_table(texts), notes, pictures, commands])


def paper_figures() -> pd.DataFrame:
    """Figures and tables of the papers that no sweep fills."""
    file = Path(__file__).with_name("figures.csv")
    figures = pd.read_csv(file, dtype=str, keep_default_na=False)
    return figures[["paper", "item", "shows", "state", "command", "pictures"]]
