"""Draw pictures, and print numbers, of graphs and finished runs.

curvlab plot curvature web_edu power    histograms of sectional curvature, and the means
curvlab plot facts web_edu power        Gromov's delta, degrees, clustering, homophily; as a file
curvlab plot run outputs/runs/...       redraw curves and embedding of a run
curvlab plot curves outputs/tables/...  one metric of several runs, step by step
curvlab plot routing outputs/runs/...   weights of CAT's branches, in a triangle and by relation
curvlab plot scaling hypformer/fig5     a table's costs against the size that it sweeps
curvlab plot depth lrn/fig2             a table's scores by depth, minus those of its first row
curvlab plot leaderboard reconstruction mean ranks of a task's models, curved minus flat
curvlab plot filters outputs/runs/...   clusters of the filters that nodes have learned
curvlab plot map outputs/study ...      gain of a curved space over flat, by options of a graph
"""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from matplotlib.figure import Figure

from curvlab.analysis.figures import (
    comparison_figure,
    curvature_figure,
    depth_figure,
    grid_figure,
    leaderboard_figure,
    scaling_figure,
)
from curvlab.analysis.style import save_figure
from curvlab.cli.verbs import OneLineParser, Verb, write
from curvlab.config.folder import CONFIGS
from curvlab.errors import UsageError
from curvlab.study.grid import grid_cells
from curvlab.tables.boards import board
from curvlab.tables.report import Report, build_report
from curvlab.tables.spec import load_table, results_folder, workplace

# Modules that need torch are imported in functions, so that --help is fast.
if TYPE_CHECKING:
    from torch_geometric.data import Data


def load_graphs(arguments: argparse.Namespace) -> "dict[str, Data]":
    """Load the graphs that the command line names."""
    from curvlab.run.parts import named_source

    names = arguments.names
    folder = arguments.data_dir
    return {name: named_source(name, folder).load() for name in names}


def plot_curvature(arguments: argparse.Namespace) -> Figure:
    """Sectional curvature: histograms and means."""
    from curvlab.analysis.sectional_curvature import sectional_curvature
    from curvlab.run.parts import dataset_config

    curvatures = {}
    for name, graph in load_graphs(arguments).items():
        label = dataset_config(name).label
        curvature = sectional_curvature(graph.edge_index, graph.num_nodes)
        curvatures[label] = (curvature.per_triple, curvature.mean)
        print(f"{label}: mean sectional curvature {curvature.mean:.4f}")
    return curvature_figure(curvatures)


def plot_facts(arguments: argparse.Namespace) -> None:
    """Delta, homophily, clustering, degrees, by dataset, as CSV."""
    from curvlab.analysis.graph_facts import graph_facts

    facts = {name: graph_facts(graph) for name, graph in load_graphs(arguments).items()}
    fields = ("nodes", "edges", "clustering", "tail_exponent", "homophily", "chance_homophily")
    rows = [
        {"dataset": name, "mean_delta": fact.mean_delta[0]}
        | {field: getattr(fact, field) for field in fields}
        for name, fact in facts.items()
    ]
    for name, fact in facts.items():
        print("\n  ".join([f"{name}:", *fact.lines()]))
    write(pd.DataFrame(rows).round(4), arguments.output)
    print(f"wrote {arguments.output}")


def plot_finished_run(arguments: argparse.Namespace) -> None:
    """Curves and embedding of a run, into its folder plots."""
    from curvlab.analysis.plots import plot_run

    for path in plot_run(arguments.run_dir):
        print(f"wrote {path}")


def plot_curves(arguments: argparse.Namespace) -> Figure:
    """One metric of several runs, step by step."""
    from curvlab.analysis.plots import run_curves

    return comparison_figure(run_curves(arguments.folders, arguments.metric), arguments.metric)


def plot_branches(arguments: argparse.Namespace) -> None:
    """Weights of a model's branches in test queries: a triangle, and a table by relation."""
    from curvlab.analysis.plots import plot_routing
    from curvlab.analysis.routing import FILE, load_routing, routing_table

    routing = load_routing(arguments.run_dir / FILE, "test")
    print(routing_table(routing).to_string(index=False, float_format="{:.3f}".format))
    print(f"wrote {plot_routing(arguments.run_dir)}")


def plot_scaling(arguments: argparse.Namespace) -> Figure:
    """A table whose columns are sizes: both axes logarithmic, with slopes."""
    reports = sized_reports(arguments)
    lines = {report.title: report.lines("our_mean") for report in reports}
    return scaling_figure(lines, reports[0].spec.report.columns)


def plot_depth(arguments: argparse.Namespace) -> Figure:
    """A table whose columns are depths: scores minus those of the first row."""
    report = sized_reports(arguments)[0]
    return depth_figure(report.title, report.lines("our_mean"), report.lines("diverged"))


def sized_reports(arguments: argparse.Namespace) -> list[Report]:
    """Reports of a table whose columns are numbers, one for each panel."""
    results = results_folder(workplace(), arguments.results)
    reports = [build_report(spec, results) for spec in load_table(CONFIGS, arguments.table)]
    for report in reports:
        for column in report.columns:
            if isinstance(column, str):
                raise UsageError(f"the columns of {arguments.table} are not sizes: {column}")
    return reports


def plot_leaderboard(arguments: argparse.Namespace) -> Figure:
    """Mean ranks of a task's models, and curved models minus flat ones."""
    results = results_folder(workplace(), arguments.results)
    leaderboard = board(CONFIGS, arguments.table, results, arguments.pairs)
    if leaderboard.block is None:
        raise UsageError(
            f"fewer than three models of {arguments.table} share two datasets at their table's "
            "protocol: there are no ranks to draw"
        )
    print(leaderboard.text())
    return leaderboard_figure(leaderboard.block, leaderboard.counterparts)


def plot_filters(arguments: argparse.Namespace) -> Figure:
    """Learned filters of runs of polyattn_* and unifilter_*, one panel per run."""
    from curvlab.analysis.model_figures import filters_figure
    from curvlab.analysis.plots import filter_panel, run_title

    filters = {run_title(run): filter_panel(run, arguments.clusters) for run in arguments.run_dirs}
    for title, (clusters, _) in filters.items():
        shares = ", ".join(f"{cluster.share:.1%}" for cluster in clusters)
        print(f"{title}: clusters of {shares} of the nodes")
    return filters_figure(filters)


def plot_map(arguments: argparse.Namespace) -> Figure:
    """Studies over a grid of options: a curved space minus the flat one, and its numbers as CSV."""
    x = arguments.x
    y = arguments.y
    space = arguments.space
    cells = grid_cells(arguments.folder, x, y, arguments.model, space)
    name = space.capitalize() or "Best curved space"
    title = f"{name} minus flat, {cells['seeds'].max()} seeds"
    numbers = arguments.output.with_suffix(".csv")
    write(cells.round(4), numbers)
    print(f"wrote {numbers}")
    print(f"framed: found after Holm's correction, {int(cells['found'].sum())} of {len(cells)}")
    return grid_figure(cells, x, y, title)


def plot(arguments: argparse.Namespace) -> None:
    """Call the command's function, and write the picture that it returns."""
    figure = arguments.act(arguments)
    if figure is not None:
        print(f"wrote {save_figure(figure, arguments.output)}")


GRAPH_ARGUMENTS: Mapping[str, Any] = {
    "names": {"nargs": "+", "metavar": "NAME", "help": "data sets: curvlab list datasets"},
    "--data-dir": {"type": Path, "help": "folder of the raw files (default: data)"},
}
RUN_ARGUMENTS: Mapping[str, Any] = {
    "run_dir": {"type": Path, "metavar": "RUN_DIR", "help": "folder of a run"}
}
TABLE_ARGUMENTS: Mapping[str, Any] = {
    "table": {"metavar": "TABLE", "help": "for instance hypformer/fig5"},
    "--results": {"type": Path, "help": "all tables' runs (default: as of curvlab tables)"},
}
COMMANDS: Mapping[str, tuple[Callable[[Any], Figure | None], str, Mapping[str, Any]]] = {
    "curvature": (plot_curvature, "curvature.png", GRAPH_ARGUMENTS),
    "facts": (plot_facts, "graphs.csv", GRAPH_ARGUMENTS),
    "run": (plot_finished_run, "", RUN_ARGUMENTS),
    "routing": (plot_branches, "", RUN_ARGUMENTS),
    "curves": (plot_curves, "curves.png", {
        "folders": {"type": Path, "nargs": "+", "metavar": "FOLDER", "help": "folder of runs"},
        "--metric": {"default": "loss", "help": "a column of metrics.csv (default: loss)"},
    }),
    "filters": (plot_filters, "filters.png", {
        "run_dirs": {"type": Path, "nargs": "+", "metavar": "RUN_DIR", "help": "folder of a run"},
        "--clusters": {"type": int, "help": "default: one for each true filter, or five"},
    }),
    "scaling": (plot_scaling, "scaling.png", TABLE_ARGUMENTS),
    "depth": (plot_depth, "depth.png", TABLE_ARGUMENTS),
    "leaderboard": (plot_leaderboard, "leaderboard.png", {
        **TABLE_ARGUMENTS,
        "table": {"metavar": "TASK", "help": "for instance reconstruction, or a table"},
        "pairs": {"nargs": "*", "metavar": "CURVED:FLAT", "help": "such as fpst:tokengt"},
    }),
    "map": (plot_map, "map.png", {
        "folder": {"type": Path, "metavar": "FOLDER", "help": "folder, as outputs/study"},
        "--x": {"metavar": "KEY", "required": True, "help": "option of the horizontal axis"},
        "--y": {"metavar": "KEY", "required": True, "help": "option of the vertical axis"},
        "--model": {"default": "", "help": "model, if the studies have several"},
        "--space": {"default": "", "help": "curved space (default: the one with the best mean)"},
    }),
}  # fmt: skip
"""Function, name of the file, and arguments of each command."""

main = Verb("plot", __doc__, plot)
commands = main.add_subparsers(required=True, metavar="COMMAND", parser_class=OneLineParser)
for name, (act, output, options) in COMMANDS.items():
    parser = commands.add_parser(name, help=act.__doc__)
    parser.set_defaults(act=act)
    if output:
        place = Path("outputs/plots", output)
        text = "file (default: %(default)s)"
        parser.add_argument("--output", type=Path, default=place, help=text)
    for option, settings in options.items():
        parser.add_argument(option, **settings)
