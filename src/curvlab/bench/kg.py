"""Knowledge graphs: a batch against its bare products, ranking, the cost of CAT's branches.

PyKEEN 1.11 needs 2.3 s for the training batch and 92 s to rank the test triples of FB15k-237 on two
cores, as measured apart from this.
"""

import argparse
import time
from functools import partial

import torch
import torch.nn.functional as F
from torch_geometric.data import Data

from curvlab.bench.runs import training_step
from curvlab.config.compose import compose
from curvlab.data.datasets.triples import MASKS
from curvlab.run.parts import build_data, build_task
from curvlab.tasks.cost.timing import Work, console, median_ms, print_table, verdict
from curvlab.tasks.kg_completion import KnowledgeGraphCompletion, queries_of

STEP, FORWARD, RANKING = 1.3, 2.5, 15.0
"""Largest admissible: a batch over the bare one; CAT's forward over its Euclidean variant's; the
seconds of ranking both sides of FB15k-237 beyond the scores."""

GRAPHS = ("fb15k237", "wn18rr")


def run(args: argparse.Namespace) -> None:
    """Print steps, forward passes and the time of ranking."""
    device = args.device
    _steps(device, args.runs)
    _forwards(device, args.runs)
    _ranking(device)


def _built(device: torch.device, *words: str) -> tuple[KnowledgeGraphCompletion, Data, Data]:
    """A task, its first training batch and all triples, on the device."""
    torch.manual_seed(0)
    config = compose(words)
    data = build_data(config)
    task = build_task(config, data).to(device)
    ((part,), *_) = data.rounds(0, 1)  # type: ignore[attr-defined]
    return task, data.batch(part).to(str(device)), data.graph.to(str(device))  # type: ignore[attr-defined]


def _bare(batch: Data, entities: int, relations: int, dim: int, device: torch.device) -> Work:
    """Product, cross-entropy, backward and Adam step of DistMult in plain torch."""
    head, relation = batch.head[batch.query], batch.relation[batch.query]
    tables = [
        torch.nn.Parameter(0.1 * torch.randn(rows, dim, device=device))
        for rows in (entities, relations)
    ]
    optimizer = torch.optim.Adam(tables)

    def step() -> None:
        optimizer.zero_grad()
        query = tables[0][head] * tables[1][relation]
        F.cross_entropy(query @ tables[0].T, batch.tail).backward()
        optimizer.step()

    return step


def _steps(device: torch.device, runs: int) -> None:
    rows = []
    for graph in GRAPHS:
        task, batch, triples = _built(device, "model=distmult", f"dataset={graph}")
        sizes = triples.num_nodes, len(triples.relation_names)
        works = {"bare": _bare(batch, *sizes, 64, device), "distmult": training_step(task, batch)}
        pairs = ("model=distmult", f"dataset={graph}", "batching.shuffle=pairs")
        works["pairs"] = training_step(*_built(device, *pairs)[:2])
        works["cat"] = training_step(*_built(device, "model=cat", f"dataset={graph}")[:2])
        ms = median_ms(works, device, runs)
        rows.append([f"{graph}: bare torch", f"{ms['bare']:.1f}", ""])
        ratio = verdict(ms["distmult"] / ms["bare"], STEP)
        rows.append(["  DistMult, smoothed labels, AdamW", f"{ms['distmult']:.1f}", ratio])
        rows.append(["  the same, pairs permuted", f"{ms['pairs']:.1f}", ""])
        rows.append(["  CAT", f"{ms['cat']:.1f}", f"{ms['cat'] / ms['bare']:.2f}"])
    print_table("A training batch of 512 triples, d = 64", ["", "ms", "ratio"], rows)


def _forwards(device: torch.device, runs: int) -> None:
    rows = []
    names = ("cat_euclidean", "cat_spherical", "cat_hyperbolic", "cat", "cat_eee", "cat_uniform")
    for graph in GRAPHS:
        built = {m: _built(device, f"model={m}", f"dataset={graph}") for m in names}
        ms: dict[str, dict[str, float]] = {}
        with torch.inference_mode():
            for what in ("block", "scores"):
                works: dict[str, Work] = {}
                for name, (task, _, triples) in built.items():
                    task.eval()
                    queries = _test_queries(triples, 512)
                    call = task.encoder if what == "block" else task.encoder.scores
                    works[name] = partial(call, queries)
                ms[what] = median_ms(works, device, runs)
        for name in names:
            ratio = ms["scores"][name] / ms["scores"][names[0]]
            cells = [f"{ms['block'][name]:.2f}", f"{ms['scores'][name]:.2f}"]
            shown = verdict(ratio, FORWARD) if name == "cat" else f"{ratio:.2f}"
            rows.append([f"{graph}: {name}", *cells, shown])
    columns = ["", "without scores, ms", "forward, ms", "ratio"]
    print_table("Inference of 512 queries", columns, rows)


def _test_queries(triples: Data, size: int) -> Data:
    mask = triples[MASKS["test"]]
    head, tail = triples.edge_index[:, mask]
    return queries_of(head, triples.edge_type[mask], tail, size)[0]


@torch.inference_mode()
def _ranking(device: torch.device) -> None:
    """Rank both sides of FB15k-237's test triples; then the products of the forward pass alone."""
    words = ("model=distmult", "dataset=fb15k237", "task.inverse_relations=true")
    task, _, triples = _built(device, *words)
    task.eval()
    task.evaluated(triples, "test")  # builds the filter
    start = time.perf_counter()
    task.on_test_start()
    task.evaluated(triples, "test")
    whole = time.perf_counter() - start
    mask = triples[MASKS["test"]]
    head, tail = triples.edge_index[:, mask]
    start = time.perf_counter()
    for queries in queries_of(head, triples.edge_type[mask], tail, 2**22 // triples.num_nodes):
        scores = task.encoder.scores(queries)
    alone = time.perf_counter() - start
    del scores
    console.print(
        f"ranking {int(mask.sum()):,} queries, both sides of FB15k-237: {whole:.1f} s, beyond the "
        f"scores {verdict(whole - alone, RANKING)} s; PyKEEN 92 s on two cores",
        highlight=False,
    )
