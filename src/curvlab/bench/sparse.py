"""Products of a graph's sparse matrix with node vectors: ours, torch's and PyTorch Geometric's.

Every product reads one vector an entry and writes one a node: these bytes over its time, as a share
of the bandwidth of a copy, say how far it is from what memory allows. A share above 1 means that
vectors were found in the processor's caches.
"""

import argparse

import torch
from torch_geometric.data import Data
from torch_geometric.utils import scatter

from curvlab.bench.tokens import copy_bandwidth
from curvlab.data.transforms.graph import NormalisedAdjacency
from curvlab.layers.neighbour_sums import sparse_product
from curvlab.run.reporting import quiet
from curvlab.tasks.cost.timing import Work, console, median_ms, print_table, verdict

SIZES = ((100_000, 16), (100_000, 64), (100_000, 256), (1_000_000, 64))
"""Nodes and numbers a node."""

DEGREE = 10

FASTER = 1.0
"""Than torch's product, at least."""


@torch.no_grad()
def run(args: argparse.Namespace) -> None:
    """Print the table of all sizes, on the processor alone: a GPU takes torch's own product."""
    bandwidth = copy_bandwidth()
    console.print(f"copying: {bandwidth / 1e9:.1f} GB/s, read and written", highlight=False)
    with quiet():
        rows = [_one_size(nodes, dim, bandwidth, args.runs) for nodes, dim in SIZES]
    print_table(
        f"Products with a random graph's matrix, {DEGREE} neighbours a node, in ms",
        ("nodes x numbers", "gather and scatter", "torch CSR", "ours", "faster", "a copy's rate"),
        rows,
    )


def _one_size(nodes: int, dim: int, bandwidth: float, runs: int) -> list[str]:
    edges = torch.randint(nodes, (2, DEGREE * nodes))
    graph = NormalisedAdjacency(self_loops=False)(Data(edge_index=edges, num_nodes=nodes))
    matrix, x = graph.normalised_adj, torch.randn(nodes, dim)
    column, weights = matrix.col_indices(), matrix.values().unsqueeze(1)
    row = torch.arange(nodes).repeat_interleave(matrix.crow_indices().diff())
    works: dict[str, Work] = {
        # What PyTorch Geometric's layers do with an edge index.
        "scatter": lambda: scatter(weights * x[column], row, dim_size=nodes),
        "torch": lambda: matrix @ x,
        "ours": lambda: sparse_product(matrix, x),
    }
    ms = median_ms(works, torch.device("cpu"), runs)
    moved = len(column) * (8 + 4 + 4 * dim) + 4 * nodes * dim
    return [
        f"{nodes:,} x {dim}",
        *(f"{ms[name]:.1f}" for name in works),
        verdict(ms["torch"] / ms["ours"], FASTER, at_least=True),
        f"{moved / (1e-3 * ms['ours']) / bandwidth:.2f}",
    ]
