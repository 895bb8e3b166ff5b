"""The data module for full-batch training on one graph."""

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import torch
from lightning import LightningDataModule
from torch import Tensor
from torch_geometric.data import Data

from curvlab.checked import CheckedFields
from curvlab.data.files.cleaning import check_graph, check_labels
from curvlab.data.files.sources import GraphSource
from curvlab.data.transforms.graph import GraphTransform, apply_transform, remember
from curvlab.data.vocabulary import Vocabulary, vocabulary_of
from curvlab.errors import UsageError
from curvlab.memory import check_memory
from curvlab.options import Passed, PositiveInt, Seed
from curvlab.process import default_dtype


class RepeatedGraph(list[Data]):
    """The same graph several times; Lightning takes a bare list for a list of loaders."""


def load_source(source: GraphSource) -> Data:
    """Load a source's graph in float32, regardless of the precision of the run.

    Raises:
        UsageError: it would not fit into memory.
    """
    needed = getattr(source, "memory_bytes", 0)  # of a source that knows its size
    if needed:
        remedy = "choose a smaller one, or a model of polynomial tokens with batching=tokens"
        check_memory("the graph", needed, torch.device("cpu"), remedy)
    with default_dtype("32-true"):
        return source.load()


def to_default_dtype(data: Data) -> Data:
    """Convert a graph's float32 tensors to torch's default type."""
    dtype = torch.get_default_dtype()
    if dtype == torch.float32:
        return data

    def convert(tensor: Tensor) -> Tensor:
        return tensor.to(dtype) if tensor.dtype == torch.float32 else tensor

    return data.clone().apply(convert)


class GraphDataModule(CheckedFields, LightningDataModule):
    """One graph, prepared once, kept on the device; an epoch is `steps_per_epoch` steps on it.

    Args:
        source: source that loads the graph.
        transforms: transforms, applied in order, once; random ones draw from `seed`.
        steps_per_epoch: optimiser steps between two validations.
        seed: seed of the run: of random transforms, and of a split whose `draw` is null.
        cache_dir: folder of the disk cache of expensive transforms; None: no cache.
        split: split that adds the parts, `split(graph, seed)`; None for tasks that use all nodes.
        one_logit: separate two classes by one logit (sets scored by ROC-AUC).
    """

    accumulate = 1
    """Batches of a step."""

    source: GraphSource
    transforms: Passed[Sequence[GraphTransform]] = ()
    steps_per_epoch: Passed[PositiveInt] = 1
    seed: Passed[Seed] = 0
    cache_dir: Passed[str | Path | None] = None
    split: Passed[Callable[[Data, int], Data] | None] = None
    one_logit: Passed[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        LightningDataModule.__init__(self)
        self._graph: Data | None = None
        self._whole: Data | None = None

    @property
    def graph(self) -> Data:
        """The prepared graph, on its present device; the first access prepares it."""
        if self._graph is None:
            self._graph = self._prepare()
        return self._graph

    @property
    def vocabulary(self) -> Vocabulary:
        return vocabulary_of(self.graph)

    @property
    def num_nodes(self) -> int:
        return int(self.graph.num_nodes or 0)

    @property
    def num_features(self) -> int:
        return int(self.graph.num_features)

    @property
    def inputs(self) -> dict[str, int]:
        """Arguments of every model: the size of its inputs."""
        return {"in_channels": self.num_features}

    @property
    def steps_per_pass(self) -> int:
        """Training batches of one pass over the data: one for a single graph."""
        return 1

    @property
    def multi_label(self) -> bool:
        """Whether a node has several labels, `y [nodes, labels]`, instead of one class."""
        return bool(self._labels.dim() == 2)

    @property
    def num_classes(self) -> int:
        """Number of logits of a node: classes, labels, or 1 for two classes with one logit."""
        if self.multi_label:
            return self._labels.shape[1]
        classes = int(self._labels.max()) + 1
        if self.one_logit and classes > 2:
            raise UsageError(
                f"one logit cannot tell {classes} classes apart: score the dataset by accuracy "
                "(dataset.metric=accuracy)."
            )
        return 1 if self.one_logit else classes

    @property
    def classes(self) -> int | None:
        """`num_classes`, or None where the nodes have none."""
        _ = self.graph  # first, so that a missing file is not taken for nodes without classes
        try:
            return self.num_classes
        except UsageError:
            return None

    @property
    def _labels(self) -> Tensor:
        check_labels(self.graph)
        return self.graph.y

    @property
    def preparation_seconds(self) -> float:
        """Seconds that the transforms take without the cache; they are applied once more."""
        data = to_default_dtype(load_source(self.source))
        begin = time.perf_counter()
        for transform in self.transforms:
            data = transform.resolve(data)(data)
        return time.perf_counter() - begin

    def prepare_data(self) -> None:
        """Fetch the raw files (Lightning calls this in one process only)."""
        self.source.download()

    def setup(self, stage: str | None = None) -> None:  # noqa: ARG002 - one graph for all stages
        _ = self.graph

    def train_dataloader(self) -> Iterable[Data]:
        """The graph, `steps_per_epoch` times."""
        return RepeatedGraph([self.graph] * self.steps_per_epoch)

    def val_dataloader(self) -> RepeatedGraph:
        return RepeatedGraph([self.graph])

    test_dataloader = val_dataloader

    def evaluation_batch(self, batch: Data) -> Data:
        """The graph for validation after a step: here the step's own graph."""
        return batch

    def transfer_batch_to_device(
        self,
        batch: Data,
        device: torch.device,
        dataloader_idx: int,  # noqa: ARG002 - Lightning's signature
    ) -> Data:
        """Move the graph if it is on another device; `Data.to` moves it in place, hence once."""
        return batch if batch.edge_index.device == device else batch.to(device)

    def _prepare(self) -> Data:
        data = to_default_dtype(load_source(self.source))
        if self.split is not None:
            data = self.split(data, self.seed)
        for position, transform in enumerate(self.transforms):
            # Own generator state per transform: a cache hit before it must not change its noise.
            with torch.random.fork_rng(devices=[]):
                torch.default_generator.manual_seed(self.seed + position)
                data = apply_transform(transform, data, self.cache_dir)
        for transform in self.transforms:
            remember(data, transform.resolve(data))
        if data.x is not None and data.x.dtype == torch.float64:  # columns of a user's graph
            data.x = data.x.to(torch.get_default_dtype())
        check_graph(data)
        self._check_edges(data)
        return data

    def _check_edges(self, data: Data) -> None:
        """Refuse weights and directions that no transform of the model reads."""
        for name, option in (("edge_weight", "weighted"), ("edge_forward", "directed")):
            if name in data and not any(name in t.reads for t in self.transforms):
                raise UsageError(
                    f"the graph's edges are {option}, which this model does not see: choose one "
                    "with a normalised adjacency, such as hypformer, sgformer or gprgnn, or drop "
                    f"{option}=True."
                )
