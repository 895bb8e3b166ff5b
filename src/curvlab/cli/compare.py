"""Compare finished runs: settings, scores with intervals, cost, and a paired test.

curvlab compare outputs/runs/node_classification/cora/{gcn,hgcn}
curvlab compare 'outputs/runs/*/cora/hgcn/*' --output hgcn.csv

RUN is the folder of a run, a folder above runs, or a glob. Runs that differ only in their seed are
one row; runs that have not finished are named and left out. The paired t-test compares each row
with the first over their common seeds. The claim that a row is above the first is confirmed,
contradicted (it is below), level, or undecided, with the number of further seeds that would decide
it.
"""

import argparse
from collections.abc import Iterator, Sequence
from glob import glob
from pathlib import Path
from textwrap import wrap

from curvlab.cli.verbs import Verb, add_spreadsheet_argument, show, write
from curvlab.errors import UsageError
from curvlab.results.references import format_references, mean_references
from curvlab.results.result import Result, read_result, result_files
from curvlab.results.settings import setting_text
from curvlab.statistics import count_of_runs
from curvlab.tables.paired import Group, comparison, group_runs
from curvlab.tables.render import decimal, plus_minus

WIDTH = 100
LONGEST_LABEL = 12


def _compare(args: argparse.Namespace) -> None:
    groups = group_runs(_results(args.runs))
    table = comparison(groups)
    example = groups[0].example
    title = example.task if "dataset.name" in table else f"{example.task} on {example.dataset}"
    names = _names(groups)
    rows = table[["runs"]].copy()
    rows.insert(0, "label", names)
    pm = table["high"] - table["mean"]
    digits = 4 if table["mean"].max() <= 1 else 2
    rows["score"] = [plus_minus(m, p, digits) for m, p in zip(table["mean"], pm, strict=True)]
    if len(groups) > 1:
        difference = zip(table["difference"], table["difference_pm"], strict=True)
        rows["against the first"] = [plus_minus(d, p, digits, "+") for d, p in difference]
        rows["p"] = [decimal(p, 3) for p in table["p"]]
        if len(groups) > 2:
            rows["p (Holm)"] = [decimal(p, 3) for p in table["p_holm"]]
        rows["seeds"] = list(map(count_of_runs, table["common"], table["pairs"]))
        rows["above the first"] = table["above_the_first"]
    rows["seconds"] = [f"{s:.0f}" for s in table["seconds"]]
    rows["MB"] = [f"{m:,.0f}" for m in table["memory_mb"]]
    rows["parameters"] = [f"{n:,.0f}" for n in table["parameters"]]
    show(rows, f"{title}: mean and 95 % interval, paired t-test over common seeds")
    for name, group in zip(names, groups, strict=True):
        if name != group.label:
            print(f"{name}: {group.label}")
    _print_references(groups, names)
    if len(groups) > 1:
        margin = table["margin"].iloc[0]
        print(f"level: the interval of the difference lies within {margin:g}, else undecided")
    if groups[0].settings:
        print("\n".join(("what differs", *_differences(groups, names))))
    if args.output:
        write(table, args.output, args.spreadsheet)
        print(f"table    {args.output}")


def _names(groups: Sequence[Group]) -> list[str]:
    """Labels of groups if all are short, else numbers."""
    labels = [group.label for group in groups]
    if all(len(label) <= LONGEST_LABEL for label in labels):
        return labels
    return [str(i) for i in range(1, len(labels) + 1)]


def _differences(groups: Sequence[Group], names: Sequence[str]) -> Iterator[str]:
    """A line for each setting in which groups differ: each value with the groups that have it."""
    for key in groups[0].settings:
        names_by_value: dict[str, list[str]] = {}
        for name, group in zip(names, groups, strict=True):
            text = setting_text(group.settings, key, group.example.config)
            names_by_value.setdefault(text, []).append(name)
        parts = [f"{value} ({', '.join(users)})" for value, users in names_by_value.items()]
        values = "; ".join(parts)
        yield from wrap(f"{key}: {values}", WIDTH, subsequent_indent="    ", initial_indent="  ")


def _print_references(groups: Sequence[Group], names: Sequence[str]) -> None:
    """Print the reference points of the runs, for each data set and for groups that share them."""
    shared: dict[str, list[tuple[list[str], dict[int, Result]]]] = {}
    for name, group in zip(names, groups, strict=True):
        sharing = shared.setdefault(group.example.dataset, [])
        runs = {seed: run for seed, run in group.runs.items() if run.references}
        for users, others in sharing:
            common = runs.keys() & others.keys()
            if common and all(runs[s].references == others[s].references for s in common):
                users.append(name)
                others |= runs
                break
        else:
            sharing.append(([name], runs))
    for dataset, sharing in shared.items():
        where = f" on {dataset}" if len(shared) > 1 else ""
        for users, runs in sharing:
            of = f" of {', '.join(users)}" if len(sharing) > 1 else ""
            points = mean_references(runs.values())
            if points:
                print(f"reference{of}{where}: {format_references(points)}")
        if sum(bool(runs) for _, runs in sharing) > 1:
            print("these rows were scored on other nodes or queries: their difference says nothing")


def _results(names: Sequence[str]) -> list[Result]:
    files: dict[Path, Path] = {}
    for name in names:
        folders = sorted(glob(name)) or [name]  # noqa: PTH207
        matches = [file for folder in folders for file in result_files(Path(folder))]
        if not matches:
            raise UsageError(f"{name} holds no run: name the folder of a run, or one above runs")
        files |= {file.resolve(): file for file in matches}
    results = []
    for file in files.values():
        result = read_result(file.parent)
        why = _why_left_out(result)
        if result is not None and why is None:
            results.append(result)
        else:
            print(f"left out: {file.parent} ({why})")
    return results


def _why_left_out(result: Result | None) -> str | None:
    """Why a result is not compared; None if it is that of a finished run."""
    if result is None:
        return "it cannot be read"
    if result.status != "finished":
        return result.status.replace("_", " ")
    if result.experiment == "study":
        return "the answer of a study, whose runs are below it"
    if "search" in result.config:
        return "a search, which scores no test nodes; curvlab adopt FOLDER --show prints its trials"
    return None


main = Verb("compare", __doc__, _compare)
main.add_argument("runs", nargs="+", metavar="RUN", help="folders or globs")
main.add_argument("--output", type=Path, metavar="FILE", help="file of the table, .csv or .parquet")
add_spreadsheet_argument(main)
