"""The answer of a study: `study.json`, `study.html` and `study.png` in its folder, and a table."""

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from html import escape
from importlib.resources import files
from math import isfinite
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from curvlab.analysis.graph_facts import GraphFacts
from curvlab.analysis.style import INK, LINES, MUTED, panels, save_figure, styled
from curvlab.program import plain_console
from curvlab.results.files import atomic_write
from curvlab.results.result import git_commit
from curvlab.run.reporting import shown
from curvlab.study.floor import Floor
from curvlab.study.grid import JSON
from curvlab.study.twins import FLAT
from curvlab.study.verdict import Comparison, ModelReport, Outcome, widths_saved

HTML, PICTURE = "study.html", "study.png"

console = plain_console(soft_wrap=True)


@dataclass(frozen=True)
class Study:
    """All that a page says.

    Attributes:
        dataset: choice of `dataset=`.
        label: of the data set.
        task: name of the task.
        metric: that scores are.
        seeds: runs of each twin.
        steps: of each run, at most.
        trials: of each twin.
        words: overrides of the command line beside the study.
        facts: shape of the graph.
        floor: a score without learning, None where there is none.
        warnings: of the nodes' features, a sentence each.
        reports: one a model.
        answer: the recommendation.
    """

    dataset: str
    label: str
    task: str
    metric: str
    seeds: int
    steps: int
    trials: int
    words: tuple[str, ...]
    facts: GraphFacts
    floor: Floor | None
    warnings: tuple[str, ...]
    reports: tuple[ModelReport, ...]
    answer: str

    @property
    def budget(self) -> str:
        """Runs and steps in each space."""
        tried = f", after {self.trials} trials" if self.trials else ""
        return (
            f"Task {self.task}, scores are {self.metric} in points of 100. Each model has in each "
            f"space {self.seeds} runs of at most {self.steps} steps{tried}, with the same seeds, "
            "split and width." + (f" Floor, without learning: {self.floor}." if self.floor else "")
        )


def publish(study: Study, folder: Path) -> None:
    """Write JSON, picture and page, and print the answer."""
    stored = {"answer": study.answer, "commit": git_commit(), **asdict(study)}
    atomic_write(folder / JSON, json.dumps(_finite(stored), indent=2) + "\n")
    save_figure(picture(study), folder / PICTURE)
    image = base64.b64encode((folder / PICTURE).read_bytes()).decode()
    template = (files("curvlab.study") / "page.html").read_text(encoding="utf-8")
    parts = {
        "title": escape(study.label),
        "answer": escape(study.answer),
        "budget": "".join(f"<p>{escape(s)}</p>" for s in (study.budget, *study.warnings)),
        "image": image,
        "models": "\n".join(map(_section, study.reports)),
        "facts": "".join(f"<li>{escape(line)}</li>" for line in facts_lines(study.facts)),
    }
    for name, text in parts.items():
        template = template.replace(f"{{{{{name}}}}}", text)
    atomic_write(folder / HTML, template)
    for report in study.reports:
        frame = _frame(report)
        table = Table(title=f"{report.flat.label} on {study.label}", title_justify="left")
        for column in frame.columns:
            table.add_column(column, justify="left" if column == "space" else "right")
        for row in frame.itertuples(index=False):
            table.add_row(*row)
        plain_console(width=max(console.width, 150)).print(table)
        console.print("\n".join(_sentences(report)))
    console.print("\n".join((study.budget, *study.warnings)))
    console.print(study.answer, style="bold")
    for name in (HTML, JSON, PICTURE):
        console.print(f"  {shown(folder / name)}")


def facts_lines(facts: GraphFacts) -> Iterator[str]:
    """Shape of the graph, in lines."""
    delta, tree = facts.hyperbolicity, facts.tree
    parts = f", {facts.components} components" if facts.components > 1 else ""
    tail = f", tail exponent {facts.tail_exponent:.1f}" if facts.tail_exponent else ""
    yield (
        f"{facts.nodes:,} nodes, {facts.edges:,} edges{parts}; degree {facts.mean_degree:.1f} on "
        f"average, {facts.max_degree} at most{tail}"
    )
    worst = f"{delta.delta:g}" if delta.exact else f"{delta.delta:g} to {delta.upper:g}"
    how = "exact" if delta.exact else f"that of {delta.nodes} random nodes to half the diameter"
    yield (
        f"Gromov's delta {worst} ({how}), of a random quadruple {facts.mean_delta.mean:.3f} "
        f"± {facts.mean_delta.pm:.3f}; diameter {delta.diameter}; 0 is a tree"
    )
    yield (
        f"the best Gromov tree has distances that are wrong by {tree.mean:.1%} on average, "
        f"{tree.worst:.0%} at most"
    )
    if facts.curvature is not None:
        yield (
            f"mean sectional curvature of the nodes {facts.curvature:+.3f} (a tree's is negative, "
            "a cycle's positive)"
        )
    yield f"clustering {facts.clustering:.3f}"
    if facts.homophily is not None:
        yield f"homophily {facts.homophily:.3f}, {facts.chance_homophily:.3f} by chance"


@styled
def picture(study: Study) -> Figure:
    """Differences from flat space, a panel a model, and the histogram of curvature."""
    figure, axes = panels(len(study.reports) + 1, 4.2, 3.0, columns=len(study.reports) + 1)
    for axis, report in zip(axes, study.reports, strict=False):
        _draw_differences(axis, report)
    axis, facts = axes[-1], study.facts
    if facts.curvature_counts:
        axis.stairs(facts.curvature_counts, facts.curvature_edges, fill=True, color=LINES[5])
    axis.axvline(0, color=INK, linewidth=1)
    axis.set(xlabel="sectional curvature of a node", ylabel="nodes", title="shape of the graph")
    return figure


def _draw_differences(axis: Axes, report: ModelReport) -> None:
    axis.grid(axis="x")
    axis.axvline(0, color=MUTED, linewidth=1)
    rows = [*report.others, *report.narrower][::-1]
    for place, comparison in enumerate(rows):
        outcome, pair = comparison.outcome, comparison.paired
        color = LINES[0] if comparison.significant else MUTED
        each = [a - b for a, b in zip(outcome.scores, report.flat.scores, strict=True)]
        axis.plot(each, [place] * len(each), ".", color=color, alpha=0.35)
        axis.errorbar(pair.mean, place, xerr=pair.pm, fmt="o", color=color, capsize=3)
    own = report.flat.dim
    names = [c.outcome.space + f", dim {c.outcome.dim}" * (c.outcome.dim != own) for c in rows]
    axis.set_yticks(range(len(rows)), names)
    title = f"{report.flat.label}: flat {report.flat.mean:.1f}"
    axis.set(
        ylim=(-0.6, len(rows) - 0.4), xlabel="points more than flat, 95 % interval", title=title
    )


def _frame(report: ModelReport) -> pd.DataFrame:
    """A row for each space and width, as text."""
    rows: list[tuple[Outcome, Comparison | None]] = [(report.flat, None)]
    rows += [(c.outcome, c) for c in (*report.others, *report.narrower)]
    return pd.DataFrame([_row(*row) for row in rows])


def _row(outcome: Outcome, comparison: Comparison | None) -> dict[str, str]:
    pair = comparison.paired if comparison else None
    values = [kappa for layer in (outcome.curvatures or {}).values() for kappa in layer]
    kappas = ", ".join(f"{kappa:.2g}" for kappa in values[:4]) + " ..." * (len(values) > 4)
    return {
        "space": outcome.space,
        "dim": str(outcome.dim),
        "score": f"{outcome.mean:.2f}",
        "minus flat": f"{pair.mean:+.2f}" if pair else "",
        "95 % interval": pair.interval if pair else "",
        "p (t)": _number(pair.p_t if pair else None, ".2g"),
        "p (Holm)": _number(comparison.corrected if comparison else None, ".2g"),
        "p (ranks)": _number(pair.p_wilcoxon if pair else None, ".2g"),
        "curvatures": "" if outcome.space == FLAT else kappas,
        "parameters": _number(outcome.parameters, ",.0f"),
        "ms a step": _number(outcome.ms_per_step, ".1f"),
        "seconds": _number(outcome.seconds, ".1f"),
        "MB": _number(outcome.memory_mb, ",.0f"),
    }


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _sentences(report: ModelReport) -> Iterator[str]:
    yield report.verdict.text
    yield from widths_saved(report.narrower)
    for outcome in report.failed:
        yield f"{outcome.label} in {outcome.space} space has no score: {outcome.error}"


def _section(report: ModelReport) -> str:
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in _sentences(report))
    table = _frame(report).to_html(index=False, border=0)
    return f'<h2>{escape(report.flat.label)}</h2>{sentences}<div class="wide">{table}</div>'


def _finite(value: object) -> object:
    """A value for JSON, NaN and infinity as null."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value
