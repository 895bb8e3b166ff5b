"""An encoder that knows where the nodes are."""

import torch
from torch import nn

from curvlab.manifolds import Manifold
from curvlab.models.encoder import Encoder


class Placed(Encoder):
    """Embeds each node by a point of its own, which is learned."""

    manifold_out = None

    def __init__(self, points, space: Manifold, logits: bool = False) -> None:
        super().__init__()
        self.points = nn.Parameter(torch.as_tensor(points))
        vars(self)["manifold_out"] = space
        self.dim_out, self.gives_logits = self.points.shape[1], logits

    def forward(self, batch):
        return self.points
