"""Timings of what the papers' models take, against each other, bare torch and geoopt."""

import argparse
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from lightning import LightningModule
from omegaconf import DictConfig
from rich import box
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch_geometric.data import Data

from curvlab.compilation import compile_parts
from curvlab.config.compose import compose
from curvlab.cpp import use_kernels
from curvlab.data.datasets.triples import MASKS
from curvlab.manifolds import stereographic
from curvlab.models.triples.flat import DistMult
from curvlab.optim.optimisers import Adagrad
from curvlab.run.parts import build_data, build_task
from curvlab.tasks.cost.timing import Work, median_ms, peak_memory_mb
from curvlab.tasks.kg_completion import KnowledgeGraphCompletion
from curvlab.tasks.triple_ranking import query_blocks

console = Console(width=max(Console().width, 110))  # a table of ratios does not fit 80 columns


def calibrate(device: torch.device) -> float:
    """Print what this machine is worth: a 1,024 x 1,024 float32 product, threads, versions.

    Returns:
        The milliseconds of the product.
    """
    a = torch.randn(1024, 1024, device=device)
    product = median_ms({"product": lambda: a @ a}, device)["product"]
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    console.print(
        f"calibration: 1,024 x 1,024 float32 product {product:.2f} ms on {name}, "
        f"{torch.get_num_threads()} threads, torch {torch.__version__}",
        highlight=False,
        soft_wrap=True,
    )
    return product


class Run(NamedTuple):
    """A run's task, its first training batch, and its configuration."""

    task: Any
    batch: Data
    config: DictConfig


def open_run(device: torch.device, *overrides: str) -> Run:
    """Build the parts of a run's step."""
    config = compose(overrides)
    task, batch, _ = build_run(device, *overrides)
    return Run(task, batch, config)


def build_run(device: torch.device, *overrides: str) -> tuple[LightningModule, Data, Data]:
    """Build a run's task, its first training batch and what it is evaluated on, on the device."""
    torch.manual_seed(0)
    config = compose(overrides)
    data = build_data(config)
    data.prepare_data()
    data.setup()
    task = build_task(config, data).to(device)
    batch = next(iter(data.train_dataloader()))
    batch = data.transfer_batch_to_device(batch, device, 0)
    return task, batch, data.evaluation_batch(batch)


def training_step(task: LightningModule, batch: Data, clip: float | None = None) -> Work:
    """One optimiser step in plain PyTorch, without the schedule of its rate.

    Args:
        task: the task.
        batch: its batch.
        clip: norm at which gradients are clipped.
    """
    configured = task.configure_optimizers()
    optimizer = configured["optimizer"] if isinstance(configured, dict) else configured
    assert isinstance(optimizer, torch.optim.Optimizer)

    def step() -> None:
        optimizer.zero_grad()
        loss = task.training_step(batch, 0)
        assert isinstance(loss, Tensor)
        loss.backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(task.parameters(), clip)
        optimizer.step()

    return step


def verdict(value: float, target: float, at_least: bool = False) -> str:
    """`value` against a target, as a cell of a table."""
    met = value >= target if at_least else value <= target
    sign = ">=" if at_least else "<="
    colour, relation = ("green", sign) if met else ("red", f"not {sign}")
    return f"[{colour}]{value:.2f} {relation} {target:g}[/]"


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table whose first column is text and whose others are figures."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console.print(table, soft_wrap=True)


CURVATURE, KNOWLEDGE = 1.3, 1.3
"""Largest admissible: FPS-T over TokenGT; DistMult over its bare products."""


PER_CLASS = "split=random_per_class"
CELLS = (
    ("model=hypformer", "dataset=cora", PER_CLASS),
    ("model=hypformer", "dataset=citeseer", PER_CLASS),
    ("model=hypformer", "dataset=airport_hgcn"),
    ("model=lrn", "dataset=disease_lp"),
    ("model=lrn", "dataset=airport_hgcn"),
    ("model=lrn", "dataset=chameleon"),
    ("model=lrn", "dataset=squirrel"),
    ("model=polyformer", "dataset=minesweeper"),
    ("model=polyformer_cheb", "dataset=minesweeper"),
    ("model=polyformer", "dataset=tolokers"),
    ("model=polyformer_cheb", "dataset=tolokers"),
    ("model=polyformer", "dataset=citeseer__quota"),
    ("model=polyformer_cheb", "dataset=citeseer__quota"),
)


CURVED, TRIPLES = ("web_edu", "facebook"), ("fb15k237", "wn18rr")
"""Data sets of FPS-T and TokenGT, and of DistMult and CAT."""


def steps(args: argparse.Namespace) -> None:
    """Training steps of Hypformer, LRN, PolyFormer and CAT."""
    rows = []
    for words in CELLS:
        step = training_step(*build_run(args.device, *words)[:2])
        milliseconds = median_ms({"step": step}, args.device, args.runs)["step"]
        memory = peak_memory_mb(step, args.device)
        name = ", ".join(word.partition("=")[2] for word in words[:2])
        rows.append([name, f"{milliseconds:.1f}", f"{memory:.0f}" if memory else "-"])
    print_table("A training step", ("", "ms", "MB beyond graph and model"), rows)
    _knowledge_graphs(args)


def curvature(args: argparse.Namespace) -> None:
    """Training steps of FPS-T away from curvature 0 and of TokenGT, the same model without maps."""
    rows = []
    for graph in CURVED:
        least: dict[str, float] = {}
        for compiled in (False,) if args.eager else (False, True):
            works: dict[str, Work] = {}
            for name, words in (("TokenGT", ()), ("FPS-T", ("manifold.kappa=-1.0",))):
                model = f"model={name.replace('-', '').lower()}"
                task, batch, _ = build_run(args.device, model, f"dataset={graph}", *words)
                if compiled:
                    compile_parts(task, args.device)
                works[name] = training_step(task, batch)
            ms = median_ms(works, args.device, args.runs)
            ratio = verdict(ms["FPS-T"] / ms["TokenGT"], CURVATURE)
            label = f"{graph}, compiled" if compiled else graph
            rows.append([label, *(f"{ms[name]:.1f}" for name in works), ratio])
            least = {name: min(time, least.get(name, time)) for name, time in ms.items()}
        if not args.eager:
            ratio = verdict(least["FPS-T"] / least["TokenGT"], CURVATURE)
            best = [f"{least[name]:.1f}" for name in ("TokenGT", "FPS-T")]
            rows.append([f"{graph}, best of each", *best, ratio])
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


BALLS = ("murp", "roth", "atth")
BALL = 2.5
"""Largest admissible: a model of the ball over DistMult."""


def hyperbolic(args: argparse.Namespace) -> None:
    """Training steps of MuRP, RotH and AttH against all entities, next to DistMult's."""
    rows = []
    for graph in TRIPLES:
        works: dict[str, Work] = {}
        for name in ("distmult", *BALLS):
            run = build_run(args.device, f"model={name}", f"dataset={graph}")
            works[name] = training_step(*run[:2])
            works[f"{name}, plain"] = _with_plain_kernels(works[name])
        del works["distmult, plain"]
        ms = median_ms(works, args.device, args.runs)
        rows.append([f"{graph}: DistMult", f"{ms['distmult']:.1f}", "", ""])
        for name in BALLS:
            times = (f"{ms[each]:.1f}" for each in (name, f"{name}, plain"))
            rows.append([f"  {name}", *times, verdict(ms[name] / ms["distmult"], BALL)])
    title = "A training batch of 512 triples, d = 64, one score for each entity"
    print_table(title, ("", "ms", "plain kernels, ms", "ratio"), rows)


def _with_plain_kernels(work: Work) -> Work:
    def call() -> None:
        with use_kernels("plain"):
            work()

    return call


RANKED_GRAPH = "fb15k237"

RANKING_SECONDS = 15.0
"""Largest admissible seconds beyond the scores."""

BLOCK = 2**22
"""Scores that are made at a time."""


@torch.inference_mode()
def ranking(args: argparse.Namespace) -> None:
    """Ranking the test triples of FB15k-237; PyKEEN 1.11 needs 92 s on two cores."""
    words = ("model=distmult", f"dataset={RANKED_GRAPH}", "task.inverse_relations=true")
    task, _, triples = build_run(args.device, *words)
    assert isinstance(task, KnowledgeGraphCompletion)
    task.eval()
    task.scores(triples, "test")  # builds the filter
    start = time.perf_counter()
    task.on_test_start()
    task.scores(triples, "test")
    whole = time.perf_counter() - start
    mask = triples[MASKS["test"]]
    head, tail = triples.edge_index[:, mask]
    relation = triples.edge_type[mask]
    size = BLOCK // triples.num_nodes
    start = time.perf_counter()
    for queries in query_blocks(size, head=head, relation=relation, tail=tail):
        task.encoder.scores(queries)
    beyond = whole - (time.perf_counter() - start)
    console.print(
        f"ranking {int(mask.sum()):,} queries, both sides of {RANKED_GRAPH}: {whole:.1f} s, beyond "
        f"the scores {verdict(beyond, RANKING_SECONDS)} s; PyKEEN 92 s on two cores",
        highlight=False,
    )


NODES, DIM = 4_039, 16
SPEEDUP, MEMORY = 8.0, 0.1
"""Of the time and the memory of geoopt's, at least and at most."""


def pairwise(args: argparse.Namespace) -> None:
    """All distances of 4,039 points of a ball, compared with geoopt, forward and backward."""
    from curvlab.manifolds._geoopt import geoopt

    torch.manual_seed(0)
    nodes = NODES if args.runs > 1 else NODES // 10  # which only shows that it runs
    x = (0.1 * torch.randn(nodes, DIM, device=args.device)).requires_grad_()
    kappa = torch.tensor(-1.0, device=args.device, requires_grad=True)

    def theirs(x: Tensor, y: Tensor, kappa: Tensor) -> Tensor:
        return geoopt.manifolds.stereographic.math.dist(x[:, None], y[None], k=kappa)

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


ENTITIES = 10**4, 10**5, 10**6
SLOPE = 0.1
"""Largest admissible growth of a sparse step, as the exponent of the number of entities."""


def sparse(args: argparse.Namespace) -> None:
    """A step of negative sampling with ever more entities: sparse and dense updates."""
    counts = ENTITIES if args.runs > 1 else tuple(n // 100 for n in ENTITIES)
    works: dict[str, Work] = {}
    for entities in counts:
        torch.manual_seed(0)
        triples = torch.randint(entities, (2, 1024), device=args.device)
        batch = Data(
            head=triples[0],
            relation=triples[0] % 10,
            query=torch.arange(1024, device=args.device),
            tail=triples[1],
        )
        for kind in (True, False):
            encoder = DistMult(entities, 10, dim=64, sparse=kind).to(args.device)
            task = KnowledgeGraphCompletion(
                encoder,
                Adagrad(),
                training="negative_sampling",
                negatives=64,
                corruption="tail",
                shared_negatives=True,
            )
            works[f"{entities} {kind}"] = training_step(task, batch)
    ms = median_ms(works, args.device, args.runs)
    rows = []
    for kind, name in ((True, "sparse"), (False, "dense")):
        times = [ms[f"{entities} {kind}"] for entities in counts]
        slope = math.log(times[-1] / times[0]) / math.log(counts[-1] / counts[0])
        shown = verdict(slope, SLOPE) if kind else f"{slope:.2f}"
        rows.append([name, *(f"{time:.1f}" for time in times), shown])
    title = "ms a step of DistMult, dimension 64, 1,024 triples, 64 samples, by number of entities"
    print_table(title, ["updates", *(f"{n:,}" for n in counts), "slope"], rows)
