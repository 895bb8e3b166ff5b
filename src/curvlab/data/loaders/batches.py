"""Data modules for graphs that do not fit in one batch."""

import copy
import shutil
from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, get_worker_info
from torch_geometric.data import Data

from curvlab.data.files.cache import dense_parts
from curvlab.data.loaders.datamodule import GraphDataModule
from curvlab.data.loaders.subgraphs import Subgraphs
from curvlab.data.splits.nodes import PARTS
from curvlab.errors import NO_SHARED_MEMORY, UsageError
from curvlab.options import Incidental, NonNegativeInt, PositiveInt
from curvlab.process import all_gather_pieces, local_shard

EVALUATION = 2**31
"""Number of the pass whose random partition evaluation uses; training never reaches it."""

SHARED_MEMORY = Path("/dev/shm")
QUEUES = 2**16
"""Bytes of shared memory that a process takes for the semaphores of its queues, a page for each."""


def check_shared_memory(workers: int) -> None:
    """Refuse workers whose queues have no room; torch's loader would raise an obscure error.

    Raises:
        UsageError: shared memory is full.
    """
    if not workers or not SHARED_MEMORY.is_dir():
        return
    if shutil.disk_usage(SHARED_MEMORY).free < QUEUES * (workers + 1):
        raise UsageError(NO_SHARED_MEMORY)


class MiniBatches(Dataset[Data]):
    """The next `steps` steps of an endless stream of batches, which the next window continues.

    Workers of a window's loader are forked and so have the graph without a copy.
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
        check_shared_memory(workers)
        yield from DataLoader(
            self,
            batch_size=None,
            sampler=(part for _ in range(self.steps) for part in module.next_round()),
            num_workers=workers,
            multiprocessing_context="fork" if workers else None,
            pin_memory=self.pinned,
            # By default the seed of workers, who draw nothing, is drawn from dropout's generator.
            generator=None if module.draws_at_windows else torch.Generator(),
        )

    def __getitem__(self, part: Tensor) -> Data:
        batch = self.module.batch(part)
        if get_worker_info() is not None:
            # Share here: a failure in the sending thread would be silent.
            for tensor in dense_parts(batch.to_dict()).values():
                tensor.share_memory_()
        return batch


def step_parts(count: int, size: int, batches: int) -> int:
    """The number of parts of at most `size` items of `count`, a multiple of `batches`."""
    parts = batches * -(-count // (size * batches))
    if parts > count:
        raise UsageError(
            f"{count} nodes or triples do not make {batches} batches a step of batching.size="
            f"{size}: use larger ones, fewer processes or a smaller batching.accumulate."
        )
    return parts


def pass_generator(seed: int, number: int) -> np.random.Generator:
    """A generator for one pass, the same in every process and distinct from those of splits."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))


def random_rounds(
    count: int, size: int, batches: int, seed: int, number: int
) -> list[tuple[Tensor, ...]]:
    """A random partition of `0, ..., count - 1`, `[rounds][batches]`: a part for each batch.

    Sizes differ by one at most.
    """
    order = torch.from_numpy(pass_generator(seed, number).permutation(count))
    parts = order.tensor_split(step_parts(count, size, batches))
    return [parts[i : i + batches] for i in range(0, len(parts), batches)]


class MiniBatchDataModule(GraphDataModule):
    """Trains on subgraphs, evaluates on the whole graph.

    A batch has `train_nodes`, the positions in it of the nodes whose loss is taken. The whole graph
    carries `chunk`, the number of nodes that a `node_wise` model takes at a time. The trainer's
    epoch is a window of `steps_per_epoch` steps.

    Args:
        size: most nodes that a batch is made from.
        accumulate: batches of a step in each process, whose gradients are averaged.
        workers: processes that make the batches ahead of the steps; 0: the training process does.
    """

    size: PositiveInt = 10000
    accumulate: PositiveInt = 1
    workers: Incidental[NonNegativeInt] = 0

    draws_at_windows = False
    """Whether each window draws a number from dropout's generator; older scores depend on it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.transforms = [transform.for_batches() for transform in self.transforms]
        self._pass = 0
        self._round = 0
        self._rounds: list[tuple[Tensor, ...]] | None = None
        self._rank = 0
        self._processes = 1

    def prepare_batches(self) -> None:
        """Prepare the data that batches are cut from, once, before workers start."""
        _ = self.graph

    @abstractmethod
    def batch(self, nodes: Tensor) -> Data:
        """Make the batch of one part, with `train_nodes`."""

    @abstractmethod
    def rounds(self, number: int, batches: int) -> list[tuple[Tensor, ...]]:
        """Return the parts of pass `number`, `[rounds][batches]`."""

    @property
    def train_mask(self) -> Tensor:
        mask = self.graph.get("train_mask")
        if mask is None:
            raise UsageError("the graph has no split: choose one of split=..., see --help")
        return mask

    def next_round(self) -> tuple[Tensor, ...]:
        """The parts of the stream's next step, those of this process's batches."""
        batches = self._processes * self.accumulate
        first = self._rank * self.accumulate
        while self._rounds is None or self._round == len(self._rounds):
            if self._rounds is not None:
                self._pass += 1
                self._round = 0
            self._rounds = self.rounds(self._pass, batches)
        self._round += 1
        return self._rounds[self._round - 1][first : first + self.accumulate]

    def train_dataloader(self) -> MiniBatches:
        on_gpu = False
        if self.trainer is not None:
            self._rank = self.trainer.global_rank
            self._processes = self.trainer.world_size
            on_gpu = self.trainer.strategy.root_device.type == "cuda"
        return MiniBatches(self, self.steps_per_epoch, pinned=on_gpu)

    def evaluation_batch(self, batch: Data) -> Data:
        device = next(value.device for _, value in batch if isinstance(value, Tensor))
        return self._whole_on(device)

    def transfer_batch_to_device(
        self,
        batch: Data,
        device: torch.device,
        dataloader_idx: int,  # noqa: ARG002 - Lightning's signature
    ) -> Data:
        """Move a batch; the whole graph is copied to the device once."""
        if batch is not self.graph:
            return batch.to(str(device), non_blocking=device.type == "cuda")
        trainer = self.trainer
        evaluates = (
            trainer is None
            or trainer.is_global_zero
            or getattr(trainer.lightning_module, "evaluates_together", False)
        )
        return self._whole_on(device) if evaluates else batch

    def state_dict(self) -> dict[str, Any]:
        return {"pass": self._pass, "round": self._round}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._pass = state_dict["pass"]
        self._round = state_dict["round"]
        self._rounds = None

    def _whole_on(self, device: torch.device) -> Data:
        """The whole graph on a device: a copy, made once."""
        if self._whole is None or self._whole.edge_index.device != device:
            self._whole = copy.copy(self.graph).to(str(device))
            self._whole.chunk = self.size
        return self._whole


class SubgraphDataModule(MiniBatchDataModule):
    """Trains on subgraphs, evaluates on the whole graph or on subgraphs.

    With `evaluation="parts"` each node is evaluated in a subgraph made as those of training are,
    the same at every evaluation; the whole graph never goes to a GPU.

    Args:
        evaluation: extent of an evaluation: whole or parts.
    """

    evaluation: Literal["whole", "parts"] = "whole"

    @abstractmethod
    def evaluation_parts(self, nodes: Tensor) -> list[Tensor]:
        """Return parts whose subgraphs, made by `batch`, evaluate each node once."""

    def evaluate_parts(
        self, function: Callable[[Data, Tensor], Tensor], nodes: Tensor, device: torch.device
    ) -> Tensor:
        """Rows `[nodes, width]` by `function(subgraph, nodes in it)`; processes share the parts."""
        position = torch.full((self.num_nodes,), -1)
        position[nodes] = torch.arange(len(nodes))
        parts = self.evaluation_parts(nodes)
        pieces = []
        for number, part in local_shard(list(enumerate(parts))):
            with torch.random.fork_rng(devices=[]):
                torch.default_generator.manual_seed(self.seed + number)
                batch = self.batch(part)
            rows = (position[part] >= 0).nonzero().squeeze(1)
            pieces.append(function(batch.to(str(device)), rows.to(device)))
        order = torch.cat([position[part] for part in parts])
        evaluated = torch.cat(all_gather_pieces(pieces, device))
        return evaluated[order[order >= 0].argsort().to(device)]

    @cached_property
    def subgraphs(self) -> Subgraphs:
        """Subgraphs of the graph, without its split."""
        return Subgraphs(self.graph, self.transforms, without=PARTS)

    def _whole_on(self, device: torch.device) -> Data:
        if self.evaluation == "whole":
            return super()._whole_on(device)
        if self._whole is None:
            self._whole = copy.copy(self.graph)
            self._whole.evaluate_parts = self.evaluate_parts
        return self._whole


class PartitionDataModule(SubgraphDataModule):
    """Batches are the subgraphs induced by the parts of a random partition of all nodes.

    Source: the code of Hypformer for large graphs, after SGFormer.
    """

    def prepare_batches(self) -> None:
        _ = self.subgraphs

    def batch(self, nodes: Tensor) -> Data:
        nodes = nodes.sort().values
        data = self.subgraphs.induced_edges(nodes)
        data.train_nodes = self.train_mask[nodes].nonzero().squeeze(-1)
        return data

    def evaluation_parts(self, nodes: Tensor) -> list[Tensor]:
        is_evaluated = torch.zeros(self.num_nodes, dtype=torch.bool)
        is_evaluated[nodes] = True
        rounds = random_rounds(self.num_nodes, self.size, 1, self.seed, EVALUATION)
        return [part.sort().values for (part,) in rounds if is_evaluated[part].any()]

    def rounds(self, number: int, batches: int) -> list[tuple[Tensor, ...]]:
        """See `random_rounds`; at least one part of every round has a training node."""
        rounds = random_rounds(self.num_nodes, self.size, batches, self.seed, number)
        train_mask = self.train_mask
        return [parts for parts in rounds if any(train_mask[part].any() for part in parts)]
