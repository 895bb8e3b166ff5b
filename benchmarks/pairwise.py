"""All distances of the points of a ball, beside geoopt's: time and memory, forward and backward."""

import argparse
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from benchmarks.common import print_table, verdict
from curvlab.manifolds import stereographic
from curvlab.manifolds._geoopt import geoopt
from curvlab.tasks.cost.timing import median_ms, peak_memory_mb

NODES, DIM = 4_039, 16
SPEEDUP, MEMORY = 8.0, 0.1
"""Of the time and the memory of geoopt's, at least and at most."""


def run(args: argparse.Namespace) -> None:
    """Print the table."""
    torch.manual_seed(0)
    nodes = NODES if args.runs > 1 else NODES // 10  # which only shows that it runs
    x = (0.1 * torch.randn(nodes, DIM, device=args.device)).requires_grad_()
    kappa = torch.tensor(-1.0, device=args.device, requires_grad=True)

    def theirs(x: Tensor, y: Tensor, kappa: Tensor) -> Tensor:
        math = geoopt.manifolds.stereographic.math
        return math.dist(x[:, None], y[None], k=kappa)

    def both(function: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
        torch.autograd.grad(function(x, x, kappa).sum(), [x, kappa])

    functions = {"pairwise_dist": stereographic.pairwise_dist, "geoopt dist": theirs}
    works = {name: partial(both, function) for name, function in functions.items()}
    ms = median_ms(works, args.device, max(3, args.runs // 6))
    memory = {name: peak_memory_mb(work, args.device) for name, work in works.items()}
    rows = [[name, f"{ms[name]:.0f}", f"{memory[name] or 0:,.0f}"] for name in works]
    (ours, other), (mine, needed) = ms.values(), memory.values()
    share = verdict(mine / needed, MEMORY) if mine is not None and needed else "-"
    rows.append(["ratio", verdict(other / ours, SPEEDUP, at_least=True), share])
    title = f"all distances of {nodes:,} points, dimension {DIM}, float32, forward and backward"
    print_table(title, ["", "ms", "peak MB"], rows)
