"""Training steps at the papers' settings against those of their public code."""

import argparse
from typing import NamedTuple

from curvlab.bench.runs import build_run, training_step
from curvlab.tasks.cost.timing import median_ms, peak_memory_mb, print_table, verdict

PRODUCT = 11.0
"""Milliseconds of the calibration's product where the public code was timed, on two cores."""


class Cell(NamedTuple):
    """A run, the milliseconds of a step of the public code, how many times faster it should be."""

    words: tuple[str, ...]
    public: float
    faster: float


PER_CLASS = "split=random_per_class"
CELLS = (
    Cell(("model=hypformer", "dataset=cora", PER_CLASS), 284, 2),
    Cell(("model=hypformer", "dataset=citeseer", PER_CLASS), 636, 2),
    Cell(("model=hypformer", "dataset=airport_hgcn"), 241, 2),
    Cell(("model=lrn", "dataset=disease_lp"), 12.3, 1.5),
    Cell(("model=lrn", "dataset=airport_hgcn"), 34.4, 1.5),
    Cell(("model=lrn", "dataset=chameleon"), 43.6, 1.5),
    Cell(("model=lrn", "dataset=squirrel"), 73.0, 1.5),
    Cell(("model=polyformer", "dataset=minesweeper"), 1590, 2),
    Cell(("model=polyformer_cheb", "dataset=minesweeper"), 3840, 2),
    Cell(("model=polyformer", "dataset=tolokers"), 980, 2),
    Cell(("model=polyformer_cheb", "dataset=tolokers"), 4260, 2),
    Cell(("model=polyformer", "dataset=citeseer__quota"), 1330, 2),
    Cell(("model=polyformer_cheb", "dataset=citeseer__quota"), 660, 2),
)


def run(args: argparse.Namespace) -> None:
    """Print a step's median time, how many times faster it is, and what memory it needs."""
    device = args.device
    rows = []
    for words, public, faster in CELLS:
        step = training_step(*build_run(device, *words))
        milliseconds = median_ms({"step": step}, device, args.runs)["step"]
        memory = peak_memory_mb(step, device)
        there = public * args.product_ms / PRODUCT
        rows.append(
            [
                ", ".join(word.partition("=")[2] for word in words[:2]),
                f"{milliseconds:.1f}",
                f"{there:.1f}",
                verdict(there / milliseconds, faster, at_least=True),
                f"{memory:.0f}" if memory else "-",
            ]
        )
    print_table(
        "A training step (public code: its time on two cores, by the calibration)",
        ("", "ms", "public, ms", "times faster", "MB beyond graph and model"),
        rows,
    )
