"""Filter regression: predict a spectrally filtered signal at each node."""

from pathlib import Path

import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torchmetrics.functional.regression import r2_score

from curvlab.errors import UsageError
from curvlab.graph.sparse_graph import SparseGraph
from curvlab.models.encoder import Encoder
from curvlab.optim import GroupedOptimizer, ReduceOnPlateau
from curvlab.options import Passed
from curvlab.tasks.predictions import PARTS
from curvlab.tasks.task import PICTURED_NODES, SelectedTask
from curvlab.tasks.written_files import save_embeddings, save_filters


class FilterRegression(SelectedTask):
    """Sum of squared errors of a linear map of the embeddings; the best fit selects the weights.

    Every part of the split has the same scored nodes (`split=fit`): the paper asks how well a
    model can express node-wise filters, not whether it generalises. `r2` is
    `1 - SSE / sum (y - mean y)^2`, not in percent.

    Source: PolyFormer, Section 4.1.1, after BernNet.

    Args:
        metric: metric that selects the weights: r2.
        scheduler: scheduler of the learning rate, by the metric after every epoch; null for none.
    """

    def __init__(
        self,
        encoder: Encoder,
        optimizer: Passed[GroupedOptimizer | None] = None,
        metric: str = "r2",
        scheduler: ReduceOnPlateau | None = None,
    ) -> None:
        super().__init__(encoder, optimizer, scheduler)
        if metric != "r2":
            raise UsageError(f"metric={metric!r}: filter regression selects weights by r2")
        self.read_out = nn.Linear(encoder.dim_out, 1)
        self.score = metric

    def forward(self, batch: Data) -> tuple[Tensor, Tensor]:
        """Predictions and targets `[scored nodes]`."""
        reads = ("scored", *(f"{part}_mask" for part in PARTS))
        nodes = SparseGraph.from_data(batch).derive("scored_nodes", reads, _scored_nodes)
        embeddings = self.encoder.forward_nodes(batch, nodes)
        prediction = self.read_out(embeddings).squeeze(-1)
        return prediction, batch.target.index_select(0, nodes)

    def training_step(self, batch: Data, batch_idx: int) -> Tensor:
        prediction, target = self(batch)
        return F.mse_loss(prediction, target, reduction="sum")

    def scores(self, batch: Data, part: str) -> dict[str, Tensor]:
        prediction, target = self(batch)
        return {
            "r2": r2_score(prediction, target),
            "sse": F.mse_loss(prediction, target, reduction="sum"),
        }

    def write_files(self, graph: Data, folder: Path) -> None:
        """Write embeddings, and the filters of the whole map from the signal to the target."""
        if (graph.num_nodes or 0) <= PICTURED_NODES:
            save_embeddings(self.encoder, graph, folder)
            save_filters(self.encoder, graph, folder, self.read_out.weight[0])


def _scored_nodes(batch: Data) -> Tensor:
    for part in PARTS:
        mask = batch.get(f"{part}_mask")
        if mask is None or not mask.equal(batch.scored):
            raise UsageError("filter regression fits all scored nodes: use split=fit")
    return batch.scored.nonzero().squeeze(-1)
