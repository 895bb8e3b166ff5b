"""Graph reconstruction: embed the nodes so that the nearest ones are the neighbours."""

from typing import Literal

import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.loaders.datamodule import GraphDataModule
from curvlab.finite import Scores
from curvlab.graph.sparse_graph import SparseGraph
from curvlab.metrics.average_precision import mean_average_precision
from curvlab.metrics.coincidence import coincident_nodes, warn_of_coincidence
from curvlab.models.encoder import Encoder
from curvlab.optim import GroupedOptimizer
from curvlab.options import Fraction, Passed
from curvlab.process import rank, world_size
from curvlab.tasks.likeliest_links import likeliest_links
from curvlab.tasks.pairs.loss import Evaluate, reconstruction_loss
from curvlab.tasks.pairs.tiles import PairTiles
from curvlab.tasks.predictions import PredictionQuery, TrainedRun
from curvlab.tasks.references import MOST_PAIR_NODES, check_size, degree_product, plain_graph
from curvlab.tasks.task import TAIL_STEPS, Task

EVALUATION_ENTRIES = 2**21
"""Number of distances held at a time in evaluation, in float64."""

CURVE_STEPS = 500
"""Steps between two points of the curve, except for the last `TAIL_STEPS` steps."""

EFFECT = "mAP is the mean over the orders of such nodes"
"""Effect of coincident nodes on the score."""


class Reconstruction(Task):
    """Loss over all pairs of nodes, mean average precision on the training graph.

    Nodes that coincide are tied, and the metric is the mean over the orders of ties
    (`mean_average_precision`, `coincident_nodes`). There is no split. The training graph is scored
    once, with the final weights; the curve of the metric during training selects nothing. Several
    processes share the tiles of pairs (`curvlab.tasks.pairs`).

    Source: FPS-T, Section 5.1.

    Args:
        power: power of distances in the loss: 2 squared, 1 plain.
        clamp: lower bound of exp(-distance) of a pair and of the quotient of an edge; null for
            none. A pair below it has no gradient. Q-GCN's public code uses 1e-15.
    """

    revision = 2  # 2: the score is the mean over the orders of ties
    score = "map"
    predicts_by = ("nodes", "known")
    shares_loss = True
    evaluates_together = True

    def __init__(
        self,
        encoder: Encoder,
        optimizer: Passed[GroupedOptimizer | None] = None,
        power: Literal[1, 2] = 2,
        clamp: Fraction | None = None,
    ) -> None:
        super().__init__(encoder, optimizer)
        self.power = power
        self.clamp = clamp
        self.evaluate = Evaluate()

    def training_step(self, batch: Data, batch_idx: int) -> Tensor:
        x = self.encoder(batch)
        space = self.encoder.manifold_out
        share = {"rank": rank(), "ranks": world_size()}
        pairs = SparseGraph.from_data(batch).derive(
            ("pairs", *share.values()),
            ("edge_index",),
            lambda graph: PairTiles(graph.edge_index, graph.num_nodes, **share),
        )
        return reconstruction_loss(x, space, pairs, self.power, self.clamp, self.evaluate)

    def validation_step(self, batch: Data, batch_idx: int) -> None:
        """Log a point of the curve every `CURVE_STEPS` steps, near the end every epoch."""
        trainer = self._trainer
        if trainer is not None:  # an estimate times one evaluation without a trainer
            step = trainer.global_step
            passed_point = step % CURVE_STEPS < trainer.num_training_batches
            is_near_end = step > trainer.max_steps - TAIL_STEPS
            if not (passed_point or is_near_end):
                return
        self.log("map", self.precision(batch), batch_size=1)

    def test_step(self, batch: Data, batch_idx: int) -> None:
        self.log("test/map", self.precision(batch), batch_size=1)
        if rank() == 0:
            warn_of_coincidence(self.encoder(batch), EFFECT)

    def loss_scale(self, batch: Data) -> int:
        return batch.edge_index.shape[1]

    @torch.no_grad()
    def precision(self, batch: Data) -> Tensor:
        """Mean average precision in percent, distances in float64."""
        space = self.encoder.manifold_out
        points = self.encoder(batch)
        representative = coincident_nodes(points)
        points = points.double()

        def distance_rows(rows: Tensor) -> Tensor:
            """Squared distances, exactly equal where nodes coincide."""
            distances = space.pairwise_sqdist(points[representative[rows]], points)
            return distances.index_select(1, representative)

        block = max(1, EVALUATION_ENTRIES // batch.num_nodes)
        precision = mean_average_precision(
            distance_rows, batch.edge_index, batch.num_nodes, block=block
        )
        return 100 * precision

    def predict(self, run: TrainedRun, graph: Data | None, query: PredictionQuery) -> pd.DataFrame:
        """Table of the nearest nodes of each node, with ranks and distances."""

        def scores(points: Tensor, neighbours: Tensor) -> Tensor:
            return -run.space.sqdist(points.double(), neighbours.double())

        def pairwise_scores(points: Tensor, neighbours: Tensor) -> Tensor:
            return -run.space.pairwise_sqdist(points.double(), neighbours.double())

        links = likeliest_links(run, graph, query, scores, pairwise_scores)
        links["distance"] = (-links.pop("score")).clip(lower=0) ** 0.5
        return links

    def score_on(self, run: TrainedRun, graph: Data) -> Scores:
        """Mean average precision on the graph."""
        batch = run.prepare(graph)
        with torch.no_grad():
            warn_of_coincidence(self.encoder(batch), EFFECT)
        return {"test": {self.score: float(self.precision(batch))}}

    def references(self, data: GraphDataModule) -> dict[str, float]:
        """Mean average precision of ranking by the product of degrees."""
        check_size(data, nodes=MOST_PAIR_NODES)
        return {"degree product": 100 * float(degree_product(plain_graph(data)))}
