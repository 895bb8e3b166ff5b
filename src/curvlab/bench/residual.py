"""LRN's Table 3: one addition of two sets of points by each residual operator.

An operator reads two arrays and writes one at least: these bytes over its time, as a share of the
bandwidth of a copy on the same machine, say how far it is from what memory allows. The paper's
times for its own operator are below that limit of its card (448 GB/s: 0.55 ms and 11 ms).
"""

import argparse
from functools import partial
from typing import Literal

import torch

from curvlab.layers import LorentzResidual
from curvlab.layers.lorentz_residual import Operator
from curvlab.manifolds import Lorentz, lorentz
from curvlab.tasks.cost.timing import Work, console, median_ms, print_table, verdict

SIZES = ((10_000, 2_048), (100_000, 4_096))
"""Points and space-like coordinates; the second on a GPU alone."""

LARGEST_RATIO = 2.0
"""Of the compiled centroid to the Euclidean addition."""

ADDITION = "Euclidean addition"

PAPER_MS = {
    ("parallel_transport", "maps"): (3.6, 1448.0),
    ("tangent_space", "maps"): (8.3, 3601.0),
    ("centroid", "stable"): (0.25, 0.6),
}
"""Printed, on an RTX 3070."""

FORMS: tuple[tuple[Operator, Literal["stable", "maps"]], ...] = (
    ("centroid", "stable"),
    ("space_addition", "stable"),
    ("parallel_transport", "stable"),
    ("tangent_space", "stable"),
    ("parallel_transport", "maps"),
    ("tangent_space", "maps"),
)


@torch.no_grad()
def run(args: argparse.Namespace) -> None:
    """Print the table for each size."""
    device = args.device
    for position, (points, dim) in enumerate(SIZES):
        if position and device.type != "cuda":
            continue
        _one_size(position, points, dim, device, args)


def _one_size(
    position: int, points: int, dim: int, device: torch.device, args: argparse.Namespace
) -> None:
    space = Lorentz(learnable=False).to(device)
    # Of length about one, so that the literal forms are right too.
    x, y = (
        lorentz.expmap0(dim**-0.5 * torch.randn(points, dim, device=device), -1.0) for _ in "xy"
    )
    out = torch.empty_like(x)
    works: dict[str, Work] = {"copy": lambda: out.copy_(x), ADDITION: lambda: x + y}
    for operator, form in FORMS:
        layer = LorentzResidual(space, operator, form=form)
        works[f"{operator}, {form}"] = partial(layer, x, y)
        if form == "stable" and not args.eager:
            compiled = torch.compile(layer, fullgraph=True)
            works[f"{operator}, {form}, compiled"] = partial(compiled, x, y)
    ms = median_ms(works, device, args.runs)
    array = x.numel() * x.element_size()
    bandwidth = 2 * array / ms.pop("copy")
    rows = []
    for name, time in ms.items():
        ratio = time / ms[ADDITION]
        target = name == "centroid, stable, compiled"
        kind, _, shape = name.partition(", ")
        printed = PAPER_MS.get((kind, shape))
        rows.append(
            [
                name.replace("_", " "),
                f"{time:.2f}",
                verdict(ratio, LARGEST_RATIO) if target else f"{ratio:.2f}",
                f"{3 * array / time / bandwidth:.0%}",
                f"{printed[position]:g}" if printed else "-",
            ]
        )
    print_table(
        f"{points:,} points of {1 + dim} coordinates: at least {3 * array / 1e6:,.0f} MB moved",
        ("", "ms", "over addition", "share of a copy's bandwidth", "paper, ms"),
        rows,
    )
    console.print(f"a copy moves {bandwidth / 1e6:.1f} GB/s", highlight=False)
