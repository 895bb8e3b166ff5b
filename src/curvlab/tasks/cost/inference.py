"""Inference: what a forward pass takes in time and memory, in a result like any other."""

from typing import Any

from torch_geometric.data import Data

from curvlab.models.encoder import Encoder
from curvlab.options import PositiveInt
from curvlab.tasks.cost.measured import inference_cost
from curvlab.tasks.reconstruction import Reconstruction


class Inference(Reconstruction):
    """Reconstruction whose test measures the model instead of scoring it.

    Source: FPS-T, Figure 4.

    Args:
        encoder: graph to points of its `manifold_out`.
        passes: timed forward passes, after some to warm up.
        **options: those of `Reconstruction`.
    """

    score = "inference_ms"
    shares_loss = False

    def __init__(self, encoder: Encoder, passes: PositiveInt = 20, **options: Any) -> None:
        super().__init__(encoder, **options)
        self.passes = passes

    def validation_step(self, batch: Data, batch_idx: int) -> None:
        """Log nothing: time and memory do not depend on the weights."""

    def test_step(self, batch: Data, batch_idx: int) -> None:
        """Log the result."""
        cost = inference_cost(self.encoder, batch, self.passes)
        self.log_dict({f"test/{name}": value for name, value in cost.items()}, batch_size=1)
