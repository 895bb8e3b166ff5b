"""Cost of node classification and of knowledge-graph completion."""

from typing import Any

from torch_geometric.data import Data

from curvlab.data.datasets.triples import MASKS
from curvlab.errors import UsageError
from curvlab.models.encoder import Encoder
from curvlab.models.triple_scorer import TripleScorer
from curvlab.options import FromData, PositiveInt
from curvlab.tasks.cost.measured import step_cost, timed_and_weighed
from curvlab.tasks.kg_completion import KnowledgeGraphCompletion, queries_of
from curvlab.tasks.node_classification import NodeClassification


class ClassificationCost(NodeClassification):
    """Node classification whose test measures time and memory instead of scoring.

    A step is forward, loss and backward on the last batch of training, without the optimiser's; a
    look is the scores' forward pass over the whole graph, in chunks between mini-batches.

    Source: Hypformer, Table 4 and Figure 5.

    Args:
        encoder: graph to points of its `manifold_out`.
        passes: timed steps and looks, after some to warm up.
        **options: those of `NodeClassification`.
    """

    chooses_weights = False

    def __init__(self, encoder: Encoder, passes: PositiveInt = 5, **options: Any) -> None:
        super().__init__(encoder, **options)
        self.score = "step_ms"
        self.passes = passes
        self._trained_on: Data | None = None

    def on_train_batch_start(self, batch: Data, batch_idx: int) -> None:
        """Keep the batch for the test."""
        super().on_train_batch_start(batch, batch_idx)
        self._trained_on = batch

    def validation_step(self, batch: Data, batch_idx: int) -> None:
        """Log nothing: time and memory do not depend on the weights."""

    def test_step(self, batch: Data, batch_idx: int) -> None:
        """Log the result."""
        if self._trained_on is None:
            raise UsageError("interrupted between training and measuring: add rerun=true")
        # First, since what a pass in inference mode leaves behind has no gradient.
        cost = step_cost(self, self._trained_on, self.passes)
        cost |= timed_and_weighed("inference", lambda: self._look(batch), self, batch, self.passes)
        self.log_dict({f"test/{name}": value for name, value in cost.items()}, batch_size=1)

    def _look(self, batch: Data) -> None:
        self._evaluated = None
        self(batch, "val")


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

    def test_step(self, batch: Data, batch_idx: int) -> None:
        """Log the result."""
        super().test_step(batch, batch_idx)
        self.log("test/preparation_s", self.preparation_seconds, batch_size=1)


class CompletionCost(KnowledgeGraphCompletion):
    """Knowledge-graph completion whose test measures the model instead of ranking.

    What is measured is a forward pass in evaluation, scores of all entities included.
    Source: CAT, Table 2.

    Args:
        encoder: scores all entities as tails of a batch's queries.
        queries: of the batch that is scored, the first test triples.
        passes: timed batches, after some to warm up.
        **options: those of `KnowledgeGraphCompletion`.
    """

    chooses_weights = False

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

    def validation_step(self, batch: Data, batch_idx: int) -> None:
        """Log nothing: time and memory do not depend on the weights."""

    def test_step(self, batch: Data, batch_idx: int) -> None:
        """Log the result."""
        mask = batch[MASKS["test"]]
        head, tail = batch.edge_index[:, mask]
        queries = queries_of(head, batch.edge_type[mask], tail, self.queries)[0]

        def scores() -> None:
            self.encoder.scores(queries)

        cost = timed_and_weighed("inference", scores, self.encoder, queries, self.passes)
        cost["parameters"] = sum(p.numel() for p in self.encoder.parameters())
        self.log_dict({f"test/{name}": float(value) for name, value in cost.items()}, batch_size=1)
