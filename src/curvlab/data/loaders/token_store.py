"""Polynomial tokens of graphs that do not fit in memory, computed and kept on disk."""

import json
import logging
import os
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from curvlab.checksums import DamagedError, read_checked, with_checksum
from curvlab.data.files.disk_graph import DiskGraph
from curvlab.data.transforms.polynomial_tokens import DTYPES
from curvlab.errors import UsageError
from curvlab.layers.neighbour_sums import neighbour_sums
from curvlab.results.files import atomic_write, flush

log = logging.getLogger(__name__)

FILE, DONE, PROGRESS = "tokens.bin", "tokens.json", "progress.json"
BLOCK_ENTRIES = 2**22  # of the adjacency that are read at a time: 17 MB
BLOCK_BYTES = 2**26  # of tokens that are written or checked at a time
STORAGE = {"float32": np.float32, "float16": np.float16, "bfloat16": np.int16}  # same bits


@dataclass(frozen=True)
class TokenSpec:
    """Which tokens: see `PolynomialTokens`."""

    basis: str
    orders: int
    self_loops: bool
    dtype: str


class TokenStore:
    """Tokens `[rows, orders + 1, features]` in a file, of the nodes that have a label.

    Rows are in a random order, the same for every split, so that consecutive rows of one part of
    any split are a random sample of it that is read front to back.

    Args:
        folder: Where the file is.
        graph: Whose tokens they are.
        spec: Which tokens.
    """

    def __init__(self, folder: Path, graph: DiskGraph, spec: TokenSpec) -> None:
        self.folder = folder
        self.graph = graph
        self.spec = spec
        nodes = np.load(graph.folder / "nodes.npy")
        self.order = np.random.default_rng(0).permutation(len(nodes))  # of the labelled nodes
        self.nodes = nodes[self.order]
        self.shape = (len(nodes), spec.orders + 1, graph.num_features)

    @property
    def complete(self) -> bool:
        """Whether all tokens are there."""
        return (self.folder / DONE).exists()

    def tokens(self) -> Tensor:
        """The tokens, mapped from the file; changes of them stay in memory."""
        array = np.memmap(self.folder / FILE, self._storage, mode="c", shape=self.shape)
        tokens = torch.from_numpy(array)
        return tokens.view(torch.bfloat16) if self.spec.dtype == "bfloat16" else tokens

    def compute(self, memory_bytes: float) -> None:
        """Compute what is missing, a block of feature columns after the other.

        An interrupted computation goes on with the block that it was at, if those before it are
        still what was written. Two arrays `[nodes, columns]` in float32 are held, with as many
        columns as the memory allows.

        Args:
            memory_bytes: For these two arrays.

        Raises:
            UsageError: The memory does not hold them for one column, the disk does not hold the
                tokens, or the file has been changed meanwhile.
        """
        columns = int(memory_bytes // (2 * 4 * self.graph.num_nodes))
        if columns < 1:
            raise UsageError(
                f"tokens of {self.graph.num_nodes:,} nodes take at least "
                f"{8e-9 * self.graph.num_nodes:.2f} GB: raise batching.memory_gb"
            )
        self.graph.verify()
        self.folder.mkdir(parents=True, exist_ok=True)
        parts = self._progress()
        done = parts[-1]["columns"][1] if parts else 0
        blocks = -(-(self.shape[2] - done) // columns)
        for part in np.array_split(np.arange(done, self.shape[2]), max(1, blocks)):
            if len(part):
                ends = [int(part[0]), int(part[-1]) + 1]
                parts.append({"columns": ends, "crc32": self._compute_columns(*ends)})
                self._declare(PROGRESS, parts=parts)
        if not self._holds(parts):
            raise self._damaged(FILE)
        flush(self.folder / FILE)
        self._declare(DONE, crc32=list(self._checksums()))
        (self.folder / PROGRESS).unlink(missing_ok=True)

    def verify(self) -> None:
        """Compare the file with its checksums.

        Raises:
            UsageError: It has been changed or cut.
        """
        stored = _read_state(self.folder / DONE)
        if stored is None or stored != self._says(crc32=stored.get("crc32")):
            raise self._damaged(DONE)
        if not self._has_size() or list(self._checksums()) != stored["crc32"]:
            raise self._damaged(FILE)

    def _says(self, **facts: Any) -> dict[str, Any]:
        """What a manifest of the tokens says: which they are, of what graph, and their checksums.

        So the graph's manifest and this are one: each array leads to a checksum that a checksum
        vouches for.
        """
        return {**asdict(self.spec), "graph": dict(self.graph.checksums), **facts}

    def _declare(self, name: str, **facts: Any) -> None:
        content = with_checksum(self._says(**facts))
        atomic_write(self.folder / name, json.dumps(content))

    @property
    def _storage(self) -> "np.dtype[np.generic]":
        return np.dtype(STORAGE[self.spec.dtype])

    @property
    def _size(self) -> int:
        """Bytes of the file."""
        return int(np.prod(self.shape)) * self._storage.itemsize

    def _has_size(self) -> bool:
        """Whether the file is there, as long as it must be."""
        file = self.folder / FILE
        return file.exists() and file.stat().st_size == self._size

    def _damaged(self, name: str) -> UsageError:
        """What is said of a file that has been changed."""
        return UsageError(
            f"{self.folder / name} is not what was written there: delete the folder {self.folder} "
            "and run again to compute the tokens anew."
        )

    def _progress(self) -> list[dict[str, Any]]:
        """Parts that are done, with their columns and checksums; makes room if there are none."""
        path = self.folder / PROGRESS
        if path.exists():
            state = _read_state(path) or {}
            parts: list[dict[str, Any]] = state.get("parts") or []
            known = state == self._says(parts=parts)
            if known and self._has_size() and self._holds(parts):
                return parts
            log.warning("%s is not what was written there: computing the tokens anew", self.folder)
            path.unlink()
        self._make_room()
        return []

    def _make_room(self) -> None:
        """Start the file anew, at its full size.

        A disk that turns out to be full while a mapped file is written ends the process without
        a word, so the room is taken now, where the system can.

        Raises:
            UsageError: There is not so much.
        """
        file = self.folder / FILE
        try:
            with file.open("wb") as handle:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(handle.fileno(), 0, self._size)
                else:
                    handle.truncate(self._size)
        except OSError as error:
            file.unlink(missing_ok=True)
            raise UsageError(
                f"{self._size / 1e9:.2f} GB of tokens cannot be kept in {self.folder} "
                f"({error.strerror}): free space there or set paths.data_dir to another disk."
            ) from error

    def _holds(self, parts: list[dict[str, Any]]) -> bool:
        """Whether the file has these parts as they were computed."""
        found = [[0] * self.shape[1] for _ in parts]
        for rows in self._row_blocks():
            block = self._block(rows, "r")
            for part, sums in zip(parts, found, strict=True):
                columns = slice(*part["columns"])
                for order, before in enumerate(sums):
                    values = np.ascontiguousarray(block[:, order, columns])
                    sums[order] = zlib.crc32(values.data, before)
        return found == [part["crc32"] for part in parts]

    def _compute_columns(self, first: int, last: int) -> list[int]:
        """Compute and write some columns; the checksums of their orders."""
        spec, nodes, width = self.spec, self.graph.num_nodes, last - first
        path, wide = self.graph.folder / "features.npy", self.shape[2]
        now = np.empty((nodes, width), dtype=np.float32)
        for rows in _row_blocks(nodes, 4 * wide):
            block = _read(path, np.float32, rows.start * wide, rows.stop * wide)
            now[rows] = block.reshape(-1, wide)[:, first:last]
        before = np.empty_like(now) if spec.orders else now
        checksums = [self._write(0, first, now)]
        for order in range(1, spec.orders + 1):
            self._scale(now, -0.5)  # what neighbours see
            seen = torch.from_numpy(now)
            for rows, product, scale in self._products(seen):
                if spec.self_loops:
                    product += now[rows]
                product *= scale
                if spec.basis == "cheb":
                    np.negative(product, out=product)
                    if order > 1:
                        product *= 2
                        product -= before[rows]
                before[rows] = product
            self._scale(now, 0.5)
            before, now = now, before
            checksums.append(self._write(order, first, now))
        return checksums

    def _products(self, signals: Tensor) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """For blocks of nodes the sums over neighbours of signals, and `1 / sqrt(degree)`."""
        for rows, offsets in self._adjacency_blocks():
            neighbours = _read(
                self.graph.folder / "neighbours.npy", np.int32, offsets[0], offsets[-1]
            )
            total = neighbour_sums(
                signals,
                torch.from_numpy(neighbours),
                torch.from_numpy((offsets - offsets[0]).astype(np.int32)),
            )
            yield rows, total.numpy(), self._inverse_root(offsets)

    def _adjacency_blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Rows of the adjacency with about `BLOCK_ENTRIES` entries, and their offsets."""
        mean = max(1.0, 2 * self.graph.num_edges / self.graph.num_nodes)
        step = max(1, int(BLOCK_ENTRIES / mean))
        path = self.graph.folder / "offsets.npy"
        for start in range(0, self.graph.num_nodes, step):
            stop = min(start + step, self.graph.num_nodes)
            yield slice(start, stop), _read(path, np.int64, start, stop + 1)

    def _inverse_root(self, offsets: np.ndarray) -> np.ndarray:
        """`1 / sqrt(degree)`, of nodes without neighbours, whose sums are 0, 1."""
        degree = np.diff(offsets) + self.spec.self_loops
        return (np.maximum(degree, 1)[:, None] ** -0.5).astype(np.float32)

    def _scale(self, signals: np.ndarray, power: float) -> None:
        """Multiply by a power of the degree, in place."""
        for rows, offsets in self._adjacency_blocks():
            signals[rows] *= self._inverse_root(offsets) ** (-2 * power)

    def _row_blocks(self) -> Iterator[slice]:
        _, orders, features = self.shape
        return _row_blocks(self.shape[0], orders * features * self._storage.itemsize)

    def _block(self, rows: slice, mode: Literal["r", "r+"]) -> "np.memmap[Any, Any]":
        """Some rows, mapped alone so that none stays in memory."""
        _, orders, features = self.shape
        return np.memmap(
            self.folder / FILE,
            self._storage,
            mode=mode,
            offset=rows.start * orders * features * self._storage.itemsize,
            shape=(rows.stop - rows.start, orders, features),
        )

    def _write(self, order: int, first: int, signals: np.ndarray) -> int:
        """Write the rows of an order, a block after the other; the checksum of what is written."""
        checksum = 0
        for rows in self._row_blocks():
            values = torch.from_numpy(signals[self.nodes[rows]]).to(DTYPES[self.spec.dtype])
            if self.spec.dtype == "float16" and not bool(values.isfinite().all()):
                raise UsageError(
                    "float16 holds no number above 65,504, which some tokens exceed: use "
                    "model.token_dtype=bfloat16 or float32, or scale the features."
                )
            stored = (values.view(torch.int16) if self.spec.dtype == "bfloat16" else values).numpy()
            checksum = zlib.crc32(stored.data, checksum)
            block = self._block(rows, "r+")
            block[:, order, first : first + signals.shape[1]] = stored
            block.flush()
            del block
        return checksum

    def _checksums(self) -> Iterator[int]:
        with (self.folder / FILE).open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                yield zlib.crc32(block)


def _read_state(path: Path) -> dict[str, Any] | None:
    """What a file of JSON says; None if it is not there or damaged."""
    try:
        return dict(read_checked(path))
    except (FileNotFoundError, DamagedError):
        return None


def _row_blocks(rows: int, row_bytes: int) -> Iterator[slice]:
    """Rows that take `BLOCK_BYTES` together."""
    step = max(1, BLOCK_BYTES // max(1, row_bytes))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def _read(path: Path, dtype: type, first: int, last: int) -> np.ndarray:
    """Entries of a one-dimensional `.npy` file, read, not mapped."""
    with path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        assert version == (1, 0)
        np.lib.format.read_array_header_1_0(file)
        file.seek(int(first) * np.dtype(dtype).itemsize, 1)
        return np.fromfile(file, dtype=dtype, count=int(last - first))
