"""Compare finished runs: what differs, scores with intervals, cost, and a paired test.

curvlab compare outputs/runs/node_classification/cora/{gcn,hgcn}
curvlab compare 'outputs/runs/*/cora/hgcn/*' --output hgcn.csv

RUN is a run's folder or one above runs, or a glob. Runs that differ in their seed alone are one
row; the paired t-test is over the seeds that a row shares with the first, which is the first that
is named. That a row is above the first is confirmed, contradicted (it is below), level, or
undecided, with the number of further seeds that would decide it.
"""

import argparse
from collections.abc import Sequence
from glob import glob
from pathlib import Path

import pandas as pd

from curvlab.cli.verbs import Verb, add_spreadsheet_argument, show, write
from curvlab.errors import UsageError
from curvlab.results.result import Result, read_result, result_files
from curvlab.tables.paired import comparison, group_runs
from curvlab.tables.render import decimal, plus_minus


def _compare(args: argparse.Namespace) -> None:
    groups = group_runs(_results(args.runs))
    table = comparison(groups)
    some = next(iter(groups[0].runs.values()))
    title = some.task if "dataset.name" in table else f"{some.task} on {some.dataset}"
    shown = table[["label", "runs"]].copy()
    pm, digits = table["high"] - table["mean"], 4 if table["mean"].max() <= 1 else 2
    shown["score"] = [plus_minus(m, p, digits) for m, p in zip(table["mean"], pm, strict=True)]
    if len(groups) > 1:
        difference = zip(table["difference"], table["difference_pm"], strict=True)
        shown["against the first"] = [plus_minus(d, p, digits, "+") for d, p in difference]
        shown["p"] = [decimal(p, 3) for p in table["p"]]
        if len(groups) > 2:
            shown["p (Holm)"] = [decimal(p, 3) for p in table["p_holm"]]
        shown["seeds"] = table["common"]
        shown["above the first"] = table["above_the_first"]
    shown["seconds"] = [f"{s:.0f}" for s in table["seconds"]]
    shown["MB"] = [f"{m:,.0f}" for m in table["memory_mb"]]
    shown["parameters"] = [f"{n:,.0f}" for n in table["parameters"]]
    show(shown, f"{title}: mean and 95 % interval, paired t-test over common seeds")
    if len(groups) > 1:
        margin = table["margin"].iloc[0]
        print(f"level: the interval of the difference lies within {margin:g}, else undecided")
    differing = list(groups[0].settings)
    if differing:
        settings = pd.DataFrame({"key": differing})
        for group in groups:  # as text: a column of numbers with gaps would be one of floats
            values = [group.settings[key] for key in differing]
            settings[group.label] = ["default" if v is None else str(v) for v in values]
        show(settings, "what differs")
    if args.output:
        write(table, args.output, args.spreadsheet)
        print(f"table    {args.output}")


def _results(names: Sequence[str]) -> list[Result]:
    files: dict[Path, Path] = {}
    for name in names:
        folders = sorted(glob(name)) or [name]  # noqa: PTH207
        found = [file for folder in folders for file in result_files(Path(folder))]
        if not found:
            raise UsageError(f"{name} holds no run: name the folder of a run, or one above runs")
        files |= {file.resolve(): file for file in found}
    results = (read_result(file.parent) for file in files.values())
    return [result for result in results if result is not None]


main = Verb("compare", __doc__, _compare)
main.add_argument("runs", nargs="+", metavar="RUN", help="folders or globs")
main.add_argument("--output", type=Path, metavar="FILE", help="the table, .csv or .parquet")
add_spreadsheet_argument(main)
