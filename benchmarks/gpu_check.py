"""What only a GPU can show, in 20 minutes: one JSON file and one page.

python -m benchmarks.gpu_check                           on a GPU
python -m benchmarks.gpu_check --reduced --device cpu    its smallest form, on the processor

The tests marked gpu, a run by two processes beside the same by one, steps that are recorded beside
others, each benchmark, and 100 steps of one cell of each table on the device and on the processor.
Each check has a process of its own: what crashes or takes too long costs itself alone.
"""

import argparse
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import traceback
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

_TREE = ("dataset=disease_synthetic", "split=random_60_20_20", "trainer.steps_per_epoch=20")
RECORDED = {
    "fpst": ("model=fpst", "dataset=synthetic_web", "trainer.steps_per_epoch=20"),
    "gcn": ("model=gcn", *_TREE),
    "hypformer": ("model=hypformer", *_TREE),
}
"""Runs on small graphs, whose steps are recorded."""

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
    """The choices of some cells of a table: of the paper's own model, or of any, data sets vary."""
    choices = sweep_choices(CONFIGS, table)
    own = f"model={table.partition('/')[0]}"
    cells = [words for words in choices if own in words] or choices
    by_data = {
        next((w for w in words if w.startswith("dataset=")), ""): words for words in cells[::-1]
    }
    return list(by_data.values())[::-1]


def _result(config: Any, folder: Path) -> dict[str, Any]:
    """Train, and return the score, the time of a step and losses, or what is wrong."""
    try:
        result = train_in(config, RunDirectory(folder / "run"), multirun=True)
    except UsageError as error:
        return {"score": None, "error": str(error), "ms_per_step": None, "losses": []}
    curves = folder / "run" / "metrics.csv"
    losses = pd.read_csv(curves)["loss"].tolist() if curves.exists() else []
    return {
        "score": result.score,
        "error": result.error,
        "ms_per_step": result.ms_per_step,
        "losses": losses,
    }


def checks(device: str, gpus: int, reduced: bool) -> dict[str, Check]:
    """All that is checked, by name."""
    paths = ["tests/tasks/test_reconstruction_loss.py"] if reduced else ["tests"]
    found: dict[str, Check] = {"tests": (partial(gpu_tests, paths), lambda v: not v["failed"])}
    if device == "cpu" or gpus > 1:
        ways: dict[str, Sequence[str]] = {
            "one process": ("batching.accumulate=2",),
            "2 processes": ("trainer.devices=2",),
        }
        pair = (*PAIR, *TINY_PAIR) if reduced else PAIR
        work = partial(two_ways, pair, ways, device)
        found["two processes"] = (work, _both_have_scores)
    for model in ["fpst"] if reduced else RECORDED:
        ways = {"launched": (), "recorded": ("trainer.cuda_graph=true",)}
        words = (*RECORDED[model], *SHORT, *(TINY if reduced else ()))
        work = partial(two_ways, words, ways, device)
        same = lambda v: v["difference"] is not None and v["difference"] <= SAME_CURVE  # noqa: E731
        found[f"steps of {model}"] = (work, same)
    for name in ["pairwise"] if reduced else BENCHMARKS:
        found[f"benchmark {name}"] = (partial(benchmark, name, device, reduced), lambda _: True)
    cells = (
        {"fpst/fig3": [("model=fpst", "dataset=synthetic_web")]}
        if reduced
        else {name: own_cells(name) for name in table_names(CONFIGS)}
    )
    for table, choices in cells.items():
        work = partial(cell, table, device, choices, (*SHORT, *(TINY if reduced else ())))
        found[table] = (work, lambda v: "processor" not in v or _as_on_a_processor(v))
    return found


def _both_have_scores(found: Mapping[str, Any]) -> bool:
    return all(found[name]["score"] is not None for name in ("one process", "2 processes"))


def _as_on_a_processor(found: Mapping[str, Any]) -> bool:
    """Whether the device has a score where the processor has one."""
    return found["device"]["score"] is not None or found["processor"]["score"] is None


def apart(work: Callable[[], Any], seconds: float) -> dict[str, Any]:
    """Call a function in a fork of this process; all that it started ends with it.

    A fork has what is imported here. Here no CUDA may have started, which a fork could not use.

    Args:
        work: returns what JSON can hold.
        seconds: after which it is killed; none are left at 0 or below.

    Returns:
        `status` (`done`, `failed`, `too long`, or `no time`), `seconds`, `value`, and `output`:
        what it and the processes it started have printed.
    """
    if seconds <= 0:
        return {"status": "no time", "seconds": 0.0, "value": None, "output": ""}
    began = time.monotonic()
    with TemporaryDirectory() as folder:
        printed, returned = Path(folder, "output"), Path(folder, "value.json")
        fork = multiprocessing.get_context("fork")
        process = fork.Process(target=_work, args=(work, printed, returned))
        process.start()
        process.join(seconds)
        code = process.exitcode
        with suppress(ProcessLookupError):
            os.killpg(process.pid or 0, signal.SIGKILL)
        process.join()
        status = "too long" if code is None else "failed" if code else "done"
        output = printed.read_text(errors="replace") if printed.is_file() else ""
        if code is not None and code < 0:
            output += f"killed by signal {-code}\n"
        value = json.loads(returned.read_text()) if status == "done" else None
    taken = round(time.monotonic() - began, 1)
    return {"status": status, "seconds": taken, "value": value, "output": output}


def _work(work: Callable[[], Any], printed: Path, returned: Path) -> None:
    """Be the process: work, and write what it returns."""
    os.setsid()
    handle = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    # Not the parent's streams, which a caller may have put something else in the place of.
    sys.stdout = sys.stderr = os.fdopen(handle, "w", buffering=1, errors="replace")
    try:
        returned.write_text(json.dumps(work()))
    except BaseException:
        traceback.print_exc()
        raise SystemExit(1) from None


def examine(device: str, reduced: bool, minutes: float, folder: Path) -> list[str]:
    """Make all checks, write both files after each, and return the names of those that failed.

    Raises:
        UsageError: there is no such device.
    """
    deadline = time.monotonic() + 60 * minutes
    found: dict[str, Any] = {"the machine": apart(partial(machine, device), SECONDS)}
    gpus = (found["the machine"]["value"] or {}).get("gpus", 0)
    if device != "cpu" and not gpus:
        raise UsageError("no GPU is at hand for --device cuda: use --device cpu")
    folder.mkdir(parents=True, exist_ok=True)
    failed: list[str] = []
    for name, (work, is_right) in checks(device, gpus, reduced).items():
        print(f"{name} ...", flush=True)
        outcome = apart(work, min(SECONDS, deadline - time.monotonic()))
        found[name] = outcome
        done = outcome["status"] == "done"
        if outcome["status"] == "failed" or (done and not is_right(outcome["value"])):
            failed.append(name)
        report = {"device": device, "reduced": reduced, "failed": failed, "checks": found}
        atomic_write(folder / "gpu_check.json", json.dumps(report, indent=1) + "\n")
        atomic_write(folder / "gpu_check.md", page(report))
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
    args = parser.parse_args(words)
    try:
        failed = examine(args.device, args.reduced, args.minutes, args.output)
    except UsageError as error:
        print(f"gpu_check: {error}", file=sys.stderr)
        return 2
    print(f"{args.output}/gpu_check.md: {', '.join(failed) or 'nothing'} failed")
    return int(bool(failed))


if __name__ == "__main__":
    # Looking for a GPU starts nothing that a fork could not use.
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    sys.exit(main(sys.argv[1:]))
