"""What tasks share whose weights are chosen by validation."""

from abc import abstractmethod
from typing import Any

from lightning import LightningModule
from omegaconf import DictConfig
from torch import Tensor
from torch_geometric.data import Data

from curvlab.config.building import build
from curvlab.optim import build_optimizer


class SelectedTask(LightningModule):
    """Scores parts of the data; the validation part's score chooses the weights.

    The test part is scored once, with the weights of the best validation score (`BestValidation`).

    Attributes:
        chooses_weights: whether the task does so.
        tested: the parts whose metrics a result has.
        score: the metric that the task is about.
        optimizer_config: see `build_optimizer`.
        scheduler_config: Hydra partial of a scheduler of the learning rate that is told the
            validation part's `score` after every epoch; None for a constant rate.
    """

    chooses_weights = True
    tested: tuple[str, ...] = ("val", "test")
    score: str
    optimizer_config: DictConfig
    scheduler_config: DictConfig | None = None

    def configure_optimizers(self) -> Any:
        """Make the optimiser, with a group of its own for curvatures, and the rate's scheduler."""
        optimizer = build_optimizer(self, self.optimizer_config)
        if self.scheduler_config is None:
            return optimizer
        scheduler = {
            "scheduler": build(self.scheduler_config)(optimizer),
            "monitor": f"val/{self.score}",
            "strict": False,  # a last, shorter epoch has no validation
        }
        return {"optimizer": optimizer, "lr_scheduler": scheduler}

    @abstractmethod
    def validation_score(self, batch: Data) -> Tensor:
        """What weights are chosen by, of the validation part."""

    @abstractmethod
    def log_part(self, part: str, batch: Data) -> None:
        """Log the metrics of a part as `PART/METRIC`."""

    def validation_step(self, batch: Data, batch_idx: int) -> None:
        """Log the point of the curve."""
        self.log_part("val", batch)

    def test_step(self, batch: Data, batch_idx: int) -> None:
        """Log the result."""
        for part in self.tested:
            self.log_part(part, batch)

    def loss_scale(self, batch: Data) -> int:
        """What the loss is divided by in logs: nothing."""
        return 1
