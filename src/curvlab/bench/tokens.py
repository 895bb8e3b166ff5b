"""Polynomial tokens: in memory and from disk, against what copying the bytes would take."""

import argparse
import time
from copy import copy
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from curvlab.data.datasets.synthetic_large import SyntheticLarge
from curvlab.data.files.disk_graph import DiskGraph
from curvlab.data.loaders.token_store import TokenSpec, TokenStore
from curvlab.data.transforms.polynomial_tokens import PolynomialTokens
from curvlab.run.hardware import peak_memory_mb
from curvlab.tasks.cost.timing import console, median_ms, print_table, verdict

NODES = (1_000_000, 4_000_000, 10_000_000)
ORDERS, FEATURES, DEGREE = 4, 16, 10.0
SLOWER = 2.0
"""Than copying the bytes of the sparse products, at most."""

MEMORY_MB = 2**31 / 1e6
"""Peak of the whole process from disk, whatever the number of nodes."""


def run(args: argparse.Namespace) -> None:
    """Print both; `--nodes` for other sizes, `--folder` for where graphs and tokens go."""
    bandwidth = copy_bandwidth()
    console.print(f"copying: {bandwidth / 1e9:.1f} GB/s, read and written", highlight=False)
    rows = [_in_memory(nodes, bandwidth, args.runs) for nodes in (10_000, 100_000, 1_000_000)]
    title = f"Tokens in memory, {ORDERS} orders of {FEATURES} features, degree {DEGREE:g}"
    print_table(title, ("nodes", "ms", "copying, ms", "times as long"), rows)
    with TemporaryDirectory(dir=args.folder) as folder:
        rows = [_from_disk(nodes, bandwidth, Path(folder)) for nodes in args.nodes or NODES]
    columns = ("nodes", "graph, s", "tokens, s", "copying, s", "peak, MB", "disk, MB")
    print_table("Tokens from disk, in a process of their own", columns, rows)


def copy_bandwidth() -> float:
    """Bytes a second that are read and written by copying an array of 256 MB."""
    source = torch.ones(2**26)
    target = torch.empty_like(source)
    milliseconds = median_ms({"copy": lambda: target.copy_(source)}, torch.device("cpu"), 7)
    return 2 * 4 * 2**26 / (1e-3 * milliseconds["copy"])


def product_bytes(nodes: int, entries: int) -> int:
    """Of the sparse products: neighbours, weights, their signals, the signals that come out."""
    return ORDERS * (entries * (8 + 4 * FEATURES) + 2 * 4 * nodes * FEATURES)


def _source(nodes: int) -> SyntheticLarge:
    return SyntheticLarge(nodes, DEGREE, 2.5, 10, 0.6, FEATURES, 1.0, seed=0)


def _in_memory(nodes: int, bandwidth: float, runs: int) -> list[str]:
    data = _source(nodes).load()
    transform = PolynomialTokens("mono", ORDERS, True, "float32", FEATURES, False)
    work = {"tokens": lambda: transform(copy(data))}
    milliseconds = median_ms(work, torch.device("cpu"), min(runs, 5))["tokens"]
    copying = 1e3 * product_bytes(nodes, data.num_edges + nodes) / bandwidth
    ratio = verdict(milliseconds / copying, SLOWER)
    return [f"{nodes:,}", f"{milliseconds:.0f}", f"{copying:.0f}", ratio]


def _from_disk(nodes: int, bandwidth: float, folder: Path) -> list[str]:
    begin = time.perf_counter()
    source = _source(nodes)
    graph = source.to_disk(folder / source.disk_key)
    written = time.perf_counter() - begin
    with get_context("spawn").Pool(1) as pool:
        seconds, peak = pool.apply(_computed, (graph, folder / f"tokens-{nodes}"))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    copying = product_bytes(nodes, 2 * graph.num_edges + nodes) / bandwidth
    cells = [f"{nodes:,}", f"{written:.0f}", f"{seconds:.0f}", f"{copying:.1f}"]
    return [*cells, verdict(peak, MEMORY_MB), f"{size / 1e6:,.0f}"]


def _computed(graph: DiskGraph, folder: Path) -> tuple[float, float]:
    """Seconds, and the process's peak in MB."""
    begin = time.perf_counter()
    TokenStore(folder, graph, TokenSpec("mono", ORDERS, True, "float32")).compute(1e9)
    return time.perf_counter() - begin, peak_memory_mb()
