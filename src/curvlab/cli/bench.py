"""Benchmarks: `curvlab bench geometry`, or `all`; ratios stand beside their targets."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import torch

from curvlab.errors import UsageError
from curvlab.program import parser as parser_of
from curvlab.program import program
from curvlab.run.hardware import prepare_processor
from curvlab.tasks.cost.timing import calibrate

BENCHMARKS = {
    "exchange": "bytes that batching=halo exchanges in a step, 2 to 64 parts of 10 million nodes",
    "geometry": "manifold functions against tanh and geoopt, eager and compiled",
    "kg": "training batches and ranking of knowledge graphs; CAT's branches",
    "layers": "Hypformer's layers against Euclidean ones; softmax attention of 4,000 points",
    "loop": "a run's steps against a bare PyTorch loop",
    "model": "FPS-T against TokenGT; linear attention up to a million tokens",
    "optimizer": "Riemannian Adam against Adam, on a hyperboloid and on a ball",
    "reconstruction": "a step over all pairs of nodes, in time and memory",
    "residual": "LRN's four residual operators against a Euclidean addition and the memory",
    "seeds": "ten seeds at once against ten runs one after another",
    "sparse": "products of a graph's matrix with node vectors, ours against torch's and PyG's",
    "steps": "training steps at the papers' settings against those of their public code",
    "tokens": "polynomial tokens in memory and from disk, against copying their bytes",
}


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """Parse the command line.

    Raises:
        UsageError: There is nothing to measure, or nothing to measure it on.
    """
    parser = parser_of("bench", __doc__)
    parser.epilog = "\n".join(f"  {name:14} {what}" for name, what in BENCHMARKS.items())
    parser.add_argument("benchmark", choices=[*BENCHMARKS, "all"])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="(default: cpu)")
    parser.add_argument("--runs", type=int, default=20, help="timed calls of each (default: 20)")
    parser.add_argument("--eager", action="store_true", help="leave out torch.compile")
    parser.add_argument("--nodes", type=int, nargs="+", help="exchange, tokens: of the graphs")
    parser.add_argument("--folder", help="tokens: where graphs and tokens go for a while")
    args = parser.parse_args(words)
    if args.runs < 1 or any(nodes < 1 for nodes in args.nodes or ()):
        raise UsageError("--runs and --nodes are at least 1")
    if args.folder is not None and not Path(args.folder).is_dir():
        raise UsageError(f"no folder {args.folder}: --folder names one that exists")
    if args.device == "cuda" and not torch.cuda.is_available():
        raise UsageError("no GPU is at hand for --device cuda: leave it out")
    return args


def main(arguments: Sequence[str]) -> int:
    """Run the named benchmark, or all; the exit code is 2 if input is wrong or missing."""
    try:
        args = parse_arguments(arguments)
    except UsageError as error:
        print(f"{program('bench')}: {error}", file=sys.stderr)
        return 2
    code = 0
    args.device = torch.device(args.device)
    prepare_processor(torch.get_num_threads())  # as a run does
    for name in BENCHMARKS if args.benchmark == "all" else [args.benchmark]:
        args.product_ms = calibrate(args.device)
        try:
            import_module(f"curvlab.bench.{name}").run(args)
        except UsageError as error:  # of data that cannot be had; others need none, or other data
            print(f"{program('bench')} {name}: {error}", file=sys.stderr)
            code = 2
    return code
