"""Cost of a residual connection: one addition of two sets of points."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.errors import UsageError
from curvlab.layers import LorentzResidual
from curvlab.models.encoder import Encoder
from curvlab.tasks.cost.timing import CostTask, time_and_memory
from curvlab.tasks.task import Task


class ResidualCost(CostTask, Task):
    """Times the addition of a network's residual connection instead of training the network.

    The operands are the exponential map of the graph's features, and the same in reverse order.

    Source: LRN, Table 3.

    Args:
        encoder: a network with a `LorentzResidual`; the first one is timed.
    """

    score = "addition_ms"

    def __init__(self, encoder: Encoder, **options: Any) -> None:
        super().__init__(encoder, **options)
        residuals = [part for part in encoder.modules() if isinstance(part, LorentzResidual)]
        if not residuals:
            raise UsageError(
                "task=residual_cost times a residual connection, and this model has none: use "
                "model=lrn, with at least two layers"
            )
        self.residual = residuals[0]

    def training_step(self, batch: Data, batch_idx: int) -> Tensor:
        return 0 * next(self.encoder.parameters()).sum()

    @torch.no_grad()
    def cost(self, batch: Data) -> dict[str, float]:
        x = self.residual.space.expmap0(batch.x)
        y = x.flip(0)
        return time_and_memory("addition", lambda: self.residual(x, y), self, batch, self.passes)
