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
from curvlab.tasks.predictions import PredictionQuery, Query, Trained, positions_of

ENTRIES = 2**22
"""Scores held at a time while the relations of pairs are ranked."""

COLUMNS = ["head", "relation", "tail", "rank", "score", "probability", "known"]


@dataclass(frozen=True)
class TriplePredictor:
    """Predicts entities and relations by the scores of a trained model.

    Attributes:
        encoder: trained model.
        both_sides: whether the model has inverse relations, by which heads are predicted.
        ties: ranks of equal scores.
    """

    encoder: TripleScorer
    both_sides: bool
    ties: Ties

    def predict(self, run: Trained, query: PredictionQuery) -> pd.DataFrame:
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
        end, relation, answer = self._query_numbers(run, query.queries, entities)
        known = None
        rows = []
        with suppress(UsageError):  # the files are not here
            data = run.data.graph
            heads, tails = data.edge_index.cpu()
            known = KnownTails(heads, data.edge_type.cpu(), tails, len(data.relation_names))
        for at in torch.arange(len(end)).split(max(1, ENTRIES // len(entities))):
            batch = Data(head=end[at], relation=relation[at]).to(str(run.device))
            scores = self.encoder.scores(batch).float().cpu()
            is_answer = torch.zeros(scores.shape, dtype=torch.bool)
            answers = None if known is None else known.lookup(end[at], relation[at])
            if answers is not None:
                is_answer[answers] = True
            place_of = ranks(rank_counts(scores, answer[at].clamp(min=0), answers)[0], self.ties)
            ranked = (
                scores if query.known is not False else scores.masked_fill(is_answer, -torch.inf)
            )
            best, places = ranked.topk(min(query.k, len(entities)), dim=1)
            best_ranks = score_ranks(best, ranked, self.ties).tolist()
            shares = scores.softmax(1)
            for i, row in enumerate(at.tolist()):
                likeliest = places[i][best[i] != -torch.inf].tolist()
                listed = list(zip(best_ranks[i], likeliest, strict=False))
                if answer[row] >= 0:
                    listed = [(float(place_of[i]), int(answer[row]))]
                head, name, tail = query.queries[row]
                for rank, place in listed:
                    ends = head or entities[place], name, tail or entities[place]
                    values = float(scores[i, place]), float(shares[i, place])
                    is_known = None if known is None else bool(is_answer[i, place])
                    rows.append((*ends, rank, *values, is_known))
        return pd.DataFrame(rows, columns=COLUMNS)

    def _predict_relations(self, run: Trained, query: PredictionQuery) -> pd.DataFrame:
        """Relations of pairs of a head and a tail, by the scores of the triples."""
        if any(relation or not (head and tail) for head, relation, tail in query.queries):
            raise UsageError(
                "relations are predicted of a head and a tail, both by name, and apart from other "
                "queries"
            )
        entities = run.ids()
        names = [*(run.vocabulary.relations or ())]
        names = names[: len(names) // 2] if self.both_sides else names
        triples = set[tuple[int, int, int]]()
        with suppress(UsageError):  # the files are not here
            data = run.data.graph.cpu()
            columns = torch.stack([data.edge_index[0], data.edge_type, data.edge_index[1]])
            triples.update((h, r, t) for h, r, t in columns.T.tolist())
        rows = []
        for head, _, tail in query.queries:
            ends = positions_of([str(head), str(tail)], entities, "entity")
            relations = torch.arange(len(names))
            batch = Data(head=torch.full_like(relations, ends[0]), relation=relations)
            scores = self.encoder.scores(batch.to(str(run.device))).float().cpu()
            score = scores[:, ends[1]]
            share = scores.softmax(1)[:, ends[1]]
            is_known = torch.tensor([(ends[0], r, ends[1]) in triples for r in range(len(names))])
            if query.known is False:
                score = score.masked_fill(is_known, -torch.inf)
            order = score.argsort(descending=True, stable=True)
            order = order[score[order] != -torch.inf][: query.k]
            place_of = score_ranks(score[order].unsqueeze(0), score.unsqueeze(0), self.ties)[0]
            for rank, number in zip(place_of.tolist(), order.tolist(), strict=True):
                values = float(score[number]), float(share[number])
                known = bool(is_known[number]) if triples else None
                rows.append((head, names[number], tail, rank, *values, known))
        return pd.DataFrame(rows, columns=COLUMNS)

    def _query_numbers(
        self, run: Trained, queries: Sequence[Query], entities: list[str]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Ends, relations and tails `[queries]`, -1 for none; heads are the inverse's tails."""
        names = list(run.vocabulary.relations or ())
        forward = names[: len(names) // 2] if self.both_sides else names
        for head, relation, tail in queries:
            if head is None and tail is None:
                raise UsageError(f"give the head or the tail that belongs to {relation!r}, or both")
            if head is None and not self.both_sides:
                raise UsageError(
                    "the run ranks tails alone, so that no heads can be asked for: train one with "
                    "task.inverse_relations=true"
                )
        ends = [tail if head is None else head for head, _, tail in queries]
        end = torch.tensor(positions_of([str(name) for name in ends], entities, "entity"))
        relation_numbers = positions_of(
            [str(relation) for _, relation, _ in queries], forward, "relation"
        )
        of_heads = torch.tensor([head is None for head, _, _ in queries])
        answer = torch.full((len(queries),), -1)
        given = [i for i, query in enumerate(queries) if None not in query]
        tails = positions_of([str(queries[i][2]) for i in given], entities, "entity")
        answer[given] = torch.tensor(tails, dtype=torch.long)
        return end, torch.tensor(relation_numbers) + of_heads * len(forward), answer
