"""What only a GPU can show, in one page.

python -m benchmarks.gpu_check                           on a GPU
python -m benchmarks.gpu_check --reduced --device cpu    its smallest form, on the processor

The tests marked gpu, a run by two processes and the same by one, each benchmark, and 20 steps
of one cell of each table on the device and on the processor.
What crashes or takes too long ends its process, and the next check has another one.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

from curvlab.files import atomic_write
from curvlab.results.result import git_commit, package_versions

CHECKS = str(Path(__file__).with_name("test_gpu.py"))
TESTS = Path(__file__).parents[1] / "tests"

SHOWN_LINES = 15
"""Of what a failed check has printed: the last."""


def page(device: str, reports: Sequence[Path]) -> tuple[str, list[str]]:
    """The page of pytest's reports, what failed first, and the names of what failed."""
    failed, lines = [], []
    for case in (case for path in reports for case in ElementTree.parse(path).iter("testcase")):
        fault = next((part for kind in ("failure", "error") for part in case.iter(kind)), None)
        skipped = case.find("skipped")
        status = "passed" if fault is None and skipped is None else "failed"
        status = "skipped" if skipped is not None else status
        lines += ["", f"## {case.get('name')}", "", f"{status}, {case.get('time')} s", ""]
        lines += [f"- {p.get('name')}: {p.get('value')}" for p in case.iter("property")]
        if fault is not None:
            failed.append(str(case.get("name")))
            lines += ["```text", *(fault.text or "").splitlines()[-SHOWN_LINES:], "```"]
        elif (printed := case.findtext("system-out")) and "benchmark" in str(case.get("name")):
            lines += ["```text", printed.strip(), "```"]
    gpus = torch.cuda.device_count() if device == "cuda" else 0
    head = [
        f"# Check of {', '.join(map(torch.cuda.get_device_name, range(gpus))) or 'the processor'}",
        f"Commit {git_commit()}, CUDA {torch.version.cuda}, {package_versions()}.",
        f"Failed: {', '.join(failed) or 'nothing'}.",
    ]
    return "\n".join(["\n\n".join(head), *lines]) + "\n", failed


def main(words: Sequence[str]) -> int:
    """Check and write the page; 1 if something failed, 2 if words are wrong."""
    parser = argparse.ArgumentParser(
        "gpu_check", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--reduced", action="store_true", help="one small thing of each kind")
    parser.add_argument("--output", type=Path, default=Path("outputs/gpu_check"))
    args = parser.parse_args(words)
    if args.device == "cuda" and not torch.cuda.is_available():
        print("gpu_check: no GPU is at hand for --device cuda: use --device cpu", file=sys.stderr)
        return 2
    os.environ["GPU_CHECK_DEVICE"] = args.device
    if args.reduced:
        os.environ["GPU_CHECK_REDUCED"] = "1"
    args.output.mkdir(parents=True, exist_ok=True)
    tests = TESTS / "tasks" / "test_reconstruction_loss.py" if args.reduced else TESTS
    reports = [args.output / "tests.xml", args.output / "checks.xml"]
    # A process of its own for each, which a crash ends; another one takes its place.
    common = ["-q", "-n1", "-o", "addopts=", "-p", "no:cacheprovider", "-o", "junit_logging=all"]
    common += ["-W", "default"]
    pytest.main([*common, "-m", "gpu", f"--junitxml={reports[0]}", str(tests)])
    pytest.main([*common, f"--junitxml={reports[1]}", CHECKS])
    text, failed = page(args.device, reports)
    atomic_write(args.output / "gpu_check.md", text)
    print(f"{args.output}/gpu_check.md: {', '.join(failed) or 'nothing'} failed")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
