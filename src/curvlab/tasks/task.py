"""Base classes of tasks: the model, its optimiser, and the selection of weights."""

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from lightning import LightningModule
from torch import Tensor
from torch_geometric.data import Data

from curvlab.checked import Checked
from curvlab.data.loaders.datamodule import GraphDataModule
from curvlab.errors import UsageError
from curvlab.finite import Scores
from curvlab.models.encoder import Encoder
from curvlab.optim import Adam, GroupedOptimizer, LowerOnce, ReduceOnPlateau
from curvlab.tasks.predictions import PredictionQuery, TrainedRun
from curvlab.tasks.written_files import save_embeddings, save_filters

PICTURED_NODES = 100_000
"""Largest number of nodes whose embeddings a run writes."""

TAIL_STEPS = 2000
"""Number of last steps whose evaluations are averaged."""


class Task(Checked, LightningModule):
    """Trains a model and reports its last weights.

    Args:
        encoder: the model.
        optimizer: options of the optimiser; None for `Adam()`.
    """

    data_kind = "graph"
    """`graph`, or `triples` of a knowledge graph. Triples need a `TripleScorer`."""
    selects_checkpoint = False
    """Whether the validation score selects the checkpoint."""
    shares_loss = False
    """Whether processes share one loss over the graph, with the same dropout and gradient."""
    evaluates_together = False
    """Whether all processes of a run share the evaluation; otherwise only the first evaluates."""
    score: str
    """Main metric of the task."""
    predicts_by: Sequence[str] = ("nodes", "queries", "known", "unlabelled")
    """Fields of `PredictionQuery`, apart from `k`, that `predict` uses."""

    def __init__(self, encoder: Encoder, optimizer: GroupedOptimizer | None = None) -> None:
        super().__init__()
        self.encoder = encoder
        self.optimizer = optimizer or Adam()

    def configure_optimizers(self) -> Any:
        return self.optimizer.build(self)

    def write_files(self, graph: Data, folder: Path) -> None:
        """Write files about the trained model on the whole graph into the run's folder.

        By default these are the embeddings and, if the model filters nodes, the coefficients of the
        filters. A graph with more than `PICTURED_NODES` nodes has no files.
        """
        if (graph.num_nodes or 0) <= PICTURED_NODES:
            save_embeddings(self.encoder, graph, folder)
            save_filters(self.encoder, graph, folder)

    def predict(
        self,
        run: TrainedRun,
        graph: Data | None,
        query: PredictionQuery,
    ) -> pd.DataFrame:
        """Predict, one row per prediction.

        Args:
            run: trained run.
            graph: graph to predict on; None for the run's own.
            query: nodes, links or triples to predict.

        Raises:
            UsageError: the task has no predictions, or not those of the query.
        """
        raise UsageError(
            f"task={run.config.task.name} predicts nothing by itself: export embeddings"
        )

    def score_on(self, run: TrainedRun, graph: Data) -> Scores:
        """Score the run on another graph: metrics by part and name.

        Raises:
            UsageError: the task has no score on another graph.
        """
        raise UsageError(
            f"task={run.config.task.name} has no score on another graph; node classification, link "
            "prediction and reconstruction have"
        )

    def references(self, data: GraphDataModule) -> dict[str, float]:
        """Test scores of simple methods on the same split, by name; none by default.

        Raises:
            TooLargeError: the methods would take longer than a few seconds.
        """
        return {}

    def loss_scale(self, batch: Data) -> int:
        """Divisor of the loss in logs, by default 1."""
        return 1


class SelectedTask(Task):
    """Scores parts of the data; the validation score selects the weights.

    The test part is scored once, with the selected weights (`BestValidation`).

    Args:
        scheduler: reduces the learning rate, by the validation `score` after every epoch or once;
            None for a constant rate.
    """

    selects_checkpoint = True
    test_parts: tuple[str, ...] = ("val", "test")
    """Parts of the split whose metrics the result reports."""

    def __init__(
        self,
        encoder: Encoder,
        optimizer: GroupedOptimizer | None = None,
        scheduler: ReduceOnPlateau | LowerOnce | None = None,
    ) -> None:
        super().__init__(encoder, optimizer)
        self.scheduler = scheduler

    @property
    def needs_validation(self) -> bool:
        """Whether the learning rate follows the scores of Lightning's validations."""
        return isinstance(self.scheduler, ReduceOnPlateau)

    def configure_optimizers(self) -> Any:
        optimizer = super().configure_optimizers()
        if self.scheduler is None:
            return optimizer
        config: dict[str, Any]
        if isinstance(self.scheduler, LowerOnce):
            config = {
                "scheduler": self.scheduler.build(optimizer, self.trainer.max_steps),
                "interval": "step",
            }
        else:
            epochs = 1
            if self._trainer:  # a training loop without Lightning has none
                epochs = self._trainer.check_val_every_n_epoch or 1
            config = {
                "scheduler": self.scheduler.build(optimizer),
                "monitor": f"val/{self.score}",
                "frequency": epochs,
                "strict": False,  # a last, shorter epoch has no validation
            }
        return {"optimizer": optimizer, "lr_scheduler": config}

    def on_train_epoch_end(self) -> None:
        """Stop training if the learning rate is below the scheduler's `end_below`."""
        if self.scheduler is None:
            return
        rate = self.trainer.optimizers[0].param_groups[0]["lr"]
        if rate < self.scheduler.end_below:
            self.trainer.should_stop = True

    @abstractmethod
    def scores(self, batch: Data, part: str) -> dict[str, Tensor]:
        """Compute the metrics of a part of the split, by name, in the order of the log."""

    def validation_score(self, batch: Data) -> Tensor:
        """Compute the score that selects the weights, on the validation part."""
        return self.scores(batch, "val")[self.score]

    def log_part(self, part: str, batch: Data) -> None:
        """Log all metrics of a part of the split."""
        scores = self.scores(batch, part)
        metrics = {f"{part}/{name}": score for name, score in scores.items()}
        self.log_dict(metrics, batch_size=1)

    def validation_step(self, batch: Data, batch_idx: int) -> None:
        self.log_part("val", batch)

    def test_step(self, batch: Data, batch_idx: int) -> None:
        for part in self.test_parts:
            self.log_part(part, batch)
