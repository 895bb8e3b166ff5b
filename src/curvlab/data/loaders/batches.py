"""The data module for graphs that do not fit in one batch."""

import copy
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.loaders.datamodule import GraphDataModule
from curvlab.data.loaders.partition import InducedSubgraphs, RandomPartition
from curvlab.data.splits.nodes import PARTS
from curvlab.errors import UsageError
from curvlab.options import PositiveInt


class MiniBatches:
    """An endless stream of batches, seen through a window: a sized iterable of the next ones.

    The stream goes on where the last window ended, so that an epoch of the trainer, the interval
    of its curves and checkpoints, need not be a pass over the nodes.

    Args:
        module: What makes the batches of a pass.
        rank: Which of the processes this is; each sees its own part of every round.
        steps: Steps of a window, of `module.accumulate` batches each.
    """

    def __init__(self, module: "MiniBatchDataModule", rank: int, steps: int) -> None:
        self.module = module
        self.rank = rank
        self.steps = steps

    def __len__(self) -> int:
        return self.steps * self.module.accumulate

    def __iter__(self) -> Iterator[Data]:
        for _ in range(self.steps):
            yield from map(self.module.batch, self.module.next_round()[self.rank])


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
        **options: of `GraphDataModule`.
    """

    def __init__(
        self, size: PositiveInt = 10000, accumulate: PositiveInt = 1, **options: Any
    ) -> None:
        super().__init__(**options)
        self.size = size
        self.accumulate = accumulate
        self._pass = 0
        self._round = 0
        self._rounds: list[list[Tensor]] | None = None
        self._processes = 1
        self._whole: Data | None = None

    @abstractmethod
    def batch(self, nodes: Tensor) -> Data:
        """The batch made from one part, with `train_nodes`."""

    @abstractmethod
    def rounds(self, number: int, batches: int) -> list[list[Tensor]]:
        """The parts of pass `number`, `[rounds][batches]`, without rounds of no training node."""

    @property
    def steps_per_pass(self) -> int:
        """Batches of this process in the first pass."""
        return self.accumulate * len(self.rounds(0, self._processes * self.accumulate))

    def next_round(self) -> list[list[Tensor]]:
        """The parts of the stream's next step, for each process those of its batches."""
        batches = self._processes * self.accumulate
        if self._rounds is None:
            self._rounds = self.rounds(self._pass, batches)
        while self._round == len(self._rounds):
            self._pass, self._round = self._pass + 1, 0
            self._rounds = self.rounds(self._pass, batches)
        self._round += 1
        parts = self._rounds[self._round - 1]
        return [parts[i : i + self.accumulate] for i in range(0, batches, self.accumulate)]

    def train_dataloader(self) -> MiniBatches:
        """The batches of this process for the next `steps_per_epoch` steps."""
        self._processes = self.trainer.world_size if self.trainer else 1
        rank = self.trainer.global_rank if self.trainer else 0
        return MiniBatches(self, rank, self.steps_per_epoch)

    def evaluation_batch(self, batch: Data) -> Data:
        """The whole graph, on the device of the step's batch."""
        return self._whole_on(batch.edge_index.device)

    def transfer_batch_to_device(
        self, batch: Data, device: torch.device, dataloader_idx: int
    ) -> Data:
        """Move a batch; of the whole graph, from which batches are cut here, a copy made once."""
        if batch is self.graph:
            # Of several processes the first evaluates.
            return self._whole_on(device) if self._is_first else batch
        return super().transfer_batch_to_device(batch, device, dataloader_idx)

    def state_dict(self) -> dict[str, Any]:
        """Where the stream is."""
        return {"pass": self._pass, "round": self._round}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where the interrupted run stopped."""
        self._pass, self._round = state_dict["pass"], state_dict["round"]
        self._rounds = None

    @property
    def _is_first(self) -> bool:
        return self.trainer is None or self.trainer.is_global_zero

    def _whole_on(self, device: torch.device) -> Data:
        if self._whole is None or self._whole.edge_index.device != device:
            self._whole = copy.copy(self.graph).to(str(device))
            self._whole.chunk = self.size
        return self._whole


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

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._subgraphs: InducedSubgraphs | None = None

    def batch(self, nodes: Tensor) -> Data:
        """The subgraph of nodes `[batch]`."""
        if self._subgraphs is None:
            self._subgraphs = InducedSubgraphs(self.graph, self.transforms, without=PARTS)
        data = self._subgraphs(nodes)
        data.train_nodes = self._train_mask[nodes].nonzero().squeeze(-1)
        return data

    def rounds(self, number: int, batches: int) -> list[list[Tensor]]:
        """See `RandomPartition`; at least one part of every round has a training node."""
        partition = RandomPartition(self.num_nodes, self.size, batches, self.seed)
        train = self._train_mask
        return [
            parts
            for parts in partition.rounds(number)
            if any(bool(train[nodes].any()) for nodes in parts)
        ]

    @property
    def _train_mask(self) -> Tensor:
        mask = self.graph.get("train_mask")
        if mask is None:
            raise UsageError("the graph has no split: choose one of split=..., see --help")
        return mask
