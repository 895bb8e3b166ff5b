"""Predictions of knowledge graphs: entities of a query, or relations of two entities."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.datasets.triples import KnownTails
from curvlab.errors import UsageError
from curvlab.metrics.ranking import Ties, rank_counts, ranks, score_ranks
from curvlab.models.triple_scorer import TripleScorer
from curvlab.tasks.predictions import PredictionQuery, Query, TrainedRun, find_positions

ENTRIES = 2**22
"""Scores held at a time while the relations of pairs are ranked."""

COLUMNS = ["head", "relation", "tail", "rank", "score", "probability", "known"]


@dataclass(frozen=True)
class TriplePredictor:
    """Predicts entities and relations by the scores of a trained model.

    Attributes:
        encoder: trained model.
        both_sides: whether the model has inverse relations, which predict heads.
        ties: ranks of equal scores.
    """

    encoder: TripleScorer
    both_sides: bool
    ties: Ties

    def predict(self, run: TrainedRun, query: PredictionQuery) -> pd.DataFrame:
        """Table of the best answers of each query, with rank, score and probability.

        Answers with equal scores have the rank that `ties` gives them. The probability is the
        share of the answer among all entities in the softmax of a query's scores.
        """
        if any(relation is None for _, relation, _ in query.queries):
            return self._predict_relations(run, query)
        if not query.queries:
            raise UsageError(
                "give pairs to complete: a head and a relation, or a relation and a tail, by name; "
                "or triples to score"
            )
        entities = run.ids()
        entity, relation, answer = self._query_indices(run, query.queries, entities)
        known_tails = None
        with suppress(UsageError):  # the data set's files are not on this machine
            graph = run.data.graph
            heads, tails = graph.edge_index.cpu()
            num_relations = len(graph.relation_names)
            known_tails = KnownTails(heads, graph.edge_type.cpu(), tails, num_relations)
        table = []
        for rows in torch.arange(len(entity)).split(max(1, ENTRIES // len(entities))):
            batch = Data(head=entity[rows], relation=relation[rows])
            scores = self._scores(run, batch)
            is_known = torch.zeros(scores.shape, dtype=torch.bool)
            known = None
            if known_tails is not None:
                known = known_tails.lookup(entity[rows], relation[rows])
                is_known[known] = True
            filtered, _ = rank_counts(scores, answer[rows].clamp(min=0), known)
            answer_ranks = ranks(filtered, self.ties)
            candidates = scores
            if query.known is False:
                candidates = scores.masked_fill(is_known, -torch.inf)
            best, best_entities = candidates.topk(min(query.k, len(entities)), dim=1)
            best_ranks = score_ranks(best, candidates, self.ties)
            probabilities = scores.softmax(1)
            for i, row in enumerate(rows.tolist()):
                is_answer = best[i] != -torch.inf
                row_ranks = best_ranks[i][is_answer].tolist()
                row_entities = best_entities[i][is_answer].tolist()
                if answer[row] >= 0:
                    row_ranks = [float(answer_ranks[i])]
                    row_entities = [int(answer[row])]
                head, name, tail = query.queries[row]
                for rank, index in zip(row_ranks, row_entities, strict=True):
                    table.append(
                        (
                            head or entities[index],
                            name,
                            tail or entities[index],
                            rank,
                            float(scores[i, index]),
                            float(probabilities[i, index]),
                            None if known is None else bool(is_known[i, index]),
                        )
                    )
        return pd.DataFrame(table, columns=COLUMNS)

    def _predict_relations(self, run: TrainedRun, query: PredictionQuery) -> pd.DataFrame:
        """Predict the relations of pairs of a head and a tail, by the scores of the triples."""
        if any(relation or not (head and tail) for head, relation, tail in query.queries):
            raise UsageError(
                "relations are predicted of a head and a tail, both by name, and not together with "
                "other queries"
            )
        entities = run.ids()
        names = self._relation_names(run)
        triples = set[tuple[int, int, int]]()
        with suppress(UsageError):  # the data set's files are not on this machine
            graph = run.data.graph.cpu()
            columns = torch.stack([graph.edge_index[0], graph.edge_type, graph.edge_index[1]])
            triples.update((h, r, t) for h, r, t in columns.T.tolist())
        relations = torch.arange(len(names))
        table = []
        for head, _, tail in query.queries:
            h, t = find_positions([str(head), str(tail)], entities, "entity")
            batch = Data(head=torch.full_like(relations, h), relation=relations)
            scores = self._scores(run, batch)
            score = scores[:, t]
            probability = scores.softmax(1)[:, t]
            is_known = torch.tensor([(h, r, t) in triples for r in range(len(names))])
            if query.known is False:
                score = score.masked_fill(is_known, -torch.inf)
            order = score.argsort(descending=True, stable=True)
            order = order[score[order] != -torch.inf][: query.k]
            best = score[order].unsqueeze(0)
            best_ranks = score_ranks(best, score.unsqueeze(0), self.ties)[0]
            for rank, r in zip(best_ranks.tolist(), order.tolist(), strict=True):
                table.append(
                    (
                        head,
                        names[r],
                        tail,
                        rank,
                        float(score[r]),
                        float(probability[r]),
                        bool(is_known[r]) if triples else None,
                    )
                )
        return pd.DataFrame(table, columns=COLUMNS)

    def _query_indices(
        self, run: TrainedRun, queries: Sequence[Query], entities: list[str]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Known entity, relation and answer of each query, `[queries]`; answer -1 for none.

        A query for a head has the inverse relation.
        """
        names = self._relation_names(run)
        for head, relation, tail in queries:
            if head is None and tail is None:
                raise UsageError(f"give the head or the tail that belongs to {relation!r}, or both")
            if head is None and not self.both_sides:
                raise UsageError(
                    "the run ranks tails alone, so that no heads can be asked for: train one with "
                    "task.inverse_relations=true"
                )
        entity_names = [str(tail if head is None else head) for head, _, tail in queries]
        entity = torch.tensor(find_positions(entity_names, entities, "entity"))
        relation_names = [str(relation) for _, relation, _ in queries]
        index = torch.tensor(find_positions(relation_names, names, "relation"))
        is_inverse = torch.tensor([head is None for head, _, _ in queries])
        answer = torch.full((len(queries),), -1)
        triples = [i for i, query in enumerate(queries) if None not in query]
        tails = find_positions([str(queries[i][2]) for i in triples], entities, "entity")
        answer[triples] = torch.tensor(tails, dtype=torch.long)
        return entity, index + is_inverse * len(names), answer

    def _scores(self, run: TrainedRun, batch: Data) -> Tensor:
        """Scores `[queries, entities]` of a batch, on the CPU."""
        scores = self.encoder.scores(batch.to(str(run.device)))
        return scores.float().cpu()

    def _relation_names(self, run: TrainedRun) -> list[str]:
        """Names of the relations, without inverse relations."""
        names = list(run.vocabulary.relations or ())
        return names[: len(names) // 2] if self.both_sides else names
