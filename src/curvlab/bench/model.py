"""Cost of curvature: FPS-T against TokenGT, the same model without a map; attention by tokens."""

import argparse
from functools import partial

import numpy as np
import torch
from lightning import LightningModule
from torch import Tensor
from torch_geometric.data import Data

from curvlab.bench.runs import build_run, training_step
from curvlab.layers.compilation import compile_parts
from curvlab.layers.stereographic import linear_attention
from curvlab.tasks.cost.timing import console, median_ms, print_table, verdict

GRAPHS = ("web_edu", "facebook")
FORWARD, STEP = 1.5, 1.6
"""Largest admissible ratios. The paper's own code: 2.2 (Web-Edu) and 1.24 (Facebook), forward."""

TOKENS = tuple(int(n) for n in np.logspace(4, 6, 5))
HEADS, HEAD_DIM = 2, 8


def run(args: argparse.Namespace) -> None:
    """Print both, with curvatures away from 0, eager and compiled."""
    device = args.device
    rows = []
    for graph_name in GRAPHS:
        for compiled in (False,) if args.eager else (False, True):
            runs = {
                "tokengt": build_run(device, "model=tokengt", f"dataset={graph_name}"),
                "fpst": build_run(
                    device, "model=fpst", "manifold.kappa=-1.0", f"dataset={graph_name}"
                ),
            }
            if compiled:
                compile_parts(torch.nn.ModuleList(task for task, _ in runs.values()), device.type)
            forward = median_ms(
                {name: partial(_forward, *r) for name, r in runs.items()}, device, args.runs
            )
            steps = {name: training_step(*r) for name, r in runs.items()}
            step = median_ms(steps, device, args.runs)
            for what, times, target in (("forward", forward, FORWARD), ("step", step, STEP)):
                ratio = verdict(times["fpst"] / times["tokengt"], target)
                cells = (f"{times[name]:.1f}" for name in ("tokengt", "fpst"))
                how = ", compiled" if compiled else ""
                rows.append([f"{graph_name}, {what}{how}", *cells, ratio])
    columns = ("", "TokenGT, ms", "FPS-T, ms", "ratio")
    print_table("Cost of curvature: one layer, 16 dimensions, 2 heads", columns, rows)
    _attention_by_tokens(device, args.runs)


@torch.no_grad()
def _forward(task: LightningModule, graph: Data) -> Tensor:
    return task.get_submodule("encoder")(graph)


@torch.no_grad()
def _attention_by_tokens(device: torch.device, runs: int) -> None:
    """Time of linear attention against the number of tokens, and the slope of their logarithms."""
    kappa = torch.tensor([-1.0, 0.5], device=device)
    times = []
    for tokens in TOKENS:
        query, key, value = (
            0.1 * torch.randn(HEADS, HEAD_DIM, tokens, device=device).mT for _ in range(3)
        )
        work = {"attention": partial(linear_attention, query, key, value, kappa)}
        times.append(median_ms(work, device, min(runs, 9))["attention"])
    slope = float(np.polyfit(np.log(TOKENS), np.log(times), 1)[0])
    rows = [[f"{n:,}", f"{ms:.2f}"] for n, ms in zip(TOKENS, times, strict=True)]
    print_table("Linear attention, forward", ("tokens", "ms"), rows)
    met = 0.9 <= slope <= 1.1
    console.print(
        f"log-log slope {slope:.3f} over two decades: {'within' if met else 'not within'} "
        "0.9 ... 1.1",
        highlight=False,
    )
