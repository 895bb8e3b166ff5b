"""Cost of node classification and of knowledge-graph completion."""

from functools import partial
from typing import Any

import torch
from lightning import LightningModule
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.datasets.triples import MASKS
from curvlab.errors import UsageError
from curvlab.models.encoder import Encoder
from curvlab.models.triple_scorer import TripleScorer
from curvlab.options import FromData, PositiveInt
from curvlab.tasks.cost.timing import CostTask, timed_and_weighed
from curvlab.tasks.kg_completion import KnowledgeGraphCompletion, queries_of
from curvlab.tasks.node_classification import NodeClassification


def step_cost(task: LightningModule, batch: Data, passes: int) -> dict[str, float]:
    """`step_ms` and `step_mb` of forward, loss and backward, without the optimiser's.

    Args:
        task: whose `training_step` makes the loss.
        batch: of training, on any device.
        passes: steps that are timed.
    """

    def step() -> None:
        task.zero_grad()
        loss = task.training_step(batch, 0)
        assert isinstance(loss, Tensor)
        loss.backward()

    training = task.training
    task.train()
    with torch.inference_mode(False), torch.enable_grad():
        batch = batch.to(task.device)
        cost = timed_and_weighed("step", step, task, batch, passes)
    task.zero_grad()
    task.train(training)
    return cost


class ClassificationCost(CostTask, NodeClassification):
    """Node classification whose test measures time and memory instead of scoring.

    A step is forward, loss and backward on the last batch of training, without the optimiser's; a
    look is the scores' forward pass over the whole graph, in chunks between mini-batches.

    Source: Hypformer, Table 4 and Figure 5.

    Args:
        encoder: graph to points of its `manifold_out`.
        passes: timed steps and looks, after some to warm up.
        **options: those of `NodeClassification`.
    """

    selects_checkpoint = False

    def __init__(self, encoder: Encoder, passes: PositiveInt = 5, **options: Any) -> None:
        super().__init__(encoder, **options)
        self.score = "step_ms"
        self.passes = passes
        self._trained_on: Data | None = None

    def on_train_batch_start(self, batch: Data, batch_idx: int) -> None:
        """Keep the batch for the test."""
        super().on_train_batch_start(batch, batch_idx)
        self._trained_on = batch

    def cost(self, batch: Data) -> dict[str, float]:
        """`step_ms`, `step_mb`, `inference_ms` and `inference_mb`."""
        if self._trained_on is None:
            raise UsageError("interrupted between training and measuring: add rerun=true")

        def look() -> None:
            self._evaluated = None
            self(batch, "val")

        # First, since what a pass in inference mode leaves behind has no gradient.
        cost = step_cost(self, self._trained_on, self.passes)
        return cost | timed_and_weighed("inference", look, self, batch, self.passes)


class PreparationCost(ClassificationCost):
    """The same, and what is computed once before training.

    Source: PolyFormer, Table 6.

    Args:
        encoder: graph to points of its `manifold_out`.
        preparation_seconds: see `GraphDataModule`.
        passes: timed steps and looks, after some to warm up.
        **options: those of `NodeClassification`.
    """

    def __init__(
        self,
        encoder: Encoder,
        preparation_seconds: FromData[float],
        passes: PositiveInt = 20,
        **options: Any,
    ) -> None:
        super().__init__(encoder, passes, **options)
        self.preparation_seconds = preparation_seconds

    def cost(self, batch: Data) -> dict[str, float]:
        """The same, and `preparation_s`."""
        return super().cost(batch) | {"preparation_s": self.preparation_seconds}


class CompletionCost(CostTask, KnowledgeGraphCompletion):
    """Knowledge-graph completion whose test measures the model instead of ranking.

    What is measured is a forward pass in evaluation, scores of all entities included.
    Source: CAT, Table 2.

    Args:
        encoder: scores all entities as tails of a batch's queries.
        queries: of the batch that is scored, the first test triples.
        passes: timed batches, after some to warm up.
        **options: those of `KnowledgeGraphCompletion`.
    """

    selects_checkpoint = False

    def __init__(
        self,
        encoder: TripleScorer,
        queries: PositiveInt = 512,
        passes: PositiveInt = 20,
        **options: Any,
    ) -> None:
        super().__init__(encoder, **options)
        self.score = "inference_ms"
        self.queries = queries
        self.passes = passes

    def cost(self, batch: Data) -> dict[str, float]:
        """`inference_ms`, `inference_mb` and the number of `parameters`."""
        mask = batch[MASKS["test"]]
        head, tail = batch.edge_index[:, mask]
        queries = queries_of(head, batch.edge_type[mask], tail, self.queries)[0]
        work = partial(self.encoder.scores, queries)
        cost = timed_and_weighed("inference", work, self.encoder, queries, self.passes)
        return cost | {"parameters": sum(p.numel() for p in self.encoder.parameters())}
