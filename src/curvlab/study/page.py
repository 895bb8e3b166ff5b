"""The answer of a study: `study.json`, `study.html` and `study.png` in its folder, and a table."""

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from importlib.resources import files
from math import isfinite
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from omegaconf import DictConfig
from rich.table import Table

from curvlab.analysis.graph_facts import GraphFacts
from curvlab.analysis.style import INK, LINES, MUTED, save_figure, tidy
from curvlab.program import plain_console
from curvlab.results.files import atomic_write
from curvlab.results.result import Result, git_commit
from curvlab.run.reporting import shown
from curvlab.statistics import LEVEL
from curvlab.study.floor import Floor
from curvlab.study.twins import FLAT, Twin
from curvlab.study.verdict import Comparison, ModelReport, Outcome, widths_saved

JSON, HTML, PICTURE = "study.json", "study.html", "study.png"
COLUMNS = (
    "space", "dim", "score", "minus flat", "95 % interval", "p (t)", "p (Holm)", "p (ranks)",
    "curvatures", "parameters", "ms a step", "seconds", "MB",
)  # fmt: skip

_console = plain_console(soft_wrap=True)


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
        words: of the command line beside the study.
        facts: what the graph looks like.
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
        """What each twin was given."""
        tried = f", after {self.trials} trials" if self.trials else ""
        return (
            f"Task {self.task}, scores are {self.metric} in points of 100. Each model has in each "
            f"space {self.seeds} runs of at most {self.steps} steps{tried}, with the same seeds, "
            "split and width." + (f" Floor, without learning: {self.floor}." if self.floor else "")
        )


def starting(
    config: DictConfig, twins: Mapping[str, Sequence[Twin]], facts: GraphFacts, folder: Path
) -> None:
    """Say what is about to run."""
    for line in facts_lines(facts):
        _console.print(f"  {line}")
    for model, own in twins.items():
        spaces = ", ".join(twin.space for twin in own)
        _console.print(f"{model} on {config.dataset.label}: {config.study.seeds} runs in {spaces}")
    _console.print(f"runs are in {shown(folder / 'runs')}; the same command goes on")


def warn(warnings: Sequence[str]) -> None:
    """Say what is wrong with the features."""
    for sentence in warnings:
        _console.print(sentence, style="yellow", markup=False)


def counted(total: int) -> Callable[[Result], Result]:
    """A function that says of each result the how many-th it is, and returns it."""
    count = 0

    def done(result: Result) -> Result:
        nonlocal count
        count += 1
        score = f"{result.score:.2f}" if result.score is not None else result.error
        where = f"{result.model}, {result.manifold}, seed {result.seed}"
        _console.print(f"[{count}/{total}] {where}: {score}")
        return result

    return done


def write(study: Study, folder: Path) -> None:
    """Write JSON, picture and page."""
    stored = {"answer": study.answer, "commit": git_commit(), **asdict(study)}
    atomic_write(folder / JSON, json.dumps(_finite(stored), indent=2) + "\n")
    save_figure(picture(study), folder / PICTURE)
    image = base64.b64encode((folder / PICTURE).read_bytes()).decode()
    template = (files("curvlab.study") / "page.html").read_text(encoding="utf-8")
    body = "\n".join(_body(study, image))
    page = template.replace("{{title}}", escape(study.label)).replace("{{body}}", body)
    atomic_write(folder / HTML, page)


def show(study: Study, folder: Path) -> None:
    """Print the answer."""
    for report in study.reports:
        table = Table(title=f"{report.flat.label} on {study.label}", title_justify="left")
        for column in COLUMNS:
            table.add_column(column, justify="left" if column == "space" else "right")
        for outcome, comparison in _rows(report):
            best = outcome.space == report.verdict.space and outcome.dim == report.flat.dim
            table.add_row(*_cells(outcome, comparison), style="bold" if best else None)
        plain_console(width=max(_console.width, 150)).print(table)
        for sentence in _sentences(report):
            _console.print(sentence)
    _console.print(study.budget)
    warn(study.warnings)
    _console.print(study.answer, style="bold")
    for name in (HTML, JSON, PICTURE):
        _console.print(f"  {shown(folder / name)}")


def facts_lines(facts: GraphFacts) -> Iterator[str]:
    """What the graph looks like, in lines."""
    delta, tree = facts.hyperbolicity, facts.tree
    parts = f", {facts.components} components" if facts.components > 1 else ""
    yield (
        f"{facts.nodes:,} nodes, {facts.edges:,} edges{parts}; degree {facts.mean_degree:.1f} in "
        f"the mean, {facts.max_degree} at most"
        + (f", tail exponent {facts.tail_exponent:.1f}" if facts.tail_exponent else "")
    )
    worst = f"{delta.delta:g}" if delta.exact else f"{delta.delta:g} to {delta.upper:g}"
    how = "exact" if delta.exact else f"that of {delta.nodes} random nodes to half the diameter"
    yield (
        f"Gromov's delta {worst} ({how}), of a random quadruple {facts.mean_delta.mean:.3f} "
        f"± {facts.mean_delta.pm:.3f}; diameter {delta.diameter_text}; 0 is a tree"
    )
    yield (
        f"the best Gromov tree has distances that are wrong by {tree.mean:.1%} in the mean, "
        f"{tree.worst:.0%} at most"
    )
    if facts.curvature is not None:
        yield (
            f"sectional curvature {facts.curvature:+.3f} in the mean over nodes (a tree's is "
            "negative, a cycle's positive)"
        )
    yield f"clustering {facts.clustering:.3f}"
    if facts.homophily is not None:
        yield f"homophily {facts.homophily:.3f}, {facts.chance_homophily:.3f} by chance"


def picture(study: Study) -> Figure:
    """Differences from the flat twin, a panel a model, and the histogram of curvature."""
    panels = len(study.reports) + 1
    figure = Figure(figsize=(4.2 * panels, 3.4), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    for axis, report in zip(axes, study.reports, strict=False):
        _draw_differences(axis, report)
    _draw_histogram(axes[-1], study.facts)
    return figure


def _draw_differences(axis: Axes, report: ModelReport) -> None:
    tidy(axis)
    axis.grid(axis="x", color="#e6e6e6", linewidth=0.8)
    axis.axvline(0, color=MUTED, linewidth=1)
    rows = [*report.others, *report.narrower]
    for place, comparison in enumerate(reversed(rows)):
        outcome, pair = comparison.outcome, comparison.paired
        color = LINES[0] if comparison.significant else MUTED
        for low in (a - b for a, b in zip(outcome.scores, report.flat.scores, strict=True)):
            axis.plot(low, place, ".", color=color, alpha=0.35, markersize=5)
        axis.errorbar(pair.mean, place, xerr=pair.pm, fmt="o", color=color, capsize=3)
    names = [_name(c.outcome, report.flat.dim) for c in reversed(rows)]
    axis.set_yticks(range(len(rows)), names)
    axis.set_ylim(-0.6, len(rows) - 0.4)
    axis.set_xlabel("points more than flat, 95 % interval", fontsize=9)
    axis.set_title(f"{report.flat.label}: flat {report.flat.mean:.1f}", loc="left", fontsize=10)


def _draw_histogram(axis: Axes, facts: GraphFacts) -> None:
    tidy(axis)
    if facts.curvature_counts:
        ends = facts.curvature_edges
        width = ends[1] - ends[0]
        axis.bar(ends[:-1], facts.curvature_counts, width, align="edge", color=LINES[5])
    axis.axvline(0, color=INK, linewidth=1)
    axis.set_xlabel("sectional curvature of a node", fontsize=9)
    axis.set_ylabel("nodes", fontsize=9)
    axis.set_title("what the graph looks like", loc="left", fontsize=10)


def _name(outcome: Outcome, dim: int) -> str:
    return outcome.space if outcome.dim == dim else f"{outcome.space}, dim {outcome.dim}"


def _rows(report: ModelReport) -> Iterator[tuple[Outcome, Comparison | None]]:
    yield report.flat, None
    for comparison in (*report.others, *report.narrower):
        yield comparison.outcome, comparison
    for outcome in report.failed:
        yield outcome, None


def _cells(outcome: Outcome, comparison: Comparison | None) -> list[str]:
    if outcome.error:  # which a sentence below the table says
        return [outcome.space, str(outcome.dim), "none"]
    differences = [""] * 5
    if comparison is not None:
        pair = comparison.paired
        differences = [
            f"{pair.mean:+.2f}",
            pair.interval,
            _p(pair.p_t),
            _p(comparison.corrected),
            _p(pair.p_wilcoxon),
        ]
    return [
        outcome.space,
        str(outcome.dim),
        f"{outcome.mean:.2f}",
        *differences,
        _curvatures(outcome),
        f"{outcome.parameters:,}" if outcome.parameters is not None else "",
        f"{outcome.ms_per_step:.1f}" if outcome.ms_per_step is not None else "",
        f"{outcome.seconds:.1f}" if outcome.seconds is not None else "",
        f"{outcome.memory_mb:,.0f}" if outcome.memory_mb is not None else "",
    ]


def _curvatures(outcome: Outcome) -> str:
    values = [kappa for layer in (outcome.curvatures or {}).values() for kappa in layer]
    if not values or outcome.space == FLAT:
        return ""
    text = ", ".join(f"{kappa:.2g}" for kappa in values[:4])
    return f"{text}{' ...' if len(values) > 4 else ''}"


def _p(value: float | None) -> str:
    if value is None:
        return ""
    return "<0.0001" if value < 1e-4 else f"{value:.3f}" if value >= 1e-3 else f"{value:.4f}"


def _sentences(report: ModelReport) -> Iterator[str]:
    yield report.verdict.text
    yield from widths_saved(report.narrower)
    for outcome in report.failed:
        yield f"{outcome.label} in {outcome.space} space has no score: {outcome.error}"


def _body(study: Study, image: str) -> Iterator[str]:
    yield f'<p class="answer">{escape(study.answer)}</p>'
    yield f"<p>{escape(study.budget)}</p>"
    yield from (f"<p>{escape(sentence)}</p>" for sentence in study.warnings)
    yield f'<p><img alt="differences and curvature" src="data:image/png;base64,{image}"></p>'
    for report in study.reports:
        yield f"<h2>{escape(report.flat.label)}</h2>"
        yield from (f"<p>{escape(sentence)}</p>" for sentence in _sentences(report))
        yield '<div class="wide"><table><thead><tr>'
        yield "".join(f"<th>{escape(column)}</th>" for column in COLUMNS)
        yield "</tr></thead><tbody>"
        for outcome, comparison in _rows(report):
            best = outcome.space == report.verdict.space and outcome.dim == report.flat.dim
            cells = "".join(f"<td>{escape(cell)}</td>" for cell in _cells(outcome, comparison))
            yield f"<tr{' class=best' if best else ''}>{cells}</tr>"
        yield "</tbody></table></div>"
    yield "<h2>What the graph looks like</h2><ul>"
    yield from (f"<li>{escape(line)}</li>" for line in facts_lines(study.facts))
    yield "</ul>"
    yield (
        '<p class="dim">Differences are paired by seed; intervals are Student\'s t; p values of '
        f"the paired t test are corrected by Holm for the spaces of a model, and below {LEVEL:g} a "
        "difference is said to be there; the last test is Wilcoxon's. A half and a quarter of the "
        "width, curved and flat, are compared with the flat twin of full width.</p>"
    )


def _finite(value: object) -> object:
    """What JSON can say: NaN and infinity as null."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
