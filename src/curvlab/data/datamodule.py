"""The data module for full-batch training on one graph."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from lightning import LightningDataModule
from torch_geometric.data import Data

from curvlab.data.sources import GraphSource
from curvlab.data.transforms import GraphTransform, apply_transform
from curvlab.errors import UsageError

log = logging.getLogger(__name__)


class RepeatedGraph:
    """A sized iterable that yields the same graph object several times: no copy, no worker."""

    def __init__(self, graph: Data, times: int) -> None:
        self.graph = graph
        self.times = times

    def __len__(self) -> int:
        return self.times

    def __iter__(self) -> Iterator[Data]:
        for _ in range(self.times):
            yield self.graph


class GraphDataModule(LightningDataModule):
    """One graph, prepared once, kept on the device; an epoch is `steps_per_epoch` steps on it.

    Args:
        source: Where the graph comes from.
        transforms: Applied in order, once; random ones draw from `seed`.
        steps_per_epoch: Optimiser steps between two validations, at least 1.
        seed: Seed of random transforms (noise on the features).
        cache_dir: Folder of the disk cache of expensive transforms; None to compute always.
    """

    def __init__(
        self,
        source: GraphSource,
        transforms: Sequence[GraphTransform],
        steps_per_epoch: int,
        seed: int,
        cache_dir: str | Path | None = None,
    ) -> None:
        super().__init__()
        if steps_per_epoch < 1:
            raise UsageError(f"steps_per_epoch={steps_per_epoch} must be at least 1.")
        self.source = source
        self.transforms = transforms
        self.steps_per_epoch = steps_per_epoch
        self.seed = seed
        self.cache_dir = cache_dir
        self._graph: Data | None = None

    @property
    def graph(self) -> Data:
        """The prepared graph, wherever it is now; made when first asked for."""
        if self._graph is None:
            self._graph = self._prepared()
        return self._graph

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return int(self.graph.num_nodes or 0)

    @property
    def num_features(self) -> int:
        """Number of features of a node."""
        return int(self.graph.num_features)

    def prepare_data(self) -> None:
        """Bring the raw files here (Lightning calls this in one process only)."""
        self.source.download()

    def setup(self, stage: str | None = None) -> None:  # noqa: ARG002 - one graph for all stages
        """Prepare the graph in every process."""
        _ = self.graph

    def train_dataloader(self) -> RepeatedGraph:
        """The graph, `steps_per_epoch` times."""
        return RepeatedGraph(self.graph, self.steps_per_epoch)

    def val_dataloader(self) -> RepeatedGraph:
        """The graph, once."""
        return RepeatedGraph(self.graph, 1)

    def test_dataloader(self) -> RepeatedGraph:
        """The graph, once."""
        return RepeatedGraph(self.graph, 1)

    def transfer_batch_to_device(
        self,
        batch: Data,
        device: torch.device,
        dataloader_idx: int,  # noqa: ARG002 - Lightning's signature
    ) -> Data:
        """Move the graph when it is elsewhere; `Data.to` works in place, so only once."""
        return batch if batch.edge_index.device == device else batch.to(device)

    def _prepared(self) -> Data:
        data = self.source.load()
        for position, transform in enumerate(self.transforms):
            # Own generator state per transform: a cache hit before it must not change its noise.
            with torch.random.fork_rng(devices=[]):
                torch.default_generator.manual_seed(self.seed + position)
                data = apply_transform(transform, data, self.cache_dir)
        check_graph(data)
        return data


def check_graph(data: Data) -> None:
    """Refuse a graph that cannot be trained on; nodes without neighbours are only counted.

    Raises:
        UsageError: No nodes, no edges, no features, edges to nodes that do not exist, or
            features that are not finite or not one row a node.
    """
    nodes = int(data.num_nodes or 0)
    if nodes == 0 or data.edge_index is None or data.num_edges == 0:
        raise UsageError(
            f"the graph is empty ({nodes} nodes, {data.num_edges} edges): check its source."
        )
    if not 0 <= int(data.edge_index.min()) <= int(data.edge_index.max()) < nodes:
        raise UsageError(f"the graph has edges to nodes outside 0 ... {nodes - 1}.")
    if data.x is None:
        raise UsageError("the graph has no node features: give the dataset a `features` transform.")
    if data.x.shape[0] != nodes:
        raise UsageError(f"the graph has {nodes} nodes but {data.x.shape[0]} rows of features.")
    bad_rows = (~torch.isfinite(data.x)).any(dim=1)
    if bad_rows.any():
        raise UsageError(
            f"{int(bad_rows.sum())} nodes have features that are NaN or infinite, the first is "
            f"node {int(bad_rows.nonzero()[0])}: clean the dataset's features."
        )
    isolated = nodes - len(torch.unique(data.edge_index))
    if isolated:
        log.info("%d of %d nodes have no neighbour", isolated, nodes)
