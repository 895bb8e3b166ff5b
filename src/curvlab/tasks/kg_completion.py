"""Knowledge-graph completion: which entity is the tail of a head and a relation."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
import torch
from annotated_types import Interval
from torch import Tensor
from torch_geometric.data import Data

from curvlab.analysis.ranks import rank_table, save_ranks
from curvlab.data.loaders.datamodule import GraphDataModule
from curvlab.data.loaders.triple_batches import Corruption, Training
from curvlab.errors import DivergedError, UsageError
from curvlab.finite import ALL_FINITE, first_non_finite, step_suffix
from curvlab.metrics.ranking import HITS, RankCounts, Ties
from curvlab.models.triple_scorer import TripleScorer
from curvlab.models.triples.floors import RelationFrequency, ReverseLookup
from curvlab.optim import GroupedOptimizer, LowerOnce, ReduceOnPlateau
from curvlab.options import (
    NonNegativeFloat,
    Passed,
    PositiveInt,
    SideCounts,
    TableWeights,
)
from curvlab.tasks.predictions import PredictionQuery, TrainedRun
from curvlab.tasks.references import MOST_SCORES, TooLargeError
from curvlab.tasks.task import SelectedTask
from curvlab.tasks.triple_losses import one_vs_all_loss
from curvlab.tasks.triple_predictions import TriplePredictor
from curvlab.tasks.triple_ranking import PartRanking, part_queries
from curvlab.tasks.triple_regularization import Regularization
from curvlab.tasks.triple_sampling import NegativeSampling
from curvlab.tasks.written_files import save_query_routing


class KnowledgeGraphCompletion(SelectedTask):
    """Trains scores of true triples against other triples; evaluates the ranks of true tails.

    By default the loss is the cross-entropy of the true tail against all entities (CAT, Section
    4.5). `training` and `loss` select one of the losses of Ruffinelli et al. 2020
    (`curvlab.tasks.triple_losses`).

    A `TripleDataModule` gives the batches. In evaluation every triple (h, r, t) of a part is the
    query (h, r, ?). Its other known tails, of all three parts, are left out of the ranking
    (filtered); metrics `raw_...` leave them in. If the data have inverse relations, (t, r^-1, ?)
    ranks the heads too: metrics are then over both sides, and `tail_...` and `head_...` over one.
    Without inverse relations only tails are ranked. Their metrics are much higher than those of
    both sides: never compare the two. If the data have `PART_negatives` `[2, triples, samples]`,
    each tail, and each head, is ranked among these entities alone (OGB).

    `routing_...` are the mean weights of a model's branches. `at_rim` is the share of points at the
    rim of a ball, 0 in flat space. The validation triples select the weights, and the test triples
    are ranked once. The processes of a run share the queries.

    Source: CAT, Sections 4.5 and 5; filtered ranking: Bordes et al. 2013.

    Args:
        metric: metric that validation selects by, a fraction.
        label_smoothing: share e of the target that is spread over all other entities. The smoothing
            e' of torch's cross-entropy is e = e' (E - 1) / E for E entities.
        smoothing: form of label smoothing: `share`, other entities have the share e of every
            target; `added`, for `k_vs_all`, 1 / E is added to each (1 - e) y, and the sum is
            normalised (ConvE, LibKGE).
        inverse_relations: train on and rank (tail, inverse relation, ?) as well as tails.
        ties: ranks of equal scores: their mean, the lowest or the highest.
        hits: further k of Hits@k, in addition to 1, 3 and 10.
        scheduler: scheduler of the learning rate, by the metric after every epoch; null for none.
        training: candidates that a triple is compared with: `one_vs_all`, every tail; `k_vs_all`,
            every tail, where all training tails are targets; `negative_sampling`, triples with
            another head or tail.
        loss: `softmax` or `bce` (summed over entities or samples; torch's is the mean); of
            negative samples also `margin` and `self_adversarial`.
        negatives: number of samples per triple, drawn with replacement; `{head: 70, tail: 158}`
            gives the number for each side of a triple, and the loss is the mean over sides.
        corruption: end that a sample replaces: `tail`; `uniform`, either; `bernoulli`, by the
            relation's tails per head; `both`.
        filtered: leave out samples that are training triples.
        shared_negatives: draw the samples once for all triples of a batch; `corruption=tail`.
        margin: margin of the losses `margin` and `self_adversarial`.
        temperature: temperature of the samples' weights in `self_adversarial`.
        regularizer: regulariser of the embeddings of a batch's triples: `n3` (Lacroix et al. 2018),
            `l2` or `dura` (Zhang et al. 2020); null for none.
        regularization: weight of the regulariser, or `{entities: 1e-3, relations: 0.0}`.
        regularized_rows: rows that `n3` and `l2` cover: `batch`, the mean over a batch's triples;
            `all`, the sum over all rows of the tables.
        subsampling: weigh triples of rare heads and tails more in the loss of negative samples: by
            n^(-1/2) of the triples that share head and relation, or relation and tail.
    """

    data_kind = "triples"
    predicts_by = ("queries", "known")
    evaluates_together = True

    def __init__(
        self,
        encoder: TripleScorer,
        optimizer: Passed[GroupedOptimizer | None] = None,
        metric: Literal["mrr", "hits1", "hits3", "hits10"] = "mrr",
        label_smoothing: Annotated[float, Interval(ge=0, lt=1)] = 0.1,
        inverse_relations: bool = False,
        ties: Ties = "realistic",
        hits: Sequence[PositiveInt] = HITS,
        scheduler: ReduceOnPlateau | LowerOnce | None = None,
        training: Training = "one_vs_all",
        loss: Literal["softmax", "bce", "margin", "self_adversarial"] = "softmax",
        negatives: PositiveInt | SideCounts = 64,
        corruption: Corruption = "uniform",
        filtered: bool = False,
        shared_negatives: bool = False,
        margin: NonNegativeFloat = 1.0,
        temperature: NonNegativeFloat = 1.0,
        regularizer: Literal["n3", "l2", "dura"] | None = None,
        regularization: NonNegativeFloat | TableWeights = 0.01,
        regularized_rows: Literal["batch", "all"] = "batch",
        subsampling: bool = False,
        smoothing: Literal["share", "added"] = "share",
    ) -> None:
        super().__init__(encoder, optimizer, scheduler)
        self.encoder: TripleScorer = encoder
        self.score = metric
        self.label_smoothing = label_smoothing
        self.smoothing = smoothing
        self.inverse_relations = inverse_relations
        self.ties = ties
        self.hits = sorted({*HITS, *hits})
        self.training_type = training
        self.loss = loss
        self.sampling: NegativeSampling | None = None
        if training == "negative_sampling":
            self.sampling = NegativeSampling(
                encoder,
                loss=loss,
                negatives=negatives,
                corruption=corruption,
                filtered=filtered,
                shared_negatives=shared_negatives,
                margin=margin,
                temperature=temperature,
                subsampling=subsampling,
                inverse_relations=inverse_relations,
            )
        else:
            _check_no_sampling(loss, negatives, subsampling)
        self.regularization = Regularization(encoder, regularizer, regularization, regularized_rows)
        self._check_training()
        self._metrics: dict[str, dict[str, Tensor]] = {}
        self._counts: dict[str, dict[str, RankCounts]] = {}

    def training_step(self, batch: Data, batch_idx: int) -> Tensor:
        return self.encoder.triple_loss(lambda: self._loss(batch))

    def _loss(self, batch: Data) -> Tensor:
        if self.sampling is not None:
            loss = self.sampling(batch)
        else:
            batch = self.encoder.sort_queries(batch)
            scores, sources = self.encoder.block_scores(batch)
            loss = one_vs_all_loss(
                scores,
                sources,
                (len(batch.head), self.encoder.num_entities),
                batch.query,
                batch.tail,
                self.label_smoothing,
                binary=self.loss == "bce",
                per_query=self.training_type == "k_vs_all",
                added=self.smoothing == "added",
            )
        if self.regularization.regularizer is None:
            return loss
        return loss + self.regularization(batch)

    def _check_training(self) -> None:
        if not (self.inverse_relations or self.encoder.reciprocal):
            raise UsageError(
                "model.reciprocal=false is about inverse relations: set task.inverse_relations=true"
            )
        if self.smoothing != "added":
            return
        if (self.training_type, self.loss) != ("k_vs_all", "softmax"):
            raise UsageError(
                "task.smoothing=added needs task.training=k_vs_all and task.loss=softmax"
            )
        if self.label_smoothing == 0:
            raise UsageError("task.smoothing=added needs a task.label_smoothing greater than 0")

    def on_train_batch_start(self, batch: Data | None = None, batch_idx: int = 0) -> None:
        self._metrics = {}

    on_test_start = on_train_batch_start

    def scores(self, batch: Data, part: str) -> dict[str, Tensor]:
        if part not in self._metrics:
            metrics = self.rank_part(batch, part)
            self._metrics[part] = {self.score: metrics[self.score], **metrics}
        return self._metrics[part]

    @torch.no_grad()
    def rank_part(self, batch: Data, part: str) -> dict[str, Tensor]:
        """All metrics of a part. The processes of a group share the queries."""
        ranking = PartRanking(self.encoder, batch, part, self.inverse_relations)
        ranking.run()
        block = ranking.non_finite_block()
        if block is not None:
            origin = first_non_finite(self, lambda: ranking.scores(block))
            raise DivergedError(
                f"scores of the {part} triples: not finite{step_suffix(self)}; "
                f"{origin or ALL_FINITE}"
            )
        self._counts[part] = ranking.rank_counts()
        return ranking.metrics(self.ties, self.hits)

    def references(self, data: GraphDataModule) -> dict[str, float]:
        """Test scores of relation frequency and of reverse lookup, which learn nothing."""
        graph = data.graph
        queries = int(graph.test_mask.sum())
        entities = int(graph.num_nodes or 0)
        relations = len(graph.relation_names)
        if "test_negatives" in graph or max(queries, relations) * entities > MOST_SCORES:
            raise TooLargeError(
                f"{queries:,} queries among {entities:,} entities are too many for seconds"
            )
        head, tail = graph.edge_index[:, graph.train_mask]
        triples = torch.stack([head, graph.edge_type[graph.train_mask], tail])
        floors = {"relation frequency": RelationFrequency, "reverse lookup": ReverseLookup}
        scores = {}
        for name, floor in floors.items():
            task = KnowledgeGraphCompletion(
                floor(entities, relations, triples),
                inverse_relations=self.inverse_relations,
                ties=self.ties,
            )
            metrics = task.to(triples.device).rank_part(graph, "test")
            scores[name] = float(metrics[self.score])
        return scores

    def predict(self, run: TrainedRun, graph: Data | None, query: PredictionQuery) -> pd.DataFrame:
        """Table of the best answers of each query, with rank, score and probability."""
        if graph is not None:
            run.check_inductive()
        predictor = TriplePredictor(self.encoder, self.inverse_relations, self.ties)
        return predictor.predict(run, query)

    def write_files(self, graph: Data, folder: Path) -> None:
        """Write the ranks of the test queries and, if the model has a router, its routing."""
        self.eval()
        if "test" in self._counts:
            triples, ranks_head = part_queries(graph, "test", self.inverse_relations)
            table = rank_table(graph, triples, ranks_head, self._counts["test"])
            save_ranks(folder, table, self.ties, self.hits)
        if self.encoder.router_branches:
            save_query_routing(self.encoder, graph, folder)


def _check_no_sampling(loss: str, negatives: int | SideCounts, subsampling: bool) -> None:
    """Refuse options of negative sampling if the task does not sample."""
    option = ""
    if subsampling:
        option = "task.subsampling=true"
    if isinstance(negatives, Mapping):
        option = "task.negatives={head, tail}"
    if option:
        raise UsageError(f"{option} needs negative samples: set task.training=negative_sampling")
    if loss in ("margin", "self_adversarial"):
        raise UsageError(f"task.loss={loss} compares samples: set task.training=negative_sampling")
