"""Polynomial tokens on disk, and batches of them, for graphs that do not fit in memory."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.files.cache import content_key
from curvlab.data.files.disk_graph import MANIFEST, ArrayFolder, DiskGraph, write_disk_graph
from curvlab.data.loaders.batches import MiniBatchDataModule, pass_generator, step_parts
from curvlab.data.loaders.datamodule import load_source
from curvlab.data.splits.nodes import PARTS
from curvlab.data.transforms.polynomial_tokens import DTYPES, PolynomialTokens, check_finite
from curvlab.errors import UsageError
from curvlab.graph.polynomials import next_polynomial
from curvlab.graph.sparse_matrix import inverse_roots, neighbour_sums
from curvlab.leases import Holder, acquire
from curvlab.options import Incidental, NonNegativeInt, PositiveFloat

log = logging.getLogger(__name__)

NO_EDGES = torch.empty(2, 0, dtype=torch.long)

TOKENS = "tokens"
SPEC = ("basis", "orders", "self_loops", "dtype")  # options that tokens on disk depend on
BLOCK_ENTRIES = 2**22  # of the adjacency that are read at a time: 17 MB
BLOCK_BYTES = 2**26  # of tokens that are written at a time
STORAGE = {"float32": np.float32, "float16": np.float16, "bfloat16": np.int16}  # same bits


class TokenStore:
    """Tokens `[rows, orders + 1, features]` in a folder, of the nodes that have a label.

    Rows are in one random order, so that consecutive rows of a part of any split are a random
    sample of it. A folder that is damaged, or has the tokens of another graph, is refused.
    """

    def __init__(self, folder: Path, graph: DiskGraph, spec: PolynomialTokens) -> None:
        self.graph = graph
        self.spec = spec
        nodes = graph.read("nodes")
        self.order = np.random.default_rng(0).permutation(len(nodes))  # of the labelled nodes
        self.nodes = nodes[self.order]
        options = {name: getattr(spec, name) for name in SPEC}
        self.facts: dict[str, Any] = {**options, "graph": graph.arrays}
        stored = ArrayFolder.open(folder)
        if stored is not None and stored.facts != self.facts:
            raise stored.damage_error(MANIFEST)
        self.arrays = stored or ArrayFolder(folder)

    @property
    def complete(self) -> bool:
        """Whether all tokens exist."""
        return TOKENS in self.arrays.arrays

    def tokens(self) -> Tensor:
        """The tokens, mapped from the file; changes stay in memory."""
        tokens = torch.from_numpy(self.arrays.open_array(TOKENS))
        return tokens.view(torch.bfloat16) if self.spec.dtype == "bfloat16" else tokens

    def compute(self, memory_bytes: float) -> None:
        """Compute missing tokens, one block of columns after another, and join them.

        Two arrays `[nodes, columns]` in float32 are in memory. After an interruption, computation
        resumes with the block that was interrupted.
        """
        columns = int(memory_bytes // (2 * 4 * self.graph.num_nodes))
        if columns < 1:
            raise UsageError(
                f"tokens of {self.graph.num_nodes:,} nodes take at least "
                f"{8e-9 * self.graph.num_nodes:.2f} GB: raise batching.memory_gb"
            )
        self.graph.verify()
        features = self.graph.num_features
        columns_on_disk = sum(entry["shape"][1] for entry in self.arrays.arrays.values())
        to_compute = np.arange(columns_on_disk // (self.spec.orders + 1), features)
        blocks = -(-len(to_compute) // columns) or 1
        for part in np.array_split(to_compute, blocks):
            if len(part):
                self._compute_columns(int(part[0]), int(part[-1]) + 1)
                self.arrays.declare(**self.facts)
        self._join()

    def _compute_columns(self, first: int, last: int) -> None:
        """Compute and write some columns, an array for each order."""
        spec = self.spec
        nodes = self.graph.num_nodes
        now = np.empty((nodes, last - first), dtype=np.float32)
        for rows in _row_blocks(nodes, 4 * self.graph.num_features):
            now[rows] = self.graph.read("features", rows.start, rows.stop)[:, first:last]
        before = np.empty_like(now) if spec.orders else now
        self._write(0, first, now)
        for order in range(1, spec.orders + 1):
            for rows, offsets in self._adjacency_blocks():  # scale what neighbours read
                now[rows] *= self._inverse_root(offsets)
            for rows, offsets in self._adjacency_blocks():
                neighbours = self.graph.read("neighbours", offsets[0], offsets[-1])
                places = torch.from_numpy((offsets - offsets[0]).astype(np.int32))
                total = neighbour_sums(torch.from_numpy(now), torch.from_numpy(neighbours), places)
                product = total.numpy()
                if spec.self_loops:
                    product += now[rows]
                product *= self._inverse_root(offsets)
                before[rows] = next_polynomial(spec.basis, order, product, before[rows])
            for rows, offsets in self._adjacency_blocks():
                now[rows] *= self._inverse_root(offsets) ** -1
            before, now = now, before
            self._write(order, first, now)

    def _adjacency_blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Rows of the adjacency with about `BLOCK_ENTRIES` entries, and their offsets."""
        mean = max(1.0, 2 * self.graph.num_edges / self.graph.num_nodes)
        step = max(1, int(BLOCK_ENTRIES / mean))
        for start in range(0, self.graph.num_nodes, step):
            stop = min(start + step, self.graph.num_nodes)
            yield slice(start, stop), self.graph.read("offsets", start, stop + 1)

    def _inverse_root(self, offsets: np.ndarray) -> np.ndarray:
        """`1 / sqrt(degree)`; 1 for nodes without neighbours, whose sums are 0."""
        degree = np.maximum(np.diff(offsets) + self.spec.self_loops, 1)
        roots: np.ndarray = inverse_roots(torch.from_numpy(degree).double()).float().numpy()
        return roots[:, None]

    def _write(self, order: int, first: int, signals: np.ndarray) -> None:
        """Write the columns of one order, for the labelled nodes."""
        width = signals.shape[1]
        storage = STORAGE[self.spec.dtype]
        with self.arrays.writing(f"{order}-{first}", storage, width) as append:
            for rows in _row_blocks(len(self.nodes), 4 * width):
                values = torch.from_numpy(signals[self.nodes[rows]]).to(DTYPES[self.spec.dtype])
                check_finite(values)
                bits = values.view(torch.int16) if self.spec.dtype == "bfloat16" else values
                append(bits.numpy())

    def _join(self) -> None:
        """Join columns and orders into one array."""
        arrays = self.arrays
        orders = self.spec.orders + 1
        features = self.graph.num_features
        arrays.verify()
        firsts = sorted({int(name.partition("-")[2]) for name in arrays.arrays})
        storage = STORAGE[self.spec.dtype]
        with arrays.writing(TOKENS, storage, orders, features) as append:
            for rows in _row_blocks(len(self.nodes), 4 * orders * features):
                block = np.empty((rows.stop - rows.start, orders, features), storage)
                for order in range(orders):
                    names = (f"{order}-{first}" for first in firsts)
                    parts = [arrays.read(name, rows.start, rows.stop) for name in names]
                    block[:, order] = np.concatenate(parts, axis=1)
                append(block)
        arrays.arrays = {TOKENS: arrays.arrays[TOKENS]}
        arrays.declare(**self.facts)


def _row_blocks(rows: int, row_bytes: int) -> Iterator[slice]:
    """Slices of rows that take `BLOCK_BYTES` together."""
    step = max(1, BLOCK_BYTES // max(1, row_bytes))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


class TokenDataModule(MiniBatchDataModule):
    """Batches are the tokens of training nodes, which is all that models of single nodes need.

    The graph is written to disk (piece by piece if its source has `to_disk`) and its tokens are
    computed from there. The trainer's graph has only labelled nodes, in the random order of the
    file, and no edges; the training rows of a batch are consecutive in the file.

    Args:
        size: largest number of nodes of a batch, in training and evaluation.
        workers: processes that read the batches ahead of the steps; 0: the training process does.
        memory_gb: memory for computing the tokens, in 10^9 bytes; at least 8e-9 a node.
    """

    draws_at_windows = True

    workers: Incidental[NonNegativeInt] = 1
    memory_gb: Incidental[PositiveFloat] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        tokens = self.transforms[-1] if self.transforms else None
        if len(self.transforms) > 1 or not isinstance(tokens, PolynomialTokens):
            raise UsageError(
                "batching=tokens is for models of polynomial tokens, such as polyformer, on "
                "features as they come: choose another batching, or dataset.features=null"
            )
        self.spec = tokens

    def prepare_data(self) -> None:
        super().prepare_data()
        _ = self.graph

    def batch(self, nodes: Tensor) -> Data:
        return Data(
            tokens=self.graph.tokens.index_select(0, nodes),
            y=self.graph.y.index_select(0, nodes),
            edge_index=NO_EDGES,
            num_nodes=len(nodes),
            train_nodes=torch.arange(len(nodes)),
        )

    def rounds(self, number: int, batches: int) -> list[tuple[Tensor, ...]]:
        train = self.graph.train_mask.nonzero().squeeze(-1)
        cut = train.tensor_split(step_parts(len(train), self.size, batches))
        order = pass_generator(self.seed, number).permutation(len(cut))
        return [tuple(cut[i] for i in row) for row in order.reshape(-1, batches)]

    def _prepare(self) -> Data:
        store = self._store()
        store.arrays.verify()
        data = store.graph.labelled_nodes()
        if self.split is not None:
            data = self.split(data, self.seed)
        order = torch.from_numpy(store.order)
        rows = {name: data[name][order] for name in ("y", *PARTS) if name in data}
        return Data(
            tokens=store.tokens(),
            edge_index=NO_EDGES,
            num_nodes=len(order),
            chunk=self.size,
            nodes=torch.from_numpy(store.nodes),
            vocabulary=getattr(self.source, "vocabulary", None),
            **rows,
        )

    def _store(self) -> TokenStore:
        """Graph and tokens on disk, created by one process at a time if missing."""
        key = getattr(self.source, "disk_key", None)
        if key is None or self.cache_dir is None:
            raise UsageError(
                "batching=tokens: this dataset is not kept on disk; choose one of node "
                "classification"
            )
        folder = Path(self.cache_dir) / "graphs" / key
        graph = DiskGraph.open(folder)
        if graph is not None:
            store = self._tokens_of(graph)
            if store.complete:
                return store
        folder.parent.mkdir(parents=True, exist_ok=True)
        lease = folder.with_name(f"{key}.lease")  # the folder is deleted before it is written

        def wait(holder: Holder) -> None:
            log.info("%s is at work in %s: waiting", holder, folder)

        with acquire(lease, wait):
            graph = DiskGraph.open(folder) or self._write_graph(folder)
            store = self._tokens_of(graph)
            if not store.complete:
                store.compute(1e9 * self.memory_gb)
        return store

    def _write_graph(self, folder: Path) -> DiskGraph:
        to_disk = getattr(self.source, "to_disk", None)
        if to_disk is not None:
            return to_disk(folder)
        data = load_source(self.source)
        if data.x is None or data.y is None:
            raise UsageError(
                "batching=tokens: the graph needs features and labels of its nodes; choose another "
                "batching, which gives a graph without features some"
            )
        self._check_edges(data)
        return write_disk_graph(folder, data)

    def _tokens_of(self, graph: DiskGraph) -> TokenStore:
        options = {name: getattr(self.spec, name) for name in (*SPEC, "revision")}
        return TokenStore(graph.folder / content_key("tokens", options), graph, self.spec)

    @property
    def num_features(self) -> int:
        return int(self.graph.tokens.shape[2])

    def _whole_on(self, device: torch.device) -> Data:
        """The graph on a device, except for the tokens, which are read a part at a time."""
        if self._whole is None or self._whole.y.device != device:
            tokens = self.graph.tokens
            rest = {name: value for name, value in self.graph if name != "tokens"}
            self._whole = Data(**rest).to(str(device))
            self._whole.tokens = tokens
        return self._whole
