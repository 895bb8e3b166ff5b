"""Inference: time and memory of a forward pass, in a result like any other."""

from typing import Any

import torch
from torch_geometric.data import Data

from curvlab.models.encoder import Encoder
from curvlab.options import PositiveInt
from curvlab.tasks.cost.timing import CostTask, time_and_memory
from curvlab.tasks.reconstruction import Reconstruction


class Inference(CostTask, Reconstruction):
    """Reconstruction whose test measures the model instead of scoring it.

    Source: FPS-T, Figure 4.

    Args:
        encoder: graph to points of its `manifold_out`.
        passes: timed forward passes, after a warm-up.
        **options: those of `Reconstruction`.
    """

    score = "inference_ms"
    shares_loss = False

    def __init__(self, encoder: Encoder, passes: PositiveInt = 20, **options: Any) -> None:
        super().__init__(encoder, **options)
        self.passes = passes

    @torch.no_grad()
    def cost(self, batch: Data) -> dict[str, float]:
        """`inference_ms` and `inference_mb` of the encoder."""
        encoder = self.encoder
        return time_and_memory("inference", lambda: encoder(batch), encoder, batch, self.passes)
