"""Training steps: against those of the public code, of a flat twin, of bare torch."""

import argparse
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch_geometric.data import Data

from benchmarks.common import build_run, print_table, verdict
from curvlab.layers.compilation import compile_parts
from curvlab.tasks.cost.timing import Work, median_ms, peak_memory_mb, training_step

PRODUCT = 11.0
"""Milliseconds of the calibration's product where the public code was timed, on two cores."""

CURVATURE, KNOWLEDGE = 1.6, 1.3
"""Largest admissible: FPS-T over TokenGT; DistMult over its bare products."""


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


CURVED, TRIPLES = ("web_edu", "facebook"), ("fb15k237", "wn18rr")
"""Data sets of FPS-T and TokenGT, and of DistMult and CAT."""


def run(args: argparse.Namespace) -> None:
    """Print the three tables."""
    _beside_public_code(args)
    _curvature(args)
    _knowledge_graphs(args)


def _beside_public_code(args: argparse.Namespace) -> None:
    rows = []
    for words, public, faster in CELLS:
        step = training_step(*build_run(args.device, *words)[:2])
        milliseconds = median_ms({"step": step}, args.device, args.runs)["step"]
        memory = peak_memory_mb(step, args.device)
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


def _curvature(args: argparse.Namespace) -> None:
    """FPS-T away from curvature 0 against TokenGT, the same model without a map."""
    rows = []
    for graph in CURVED:
        for compiled in (False,) if args.eager else (False, True):
            works: dict[str, Work] = {}
            for name, words in (("TokenGT", ()), ("FPS-T", ("manifold.kappa=-1.0",))):
                model = f"model={name.replace('-', '').lower()}"
                task, batch, _ = build_run(args.device, model, f"dataset={graph}", *words)
                if compiled:
                    compile_parts(task, args.device.type)
                works[name] = training_step(task, batch)
            ms = median_ms(works, args.device, args.runs)
            ratio = verdict(ms["FPS-T"] / ms["TokenGT"], CURVATURE)
            label = f"{graph}, compiled" if compiled else graph
            rows.append([label, *(f"{ms[name]:.1f}" for name in works), ratio])
    print_table("Curvature: a training step", ("", "TokenGT, ms", "FPS-T, ms", "ratio"), rows)


def _knowledge_graphs(args: argparse.Namespace) -> None:
    rows = []
    for graph in TRIPLES:
        task, batch, _ = build_run(args.device, "model=distmult", f"dataset={graph}")
        rows_of = [len(w) for w in task.get_submodule("encoder").parameters() if w.dim() == 2]
        cat = build_run(args.device, "model=cat", f"dataset={graph}")[:2]
        works: dict[str, Work] = {"bare": _bare(batch, rows_of)}
        works |= {"distmult": training_step(task, batch), "cat": training_step(*cat)}
        ms = median_ms(works, args.device, args.runs)
        rows.append([f"{graph}: bare torch", f"{ms['bare']:.1f}", ""])
        ratio = verdict(ms["distmult"] / ms["bare"], KNOWLEDGE)
        rows.append(["  DistMult, smoothed labels, AdamW", f"{ms['distmult']:.1f}", ratio])
        rows.append(["  CAT", f"{ms['cat']:.1f}", f"{ms['cat'] / ms['bare']:.2f}"])
    print_table("A training batch of 512 triples, d = 64", ("", "ms", "ratio"), rows)


def _bare(batch: Data, rows: list[int], dim: int = 64) -> Work:
    """Product, cross-entropy, backward and Adam step of DistMult in plain torch."""
    head, relation = batch.head[batch.query], batch.relation[batch.query]
    tables = [torch.nn.Parameter(0.1 * torch.randn(n, dim, device=head.device)) for n in rows]
    optimizer = torch.optim.Adam(tables)

    def step() -> None:
        optimizer.zero_grad()
        query = tables[0][head] * tables[1][relation]
        F.cross_entropy(query @ tables[0].T, batch.tail).backward()
        optimizer.step()

    return step
