"""How many embeddings lie where the coordinates of their space are at their limits."""

from typing import Any

from lightning import Callback, LightningModule, Trainer
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from curvlab.models.triple_scorer import TripleScorer

PREFIX = "points/"


class PointShares(Callback):
    """Logs the `shares` of a graph's embeddings, as `points/beyond_equator` and `points/at_rim`.

    They are taken from the first forward pass of a validation or test, and stay on the device: no
    pass, and no wait, is added. Scores of triples have none.
    """

    def __init__(self) -> None:
        self._shares: dict[str, Tensor] = {}
        self._hook: RemovableHandle | None = None

    def _watch(self, pl_module: LightningModule) -> None:
        self._shares = {}
        encoder: Any = getattr(pl_module, "encoder", None)
        if encoder is None or isinstance(encoder, TripleScorer):
            return
        self._hook = encoder.register_forward_hook(self._take)

    def _take(self, encoder: Any, _batch: Any, points: Tensor) -> None:
        self._stop()
        self._shares = encoder.manifold_out.shares(points.detach())

    def _stop(self) -> None:
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def _log(self, pl_module: LightningModule) -> None:
        self._stop()
        logged = {f"{PREFIX}{name}": share for name, share in self._shares.items()}
        pl_module.log_dict(logged, batch_size=1, rank_zero_only=True)

    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Wait for the first forward pass."""
        self._watch(pl_module)

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Log what it had."""
        self._log(pl_module)

    def on_test_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Wait for the first forward pass."""
        self._watch(pl_module)

    def on_test_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Log what it had, as part of the result."""
        self._log(pl_module)
