"""What tasks share: the model, its optimiser, and how weights are chosen."""

from abc import abstractmethod
from pathlib import Path
from typing import Any

from lightning import LightningModule
from torch import Tensor
from torch_geometric.data import Data

from curvlab.checked import Checked
from curvlab.models.encoder import Encoder
from curvlab.optim import Adam, GroupedOptimizer, ReduceOnPlateau

TAIL_STEPS = 2000
"""How many steps at the end of a run a mean of its evaluations is taken over."""


class Task(Checked, LightningModule):
    """Trains a model; the last weights count.

    Attributes:
        data_kind: what the data is: a `graph`, or the `triples` of a knowledge graph, for which the
            model is a `TripleScorer` and whose files are the split.
        selects_checkpoint: whether validation chooses the checkpoint.
        shares_loss: whether several processes share the work of one loss over the whole graph. All
            of them embed it, with the same dropout, and get the same gradient.
        score: the metric that the task is about.
        evaluates_together: whether all processes of a run evaluate, each its share; else the first
            one does.

    Args:
        encoder: the model.
        optimizer: options of the optimiser; None for `Adam()`.
    """

    data_kind = "graph"
    selects_checkpoint = False
    shares_loss = False
    evaluates_together = False
    score: str

    def __init__(self, encoder: Encoder, optimizer: GroupedOptimizer | None = None) -> None:
        super().__init__()
        self.encoder = encoder
        self.optimizer = optimizer or Adam()

    def configure_optimizers(self) -> Any:
        """Make the optimiser, with a group of its own for curvatures."""
        return self.optimizer.build(self)

    def report(self, batch: Data, folder: Path) -> None:
        """Write what else there is to say of the test part of a graph; nothing by default.

        Args:
            batch: the whole graph.
            folder: of the run.
        """

    def loss_scale(self, batch: Data) -> int:
        """What the loss is divided by in logs: nothing."""
        return 1


class SelectedTask(Task):
    """Scores parts of the data; the validation part's score chooses the weights.

    The test part is scored once, with the weights of the best validation score (`BestValidation`).

    Attributes:
        tested: the parts whose metrics a result has.

    Args:
        encoder: the model.
        optimizer: options of the optimiser; None for `Adam()`.
        scheduler: of the learning rate, by the validation part's `score` after every epoch; None
            for a constant rate.
    """

    selects_checkpoint = True
    tested: tuple[str, ...] = ("val", "test")

    def __init__(
        self,
        encoder: Encoder,
        optimizer: GroupedOptimizer | None = None,
        scheduler: ReduceOnPlateau | None = None,
    ) -> None:
        super().__init__(encoder, optimizer)
        self.scheduler = scheduler

    def configure_optimizers(self) -> Any:
        """Make the optimiser, with a group of its own for curvatures, and the rate's scheduler."""
        optimizer = super().configure_optimizers()
        if self.scheduler is None:
            return optimizer
        scheduler = {
            "scheduler": self.scheduler.build(optimizer),
            "monitor": f"val/{self.score}",
            "strict": False,  # a last, shorter epoch has no validation
        }
        return {"optimizer": optimizer, "lr_scheduler": scheduler}

    @abstractmethod
    def scores(self, batch: Data, part: str) -> dict[str, Tensor]:
        """Metrics of a part by their names, in the order in which they are logged."""

    def validation_score(self, batch: Data) -> Tensor:
        """What weights are chosen by, of the validation part."""
        return self.scores(batch, "val")[self.score]

    def log_part(self, part: str, batch: Data) -> None:
        """Log the metrics of a part as `PART/METRIC`."""
        scores = self.scores(batch, part)
        self.log_dict({f"{part}/{name}": score for name, score in scores.items()}, batch_size=1)

    def validation_step(self, batch: Data, batch_idx: int) -> None:
        """Log the point of the curve."""
        self.log_part("val", batch)

    def test_step(self, batch: Data, batch_idx: int) -> None:
        """Log the result."""
        for part in self.tested:
            self.log_part(part, batch)
