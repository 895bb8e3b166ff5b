"""Training steps of the papers' models, here and in a checkout of the authors' code, in turns."""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from benchmarks.timings import Run, open_run, print_table, training_step
from curvlab.errors import UsageError
from curvlab.graph.sparse_graph import SparseGraph
from curvlab.models.hybonet import LRN
from curvlab.tasks.cost.timing import Work, cpu_ms, peak_memory_mb

TOLERANCE = 1e-3
"""Largest difference of half of the rows of outputs, as a fraction of the largest entry.

A node whose features vanish has no direction: it is the origin here, and off the hyperboloid in
HyboNet's and LRN's code.
"""


class Theirs(NamedTuple):
    """The authors' model with our weights.

    Attributes:
        outputs: what is compared: embeddings, and logits where there are any.
        ours: the same of our model.
        step: one optimiser step.
    """

    outputs: Callable[[], list[Tensor]]
    ours: Callable[[], list[Tensor]]
    step: Work


class Comparison(NamedTuple):
    """A run, and what makes the authors' model of it, found by a file of their checkout."""

    label: str
    words: tuple[str, ...]
    file: str
    build: Callable[[Path, Run], Theirs]


def authors(args: argparse.Namespace) -> None:
    """Training steps in turns with a checkout of the authors' code (`--code FOLDER`)."""
    if args.code is None:
        raise UsageError(
            "authors: name a checkout of the authors' code, --code FOLDER, as of "
            "https://github.com/Graph-and-Geometric-Learning/LResNet"
        )
    folder = Path(args.code)
    known = [each for each in COMPARISONS if (folder / each.file).is_file()]
    if not known:
        files = ", ".join(sorted({each.file for each in COMPARISONS}))
        raise UsageError(f"--code {folder}: no code of a model is known here; looked for {files}")
    rows = [_compare(each, folder, args) for each in known]
    title = f"Training steps, CPU time, threads: {torch.get_num_threads()}, gradients clipped"
    print_table(title, COLUMNS, rows)
    if args.write:
        _write(Path(args.write), args, rows)


COLUMNS = ("", "theirs, ms", "ours, ms", "times faster", "theirs / ours, MB")
BEGIN, END = "<!-- authors: python -m benchmarks authors -->", "<!-- end of authors -->"


def _write(page: Path, args: argparse.Namespace, rows: list[list[str]]) -> None:
    """Replace the table between the marks of a page."""
    text = page.read_text(encoding="utf-8")
    before, mark, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise UsageError(f"--write {page}: the page has no marks {BEGIN} and {END}")
    machine = f"1,024 x 1,024 float32 product {args.product_ms:.1f} ms, torch {torch.__version__}"
    how = f"{date.today()}, threads: {torch.get_num_threads()}, {args.runs} turns, {machine}."
    lines = ["| " + " | ".join(row) + " |" for row in (COLUMNS, ["---"] * len(COLUMNS), *rows)]
    block = "\n".join((BEGIN, "", *lines, "", how, "", END))
    page.write_text(before + block + after, encoding="utf-8")


def _compare(comparison: Comparison, folder: Path, args: argparse.Namespace) -> list[str]:
    run = open_run(args.device, *comparison.words)
    with _importable((folder / comparison.file).parent):
        theirs = comparison.build(folder, run)
        _check_outputs(comparison.label, theirs)
        ours = training_step(run.task, run.batch, run.config.trainer.gradient_clip)
        ms = cpu_ms({"theirs": theirs.step, "ours": ours}, args.runs)
        memory = [peak_memory_mb(step, args.device) for step in (theirs.step, ours)]
    ratio = f"{ms['theirs'] / ms['ours']:.2f}"
    times = f"{ms['theirs']:.1f}", f"{ms['ours']:.1f}"
    return [comparison.label, *times, ratio, " / ".join(f"{m or 0:.0f}" for m in memory)]


@contextmanager
def _importable(place: Path) -> Iterator[None]:
    """Import from a folder within the block; its modules have names that others have, too."""
    before = set(sys.modules)
    sys.path.insert(0, str(place))
    invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(place))
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if file.startswith(str(place)):
                del sys.modules[name]


@torch.no_grad()
def _check_outputs(label: str, theirs: Theirs) -> None:
    for found, expected in zip(theirs.ours(), theirs.outputs(), strict=True):
        error = (found - expected).abs().amax(-1).median() / expected.abs().max()
        if not error <= TOLERANCE:
            raise UsageError(f"{label}: outputs differ by {error:.1e} of the largest entry")


def _hyperbolic_gnn(folder: Path, run: Run) -> Theirs:
    """HyboNet and LRN of the code of LRN, at c = 1, where its two conventions are one."""
    del folder
    task, batch, config = run
    encoder, graph = task.encoder, SparseGraph.from_data(batch)
    residual = isinstance(encoder, LRN)
    links = "train_edges" in batch
    layers = [encoder.features, *encoder.linears]
    options = argparse.Namespace(
        **{"manifold": "Lorentz", "c": 1.0, "cuda": -1, "device": "cpu", "use_att": 0},
        **{"local_agg": 0, "bias": 1, "r": 2.0, "t": 1.0, "nb_false_edges": 1, "nb_edges": 1},
        feat_dim=batch.x.shape[1],
        n_nodes=batch.num_nodes,
        dim=len(layers[0].weight),
        task="lp" if links else "nc",
        model="SkipHGNN" if residual else "HyboNet",
        num_layers=len(layers) + (0 if links else 1),
        dropout=config.model.dropout,
        act=config.model.activation,
        margin=task.decoder.margin if links else config.task.margin,
        n_classes=None if links else task.decoder.prototypes.shape[0],
    )
    models = import_module("models.base_models")
    model = (models.LPModel if links else models.NCModel)(options)
    model.to(torch.float32)
    for mine, layer in zip(layers, model.encoder.layers, strict=True):
        linear = layer.linear1 if residual else layer.linear
        _copy(mine.weight, linear.weight.weight)
        _copy(mine.bias, linear.weight.bias)
        _copy(mine.point.log_scale, linear.scale)
    if not links:
        _copy(task.decoder.prototypes, model.decoder.cls)
        _copy(-task.decoder.bias, model.decoder.bias)
    features = graph.features.dense
    adjacency = graph.matrix("adj_t")
    target, source = adjacency.ends
    entries = torch.stack([target, source]), adjacency.rows[2]
    shape = batch.num_nodes, batch.num_nodes
    neighbours = torch.sparse_coo_tensor(*entries, shape, check_invariants=False).coalesce()

    def loss() -> Tensor:
        points = model.encode(features, neighbours)
        if links:
            edges = batch.train_edges.T
            apart = torch.randint(batch.num_nodes, edges.shape)
            pairs = [model.decode(points, nodes) for nodes in (edges, apart)]
            found: Tensor = model.loss(torch.stack(pairs, dim=-1))
            return found
        nodes = batch.train_mask.nonzero().squeeze(1)
        logits = model.decode(points, neighbours, nodes)
        correct = logits.gather(1, batch.y[nodes].unsqueeze(-1))
        return torch.relu(model.margin - correct + logits).mean()

    def outputs() -> list[Tensor]:
        points = model.encode(features, neighbours)
        return [points] if links else [points, model.decoder.decode(points, neighbours)]

    def ours() -> list[Tensor]:
        points = encoder(batch)
        return [points] if links else [points, task.decoder(points)]

    kept = config.optimizer.get("weight_decay", 0.0)
    decayed = [p for n, p in model.named_parameters() if "bias" not in n and "scale" not in n]
    others = [p for n, p in model.named_parameters() if "bias" in n or "scale" in n]
    groups = [
        {"params": decayed, "weight_decay": kept},
        {"params": others, "weight_decay": 0.0},
    ]
    optimizer = import_module("optim").RiemannianAdam(
        params=groups, lr=config.optimizer.lr, stabilize=10
    )
    return Theirs(outputs, ours, _step(model, optimizer, loss, config.trainer.gradient_clip))


def _copy(value: Tensor, parameter: Tensor) -> None:
    if value.shape != parameter.shape:
        raise UsageError(f"a weight of theirs is {parameter.shape}, ours {value.shape}")
    parameter.data.copy_(value.detach())


def _step(model: nn.Module, optimizer: Any, loss: Callable[[], Tensor], clip: float | None) -> Work:
    def step() -> None:
        model.train()
        optimizer.zero_grad()
        loss().backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()

    return step


_LRN = "homophilous/train.py"
_UNIT = ("manifold.kappa=-1.0", "manifold.learnable=false")
COMPARISONS = (
    Comparison(
        "LRN, links of Disease",
        ("model=lrn", "dataset=disease_lp", *_UNIT),
        _LRN,
        _hyperbolic_gnn,
    ),
    Comparison(
        "LRN, Airport", ("model=lrn", "dataset=airport_hgcn", *_UNIT), _LRN, _hyperbolic_gnn
    ),
    Comparison(
        "HyboNet, Airport",
        ("model=hybonet", "dataset=airport_hgcn", "model.time_offset=0.5", *_UNIT),
        _LRN,
        _hyperbolic_gnn,
    ),
)
