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
from curvlab.tasks.cost.timing import CostTask, time_and_memory
from curvlab.tasks.kg_completion import KnowledgeGraphCompletion
from curvlab.tasks.node_classification import NodeClassification
from curvlab.tasks.triple_ranking import query_blocks


def step_cost(task: LightningModule, batch: Data, passes: int) -> dict[str, float]:
    """`step_ms` and `step_mb` of forward, loss and backward, without the optimiser."""

    def step() -> None:
        task.zero_grad()
        loss = task.training_step(batch, 0)
        assert isinstance(loss, Tensor)
        loss.backward()

    training = task.training
    task.train()
    with torch.inference_mode(False), torch.enable_grad():
        batch = batch.to(task.device)
        cost = time_and_memory("step", step, task, batch, passes)
    task.zero_grad()
    task.train(training)
    return cost


class ClassificationCost(CostTask, NodeClassification):
    """Node classification whose test measures time and memory instead of scoring.

    The step is that of `step_cost` on the last training batch, the evaluation is a forward pass
    over the whole graph. Source: Hypformer, Table 4 and Figure 5.
    """

    score = "step_ms"
    _last_batch: Data | None = None

    def __init__(self, encoder: Encoder, passes: PositiveInt = 5, **options: Any) -> None:
        super().__init__(encoder, passes=passes, **options)

    def on_train_batch_start(self, batch: Data | None = None, batch_idx: int = 0) -> None:
        super().on_train_batch_start(batch, batch_idx)
        self._last_batch = batch

    def cost(self, batch: Data) -> dict[str, float]:
        if self._last_batch is None:
            raise UsageError("interrupted between training and measuring: add rerun=true")

        def evaluate() -> None:
            self._cache = None
            self(batch, "val")

        # The step comes first: tensors that were created in inference mode have no gradient.
        cost = step_cost(self, self._last_batch, self.passes)
        return cost | time_and_memory("inference", evaluate, self, batch, self.passes)


class PreparationCost(ClassificationCost):
    """`ClassificationCost`, and the preparation before training. Source: PolyFormer, Table 6."""

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
        return super().cost(batch) | {"preparation_s": self.preparation_seconds}


class CompletionCost(CostTask, KnowledgeGraphCompletion):
    """Knowledge-graph completion whose test times a forward pass with the scores of all entities.

    Source: CAT, Table 2.

    Args:
        queries: number of scored queries, the first test triples.
    """

    score = "inference_ms"

    def __init__(self, encoder: TripleScorer, queries: PositiveInt = 512, **options: Any) -> None:
        super().__init__(encoder, **options)
        self.queries = queries

    def cost(self, batch: Data) -> dict[str, float]:
        mask = batch[MASKS["test"]]
        head, tail = batch.edge_index[:, mask]
        relation = batch.edge_type[mask]
        blocks = query_blocks(self.queries, head=head, relation=relation, tail=tail)
        queries = blocks[0]
        work = partial(self.encoder.scores, queries)
        cost = time_and_memory("inference", work, self.encoder, queries, self.passes)
        cost["parameters"] = sum(p.numel() for p in self.encoder.parameters())
        return cost
