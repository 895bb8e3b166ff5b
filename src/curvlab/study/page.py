"""Publish a study: `study.json` and `study.png` in its folder, and a table on the terminal."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from curvlab.analysis.graph_facts import GraphFacts
from curvlab.analysis.style import INK, LINES, MUTED, panels, save_figure, styled
from curvlab.files import atomic_write
from curvlab.program import plain_console
from curvlab.results.identity import canonical
from curvlab.results.references import format_references
from curvlab.results.result import SET_ASIDE, git_commit
from curvlab.run.reporting import relative_path
from curvlab.statistics import LEVEL
from curvlab.study.flat_counterpart import FLAT
from curvlab.study.grid import JSON
from curvlab.study.verdict import Report, overall
from curvlab.tables.render import terminal_table

PICTURE = "study.png"

SETTINGS = (
    "dataset",
    "task",
    "metric",
    "seeds",
    "steps",
    "overrides",
    "models",
    "spaces",
    "defaults",
)
"""Entries of a study's file that its command decides."""

COLUMNS = {
    "space": ("space", ""),
    "dim": ("dim", "d"),
    "mean": ("score", ".2f"),
    "difference": ("minus flat", "+.2f"),
    "interval": ("95 % interval", ""),
    "p_t": ("p (t)", ".2g"),
    "p_holm": ("p (Holm)", ".2g"),
    "p_ranks": ("p (ranks)", ".2g"),
    "kappas": ("curvatures", ""),
    "parameters": ("parameters", ",.0f"),
    "ms_per_step": ("ms per step", ".1f"),
    "seconds": ("seconds", ".1f"),
    "memory_mb": ("MB", ",.0f"),
}

console = plain_console(soft_wrap=True)


def publish(
    folder: Path, study: Mapping[str, Any], facts: GraphFacts, reports: Sequence[Report]
) -> None:
    """Write the JSON file and the picture of a study, and print its answer."""
    answer = overall(reports)
    budget = (
        f"Task {study['task']}, scores are {study['metric']} in points of 100. Each model has in "
        f"each space {study['seeds']} runs of at most {study['steps']} steps, with the same seeds, "
        "split and width."
    )
    content = {
        "answer": answer,
        "commit": git_commit(),
        **study,
        "facts": asdict(facts),
        "reports": list(map(_report_content, reports)),
    }
    _set_aside(folder, study)
    atomic_write(folder / JSON, json.dumps(content, indent=2) + "\n")
    save_figure(picture(reports, facts), folder / PICTURE)
    for report in reports:
        console.print(f"{report.label} on {study['label']}")
        console.print(terminal_table(_format(report.table), max(console.width, 150)), end="")
        console.print(report.text)
        for row in report.table[report.table["scores"].isna()].to_dict("records"):
            console.print(f"{report.label} in {row['space']} space has no score: {row['error']}")
    console.print(budget)
    if study["references"]:
        console.print(f"reference: {format_references(study['references'])}")
    console.print(answer, style="bold")
    for name in (JSON, PICTURE):
        console.print(f"  {relative_path(folder / name)}")


def _set_aside(folder: Path, study: Mapping[str, Any]) -> None:
    """Move the answer of a study with other options to `previous/HASH`, and say so."""
    path = folder / JSON
    if not path.is_file():
        return
    content = path.read_bytes()
    with suppress(ValueError):  # a damaged file
        earlier = json.loads(content)
        if all(canonical(earlier.get(key)) == canonical(study[key]) for key in SETTINGS):
            return
    place = folder / SET_ASIDE / sha256(content).hexdigest()[:16]
    place.mkdir(parents=True, exist_ok=True)
    for name in (JSON, PICTURE):
        if (folder / name).is_file():
            (folder / name).replace(place / name)
    console.print(f"the answer of a study with other options is now in {relative_path(place)}")


def _report_content(report: Report) -> dict[str, Any]:
    """A report as JSON: a table of records, with null in place of NaN."""
    table = report.table.astype(object).where(report.table.notna(), None)
    return vars(report) | {"table": table.to_dict("records")}


@styled
def picture(reports: Sequence[Report], facts: GraphFacts) -> Figure:
    """Draw differences from flat space, one panel per model, and a histogram of curvature."""
    figure, axes = panels(len(reports) + 1, 4.2, 3.0, columns=len(reports) + 1)
    for axis, report in zip(axes, reports, strict=False):
        _draw_differences(axis, report)
    axis = axes[-1]
    if facts.curvature_counts:
        axis.stairs(facts.curvature_counts, facts.curvature_edges, fill=True, color=LINES[5])
    axis.axvline(0, color=INK, linewidth=1)
    axis.set(xlabel="sectional curvature of a node", ylabel="nodes", title="shape of the graph")
    return figure


def _draw_differences(axis: Axes, report: Report) -> None:
    axis.grid(axis="x")
    axis.axvline(0, color=MUTED, linewidth=1)
    flat: Any = report.table.iloc[0]
    rows = report.table.dropna(subset="difference").iloc[::-1]
    row: Any
    for height, row in enumerate(rows.itertuples()):
        color = LINES[0] if row.p_holm < LEVEL else MUTED
        differences = np.subtract(row.scores, flat["scores"])
        heights = np.full(len(differences), height)
        axis.plot(differences, heights, ".", color=color, alpha=0.35)
        axis.errorbar(row.difference, height, xerr=row.pm, fmt="o", color=color, capsize=3)
    axis.set_yticks(range(len(rows)), rows["space"])
    axis.set(ylim=(-0.6, len(rows) - 0.4), xlabel="points more than flat, 95 % interval")
    axis.set_title(f"{report.label}: flat {flat['mean']:.1f}")


def _format(table: pd.DataFrame) -> pd.DataFrame:
    """Format the numbers of a report's table."""
    table = table.dropna(subset="scores")
    kappas = []
    for space, layers in zip(table["space"], table["curvatures"], strict=True):
        kappas.append("" if space == FLAT else _format_kappas(layers))
    table = table.assign(kappas=kappas).reindex(columns=list(COLUMNS))
    for column, (_, form) in COLUMNS.items():
        table[column] = ["" if pd.isna(v) else format(v, form) for v in table[column]]
    headings = {column: heading for column, (heading, _) in COLUMNS.items()}
    return table.rename(columns=headings)


def _format_kappas(layers: Mapping[str, Sequence[float]]) -> str:
    """Format at most four curvatures of all layers."""
    kappas = [kappa for layer in layers.values() for kappa in layer]
    text = ", ".join(f"{kappa:.2g}" for kappa in kappas[:4])
    return f"{text} ..." if len(kappas) > 4 else text
