"""Models side by side on Weights & Biases: a report for each table, a dashboard for all runs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from curvlab.tables.spec import SCORE, TableSpec

if TYPE_CHECKING:
    from wandb_workspaces.reports.v2 import Report
    from wandb_workspaces.workspaces import Workspace

STEP = "trainer/global_step"  # the step of the curves (`curvlab.callbacks.wandb_logger`)
COSTS = {"cost/ms_per_step": "ms per step", "cost/memory_mb": "MB at the peak"}


def table_report(specs: Sequence[TableSpec], project: str, entity: str) -> "Report":
    """Define the report of a table or a figure; its `save()` puts it on the site."""
    import wandb_workspaces.reports.v2 as wr

    name, rows = specs[0].name, wr.Config(_key(specs[0].report.rows))
    group = f"Metric('Group') == '{name}'"
    blocks: list[Any] = [wr.MarkdownBlock(f"Runs of `curvlab train -m table={name} logger=wandb`.")]
    for spec in specs:
        blocks += [wr.H1(spec.report.title), *_sections(wr, spec, group)]
    runs = wr.Runset(name=name, filters=group)
    panels = [*_curves(wr, groupby=rows), *_costs(wr, groupby=rows)]
    panels += [wr.RunComparer(diff_only="split")]
    blocks += [wr.H1("Curves, cost and settings"), wr.PanelGrid(runsets=[runs], panels=panels)]
    title = f"curvlab, {name}"
    return wr.Report(project=project, entity=entity, title=title, blocks=blocks, width="fluid")


def dashboard(project: str, entity: str) -> "Workspace":
    """Define the workspace that compares all runs; its `save()` puts it on the site."""
    import wandb_workspaces.reports.v2 as wr
    import wandb_workspaces.workspaces as ws

    score = wr.BarPlot(title="score", metrics=[wr.SummaryMetric(SCORE)])
    sections = {"Score": [score], "Curves": _curves(wr), "Cost": _costs(wr)}
    groups: list[Any] = [ws.Config(name) for name in ("dataset", "model", "manifold")]
    return ws.Workspace(
        entity=entity,
        project=project,
        name="curvlab, models compared",
        sections=[
            ws.Section(name=name, panels=panels, is_open=True) for name, panels in sections.items()
        ],
        runset_settings=ws.RunsetSettings(groupby=groups),
    )


def _key(path: str) -> str:
    """The flat key that runs on W&B have for a path of the configuration."""
    return path.removesuffix(".name").replace(".", "/")


def _curves(wr: Any, **options: Any) -> list[Any]:
    return [
        wr.LinePlot(title="loss", x=STEP, y=["loss"], **options),
        wr.LinePlot(title="curvature", x=STEP, metric_regex="kappa/.*", **options),
    ]


def _costs(wr: Any, **options: Any) -> list[Any]:
    return [
        wr.BarPlot(title=title, metrics=[wr.SummaryMetric(name)], **options)
        for name, title in COSTS.items()
    ]


def _sections(wr: Any, spec: TableSpec, group: str) -> list[Any]:
    report = spec.report
    score = SCORE if report.metric == SCORE else report.metric.replace(".", "/")
    bars = wr.BarPlot(
        title=score,
        metrics=[wr.SummaryMetric(score)],
        groupby=wr.Config(_key(report.rows)),
        groupby_aggfunc="mean",
        groupby_rangefunc="stddev",
    )
    if (report.rows, report.columns) != ("model.name", "dataset.name"):
        points = wr.ScatterPlot(x=wr.Config(_key(report.columns)), y=wr.SummaryMetric(score))
        runs = wr.Runset(name=spec.name, filters=group)
        return [wr.PanelGrid(runsets=[runs], panels=[points, bars])]
    blocks = []
    models = list(map(str, spec.planned_rows))
    for column in spec.planned_columns:
        own = f"{group} and Config('dataset') == '{column}' and Metric('JobType') in {models}"
        runs = wr.Runset(name=str(column), filters=own)
        blocks += [
            wr.H2(spec.label(report.columns, column)),
            wr.PanelGrid(runsets=[runs], panels=[bars]),
        ]
    return blocks
