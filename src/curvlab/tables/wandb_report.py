"""A report on Weights & Biases for each table: its methods side by side, from its group of runs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from curvlab.errors import UsageError
from curvlab.tables.spec import SCORE, TableSpec

if TYPE_CHECKING:
    from wandb_workspaces.reports.v2 import Report

STEP = "trainer/global_step"
"""What runs count their curves by (`curvlab.callbacks.wandb_logger`)."""


def table_report(specs: Sequence[TableSpec], project: str, entity: str) -> "Report":
    """Define the report of a table or of the panels of a figure; its `save()` puts it on the site.

    A table with datasets as columns has a section for each: bars with the mean of each row over
    seeds and its standard deviation. Where columns are numbers, such as depths, the runs are points
    over them. Then come the curves of loss and curvature, each row one line with its spread, and
    the settings in which runs differ. All of it reads the runs that have the table's name as group,
    as those of its sweep with `logger=wandb` do.

    Args:
        specs: From `load_table`.
        project: Where the runs are.
        entity: User or team that has the project.

    Raises:
        UsageError: wandb-workspaces is not installed.
    """
    try:
        import wandb_workspaces.reports.v2 as wr
    except ImportError as error:
        raise UsageError("reports on W&B need wandb: pip install 'curvlab[wandb]'") from error
    name, rows = specs[0].name, wr.Config(specs[0].report.rows)
    group = f"Metric('Group') == '{name}' and Metric('JobType') != 'table'"
    blocks: list[Any] = [
        wr.MarkdownBlock(
            f"Runs of `curvlab train -m table={name} logger=wandb`. The paper's "
            "numbers stand in curvlab's `docs/results`."
        )
    ]
    for spec in specs:
        blocks += [wr.H1(spec.report.title), *_sections(wr, spec, group)]
    curves: list[Any] = [
        wr.LinePlot(title="loss", x=STEP, y=["loss"], groupby=rows),
        wr.LinePlot(title="curvature", x=STEP, metric_regex="kappa/.*", groupby=rows),
        wr.RunComparer(diff_only="split"),
    ]
    runs = wr.Runset(name=name, filters=group)
    blocks += [wr.H1("Curves and settings"), wr.PanelGrid(runsets=[runs], panels=curves)]
    title = f"curvlab, {name}"
    return wr.Report(project=project, entity=entity, title=title, blocks=blocks, width="fluid")


def _sections(wr: Any, spec: TableSpec, group: str) -> list[Any]:
    """The methods side by side: by dataset, or over the numbers that are the columns."""
    report = spec.report
    score = SCORE if report.metric == SCORE else report.metric.replace(".", "/")
    bars = wr.BarPlot(
        title=score,
        metrics=[wr.SummaryMetric(score)],
        groupby=wr.Config(report.rows),
        groupby_aggfunc="mean",
        groupby_rangefunc="stddev",
    )
    if (report.rows, report.columns) != ("model.name", "dataset.name"):
        points = wr.ScatterPlot(x=wr.Config(report.columns), y=wr.SummaryMetric(score))
        runs = wr.Runset(name=spec.name, filters=group)
        return [wr.PanelGrid(runsets=[runs], panels=[points, bars])]
    blocks = []
    for column in spec.planned_columns:
        cells = [f"{column}/{row}" for row in spec.planned_rows]
        runs = wr.Runset(name=str(column), filters=f"{group} and Metric('JobType') in {cells}")
        blocks += [
            wr.H2(spec.label(report.columns, column)),
            wr.PanelGrid(runsets=[runs], panels=[bars]),
        ]
    return blocks
