"""Overview of all tables: finished cells, comparisons, cost, and gaps."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from curvlab.statistics import CONFIRMED, HITS_MARGIN, MRR_MARGIN, POINT, UNDECIDED
from curvlab.tables.cells import NEXT_DRAW, WELCH, deviations
from curvlab.tables.render import markdown_table, number_legend, terminal_table, terminal_text
from curvlab.tables.report import Report
from curvlab.tables.spec import TableSpec

MARGINS = (
    f"{POINT:g} point of accuracy, F1, AUC and mAP, {MRR_MARGIN:g} of MRR and {HITS_MARGIN:g} of "
    "Hits@k"
)
LEGEND = (
    "Cells and runs: finished, of those planned, also with another protocol than the table's. "
    "Verdicts on published numbers, each counted once for each table that prints it, "
    f"by Welch's t: {number_legend(MARGINS)} *Below* / *above*: contradicted, our mean is lower / "
    f"higher. {NEXT_DRAW}: numbers whose paper has one unknown draw of a split. They count in no "
    "other column: how many of them lie in the 95% interval of one more draw, t s √(1 + 1/n). Not "
    "judged either: cells of another protocol than the table's, of one draw of a split that is not "
    "known to be the paper's, and of fewer than three runs. Hours: what the runs took; a run of "
    "two tables counts in the first."
)
OF_PLANNED = {"cells": "planned", "runs": "planned", NEXT_DRAW: "judged"}
VERDICTS = ("confirmed", "undecided", "below", "above", NEXT_DRAW, f"{NEXT_DRAW} judged")


def overview(
    specs: Iterable[TableSpec], build: Callable[[TableSpec], Report]
) -> tuple[pd.DataFrame, list[str]]:
    """One row for each table, and remarks; panels of the same runs count once.

    A panel of some runs does not count after a panel of all.
    """
    panels: dict[tuple[object, ...], TableSpec] = {}
    for spec in specs:
        of_all = (spec.name, spec.report.rows, spec.report.columns)
        if of_all not in panels:
            panels.setdefault((*of_all, *spec.report.where.items()), spec)
    rows = []
    remarks = []
    published = set()
    timed: set[tuple[Any, ...]] = set()
    for spec in panels.values():
        report = build(spec)
        numbers = spec.report.paper, str(spec.report.select)
        cells = report.cells
        cells = cells[
            cells["row"].isin(spec.planned_rows) & cells["column"].isin(spec.planned_columns)
        ]
        planned = len(spec.planned_rows) * len(spec.planned_columns)
        is_complete = cells["status"] == "finished"
        runs = report.collected[["seed", "seconds", "commit"]].itertuples(index=False, name=None)
        own = set(runs) - timed  # not those of earlier tables
        timed |= own
        hours = sum(seconds for _, seconds, _ in own if seconds > 0) / 3600
        rows.append(
            {
                "table": spec.name,
                "part": spec.panel + 1,
                "cells": int(is_complete.sum()),
                "off protocol": int((is_complete & (cells["deviation"] != "")).sum()),
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
            f"{spec.name}: {sentence[0].lower()}{sentence[1:]}"
            for sentence in deviations(report.collected).values()
        ]
        cited = _rows_of("cited", report)
        if cited:
            remarks.append(f"{spec.name}: {cited} have published numbers only.")
        absent = _rows_of("missing", report)
        if absent:
            remarks.append(f"{spec.name} has no {absent}.")
    return pd.DataFrame(rows), list(dict.fromkeys(remarks))


def verdicts(cells: pd.DataFrame) -> dict[str, int]:
    """Number of published numbers by verdict, separately for the two rules."""
    counted = cells[cells["counted"].astype(bool)]
    welch = counted[counted["rule"] == WELCH]
    draws = counted[counted["rule"] == NEXT_DRAW]
    outside = welch.loc[~welch["verdict"].isin([CONFIRMED, UNDECIDED]), "difference"]
    counts = (
        (welch["verdict"] == CONFIRMED).sum(),
        (welch["verdict"] == UNDECIDED).sum(),
        (outside < 0).sum(),
        (outside > 0).sum(),
        draws["within"].eq(True).sum(),
        len(draws),
    )
    return dict(zip(VERDICTS, map(int, counts), strict=True))


def _rows_of(status: str, report: Report) -> str:
    excluded = set(report.cells.loc[report.cells["status"] != status, "row"])
    return ", ".join(report.labels["row", row] for row in report.rows if row not in excluded)


def totals(tables: pd.DataFrame, pages: Path) -> str:
    """Sums of `overview`: one line for each paper, with a link to its page, and one for all."""
    papers = tables["table"].str.partition("/")[0]
    counts = _counts(tables)
    sums = counts.groupby(papers, sort=False).sum()
    names = []
    for paper in sums.index:
        has_page = (pages / f"{paper}.md").is_file()
        names.append(f"[{paper}]({paper}.md)" if has_page else paper)
    sums.index = pd.Index(names)
    sums.loc["all"] = counts.sum()
    table = sums.drop(columns="hours").astype(int).assign(hours=sums["hours"])
    texts = _texts(table.reset_index(names="paper"), ",d")
    hours = table["hours"].map("{:,.1f}".format).to_numpy()
    return markdown_table(texts.assign(hours=hours))


def _counts(tables: pd.DataFrame) -> pd.DataFrame:
    """The columns to sum; a published number counts in the first table that has it."""
    counts = tables.drop(columns=["table", "part", "title", "again"])
    counts.loc[tables["again"], list(VERDICTS)] = 0
    return counts


def totals_in_words(tables: pd.DataFrame) -> str:
    """The sums of `overview` in a sentence; numbers of unknown draws are counted separately."""
    sums = _counts(tables).sum()
    below = int(sums["below"])
    above = int(sums["above"])
    return (
        f"{sums['cells']:.0f} of {sums['cells planned']:,.0f} cells are complete, "
        f"{sums['off protocol']:.0f} of them with another protocol than the table's; of the "
        f"published numbers that they can judge, {sums[CONFIRMED]:.0f} are confirmed, "
        f"{below + above} contradicted ({below} of ours are below, {above} above) and "
        f"{sums[UNDECIDED]:.0f} undecided. Of {sums[f'{NEXT_DRAW} judged']:.0f} more, whose split "
        f"is not published, {sums[NEXT_DRAW]:.0f} lie in the interval of one more draw"
    )


def _texts(tables: pd.DataFrame, form: str = "d") -> pd.DataFrame:
    rest = [f"{name} {total}" for name, total in OF_PLANNED.items()]
    texts = tables.drop(columns=[*rest, "part", "off protocol", "again"], errors="ignore")
    for name, total in zip(OF_PLANNED, rest, strict=True):
        pairs = zip(tables[name], tables[total], strict=True)
        texts[name] = [f"{part:{form}} of {planned:{form}}" for part, planned in pairs]
    hours = texts["hours"].map(lambda hours: f"{hours:.1f}" if hours else "")
    return texts.assign(hours=hours).astype(str)


def status(tables: pd.DataFrame, remarks: list[str], results: Path, form: str) -> str:
    """One line for each table, remarks, and the state of figures that no sweep fills."""
    texts = _texts(tables)
    figures = paper_figures()
    above = results.resolve().parent
    states = []
    for names, state in zip(figures.pop("pictures").str.split(), figures["state"], strict=True):
        words = ""
        if names:
            is_drawn = all((above / name).is_file() for name in names)
            words = "drawn" if is_drawn else "not drawn"
            if is_drawn and form == "markdown":
                words = ", ".join(f"[drawn]({name})" for name in names)
        states.append("; ".join(filter(None, [words, state])))
    figures["state"] = states
    if form == "markdown":
        figures["command"] = figures["command"].map(lambda text: f"`{text}`" if text else "")
        listed = "".join(f"- {sentence}\n" for sentence in remarks)
        return f"{markdown_table(texts)}\n{LEGEND}\n\n{listed}\n{markdown_table(figures)}"
    has_parts = tables["table"].duplicated(keep=False)
    numbered = tables["table"] + "#" + tables["part"].astype(str)
    texts["table"] = texts["table"].where(~has_parts, numbered)
    table = terminal_table(texts.drop(columns="title"))
    commands = "Titles, and commands of the figures: curvlab tables status --format markdown\n"
    notes = terminal_text(LEGEND.replace("*", ""), *remarks)
    pictures = terminal_table(figures.drop(columns="command"))
    return "\n".join([table, notes, pictures, commands])


def paper_figures() -> pd.DataFrame:
    """Figures and tables of the papers that no sweep fills."""
    file = Path(__file__).with_name("figures.csv")
    figures = pd.read_csv(file, dtype=str, keep_default_na=False)
    return figures[["paper", "item", "shows", "state", "command", "pictures"]]
