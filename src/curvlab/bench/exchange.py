"""Bytes that `batching=halo` exchanges in a step, for 2 to 64 parts of a generated graph.

Nothing is trained. Nodes have communities, in which most of their edges end, and ids that say
nothing of these. A part fetches the vector of every node of another part that it has an edge to,
once forward and once backward in each layer.
"""

import argparse
import time

import numpy as np
import torch
from scipy.sparse import coo_array
from torch import Tensor

from curvlab.data.loaders.node_parts import greedy_parts, random_parts
from curvlab.layers.neighbour_sums import neighbour_sums
from curvlab.run.hardware import prepare_processor
from curvlab.tasks.cost.timing import console, print_table

NODES = 10_000_000
DEGREE = 10
COMMUNITY = 100
INSIDE = 0.8
"""Share of the edges that stay in a community."""

PARTS = (2, 4, 8, 16, 32, 64)
LAYERS, DIM = 2, 64
ROW_BYTES = 2 * LAYERS * DIM * 4
"""Of a node that a part fetches: float32, forward and backward."""

BLOCK = 1_000_000
"""Rows that are looked at, or timed, at a time."""


@torch.no_grad()
def run(args: argparse.Namespace) -> None:
    """Print bytes, and the bandwidth from which several processes are faster than one."""
    prepare_processor(1)
    nodes = (args.nodes or [NODES])[0]
    offsets, neighbours = graph(nodes)
    seconds = products_seconds(offsets, neighbours)
    console.print(
        f"{nodes:,} nodes, {len(neighbours) / nodes:.0f} neighbours each, {INSIDE:.0%} of them in "
        f"communities of {COMMUNITY}\n{LAYERS} layers of {DIM} numbers: {ROW_BYTES:,} bytes for a "
        f"node that a part fetches; the products of a step take {seconds:.1f} s on one core",
        highlight=False,
    )
    # Coarser partitions join neighbouring parts of the finest, which is drawn once.
    finest = greedy_parts(offsets, neighbours, PARTS[-1], seed=0)
    rows = []
    for parts in PARTS:
        row = [f"{parts}"]
        for part in (random_parts(nodes, parts, seed=0), finest * parts // PARTS[-1]):
            fetched = fetched_rows(offsets, neighbours, part, parts)
            busiest = int(fetched.max()) * ROW_BYTES
            needed = 8e-9 * busiest / (seconds * (1 - 1 / parts))
            total = int(fetched.sum()) * ROW_BYTES
            row += [f"{1e-9 * total:.1f}", f"{1e-9 * busiest:.2f}", f"{needed:.2f}"]
        rows.append([*row, f"{100 / parts:.1f} %"])
    print_table(
        "Exchanged in a step: GB in all, GB into the busiest part, and Gbit/s from which it pays",
        (
            "parts",
            *(f"{name} {what}" for name in ("random", "greedy") for what in ("all", "one", "from")),
            "edges sampled",
        ),
        rows,
    )


def graph(nodes: int) -> tuple[Tensor, Tensor]:
    """Where each node's neighbours begin, `[nodes + 1]`, and these, int32."""
    generator = np.random.default_rng(0)
    edges = nodes * DEGREE // 2
    one, other = (generator.integers(0, nodes, edges, dtype=np.int32) for _ in range(2))
    near = np.minimum(one - one % COMMUNITY + other % COMMUNITY, nodes - 1)
    other = np.where(generator.random(edges, dtype=np.float32) < INSIDE, near, other)
    ids = generator.permutation(nodes).astype(np.int32)
    one, other = ids[one], ids[other]
    ends = np.concatenate([one, other]), np.concatenate([other, one])
    matrix = coo_array((np.ones(2 * edges, np.int8), ends), shape=(nodes, nodes)).tocsr()
    return torch.from_numpy(matrix.indptr), torch.from_numpy(matrix.indices)


def fetched_rows(offsets: Tensor, neighbours: Tensor, part: Tensor, parts: int) -> np.ndarray:
    """How many nodes each of up to 64 parts fetches in a product, `[parts]`.

    A node's readers are the parts of its neighbours, a bit each.
    """
    begin, bits = offsets.numpy(), np.uint64(1) << part.numpy().astype(np.uint64)
    fetched = np.zeros(parts, dtype=np.int64)
    for start in range(0, len(part), BLOCK):
        bounds = begin[start : start + BLOCK + 1]
        joined = np.diff(bounds) > 0
        ends = neighbours.numpy()[bounds[0] : bounds[-1]]
        readers = np.bitwise_or.reduceat(bits[ends], bounds[:-1][joined] - bounds[0])
        readers &= ~bits[start : start + BLOCK][joined]
        for q in range(parts):
            fetched[q] += np.count_nonzero(readers & (np.uint64(1) << np.uint64(q)))
    return fetched


def products_seconds(offsets: Tensor, neighbours: Tensor) -> float:
    """Seconds of a step's sparse products, forward and backward, from those of a block of rows."""
    x, begin = torch.randn(len(offsets) - 1, DIM), offsets[: BLOCK + 1]
    ends = neighbours[: begin[-1]]
    times = []
    for _ in range(3):
        start = time.process_time()
        neighbour_sums(x, ends, begin)
        times.append(time.process_time() - start)
    return 2 * LAYERS * min(times) * (len(offsets) - 1) / (len(begin) - 1)
