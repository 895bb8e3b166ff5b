"""Time what the papers' models take: `python -m benchmarks steps`, or `all`; see docs/speed.md."""

import argparse
import sys
from collections.abc import Sequence

import torch

from benchmarks import timings
from benchmarks.authors import authors
from curvlab.errors import UsageError
from curvlab.run.hardware import choose_device, prepare_process

BENCHMARKS = ("steps", "curvature", "hyperbolic", "ranking", "pairwise", "sparse")


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """Parse the command line.

    Raises:
        UsageError: There is nothing to measure, or nothing to measure it on.
    """
    parser = argparse.ArgumentParser(
        "benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    summaries = ((name, getattr(timings, name).__doc__.partition("\n")[0]) for name in BENCHMARKS)
    parser.epilog = "\n".join(f"  {name:10} {what}" for name, what in summaries)
    parser.epilog += f"\n  authors    {(authors.__doc__ or '').partition(chr(10))[0]}"
    parser.add_argument("benchmark", choices=[*BENCHMARKS, "authors", "all"])
    parser.add_argument("--write", help="page whose table authors replaces")
    parser.add_argument(
        "--code", nargs="+", metavar="FOLDER", help="checkouts of the authors' code, for authors"
    )
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="(default: cpu)")
    parser.add_argument("--runs", type=int, default=20, help="timed calls of each (default: 20)")
    parser.add_argument("--eager", action="store_true", help="leave out torch.compile")
    args = parser.parse_args(words)
    if args.runs < 1:
        raise UsageError("--runs is at least 1")
    if args.device == "cuda" and not torch.cuda.is_available():
        raise UsageError("no GPU is at hand for --device cuda: leave it out")
    args.device = torch.device(args.device)
    return args


def main(words: Sequence[str]) -> int:
    """Run the named benchmark, or all; the exit code is 2 if input is wrong or missing."""
    try:
        args = parse_arguments(words)
    except UsageError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    code = 0
    prepare_process(
        torch.get_num_threads(), choose_device("auto")
    )  # as a run does, but for the order of sums
    torch.use_deterministic_algorithms(False)
    for name in BENCHMARKS if args.benchmark == "all" else [args.benchmark]:
        try:
            measure(name, args)
        except UsageError as error:  # of data that cannot be had; others need none, or other data
            print(f"benchmarks {name}: {error}", file=sys.stderr)
            code = 2
    return code


def measure(name: str, args: argparse.Namespace) -> None:
    """Run one benchmark, which prints its figures, after the calibration."""
    args.product_ms = timings.calibrate(args.device)
    benchmark = authors if name == "authors" else getattr(timings, name)
    benchmark(args)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
