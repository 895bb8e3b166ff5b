"""What only a GPU can show, in 20 minutes: one JSON file and one page.

scripts/gpu_check.sh                           on a GPU, by two processes where there are two
scripts/gpu_check.sh --reduced --device cpu    its smallest form, on the processor

The tests marked gpu, a run by two processes beside the same by one, steps that are recorded beside
others, each benchmark, and 100 steps of one cell of each table on the device and on the processor.
What takes too long is ended, and what no time is left for is named.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from curvlab.bench import check
from curvlab.bench.apart import Outcome, apart
from curvlab.cli.bench import BENCHMARKS
from curvlab.config.folder import CONFIGS
from curvlab.errors import UsageError
from curvlab.results.files import atomic_write
from curvlab.tables import table_names

JSON, PAGE = "gpu_check.json", "gpu_check.md"
PROCESSOR = "cpu"
TINY = (
    "dataset.source.num_nodes=60", "trainer.max_steps=5",
    "trainer.steps_per_epoch=5",
)  # fmt: skip
TINY_PAIR = (
    "dataset.source.num_nodes=600", "batching.size=100", "trainer.max_steps=4",
    "trainer.steps_per_epoch=2",
)  # fmt: skip
_SHOWN_LINES = 15
"""Of what failed: the last it has printed."""
_SAME_CURVE = 0.01
"""Largest relative difference of a loss that rounding explains after 100 steps."""


@dataclass(frozen=True)
class Plan:
    """What is checked, and how long each of it may take.

    Attributes:
        tests: folders and files whose tests run.
        pair: words of the run by two processes.
        recorded: models whose steps are recorded.
        benchmarks: their names.
        runs: timed calls of each.
        eager: leave out what is compiled.
        cells: tables with choices of cells; the first choice that has its data runs.
        words: of all their commands, and of those of recorded steps.
        seconds: of one thing that is checked.
    """

    tests: Sequence[str]
    pair: Sequence[str]
    recorded: Sequence[str]
    benchmarks: Sequence[str]
    runs: int
    eager: bool
    cells: Mapping[str, Sequence[tuple[str, ...]]]
    words: Sequence[str]
    seconds: float


@dataclass
class Report:
    """What was found; `failed` names what does not hold."""

    device: str
    reduced: bool
    minutes: float
    began: str
    machine: dict[str, Any] = field(default_factory=dict)
    tests: dict[str, Any] = field(default_factory=dict)
    processes: dict[str, Any] = field(default_factory=dict)
    recorded: dict[str, dict[str, Any]] = field(default_factory=dict)
    benchmarks: dict[str, dict[str, Any]] = field(default_factory=dict)
    cells: dict[str, dict[str, Any]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)


def full() -> Plan:
    """Everything."""
    cells = {name: check.own_cells(name) for name in table_names(CONFIGS)}
    return Plan(
        ["tests"], check.PAIR, list(check.RECORDED), list(BENCHMARKS), 10, False, cells,
        check.SHORT, 180.0,
    )  # fmt: skip


def reduced() -> Plan:
    """One small thing of each kind."""
    cells = {"fpst/fig3": [("model=fpst", "dataset=synthetic_web")]}
    words = (*check.SHORT, *TINY)
    tests = ["tests/tasks/test_reconstruction_loss.py"]
    pair = (*check.PAIR, *TINY_PAIR)
    return Plan(tests, pair, ["fpst"], ["optimizer"], 1, True, cells, words, 180.0)


def main(arguments: Sequence[str]) -> int:
    """Check, and write both files after each step; 1 if something failed, 2 if words are wrong."""
    args = _parser().parse_args(arguments)
    minutes, folder = args.minutes, args.output
    try:
        if minutes <= 0:
            raise UsageError("--minutes is more than 0")
        report = Report(
            args.device, args.reduced, minutes, datetime.now(UTC).isoformat("T", "seconds")
        )
        examine(report, reduced() if args.reduced else full(), folder)
    except UsageError as error:
        print(f"gpu_check: {error}", file=sys.stderr)
        return 2
    print(f"{folder / PAGE}, {folder / JSON}: {', '.join(report.failed) or 'nothing'} failed")
    return int(bool(report.failed))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "gpu_check.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=["cuda", PROCESSOR], default="cuda")
    parser.add_argument("--reduced", action="store_true", help="one small thing of each kind")
    parser.add_argument("--minutes", type=float, default=20.0, help="of all (default: 20)")
    where = "folder of both files (default: outputs/gpu_check)"
    parser.add_argument("--output", type=Path, default=Path("outputs/gpu_check"), help=where)
    return parser


def examine(report: Report, plan: Plan, folder: Path) -> None:
    """Fill in a report, and write it to a folder after each step.

    Raises:
        UsageError: there is no such device.
    """
    deadline = time.monotonic() + 60 * report.minutes
    device = report.device

    def tried(name: str, work: Callable[[], Any]) -> dict[str, Any]:
        print(f"{name} ...", flush=True)
        outcome = apart(work, min(plan.seconds, deadline - time.monotonic()))
        if outcome.status == "failed":
            report.failed.append(name)
        return _facts(outcome)

    def write() -> None:
        folder.mkdir(parents=True, exist_ok=True)
        atomic_write(folder / JSON, json.dumps(asdict(report), indent=1) + "\n")
        atomic_write(folder / PAGE, page(report))

    report.machine = tried("the machine", partial(check.machine, device))
    gpus = (report.machine["value"] or {}).get("gpus", 0)
    if device != PROCESSOR and not gpus:
        raise UsageError("no GPU is at hand for --device cuda: use --device cpu")
    report.tests = tried("tests", partial(check.tests, plan.tests))
    if (report.tests["value"] or {}).get("failed"):
        report.failed.append("tests")
    write()
    if device == PROCESSOR or gpus > 1:
        report.processes = tried("two processes", partial(check.processes, 2, device, plan.pair))
        ways = (report.processes["value"] or {}).items()
        report.failed += [name for name, run in ways if run["score"] is None]
        write()
    for name in plan.recorded:
        steps = tried(f"steps of {name}", partial(check.recorded, name, device, plan.words))
        report.recorded[name] = steps
        compared = steps["value"]
        if compared and not _same_curve(compared["difference"]):
            report.failed.append(f"steps of {name}")
        write()
    for name in plan.benchmarks:
        work = partial(check.benchmark, name, device, plan.runs, plan.eager)
        report.benchmarks[name] = tried(f"benchmark {name}", work)
        write()
    for table, cells in plan.cells.items():
        runs = [
            tried(f"{table} on {on}", partial(check.cell, table, on, cells, plan.words))
            for on in (device, PROCESSOR)
        ]
        there, here = (run["value"] or {} for run in runs)
        found: dict[str, Any] = {"device": runs[0], "processor": runs[1]}
        score, usual = there.get("score"), here.get("score")
        found["difference"] = None if score is None or usual is None else score - usual
        if there and score is None and usual is not None:
            report.failed.append(f"{table} on {device}")
        report.cells[table] = found
        write()


def _same_curve(difference: float | None) -> bool:
    return difference is not None and difference <= _SAME_CURVE


def _facts(outcome: Outcome) -> dict[str, Any]:
    return {**asdict(outcome), "seconds": round(outcome.seconds, 1)}


def page(report: Report) -> str:
    """The page: what failed, then every figure."""
    machine = report.machine["value"] or {}
    form = ", reduced" if report.reduced else ""
    lines = [
        f"# Check of {', '.join(machine.get('devices', [])) or report.device}{form}",
        "",
        f"{report.began}, `--device {report.device}`, {report.minutes:g} minutes at most. "
        f"Failed: {', '.join(report.failed) or 'nothing'}.",
        "",
        ", ".join(f"{name} {version}" for name, version in machine.get("versions", {}).items()),
        *_tests(report.tests),
        *_processes(report.processes),
        *_recorded(report.recorded),
        *_cells(report),
        *_benchmarks(report.benchmarks),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _tests(found: Mapping[str, Any]) -> list[str]:
    counts = found.get("value")
    if counts is None:
        return _section("Tests", found)
    said = (
        f"{counts['passed']} passed, {len(counts['failed'])} failed, {counts['skipped']} skipped."
    )
    return [*_section("Tests", found), said, *(f"- `{name}`" for name in counts["failed"])]


def _processes(found: Mapping[str, Any]) -> list[str]:
    if not found:
        return ["", "## Two processes", "", "There are no two devices."]
    lines = _section("Two processes", found)
    if found["value"]:
        lines += ["| | score | ms a step | |", "|---|---|---|---|"]
        lines += [f"| {name} | {_run(run)} |" for name, run in found["value"].items()]
    return lines


def _recorded(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    heads = [
        "model",
        "launched",
        "ms a step",
        "",
        "recorded",
        "ms a step",
        "",
        "difference of a loss",
    ]
    lines = ["", "## Recorded steps", "", _row(heads), _row(["---"] * len(heads))]
    for name, outcome in found.items():
        value = outcome["value"] or {}
        runs = [value.get(way, {"error": outcome["status"]}) for way in ("launched", "recorded")]
        difference = value.get("difference")
        largest = "" if difference is None else f"{difference:.1e}"
        lines.append(_row([name, *map(_run, runs), largest]))
    return lines


def _cells(report: Report) -> list[str]:
    heads = ["cell", report.device, "ms a step", "", "processor", "ms a step", "", "difference"]
    lines = ["", "## Cells of tables", "", _row(heads), _row(["---"] * len(heads))]
    for table, found in report.cells.items():
        ends = found["device"], found["processor"]
        runs = [end["value"] or {"error": end["status"]} for end in ends]
        difference = "" if found["difference"] is None else f"{found['difference']:+.4f}"
        choices = next((run["cell"] for run in runs if "cell" in run), "")
        lines.append(_row([f"{table} `{choices}`", *map(_run, runs), difference]))
    return lines


def _benchmarks(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    lines = []
    for name, outcome in found.items():
        lines += _section(f"Benchmark {name}", outcome)
        if outcome["status"] == "done":
            lines += ["```text", outcome["output"].rstrip(), "```"]
    return lines


def _section(title: str, found: Mapping[str, Any]) -> list[str]:
    """A heading, how long it took, and what was printed last where it failed."""
    lines = ["", f"## {title}", "", f"{found['status']}, {found['seconds']:g} s", ""]
    if found["status"] == "failed":
        lines += ["```text", *found["output"].splitlines()[-_SHOWN_LINES:], "```"]
    return lines


def _run(run: Mapping[str, Any]) -> str:
    """Score, time of a step, and why there is none, as cells of a row."""
    score, ms = run.get("score"), run.get("ms_per_step")
    figures = ["" if score is None else f"{score:.4f}", "" if ms is None else f"{ms:.1f}"]
    return " | ".join([*figures, (run.get("error") or "").replace("|", "/")])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
