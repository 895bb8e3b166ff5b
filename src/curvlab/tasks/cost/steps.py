"""Cost of node classification and of knowledge-graph completion."""

from typing import Any

from torch_geometric.data import Data

from curvlab.bench.cost import step_cost, timed_and_weighed
from curvlab.data.datasets.triples import MASKS
from curvlab.errors import UsageError
from curvlab.tasks.kg_completion import KnowledgeGraphCompletion, queries_of
from curvlab.tasks.node_classification import NodeClassification


class ClassificationCost(NodeClassification):
    """Node classification whose test measures time and memory instead of scoring.

    A step is forward, loss and backward on the last batch of training, without the optimiser's; a
    look is the scores' forward pass over the whole graph, in chunks between mini-batches.

    Source: Hypformer, Table 4 and Figure 5.

    Args:
        passes: of each that are timed.
        options: of `NodeClassification`.
    """

    chooses_weights = False

    def __init__(self, passes: int, **options: Any) -> None:
        super().__init__(**options)
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
        preparation_seconds: see `GraphDataModule`.
        options: of `ClassificationCost`.
    """

    def __init__(self, preparation_seconds: float, **options: Any) -> None:
        super().__init__(**options)
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
        queries: of the batch that is scored, the first test triples.
        passes: that are timed.
        options: of `KnowledgeGraphCompletion`.
    """

    chooses_weights = False

    def __init__(self, queries: int, passes: int, **options: Any) -> None:
        super().__init__(**options)
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
