"""The data module of training on one whole graph by several processes."""

import copy
from typing import Any, Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.loaders.datamodule import GraphDataModule, RepeatedGraph
from curvlab.data.loaders.node_parts import greedy_parts, random_parts
from curvlab.data.loaders.partition import rows_of_nodes
from curvlab.data.transforms.graph import SparseAdjacency
from curvlab.errors import UsageError
from curvlab.layers.row_shard import RowShard

CHUNK_NODES = 100_000
"""Nodes that an evaluation embeds at a time, by a model that can."""


class HaloDataModule(GraphDataModule):
    """The whole graph in every step, its nodes shared out to the processes.

    A batch has the rows of this process's nodes, and of every sparse matrix a `RowShard`, which
    fetches the vectors of other processes' nodes in a product. Without any the graph gets the
    adjacency `adj_t`. `train_nodes` are the positions of own training nodes, `all_train_nodes` is
    the number of those of all processes: a step is that of one process on the whole graph, to
    rounding; dropout's masks are each process's own. Evaluation is on the whole graph.

    Args:
        partition: of the nodes: `greedy` keeps neighbours together, see `greedy_parts`; `random`.
        **options: of `GraphDataModule`.

    Raises:
        UsageError: The graph has no split, or a process would have no node (when it is cut).
    """

    def __init__(self, partition: Literal["greedy", "random"] = "greedy", **options: Any) -> None:
        super().__init__(**options)
        self.partition = partition

    def train_dataloader(self) -> RepeatedGraph:
        """This process's rows, `steps_per_epoch` times."""
        rank, processes = 0, 1
        if self.trainer is not None:
            rank, processes = self.trainer.global_rank, self.trainer.world_size
        return RepeatedGraph(self.rows(rank, processes), self.steps_per_epoch)

    def rows(self, rank: int, processes: int) -> Data:
        """The batch of a process."""
        graph = copy.copy(self.graph).cpu()
        if "train_mask" not in graph:
            raise UsageError("the graph has no split: choose one of split=..., see --help")
        matrices = _matrices(graph) or _matrices(SparseAdjacency()(graph))
        part = self._parts(next(iter(matrices.values())), processes)
        own = (part == rank).nonzero().squeeze(-1)
        data = Data(num_nodes=len(own))
        for name, value in rows_of_nodes(graph).items():
            data[name] = value.index_select(0, own)
        for name, matrix in matrices.items():
            data[name] = RowShard.of(matrix, part, rank, processes)
        data.train_nodes = data.train_mask.nonzero().squeeze(-1)
        data.all_train_nodes = int(graph.train_mask.sum())
        return data

    def evaluation_batch(self, batch: Data) -> Data:
        """The whole graph, on the device of the step's batch."""
        return self.whole_on(batch.x.device, CHUNK_NODES)

    def transfer_batch_to_device(
        self,
        batch: Data,
        device: torch.device,
        dataloader_idx: int,  # noqa: ARG002 - Lightning's signature
    ) -> Data:
        """Move the rows, once; the whole graph only where it is evaluated."""
        if batch is not self.graph:
            return batch if batch.x.device == device else batch.to(str(device))
        return self.whole_on(device, CHUNK_NODES) if self.evaluates else batch

    def _parts(self, matrix: Tensor, processes: int) -> Tensor:
        """The process of each node, `[nodes]`."""
        if self.partition == "random":
            part = random_parts(self.num_nodes, processes, self.seed)
        else:
            ends = matrix.crow_indices(), matrix.col_indices()
            part = greedy_parts(*ends, processes, self.seed)
        if int(torch.bincount(part, minlength=processes).min()) == 0:
            raise UsageError(
                f"{self.num_nodes} nodes leave one of {processes} processes without any: use fewer "
                "devices"
            )
        return part


def _matrices(graph: Data) -> dict[str, Tensor]:
    """The sparse matrices of a graph."""
    return {n: v for n, v in graph if isinstance(v, Tensor) and v.layout == torch.sparse_csr}
