"""What only a GPU can show, in 20 minutes: one JSON file and one page.

python -m benchmarks.gpu_check                           on a GPU
python -m benchmarks.gpu_check --reduced --device cpu    its smallest form, on the processor

The tests marked gpu, a run by two processes beside the same by one,
others, each benchmark, and 100 steps of one cell of each table on the device and on the processor.
Each check has a process of its own: what crashes or takes too long costs itself alone.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import torch

from benchmarks.__main__ import BENCHMARKS, measure
from curvlab.config.compose import compose
from curvlab.config.folder import CONFIGS
from curvlab.errors import UsageError
from curvlab.results.files import atomic_write
from curvlab.results.folder import RunDirectory
from curvlab.results.result import git_commit, package_versions
from curvlab.run.train import train_in
from curvlab.tables import table_names
from curvlab.tables.planning import planned_cells, sweep_choices

MACHINE = "the machine"

SECONDS = 180.0
"""Of a check, at most."""

SAME_CURVE = 0.01
"""Largest relative difference of a loss that rounding explains after 100 steps."""

SHOWN_LINES = 15
"""Of what a failed check has printed: the last."""

SHORT = ("trainer.max_steps=100", "trainer.progress=false", "trainer.plots=false")
PAIR = (
    "model=gcn", "model.dropout=0", "dataset=synthetic_large", "dataset.source.num_nodes=20000",
    "batching=partition", "batching.size=1000", *SHORT, "trainer.steps_per_epoch=50",
)  # fmt: skip
"""A run that two processes make as one with two batches a step."""

TINY = ("dataset.source.num_nodes=60", "trainer.max_steps=5", "trainer.steps_per_epoch=5")
TINY_PAIR = (
    "dataset.source.num_nodes=600", "batching.size=100", "trainer.max_steps=4",
    "trainer.steps_per_epoch=2",
)  # fmt: skip

Check = tuple[Callable[[], Any], Callable[[Any], bool]]
"""Its work, which returns what JSON holds, and whether what it returned is right."""


def machine(device: str) -> dict[str, Any]:
    """The device and its software."""
    gpus = torch.cuda.device_count() if device == "cuda" else 0
    return {
        "devices": [torch.cuda.get_device_name(n) for n in range(gpus)] or ["processor"],
        "gpus": gpus,
        "threads": torch.get_num_threads(),
        "versions": package_versions(),
        "cuda": torch.version.cuda,
        "commit": git_commit(),
    }


def gpu_tests(paths: Sequence[str]) -> dict[str, Any]:
    """Run the tests marked `gpu`: how many ended how, and which failed."""
    with TemporaryDirectory() as folder:
        report = Path(folder, "tests.xml")
        words = ["-q", "-m", "gpu", "-o", "addopts=--strict-markers", f"--junitxml={report}"]
        command = [sys.executable, "-m", "pytest", *words, "-p", "no:cacheprovider", *paths]
        subprocess.run(command, check=False)
        cases = list(ElementTree.parse(report).iter("testcase"))
    failed = [c for c in cases if c.find("failure") is not None or c.find("error") is not None]
    skipped = sum(c.find("skipped") is not None for c in cases)
    return {
        "passed": len(cases) - len(failed) - skipped,
        "skipped": skipped,
        "failed": [f"{case.get('classname')}.{case.get('name')}" for case in failed],
    }


def benchmark(name: str, device: str, reduced: bool) -> None:
    """Print the figures of a benchmark."""
    runs = 1 if reduced else 10
    measure(name, argparse.Namespace(device=torch.device(device), runs=runs, eager=reduced))


def two_ways(
    words: Sequence[str], ways: Mapping[str, Sequence[str]], device: str
) -> dict[str, Any]:
    """The same run in two ways: the result of each, and the largest difference of their losses."""
    found: dict[str, Any] = {}
    for name, way in ways.items():
        with TemporaryDirectory() as folder:
            on = (f"trainer.accelerator={device}", f"paths.output_dir={folder}")
            found[name] = _result(compose((*words, *way, *on)), Path(folder))
    pairs = zip(*(run["losses"] for run in found.values()), strict=False)
    differences = [abs(one - other) / abs(one) for one, other in pairs]
    return {**found, "difference": max(differences, default=None)}


def cell(
    table: str, device: str, cells: Sequence[tuple[str, ...]], words: Sequence[str]
) -> dict[str, Any]:
    """A short run of the first cell whose data are at hand, on the device and on the processor."""
    found: dict[str, Any] = {}
    for choices in cells:
        found = {"cell": " ".join(choices)}
        for name, on in (("device", device), ("processor", "cpu")):
            with TemporaryDirectory() as folder:
                place = (f"trainer.accelerator={on}", f"paths.output_dir={folder}", "seed=0")
                (planned,) = planned_cells(CONFIGS, table, Path(folder), (*choices, *words, *place))
                trainer = planned.config.trainer
                if "validate_every" in trainer:  # which may be a whole pass over triples
                    trainer.validate_every = min(trainer.validate_every, trainer.max_steps)
                found[name] = _result(planned.config, Path(folder))
        there, here = (found[name]["score"] for name in ("device", "processor"))
        if here is not None:
            return {**found, "difference": None if there is None else there - here}
    return {**found, "difference": None}


def own_cells(table: str) -> list[tuple[str, ...]]:
    """The choices of a cell for each data set of a table: of the paper's own model, or of any."""
    choices = sweep_choices(CONFIGS, table)
    cells = [words for words in choices if f"model={table.partition('/')[0]}" in words] or choices
    by_data: dict[str, tuple[str, ...]] = {}
    for words in cells:
        by_data.setdefault(next((w for w in words if w.startswith("dataset=")), ""), words)
    return list(by_data.values())


def _result(config: Any, folder: Path) -> dict[str, Any]:
    """Train, and return the score, the time of a step and losses, or what is wrong."""
    found: dict[str, Any] = {"score": None, "error": None, "ms_per_step": None, "losses": []}
    try:
        result = train_in(config, RunDirectory(folder / "run"), multirun=True)
    except UsageError as error:
        return found | {"error": str(error)}
    curves = folder / "run" / "metrics.csv"
    if curves.exists():
        found["losses"] = pd.read_csv(curves)["loss"].tolist()
    return found | {name: getattr(result, name) for name in ("score", "error", "ms_per_step")}


def checks(device: str, gpus: int, reduced: bool) -> dict[str, Check]:
    """All that is checked, by name."""
    tiny = TINY if reduced else ()
    paths = ["tests/tasks/test_reconstruction_loss.py"] if reduced else ["tests"]
    found: dict[str, Check] = {"tests": (partial(gpu_tests, paths), lambda v: not v["failed"])}
    ways: dict[str, Sequence[str]] = {
        "one process": ("batching.accumulate=2",),
        "2 processes": ("trainer.devices=2",),
    }
    if device == "cpu" or gpus > 1:
        work = partial(two_ways, (*PAIR, *(TINY_PAIR if reduced else ())), ways, device)
        right = lambda v: all(v[name]["score"] is not None for name in ways)  # noqa: E731
        found["two processes"] = (work, right)
    for name in ["pairwise"] if reduced else BENCHMARKS:
        found[f"benchmark {name}"] = (partial(benchmark, name, device, reduced), lambda _: True)
    for table in ["fpst/fig3"] if reduced else table_names(CONFIGS):
        cells = [("model=fpst", "dataset=synthetic_web")] if reduced else own_cells(table)
        work = partial(cell, table, device, cells, (*SHORT, *tiny))
        found[table] = (work, _as_on_a_processor)
    return found


def _as_on_a_processor(found: Mapping[str, Any]) -> bool:
    """Whether the device has a score where the processor has one."""
    scores = (found.get(name, {}).get("score") for name in ("device", "processor"))
    return [score is None for score in scores] != [True, False]


def apart(words: Sequence[str], seconds: float) -> dict[str, Any]:
    """Run `python -m benchmarks.gpu_check WORDS --value FILE`; all that it started ends with it.

    Args:
        words: of the command line.
        seconds: after which it is killed; none are left at 0 or below.

    Returns:
        `status` (`done`, `failed`, `too long`, or `no time`), `seconds`, `value`, what it wrote to
        the file as JSON, and `output`: what it and the processes it started have printed.
    """
    if seconds <= 0:
        return {"status": "no time", "seconds": 0.0, "value": None, "output": ""}
    began = time.monotonic()
    with TemporaryDirectory() as folder:
        returned, printed = Path(folder, "value.json"), Path(folder, "output")
        command = [sys.executable, "-m", "benchmarks.gpu_check", *words, "--value", str(returned)]
        with printed.open("w") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)
            with suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
            code = process.poll()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        status = "too long" if code is None else "failed" if code else "done"
        value = json.loads(returned.read_text()) if status == "done" else None
        output = printed.read_text(errors="replace")
        if code is not None and code < 0:
            output += f"killed by signal {-code}\n"
    taken = round(time.monotonic() - began, 1)
    return {"status": status, "seconds": taken, "value": value, "output": output}


def examine(args: argparse.Namespace) -> list[str]:
    """Make all checks, write both files after each, and return the names of those that failed.

    Raises:
        UsageError: there is no such device.
    """
    deadline = time.monotonic() + 60 * args.minutes
    reduced = ["--reduced"] if args.reduced else []
    words = ["--device", args.device, *reduced, "--check"]
    found: dict[str, Any] = {MACHINE: apart([*words, MACHINE], SECONDS)}
    gpus = (found[MACHINE]["value"] or {}).get("gpus", 0)
    if args.device != "cpu" and not gpus:
        raise UsageError("no GPU is at hand for --device cuda: use --device cpu")
    args.output.mkdir(parents=True, exist_ok=True)
    failed: list[str] = []
    for name, (_, is_right) in checks(args.device, gpus, args.reduced).items():
        print(f"{name} ...", flush=True)
        outcome = apart([*words, name], min(SECONDS, deadline - time.monotonic()))
        found[name] = outcome
        done = outcome["status"] == "done"
        if outcome["status"] == "failed" or (done and not is_right(outcome["value"])):
            failed.append(name)
        report = {"device": args.device, "reduced": args.reduced, "failed": failed, "checks": found}
        atomic_write(args.output / "gpu_check.json", json.dumps(report, indent=1) + "\n")
        atomic_write(args.output / "gpu_check.md", page(report))
    return failed


def page(report: Mapping[str, Any]) -> str:
    """The page: what failed, then what each check found."""
    failed = ", ".join(report["failed"]) or "nothing"
    lines = [f"# Check of {report['device']}", "", f"Failed: {failed}."]
    for name, outcome in report["checks"].items():
        lines += ["", f"## {name}", "", f"{outcome['status']}, {outcome['seconds']:g} s", ""]
        for key, value in (outcome["value"] or {}).items():
            if isinstance(value, dict):
                value = {k: v for k, v in value.items() if k != "losses"}
            lines.append(f"- {key}: {json.dumps(value)}")
        if outcome["status"] == "failed":
            lines += ["```text", *outcome["output"].splitlines()[-SHOWN_LINES:], "```"]
        elif name.startswith("benchmark"):
            lines += ["```text", outcome["output"].rstrip(), "```"]
    return "\n".join(lines) + "\n"


def main(words: Sequence[str]) -> int:
    """Check, and write both files after each step; 1 if something failed, 2 if words are wrong."""
    parser = argparse.ArgumentParser(
        "gpu_check", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--reduced", action="store_true", help="one small thing of each kind")
    parser.add_argument("--minutes", type=float, default=20.0, help="of all (default: 20)")
    parser.add_argument("--output", type=Path, default=Path("outputs/gpu_check"))
    parser.add_argument("--check", help=argparse.SUPPRESS)  # this one alone, in this process
    parser.add_argument("--value", type=Path, help=argparse.SUPPRESS)  # where its value goes
    args = parser.parse_args(words)
    if args.check:
        found = checks(args.device, torch.cuda.device_count(), args.reduced)
        work = partial(machine, args.device) if args.check == MACHINE else found[args.check][0]
        args.value.write_text(json.dumps(work()))
        return 0
    try:
        failed = examine(args)
    except UsageError as error:
        print(f"gpu_check: {error}", file=sys.stderr)
        return 2
    print(f"{args.output}/gpu_check.md: {', '.join(failed) or 'nothing'} failed")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
