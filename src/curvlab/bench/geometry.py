"""Cost of the geometry: against `tanh`, against geoopt, eager and compiled."""

import argparse
from collections.abc import Callable

import torch
from torch import Tensor

from curvlab.manifolds import stereographic
from curvlab.manifolds._geoopt import geoopt
from curvlab.tasks.cost.timing import (
    Work,
    console,
    median_ms,
    peak_memory_mb,
    print_table,
    verdict,
)

geoopt_math = geoopt.manifolds.stereographic.math

ROWS, DIM = 10_000, 128
NODES, NODE_DIM = 4_039, 16
TARGETS = {"expmap0": 2.0, "logmap0": 1.5, "mobius_add": 3.0}
"""Largest admissible compiled time over that of tanh."""

PAIRWISE_SPEEDUP, PAIRWISE_MEMORY = 8.0, 0.1


def _forward_backward(function: Callable[..., Tensor], *inputs: Tensor) -> Work:
    """A call that computes the function and the gradient of every input, the curvature too."""
    leaves = [i.detach().clone().requires_grad_() for i in inputs]
    weight = torch.randn_like(function(*leaves).detach())
    return lambda: torch.autograd.grad(function(*leaves), leaves, weight)


def _rowwise(device: torch.device, runs: int, compiled: bool) -> None:
    x, y = (0.03 * torch.randn(ROWS, DIM, device=device) for _ in range(2))
    kappa = torch.tensor(-1.0, device=device)
    functions: dict[str, tuple[Callable[..., Tensor], Callable[..., Tensor], list[Tensor]]] = {
        "expmap0": (stereographic.expmap0, lambda v, k: geoopt_math.expmap0(v, k=k), [x, kappa]),
        "logmap0": (stereographic.logmap0, lambda v, k: geoopt_math.logmap0(v, k=k), [x, kappa]),
        "mobius_add": (
            stereographic.mobius_add,
            lambda u, v, k: geoopt_math.mobius_add(u, v, k=k),
            [x, y, kappa],
        ),
        "dist": (
            stereographic.dist,
            lambda u, v, k: geoopt_math.dist(u, v, k=k),
            [x, y, kappa],
        ),
    }
    rows = []
    for name, (ours, theirs, inputs) in functions.items():
        works = {
            "tanh": _forward_backward(torch.tanh, x),
            "eager": _forward_backward(ours, *inputs),
            "geoopt": _forward_backward(theirs, *inputs),
        }
        if compiled:
            works["compiled"] = _forward_backward(torch.compile(ours, fullgraph=True), *inputs)
        ms = median_ms(works, device, runs)
        columns = ("tanh", "eager", "compiled", "geoopt")
        cells = [f"{ms[c]:.2f}" if c in ms else "-" for c in columns]
        wanted = "-"
        if compiled:
            over_tanh = ms["compiled"] / ms["tanh"]
            wanted = verdict(over_tanh, TARGETS[name]) if name in TARGETS else f"{over_tanh:.2f}"
        rows.append([name, *cells, wanted, verdict(ms["eager"] / ms["geoopt"], 1.0)])
    print_table(
        f"forward + backward, {ROWS:,} x {DIM} float32, ms",
        ["", "tanh", "eager", "compiled", "geoopt", "compiled/tanh", "eager/geoopt"],
        rows,
    )


def _pairwise(device: torch.device, runs: int) -> None:
    x = 0.1 * torch.randn(NODES, NODE_DIM, device=device)
    kappa = torch.tensor(-1.0, device=device)

    def broadcast(x: Tensor, k: Tensor) -> Tensor:
        return geoopt_math.dist(x[:, None], x[None], k=k)

    functions = {
        "pairwise_dist": lambda x, k: stereographic.pairwise_dist(x, x, k),
        "geoopt dist": broadcast,
    }
    forward, both, memory = {}, {}, {}
    for name, function in functions.items():
        works: dict[str, Work] = {
            "forward": lambda f=function: f(x, kappa),  # type: ignore[misc]
            "both": _forward_backward(function, x, kappa),
        }
        ms = median_ms(works, device, runs)
        forward[name], both[name] = ms["forward"], ms["both"]
        memory[name] = peak_memory_mb(works["both"], device)
    ours, theirs = functions
    rows = [
        [
            name,
            f"{forward[name]:.0f}",
            f"{both[name]:.0f}",
            "-" if (used := memory[name]) is None else f"{used:,.0f}",
        ]
        for name in functions
    ]
    mine, other = memory[ours], memory[theirs]
    rows.append(
        [
            "ratio",
            f"{forward[theirs] / forward[ours]:.1f}",
            verdict(both[theirs] / both[ours], PAIRWISE_SPEEDUP, at_least=True),
            "-" if mine is None or other is None else verdict(mine / other, PAIRWISE_MEMORY),
        ]
    )
    print_table(
        f"all distances of {NODES:,} points, dimension {NODE_DIM}, float32",
        ["", "forward ms", "+ backward ms", "peak MB with backward"],
        rows,
    )


def run(args: argparse.Namespace) -> None:
    """Print both tables; `args` has `device`, `runs` and `eager`."""
    device = args.device
    torch.manual_seed(0)
    _rowwise(device, args.runs, compiled=not args.eager)
    _pairwise(device, max(3, args.runs // 6))
    if args.eager:
        console.print("compiled figures left out (--eager)")
