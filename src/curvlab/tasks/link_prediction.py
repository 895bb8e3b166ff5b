"""Link prediction: separate edges held out of the graph from pairs without an edge."""

from collections.abc import Callable

import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data
from torchmetrics.functional.classification import binary_auroc, binary_average_precision

from curvlab.data.loaders.datamodule import GraphDataModule
from curvlab.data.splits.links import NonEdges
from curvlab.errors import UsageError
from curvlab.finite import Scores, finite_or_nan
from curvlab.graph.sparse_graph import SparseGraph
from curvlab.metrics.coincidence import coincident_nodes, coincident_pairs, warn_of_coincidence
from curvlab.models.encoder import Encoder
from curvlab.optim import GroupedOptimizer
from curvlab.options import Passed, PositiveFloat
from curvlab.process import rank
from curvlab.tasks.decoders import LinkDecoderName, make_link_decoder
from curvlab.tasks.labels import normalized_ranks
from curvlab.tasks.likeliest_links import likeliest_links
from curvlab.tasks.predictions import PredictionQuery, TrainedRun
from curvlab.tasks.references import MOST_LINKS, check_size, link_references, plain_graph
from curvlab.tasks.task import SelectedTask

METRICS = ("roc_auc", "average_precision", "auc_ap")

EFFECT = "pairs of such nodes have equal scores"
"""Effect of coincident nodes on the scores."""


class LinkPrediction(SelectedTask):
    """Trains on the training edges and as many random pairs; scores held-out edges by ROC-AUC.

    Messages pass along the training edges, the graph's `edge_index`. Every step draws negatives
    uniformly from all pairs without a training edge. A negative may be a held-out edge, which
    training does not know. Validation and test rank their edges against pairs without an edge in
    any part, drawn once. The test edges are scored once, with the weights of the best validation
    score (`BestValidation`). Pairs whose points coincide are tied (`coincident_nodes`), and ties
    count half in ROC-AUC.

    Args:
        metric: metric that selects the weights: roc_auc (the score), average_precision, or auc_ap,
            the mean of both.
        decoder: auto (the space's own), lorentzian (product and margin loss) or fermi_dirac
            (distance and cross-entropy).
        margin: margin of the loss of lorentzian.
        radius: squared distance at which fermi_dirac gives a probability of one half.
        temperature: temperature of fermi_dirac; the larger, the slower the probability falls with
            distance.

    Source: HGCN (Chami et al. 2019), Section 5, and its code.
    """

    score = "roc_auc"
    predicts_by = ("nodes", "known")

    def __init__(
        self,
        encoder: Encoder,
        optimizer: Passed[GroupedOptimizer | None] = None,
        metric: str = "auc_ap",
        decoder: LinkDecoderName = "auto",
        margin: PositiveFloat | None = 2.0,
        radius: PositiveFloat = 2.0,
        temperature: PositiveFloat = 1.0,
    ) -> None:
        super().__init__(encoder, optimizer)
        if metric not in METRICS:
            raise UsageError(f"metric={metric!r}: links are scored by {', '.join(METRICS)}")
        self.decoder = make_link_decoder(
            decoder,
            encoder.manifold_out,
            margin=margin,
            radius=radius,
            temperature=temperature,
        )
        self.metric = metric

    def forward(self, batch: Data, edges: Tensor, non_edges: Tensor) -> tuple[Tensor, Tensor]:
        """Scores `[edges]` and `[non_edges]` of pairs `[2, ...]`."""
        return self._pair_scores(self.encoder(batch), edges, non_edges)

    def _pair_scores(
        self, points: Tensor, edges: Tensor, non_edges: Tensor
    ) -> tuple[Tensor, Tensor]:
        pairs = torch.cat([edges, non_edges], dim=1)
        scores = self.decoder.pair_scores(points, pairs)
        positive, negative = scores.split([edges.shape[1], non_edges.shape[1]])
        return positive, negative

    def training_step(self, batch: Data, batch_idx: int) -> Tensor:
        edges = batch.train_edges
        negatives = SparseGraph.from_data(batch).derive(
            "non_edges",
            ("train_edges",),
            lambda graph: NonEdges(graph.train_edges, int(graph.num_nodes or 0)),
        )
        num_edges = edges.shape[1]
        non_edges = negatives.sample(num_edges)

        def loss(points: Tensor) -> Tensor:
            return self.decoder.loss(*self._pair_scores(points, edges, non_edges))

        return self.encoder.training_loss(batch, loss)

    def test_step(self, batch: Data, batch_idx: int) -> None:
        super().test_step(batch, batch_idx)
        if rank() == 0:
            warn_of_coincidence(self.encoder(batch), EFFECT)

    def validation_score(self, batch: Data) -> Tensor:
        return self.scores(batch, "val")[self.metric]

    def scores(self, batch: Data, part: str) -> dict[str, Tensor]:
        """Metrics of a part; pairs whose points coincide have equal scores (`coincident_pairs`)."""
        edges = batch[f"{part}_edges"]
        non_edges = batch[f"{part}_non_edges"]
        points = self.encoder(batch)
        pairs = torch.cat([edges, non_edges], dim=1)
        scores = self.decoder.pair_scores(points, pairs)
        scores = scores[coincident_pairs(coincident_nodes(points), pairs)]
        return link_scores(*scores.tensor_split([edges.shape[1]]))

    def predict(self, run: TrainedRun, graph: Data | None, query: PredictionQuery) -> pd.DataFrame:
        """Table of the likeliest neighbours of each node: ranks, scores and probabilities."""
        links = likeliest_links(run, graph, query, self.decoder, self.decoder.pairwise_scores)
        scores = torch.tensor(links["score"].to_numpy())
        probability = self.decoder.probability(scores)
        if probability is not None:
            links["probability"] = probability.numpy()
        return links

    def score_on(self, run: TrainedRun, graph: Data) -> Scores:
        """Metrics of the test edges of the graph, split as the run's graph was."""
        batch = run.prepare(run.split(graph))
        scores = self.scores(batch, "test")
        with torch.no_grad():
            warn_of_coincidence(self.encoder(batch), EFFECT)
        return {"test": {name: float(score) for name, score in scores.items()}}

    def references(self, data: GraphDataModule) -> dict[str, float]:
        """Test ROC-AUC of common neighbours and of Adamic and Adar's index."""
        check_size(data, edges=MOST_LINKS)

        def score(edges: Tensor, non_edges: Tensor) -> float:
            metrics = link_scores(edges, non_edges)
            return float(metrics[self.score])

        return link_references(plain_graph(data), score)


def link_scores(edges: Tensor, non_edges: Tensor) -> dict[str, Tensor]:
    """ROC-AUC, average precision and their mean, in percent; NaN if a score is not finite."""
    scores = torch.cat([edges, non_edges])
    is_edge = torch.cat([torch.ones_like(edges), torch.zeros_like(non_edges)]).long()

    def percent(metric: Callable[..., Tensor]) -> Tensor:
        value = finite_or_nan(
            lambda finite: metric(normalized_ranks(finite), is_edge, validate_args=False), scores
        )
        return 100 * value

    roc_auc = percent(binary_auroc)
    precision = percent(binary_average_precision)
    return {
        "roc_auc": roc_auc,
        "average_precision": precision,
        "auc_ap": (roc_auc + precision) / 2,
    }
