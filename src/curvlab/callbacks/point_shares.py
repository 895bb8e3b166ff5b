"""How many embeddings lie where the coordinates of their space are at their limits."""

from typing import Any

from lightning import Callback, LightningModule, Trainer
from torch import Tensor

from curvlab.models.triple_scorer import TripleScorer

PREFIX = "points/"


class PointShares(Callback):
    """Logs the `shares` of a graph's embeddings, as `points/beyond_equator` and `points/at_rim`.

    They are taken from the first forward pass of a validation or test, and stay on the device: no
    pass, and no wait, is added. Scores of triples have none.
    """

    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Wait for the first forward pass."""
        self._shares: dict[str, Tensor] = {}
        encoder: Any = getattr(pl_module, "encoder", None)
        graphs = encoder is not None and not isinstance(encoder, TripleScorer)
        self._hook: Any = encoder.register_forward_hook(self._take) if graphs else None

    def _take(self, encoder: Any, _batch: Any, points: Tensor) -> None:
        self._hook.remove()
        self._shares = encoder.manifold_out.shares(points.detach())

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Log what it had, of a test as part of the result."""
        if self._hook is not None:
            self._hook.remove()
        logged = {f"{PREFIX}{name}": share for name, share in self._shares.items()}
        pl_module.log_dict(logged, batch_size=1, rank_zero_only=True)

    on_test_epoch_start = on_validation_epoch_start
    on_test_epoch_end = on_validation_epoch_end
