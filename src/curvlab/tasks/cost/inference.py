"""Inference: time and memory of a forward pass, in a result like any other."""

import torch
from torch_geometric.data import Data

from curvlab.tasks.cost.timing import CostTask, time_and_memory
from curvlab.tasks.reconstruction import Reconstruction


class Inference(CostTask, Reconstruction):
    """Reconstruction whose test measures the model. Source: FPS-T, Figure 4."""

    revision = 1  # its numbers are times, whose meaning the ties of a reconstruction do not change
    score = "inference_ms"
    shares_loss = False

    @torch.no_grad()
    def cost(self, batch: Data) -> dict[str, float]:
        encoder = self.encoder
        return time_and_memory("inference", lambda: encoder(batch), encoder, batch, self.passes)
