"""Pictures and numbers of graphs and of finished runs.

curvlab plot curvature web_edu power    histograms of sectional curvature, and the means
curvlab plot hyperbolicity web_edu      Gromov's delta
curvlab plot run outputs/runs/...       curves and embedding of a run, again
curvlab plot curves outputs/tables/...  one metric of several runs, step by step
curvlab plot routing outputs/runs/...   weights of CAT's branches, in a triangle and by relation
curvlab plot scaling hypformer/fig5     a table's costs against the size that it sweeps
curvlab plot depth lrn/fig2             a table's scores by depth, less those of its first row
curvlab plot leaderboard fpst/table1    mean ranks of a table's or a task's models, curved less flat
curvlab plot facts web_edu power        what graphs look like, as a file
curvlab plot filters outputs/runs/...   clusters of the filters that nodes have learned
curvlab plot map outputs/study ...      where a curved space beats flat, over options of a graph
"""

import argparse
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from torch_geometric.data import Data

from curvlab.analysis.figures import comparison_figure, curvature_figure
from curvlab.analysis.graph_facts import graph_facts
from curvlab.analysis.grid_figure import grid_figure
from curvlab.analysis.hyperbolicity import hyperbolicity
from curvlab.analysis.leaderboard_figure import leaderboard_figure
from curvlab.analysis.model_figures import filters_figure
from curvlab.analysis.plots import (
    COLORS,
    filter_panel,
    plot_routing,
    plot_run,
    run_curves,
    run_title,
)
from curvlab.analysis.routing import FILE, load_routing, routing_table
from curvlab.analysis.sectional_curvature import sectional_curvature
from curvlab.analysis.style import save_figure
from curvlab.analysis.table_figures import depth_figure, scaling_figure
from curvlab.cli.verbs import write
from curvlab.config.folder import CONFIGS, choices
from curvlab.data.datasets.named import dataset_config, dataset_names, named_source
from curvlab.errors import UsageError
from curvlab.program import Words, program
from curvlab.program import parser as parser_of
from curvlab.study.grid import cells_of
from curvlab.tables import build_report, load_table, load_tables
from curvlab.tables.folders import results_folder, workplace
from curvlab.tables.leaderboard import leaderboard, leaderboard_text
from curvlab.tables.task_board import task_board
from curvlab.tables.twins import pairs_of, twins, twins_text


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """The command line's arguments."""
    parser = parser_of("plot", __doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    graphs = Words(add_help=False)
    graphs.add_argument("names", nargs="+", metavar="NAME", help=", ".join(dataset_names(CONFIGS)))
    graphs.add_argument("--data-dir", type=Path, help="folder of the raw files (default: data)")

    curvature = commands.add_parser(
        "curvature", parents=[graphs], help="sectional curvature: histograms and means"
    )
    _takes_output(curvature, "outputs/plots/curvature.png")
    delta = commands.add_parser(
        "hyperbolicity", parents=[graphs], help="Gromov's delta by the four-point condition"
    )
    delta.add_argument(
        "--nodes",
        type=int,
        default=300,
        help="compare all nodes of smaller graphs and this many random ones of larger graphs; "
        "time grows with the fourth power (default: %(default)s)",
    )
    delta.add_argument("--seed", type=int, default=0, help="of the random nodes")
    run = commands.add_parser("run", help="curves and embedding of a run, into its folder plots")
    run.add_argument("run_dir", type=Path, metavar="RUN_DIR", help="folder with metrics.csv")
    run.add_argument(
        "--color",
        choices=sorted(COLORS),
        help="what colours the nodes (default: their class if they have one, else their degree)",
    )
    curves = commands.add_parser("curves", help="one metric of several runs, step by step")
    curves.add_argument(
        "folders", type=Path, nargs="+", metavar="FOLDER", help="of a run, or above several"
    )
    curves.add_argument(
        "--metric", default="loss", help="column of metrics.csv, such as val/mrr (default: loss)"
    )
    _takes_output(curves, "outputs/plots/curves.png")
    routing = commands.add_parser(
        "routing", help="weights of a model's branches: a triangle, and a table by relation"
    )
    routing.add_argument("run_dir", type=Path, metavar="RUN_DIR", help="folder with routing.npz")
    routing.add_argument(
        "--part", choices=["test", "train"], default="test", help="whose queries (default: test)"
    )
    for name, example, what in (
        ("scaling", "hypformer/fig5", "both axes logarithmic, with slopes"),
        ("depth", "lrn/fig2", "scores less those of the first row"),
    ):
        picture = commands.add_parser(name, help=f"a table whose columns are numbers: {what}")
        _takes_table(picture, example)
        _takes_output(picture, f"outputs/plots/{name}.png")
    board = commands.add_parser("leaderboard", help="a table of models, or a task: who is best")
    _takes_table(board, "fpst/table1")
    board.add_argument(
        "twins", nargs="*", metavar="CURVED:FLAT", help="rows to be compared, such as fpst:tokengt"
    )
    _takes_output(board, "outputs/plots/leaderboard.png")
    facts = commands.add_parser(
        "facts", parents=[graphs], help="delta, homophily, clustering, degrees, by dataset, as CSV"
    )
    _takes_output(facts, "outputs/plots/graphs.csv")
    filters = commands.add_parser(
        "filters", help="learned filters of runs of polyattn_* and unifilter_*, a panel a run"
    )
    filters.add_argument(
        "run_dirs", type=Path, nargs="+", metavar="RUN_DIR", help="folder with filters.npz"
    )
    filters.add_argument(
        "--clusters", type=int, help="by k-means (default: one for each true filter, or five)"
    )
    _takes_output(filters, "outputs/plots/filters.png")
    grid = commands.add_parser(
        "map", help="studies over a grid of options: a curved space less the flat one"
    )
    grid.add_argument("folder", type=Path, metavar="FOLDER", help="of the studies: outputs/study")
    keys = ("--x", "across"), ("--y", "up"), ("--panels", "with a panel a value (default: none)")
    for flag, where in keys:
        needed = flag != "--panels"
        grid.add_argument(
            flag, metavar="KEY", default="", required=needed, help=f"option that goes {where}"
        )
    grid.add_argument("--model", default="", help="of several in the studies")
    grid.add_argument("--space", default="", help="a curved one (default: each cell's best mean)")
    _takes_output(grid, "outputs/plots/map.png")
    return parser.parse_args(words)


def _takes_table(parser: argparse.ArgumentParser, example: str) -> None:
    parser.add_argument("table", metavar="TABLE", help=f"for instance {example}")
    parser.add_argument(
        "--results",
        type=Path,
        help="folder of all tables' runs (default: outputs/tables; before the first run "
        "docs/results/tables)",
    )


def _takes_output(parser: argparse.ArgumentParser, default: str) -> None:
    what = "the picture (default: %(default)s)"
    parser.add_argument("--output", type=Path, default=Path(default), help=what)


def load_graphs(arguments: argparse.Namespace) -> dict[str, Data]:
    """The graphs that the command line names, by their labels."""
    return {
        dataset_config(name, CONFIGS).label: named_source(name, arguments.data_dir, CONFIGS).load()
        for name in arguments.names
    }


def plot_curvature(arguments: argparse.Namespace) -> None:
    """Print the means and draw the histograms."""
    curvatures = {}
    for label, graph in load_graphs(arguments).items():
        curvature = sectional_curvature(graph.edge_index, graph.num_nodes)
        curvatures[label] = (curvature.per_triple(), curvature.mean)
        print(f"{label}: mean sectional curvature {curvature.mean:.4f}")
    save(curvature_figure(curvatures), arguments.output)


def print_hyperbolicity(arguments: argparse.Namespace) -> None:
    """Print delta of each graph and how it was found."""
    for label, graph in load_graphs(arguments).items():
        found = hyperbolicity(graph.edge_index, graph.num_nodes, arguments.nodes, arguments.seed)
        bound = f"a lower bound, from {found.nodes} random nodes; at most {found.upper:g}"
        how = "exact" if found.exact else bound
        print(f"{label}: delta {found.delta:g} ({how}; the diameter is {found.diameter_text})")


def plot_finished_run(arguments: argparse.Namespace) -> None:
    """Draw the run's pictures."""
    for path in plot_run(arguments.run_dir, color=arguments.color):
        print(f"wrote {path}")


def plot_curves(arguments: argparse.Namespace) -> None:
    """Draw a metric of several runs."""
    figure = comparison_figure(run_curves(arguments.folders, arguments.metric), arguments.metric)
    save(figure, arguments.output)


def plot_and_print_routing(arguments: argparse.Namespace) -> None:
    """Draw the triangle, print the table."""
    routing = load_routing(arguments.run_dir / FILE, arguments.part)
    print(routing_table(routing).to_string(index=False, float_format="{:.3f}".format))
    print(f"wrote {plot_routing(arguments.run_dir, arguments.part)}")


def plot_scaling(arguments: argparse.Namespace) -> None:
    """Draw a table's numbers against its columns."""
    panels, sizes = table_lines(arguments)
    lines = {title: means(rows) for title, rows in panels.items()}
    save(scaling_figure(lines, sizes), arguments.output)


def plot_depth(arguments: argparse.Namespace) -> None:
    """Draw by how much each row of a table is above its first, against its columns."""
    panels, _ = table_lines(arguments)
    (title, cells), *_ = panels.items()
    diverged = {label: list(own.index[own["diverged"] > 0]) for label, own in cells.items()}
    figure = depth_figure(title, means(cells), next(iter(cells)), diverged)
    save(figure, arguments.output)


def plot_leaderboard(arguments: argparse.Namespace) -> None:
    """Draw the ranks of a table's or a task's models and print them."""
    results = results_folder(workplace(), arguments.results)
    wanted = pairs_of(arguments.twins)
    if arguments.table in choices(CONFIGS, "task"):
        of_task = task_board(arguments.table, load_tables(CONFIGS), results, wanted)
        board, pairs = of_task.block, of_task.twins
        if board is None:
            raise UsageError(
                f"fewer than three models of {arguments.table} share two datasets at their table's "
                "protocol: there are no ranks to draw"
            )
    else:
        spec = load_table(CONFIGS, arguments.table)[0]
        board, pairs = leaderboard(spec, results), twins(spec, results, wanted)
    print(leaderboard_text(board))
    print(twins_text(pairs))
    save(leaderboard_figure(board, pairs), arguments.output)


def write_facts(arguments: argparse.Namespace) -> None:
    """Measure graphs; a row each."""
    rows = []
    for name in arguments.names:
        graph = named_source(name, arguments.data_dir, CONFIGS).load()
        facts = graph_facts(graph)
        rows.append(
            {
                "dataset": name,
                "nodes": facts.nodes,
                "edges": facts.edges,
                "mean_delta": round(facts.mean_delta.mean, 4),
                "tree_distortion": round(facts.tree.mean, 4),
                "clustering": round(facts.clustering, 4),
                "tail_exponent": facts.tail_exponent and round(facts.tail_exponent, 3),
                "homophily": facts.homophily and round(facts.homophily, 4),
                "chance_homophily": facts.chance_homophily and round(facts.chance_homophily, 4),
            }
        )
    with _writing(arguments.output):
        write(pd.DataFrame(rows), arguments.output)


def table_lines(arguments: argparse.Namespace) -> tuple[dict[str, dict[str, pd.DataFrame]], str]:
    """Each panel's rows by their labels, cells by column; what the columns are."""
    panels, sizes = {}, ""
    specs = load_table(CONFIGS, arguments.table)
    results = results_folder(workplace(), arguments.results)
    for spec in specs:
        report = build_report(spec, results)
        if any(isinstance(column, str) for column in report.columns):
            raise UsageError(f"the columns of {arguments.table} are no sizes: {report.columns[0]}")
        panels[report.title] = {
            report.labels["row", row]: report.cells[report.cells["row"] == row].set_index("column")
            for row in report.rows
        }
        sizes = spec.report.columns
    return panels, sizes


def means(lines: dict[str, pd.DataFrame]) -> dict[str, pd.Series]:
    """Our means of the cells that have one."""
    return {label: cells["our_mean"].dropna() for label, cells in lines.items()}


def plot_filters(arguments: argparse.Namespace) -> None:
    """Draw the filters of the runs and print how many nodes are in each cluster."""
    panels = {}
    for run_dir in arguments.run_dirs:
        panel = filter_panel(run_dir, arguments.clusters)
        panels[run_title(run_dir)] = panel
        shares = ", ".join(f"{cluster.share:.1%}" for cluster in panel.clusters)
        print(f"{run_title(run_dir)}: clusters of {shares} of the nodes")
    save(filters_figure(panels), arguments.output)


def plot_map(arguments: argparse.Namespace) -> None:
    """Draw a grid of studies and write its numbers beside the picture."""
    keys = arguments.x, arguments.y, arguments.panels
    cells = cells_of(arguments.folder, *keys, arguments.model, arguments.space)
    title = f"{arguments.space or 'Best curved space'} less flat, {cells['seeds'].max()} seeds"
    save(grid_figure(cells, *keys, title[0].upper() + title[1:]), arguments.output)
    numbers = arguments.output.with_suffix(".csv")
    with _writing(numbers):
        write(cells.round(4), numbers)
    print(f"framed: found after Holm's correction, {int(cells['found'].sum())} of {len(cells)}")


def save(figure: Figure, output: Path) -> None:
    """Write a picture and say where.

    Raises:
        UsageError: The file cannot be written.
    """
    with _writing(output):
        save_figure(figure, output)


@contextmanager
def _writing(output: Path) -> Iterator[None]:
    """Say where a file went, or why it could not go there."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"--output {output} must be a file that can be written: {error.strerror}"
        ) from None
    print(f"wrote {output}")


def main(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code is 2 for wrong input."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    args = parse_arguments(arguments)
    commands = {
        "curvature": plot_curvature,
        "hyperbolicity": print_hyperbolicity,
        "run": plot_finished_run,
        "curves": plot_curves,
        "routing": plot_and_print_routing,
        "scaling": plot_scaling,
        "depth": plot_depth,
        "filters": plot_filters,
        "leaderboard": plot_leaderboard,
        "facts": write_facts,
        "map": plot_map,
    }
    try:
        commands[args.command](args)
    except UsageError as error:
        print(f"{program('plot')}: {error}", file=sys.stderr)
        return 2
    return 0
