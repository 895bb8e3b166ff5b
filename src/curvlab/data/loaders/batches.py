"""The data module for graphs that do not fit in one batch."""

import math
import shutil
from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, get_worker_info
from torch_geometric.data import Data

from curvlab.data.files.cache import dense_parts
from curvlab.data.loaders.datamodule import GraphDataModule
from curvlab.data.loaders.partition import ALL, InducedSubgraphs, RandomPartition
from curvlab.data.splits.nodes import PARTS
from curvlab.errors import UsageError
from curvlab.options import Incidental, NonNegativeInt, PositiveInt

AHEAD = 2
"""Batches that a worker makes ahead: torch's `prefetch_factor`."""

SHARED_MEMORY = Path("/dev/shm")

WAYS_OUT = "set batching.workers=0, a smaller batching.size, or more of it (docker run --shm-size)"


class MiniBatches:
    """An endless stream of batches, seen through a window: a sized iterable of the next ones.

    The stream goes on where the last window ended, so that an epoch of the trainer, the interval
    of its curves and checkpoints, need not be a pass over the nodes. A window is read through a
    loader of its own, whose workers are forked and so have the graph without a copy.

    Args:
        module: What makes the batches of a pass.
        steps: Steps of a window, of `module.accumulate` batches each.
        pinned: Whether batches wait in memory from which a GPU copies by itself.
    """

    def __init__(self, module: "MiniBatchDataModule", steps: int, pinned: bool) -> None:
        self.module = module
        self.steps = steps
        self.pinned = pinned

    def __len__(self) -> int:
        return self.steps * self.module.accumulate

    def __iter__(self) -> Iterator[Data]:
        module = self.module
        module.prepare_batches()
        workers = min(module.workers, len(self))
        parts: Iterator[Tensor] = (part for _ in range(self.steps) for part in module.next_round())
        if workers and not module.fits:
            first = next(parts)
            _check_room(module.batch(first), AHEAD * workers)
            module.fits, parts = True, chain([first], parts)
        loader = DataLoader(
            _ByPart(module),
            batch_size=None,
            sampler=parts,
            num_workers=workers,
            multiprocessing_context="fork" if workers else None,
            pin_memory=self.pinned,
            # By default the seed of workers, who draw nothing, is drawn as dropout is.
            generator=None if module.draws_at_windows else torch.Generator(),
        )
        try:
            yield from loader
        except RuntimeError as error:
            if "shared memory" not in str(error):
                raise
            raise UsageError(f"{SHARED_MEMORY} is full: {WAYS_OUT}") from error


class _ByPart(Dataset[Data]):
    """The batches of a module, by the parts that they are made from."""

    def __init__(self, module: "MiniBatchDataModule") -> None:
        self.module = module

    def __getitem__(self, part: Tensor) -> Data:
        batch = self.module.batch(part)
        if get_worker_info() is not None:
            # Here and not in the thread that sends it, whose failure nobody would hear of.
            for tensor in dense_parts(batch.to_dict()).values():
                tensor.share_memory_()
        return batch


def _check_room(batch: Data, count: int) -> None:
    """Refuse workers if shared memory cannot hold `count` batches, where there is a limit.

    Raises:
        UsageError: with the ways out.
    """
    sizes = [t.untyped_storage().nbytes() for t in dense_parts(batch.to_dict()).values()]
    free = shutil.disk_usage(SHARED_MEMORY).free if SHARED_MEMORY.exists() else math.inf
    if count * sum(sizes) > free:
        raise UsageError(
            f"{SHARED_MEMORY} has {free / 1e6:.0f} MB left, and workers hold {count} batches of "
            f"{sum(sizes) / 1e6:.0f} MB there: {WAYS_OUT}"
        )


class MiniBatchDataModule(GraphDataModule):
    """Trains on subgraphs, evaluates on the whole graph.

    A batch has `train_nodes` `[training nodes]`, the positions in the batch of the nodes that the
    loss is of; steps without any are left out. A step may average the gradients of several batches,
    one after the other, as several processes do of one each. Validation and test see the whole
    graph, exactly. It carries `chunk`, the number of nodes that a model with `encode_in_chunks`
    takes at a time there; other models embed it in one forward pass. A window of `steps_per_epoch`
    steps (`MiniBatches`) is what the trainer calls an epoch; a pass over the nodes may be longer or
    shorter.

    Args:
        size: most nodes that a batch is made from.
        accumulate: batches of a step in each process, whose gradients are averaged.
        workers: processes that make the batches ahead of the steps; 0: the training process does.
        **options: of `GraphDataModule`.
    """

    draws_at_windows = False
    """Whether each window draws a number as dropout does, on which older scores rest."""

    fits = False
    """Whether shared memory has been found large enough for the workers' batches."""

    def __init__(
        self,
        size: PositiveInt = 10000,
        accumulate: PositiveInt = 1,
        workers: Incidental[NonNegativeInt] = 0,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.size = size
        self.accumulate = accumulate
        self.workers = workers
        self._pass = 0
        self._round = 0
        self._rounds: list[list[Tensor]] | None = None
        self._rank, self._processes = 0, 1

    def prepare_batches(self) -> None:
        """Make what batches are cut from, once, before workers start."""
        _ = self.graph

    @abstractmethod
    def batch(self, nodes: Tensor) -> Data:
        """The batch made from one part, with `train_nodes`."""

    @abstractmethod
    def rounds(self, number: int, batches: int, own: slice = ALL) -> list[list[Tensor]]:
        """The parts of pass `number`, `[rounds][batches]`, without rounds of no training node.

        Args:
            number: of the pass.
            batches: of a step, in all processes.
            own: which of them are wanted; no more is kept.
        """

    @property
    def steps_per_pass(self) -> int:
        """Batches of this process in the first pass."""
        return self.accumulate * len(self.rounds(0, self._processes * self.accumulate))

    def next_round(self) -> list[Tensor]:
        """The parts of the stream's next step, those of this process's batches."""
        batches = self._processes * self.accumulate
        own = slice(self._rank * self.accumulate, (self._rank + 1) * self.accumulate)
        if self._rounds is None:
            self._rounds = self.rounds(self._pass, batches, own)
        while self._round == len(self._rounds):
            self._pass, self._round = self._pass + 1, 0
            self._rounds = self.rounds(self._pass, batches, own)
        self._round += 1
        return self._rounds[self._round - 1]

    def train_dataloader(self) -> MiniBatches:
        """The batches of this process for the next `steps_per_epoch` steps."""
        if self.trainer is None:
            return MiniBatches(self, self.steps_per_epoch, pinned=False)
        self._rank, self._processes = self.trainer.global_rank, self.trainer.world_size
        on_gpu = self.trainer.strategy.root_device.type == "cuda"
        return MiniBatches(self, self.steps_per_epoch, pinned=on_gpu)

    def evaluation_batch(self, batch: Data) -> Data:
        """The whole graph, on the device of the step's batch."""
        return self._whole_on(batch.edge_index.device)

    def transfer_batch_to_device(
        self,
        batch: Data,
        device: torch.device,
        dataloader_idx: int,  # noqa: ARG002 - Lightning's signature
    ) -> Data:
        """Move a batch; of the whole graph, from which batches are cut here, a copy made once."""
        if batch is self.graph:
            return self._whole_on(device) if self.evaluates else batch
        return batch.to(str(device), non_blocking=device.type == "cuda")

    def state_dict(self) -> dict[str, Any]:
        """Where the stream is."""
        return {"pass": self._pass, "round": self._round}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where the interrupted run stopped."""
        self._pass, self._round = state_dict["pass"], state_dict["round"]
        self._rounds = None

    def _whole_on(self, device: torch.device) -> Data:
        return self.whole_on(device, self.size)


class PartitionDataModule(MiniBatchDataModule):
    """Batches are the subgraphs induced by the parts of a random partition of all nodes.

    Nodes see the neighbours that are in their batch; degrees are those in the batch. The loss of
    a step is the mean over the batch's training nodes, with several batches the mean of theirs.
    Source: the code of Hypformer for large graphs, after SGFormer.

    Args:
        **options: of `MiniBatchDataModule`; `size` is the most nodes of a batch, see
            `RandomPartition`.

    Raises:
        UsageError: The graph has no split (when it is prepared).
    """

    def prepare_batches(self) -> None:
        """Look up the edges by their source."""
        _ = self._subgraphs

    def batch(self, nodes: Tensor) -> Data:
        """The subgraph of nodes `[batch]`."""
        data = self._subgraphs(nodes)
        data.train_nodes = self._train_mask[nodes].nonzero().squeeze(-1)
        return data

    def rounds(self, number: int, batches: int, own: slice = ALL) -> list[list[Tensor]]:
        """See `RandomPartition`; at least one part of every round has a training node."""
        partition = RandomPartition(self.num_nodes, self.size, batches, self.seed)
        return partition.rounds(number, own, self._train_mask)

    @cached_property
    def _subgraphs(self) -> InducedSubgraphs:
        return InducedSubgraphs(self.graph, self.transforms, without=PARTS)

    @property
    def _train_mask(self) -> Tensor:
        mask = self.graph.get("train_mask")
        if mask is None:
            raise UsageError("the graph has no split: choose one of split=..., see --help")
        return mask
