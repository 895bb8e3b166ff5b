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
from curvlab.analysis.routing import FILE, TABLE, Routing, routing_table, save_routing
from curvlab.data.datasets.triples import MASKS, KnownTails
from curvlab.data.loaders.datamodule import GraphDataModule
from curvlab.data.loaders.triple_batches import Corruption, Training
from curvlab.errors import DivergedError, UsageError
from curvlab.files import atomic_write
from curvlab.finite import ALL_FINITE, first_non_finite, step_suffix
from curvlab.graph.sparse_graph import SparseGraph
from curvlab.metrics.ranking import (
    HITS,
    RankCounts,
    Ties,
    rank_counts,
    ranking_metrics,
    ranks,
)
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
from curvlab.process import all_reduce_sum, local_shard
from curvlab.tasks.predictions import PredictionQuery, Trained
from curvlab.tasks.references import MOST_SCORES, TooLargeError
from curvlab.tasks.task import SelectedTask
from curvlab.tasks.triple_losses import (
    REGULARIZERS,
    dura,
    one_vs_all_loss,
)
from curvlab.tasks.triple_predictions import TriplePredictor
from curvlab.tasks.triple_sampling import NegativeSampling, triples_of

RAW = ("mrr", "hits10")

# Scores held at a time in evaluation.
EVALUATION_ENTRIES = 2**22


class KnowledgeGraphCompletion(SelectedTask):
    """Trains scores of true triples against others; ranks of the true tails are scored.

    By default the loss is the cross-entropy of the true tail against all entities (CAT, Section
    4.5). `training` and `loss` choose among those of Ruffinelli et al. 2020: see
    `curvlab.tasks.triple_losses`.

    A batch is of a `TripleDataModule`. In evaluation every triple (h, r, t) of a part is the query
    (h, r, ?), whose other known tails, of all three parts, are left out of the ranking (filtered);
    metrics `raw_...` leave them in. Where the data have inverse relations, (t, r^-1, ?) ranks the
    heads too: metrics are then over both, and `tail_...` and `head_...` of each alone. Without
    them only tails are ranked, whose metrics are much higher than those of both sides: never
    compare the two. Of data with `PART_negatives` `[2, triples, samples]` each tail, and each head,
    is ranked among these entities alone (OGB). `routing_...` are the mean weights of a model's
    branches, `at_rim` is the share of points that are stopped at the rim of a ball, 0 in flat
    space. Weights are chosen by the validation triples, the test triples are ranked once. The
    processes of a run share the queries.
    Source: CAT, Sections 4.5 and 5; filtered ranking: Bordes et al. 2013.

    Args:
        metric: metric that validation selects by, a fraction.
        label_smoothing: share e of the target that all other entities have together; with E
            entities, e = e' (E - 1) / E is the smoothing e' of torch's cross-entropy.
        smoothing: form of label smoothing: `share`, other entities have the share e of every
            target; `added`, for `k_vs_all`, adds 1 / E to each (1 - e) y and normalises (ConvE,
            LibKGE).
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
        self.compared = training
        self.loss = loss
        self.sampling: NegativeSampling | None = None
        if training == "negative_sampling":
            self.sampling = NegativeSampling(
                encoder,
                loss=loss,
                negatives=negatives,
                corruption=corruption,
                filtered=filtered,
                shared=shared_negatives,
                margin=margin,
                temperature=temperature,
                subsampling=subsampling,
                inverse_relations=inverse_relations,
            )
        else:
            _check_no_sampling(loss, negatives, subsampling)
        self.regularizer = regularizer
        self.regularization = regularization
        self.regularized_rows = regularized_rows
        self._check_training()
        self._evaluated: dict[str, dict[str, Tensor]] = {}
        self._counts: dict[str, dict[str, RankCounts]] = {}

    def training_step(self, batch: Data, batch_idx: int) -> Tensor:
        return self.encoder.triple_loss(lambda: self._loss(batch))

    def _loss(self, batch: Data) -> Tensor:
        if self.sampling is not None:
            loss = self.sampling(batch)
        else:
            batch = self.encoder.sort_queries(batch)
            scores, sources = self.encoder.block_scores(batch)
            shape = len(batch.head), self.encoder.num_entities
            truth = batch.query, batch.tail, self.label_smoothing
            loss = one_vs_all_loss(
                scores,
                sources,
                shape,
                *truth,
                binary=self.loss == "bce",
                per_query=self.compared == "k_vs_all",
                added=self.smoothing == "added",
            )
        return loss if self.regularizer is None else loss + self._regularization(batch)

    def _regularization(self, batch: Data) -> Tensor:
        assert self.regularizer is not None
        if self.regularizer == "dura":
            triples = triples_of(batch)
            costs = dura(self.encoder.moduli(triples), self.encoder(triples))
            return self.table_weights["entities"] * costs.mean()
        cost = REGULARIZERS[self.regularizer]
        if self.regularized_rows == "all":
            moduli = self.encoder.table_moduli()
            parts = [self.table_weights[name] * cost(m).sum() for name, m in moduli.items()]
            return torch.stack(parts).sum()
        head, relation, tail = cost(self.encoder.moduli(triples_of(batch)))
        ends = self.table_weights["entities"] * (head + tail)
        return (ends + self.table_weights["relations"] * relation).mean()

    @property
    def table_weights(self) -> Mapping[str, float]:
        """Weights of the regulariser on entities and relations."""
        if isinstance(self.regularization, Mapping):
            return self.regularization
        return dict.fromkeys(("entities", "relations"), self.regularization)

    def _check_training(self) -> None:
        if not (self.inverse_relations or self.encoder.reciprocal):
            raise UsageError(
                "model.reciprocal=false is about inverse relations: set task.inverse_relations=true"
            )
        self._check_regularizer()
        if self.smoothing == "added" and (self.compared, self.loss) != ("k_vs_all", "softmax"):
            raise UsageError(
                "task.smoothing=added needs task.training=k_vs_all and task.loss=softmax"
            )
        if self.smoothing == "added" and self.label_smoothing == 0:
            raise UsageError("task.smoothing=added needs a task.label_smoothing greater than 0")

    def _check_regularizer(self) -> None:
        rows = self.regularized_rows
        if rows == "all" and self.regularizer not in ("n3", "l2"):
            raise UsageError("task.regularized_rows=all needs task.regularizer=l2 or n3")
        if rows == "all" and self.encoder.entities.sparse:
            raise UsageError(
                "task.regularized_rows=all changes every row in a step: set model.sparse=false"
            )
        if self.regularizer == "dura" and isinstance(self.regularization, Mapping):
            raise UsageError("task.regularizer=dura has one weight: set task.regularization=0.01")
        if self.regularizer is None or rows == "batch":
            return
        tables = self.encoder.table_moduli()
        if "relations" not in tables and self.table_weights["relations"]:
            raise UsageError(
                f"{type(self.encoder).__name__} regularises entities alone: set "
                "task.regularization={entities: ..., relations: 0.0}"
            )

    def on_train_batch_start(self, batch: Data | None = None, batch_idx: int = 0) -> None:
        self._evaluated = {}

    on_test_start = on_train_batch_start

    def predict(self, run: Trained, graph: Data | None, query: PredictionQuery) -> pd.DataFrame:
        """Table of the best answers of each query, with rank, score and probability."""
        if graph is not None:
            run.check_inductive()
        predictor = TriplePredictor(self.encoder, self.inverse_relations, self.ties)
        return predictor.predict(run, query)

    def write_files(self, graph: Data, folder: Path) -> None:
        """Write the ranks of the test queries and, of a router, `routing.npz` and `routing.csv`."""
        self.eval()
        if "test" in self._counts:
            table = rank_table(graph, *self._queries(graph, "test"), self._counts["test"])
            save_ranks(folder, table, self.ties, self.hits)
        if not self.encoder.router_branches:
            return
        parts = {part: self._routing(graph, part) for part in ("train", "test")}
        save_routing(folder / FILE, parts)
        table = routing_table(parts["test"])
        atomic_write(folder / TABLE, table.to_csv(index=False, float_format="%.4f"))

    @torch.no_grad()
    def _routing(self, graph: Data, part: str) -> Routing:
        mask = graph[MASKS[part]].to(graph.edge_type.device)
        head, tail = graph.edge_index[:, mask].to(self.device)
        relation = graph.edge_type[mask].to(self.device)
        weights = []
        size = EVALUATION_ENTRIES // self.encoder.dim_out
        for queries in queries_of(head, relation, tail, size):
            self.encoder(queries)
            assert self.encoder.routing is not None
            weights.append(self.encoder.routing.float().cpu())
        names = list(self.encoder.router_branches), graph.relation_names
        return Routing(torch.cat(weights).numpy(), relation.cpu().numpy(), *names)

    def references(self, data: GraphDataModule) -> dict[str, float]:
        """Test scores of relation frequency and of reverse lookup, which learn nothing."""
        graph = data.graph
        queries = int(graph.test_mask.sum())
        entities = int(graph.num_nodes or 0)
        counts = max(queries, len(graph.relation_names)) * entities
        if "test_negatives" in graph or counts > MOST_SCORES:
            raise TooLargeError(
                f"{queries:,} queries among {entities:,} entities are too many for seconds"
            )
        head, tail = graph.edge_index[:, graph.train_mask]
        triples = torch.stack([head, graph.edge_type[graph.train_mask], tail])
        floors = {"relation frequency": RelationFrequency, "reverse lookup": ReverseLookup}
        points = {}
        for name, floor in floors.items():
            task = KnowledgeGraphCompletion(
                floor(entities, len(graph.relation_names), triples),
                inverse_relations=self.inverse_relations,
                ties=self.ties,
            )
            points[name] = float(task.to(triples.device).rank_part(graph, "test")[self.score])
        return points

    def scores(self, batch: Data, part: str) -> dict[str, Tensor]:
        if part not in self._evaluated:
            metrics = self.rank_part(batch, part)
            self._evaluated[part] = {self.score: metrics[self.score], **metrics}
        return self._evaluated[part]

    @torch.no_grad()
    def rank_part(self, batch: Data, part: str) -> dict[str, Tensor]:
        """All metrics of a part, ranked block by block; a group's processes share the blocks."""
        at, head_side = self._queries(batch, part)
        head, tail = batch.edge_index[:, at]
        sampled: dict[str, Tensor] = {}
        negatives = batch.get(f"{part}_negatives")
        if negatives is None:
            reads = ("edge_index", "edge_type")
            known = SparseGraph.from_data(batch).derive("known_tails", reads, _known_tails)
            size = max(1, EVALUATION_ENTRIES // batch.num_nodes)
        else:
            known = None
            replaced = head_side & (not self.inverse_relations)
            sampled = {"negatives": negatives.flatten(0, 1), "replaces_head": replaced}
            size = max(1, EVALUATION_ENTRIES // (negatives.shape[2] * self.encoder.dim_out))
        blocks = queries_of(head, batch.edge_type[at], tail, size, **sampled)
        counts = head.new_zeros(len(head), 6, dtype=torch.float64)
        names = self.encoder.statistic_names
        sums = head.new_zeros(len(blocks), len(names), dtype=torch.get_default_dtype())
        for number in local_shard(range(len(blocks))):
            queries = blocks[number]
            rows = slice(number * size, (number + 1) * size)
            with torch.autocast(head.device.type, enabled=False):  # half precision would make ties
                counts[rows] = self._rank_block(queries, known)
                statistics = self.encoder.statistics(queries)
                for column, name in enumerate(names):
                    sums[number, column] = len(queries.head) * statistics[name]
        broken = ~all_reduce_sum(counts).isfinite().all(1)
        if broken.any():
            first = blocks[int(broken.float().argmax()) // size]
            where = first_non_finite(self, lambda: self._block_scores(first))
            what = f"scores of the {part} triples: not finite{step_suffix(self)}"
            raise DivergedError(f"{what}; {where or ALL_FINITE}")
        filtered = RankCounts(*counts[:, :3].T)
        raw = RankCounts(*counts[:, 3:].T)
        rank = ranks(filtered, self.ties)
        values = ranking_metrics(rank, self.hits)
        if negatives is None:
            self._counts[part] = {"filtered": filtered, "raw": raw}
            further = {"raw_": ranks(raw, self.ties)}
        else:
            self._counts[part] = {"sampled": filtered}
            further = {}
        if self.inverse_relations or negatives is not None:
            further |= {"tail_": rank[~head_side], "head_": rank[head_side]}
        for name, part_rank in further.items():
            metrics = ranking_metrics(part_rank)
            values |= {f"{name}{m}": metrics[m] for m in RAW}
        values["at_rim"] = sums.new_zeros(())
        means = all_reduce_sum(sums).sum(0) / len(head)
        return values | dict(zip(names, means, strict=True))

    def _queries(self, graph: Data, part: str) -> tuple[Tensor, Tensor]:
        """Positions of the queries' triples, and whether their head is ranked; such come last."""
        at = graph[MASKS[part]].nonzero().squeeze(1)
        if self.inverse_relations:
            return at, graph.edge_type[at] >= len(graph.relation_names) // 2
        heads = torch.zeros_like(at, dtype=torch.bool)
        if f"{part}_negatives" in graph:
            return at.repeat(2), torch.cat([heads, ~heads])
        return at, heads

    def _block_scores(self, queries: Data) -> Tensor:
        """Scores `[queries, candidates]`: all entities, or the answer and its negatives."""
        if "negatives" not in queries:
            return self.encoder.scores(queries)
        replaced = queries.replaces_head.unsqueeze(1)
        head = queries.head.unsqueeze(1)
        tail = queries.tail.unsqueeze(1)
        ends = torch.cat([head.where(replaced, tail), queries.negatives], 1)
        head = ends.where(replaced, head)
        tail = tail.where(replaced, ends)
        relation = queries.relation.unsqueeze(1).expand_as(ends)
        triples = Data(head=head.flatten(), relation=relation.flatten(), tail=tail.flatten())
        return self.encoder.triple_scores(triples).view_as(ends)

    def _rank_block(self, queries: Data, known: KnownTails | None) -> Tensor:
        """Filtered and raw counts `[queries, 6]`; NaN if a score is not finite."""
        scores = self._block_scores(queries)
        if known is None:
            block_counts = rank_counts(scores, torch.zeros_like(queries.tail))
        else:
            answers = known.lookup(queries.head, queries.relation)
            block_counts = rank_counts(scores, queries.tail, answers)
        # Comparisons with NaN are false, which would rank it first.
        return torch.stack([*block_counts[0], *block_counts[1]], 1).where(
            scores.sum().isfinite(), torch.nan
        )


def _known_tails(batch: Data) -> KnownTails:
    head, tail = batch.edge_index
    return KnownTails(head, batch.edge_type, tail, len(batch.relation_names))


def _check_no_sampling(loss: str, negatives: int | SideCounts, subsampling: bool) -> None:
    """Refuse options of negative samples without them."""
    given = {
        "task.negatives={head, tail}": isinstance(negatives, Mapping),
        "task.subsampling=true": subsampling,
    }
    wrong = [option for option, is_given in given.items() if is_given]
    if wrong:
        raise UsageError(f"{wrong[0]} needs negative samples: set task.training=negative_sampling")
    if loss in ("margin", "self_adversarial"):
        raise UsageError(f"task.loss={loss} compares samples: set task.training=negative_sampling")


def queries_of(
    head: Tensor, relation: Tensor, tail: Tensor, size: int, **further: Tensor
) -> list[Data]:
    """Triples, and other rows of theirs, as batches of at most `size` queries, at least one."""
    columns = {"head": head, "relation": relation, "tail": tail, **further}
    parts = zip(*(column.split(max(1, size)) for column in columns.values()), strict=True)
    blocks = [Data(**dict(zip(columns, part, strict=True))) for part in parts]
    for block in blocks:
        block.query = torch.arange(len(block.head), device=block.head.device)
    return blocks
