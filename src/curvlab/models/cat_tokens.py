"""Tokens of CAT: of queries of triples, of their neighbours, and of nodes."""

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.graph.sparse_graph import SparseGraph
from curvlab.layers.elementwise import Dropout
from curvlab.layers.feature_linear import FeatureLinear
from curvlab.models.triple_scorer import table


class TripleTokens(nn.Module):
    """Tokens of queries (h, r): x = Drop(Drop(e_h) + Drop(e_r)), one sequence for each query.

    Source: CAT, Section 4.5.
    """

    def __init__(self, num_entities: int, num_relations: int, dim: int, dropout: float) -> None:
        super().__init__()
        self.entities = table(num_entities, dim)
        self.relations = table(num_relations, dim)
        self.drop = Dropout(dropout)

    def forward(self, batch: Data) -> tuple[Tensor, Tensor | None]:
        """Tokens `[queries, 1, dim]`, and no mask."""
        head = self.entities(batch.head)
        relation = self.relations(batch.relation)
        return self.drop(self.drop(head) + self.drop(relation)).unsqueeze(1), None


class NeighbourTokens(TripleTokens):
    """Tokens of queries (h, r), and of up to `neighbours` training triples with h.

    A triple (h, s, t) has the token e_t + e_s, and a triple (t, s, h) the token e_t - e_s, with
    dropout as in `TripleTokens`. The neighbours are drawn once. A query's own answers (h, r, t) are
    masked. Inverse relations change neither the neighbours nor the mask.

    Args:
        train_triples: head, relation and tail `[3, triples]`; inverse ones after all others.
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        dim: int,
        dropout: float,
        train_triples: Tensor,
        neighbours: int,
    ) -> None:
        super().__init__(num_entities, num_relations, dim, dropout)
        first, second = train_triples[1].tensor_split(2)
        self.own_relations = num_relations
        half = num_relations // 2
        if torch.equal(first + half, second):
            self.own_relations = half
            train_triples = train_triples[:, : len(first)]
        head, relation, tail = train_triples
        ends = torch.cat([train_triples, torch.stack([tail, ~relation, head])], 1)
        generator = torch.Generator().manual_seed(0)
        shuffled = ends[:, torch.randperm(ends.shape[1], generator=generator)]
        entity, relation, neighbour = shuffled[:, shuffled[0].argsort(stable=True)]
        counts = entity.bincount(minlength=num_entities)
        starts = counts.cumsum(0) - counts
        place = torch.arange(len(entity)) - starts[entity]
        is_used = place < neighbours
        slots = torch.full((2, num_entities, neighbours), -1)
        values = torch.stack([neighbour, relation])
        slots[:, entity[is_used], place[is_used]] = values[:, is_used]
        self.others = nn.Buffer(slots[0])
        self.kinds = nn.Buffer(slots[1])  # of an incoming triple ~relation, below 0

    def forward(self, batch: Data) -> tuple[Tensor, Tensor]:
        """Tokens `[queries, 1 + neighbours, dim]`, and a mask: which token (row) sees which."""
        query, _ = super().forward(batch)
        neighbour = self.others[batch.head]
        kind = self.kinds[batch.head]
        is_incoming = kind < 0
        sign = torch.where(is_incoming, -1, 1).unsqueeze(-1)
        relation = sign * self.drop(self.relations(torch.where(is_incoming, ~kind, kind)))
        entity = self.drop(self.entities(neighbour.clamp(min=0)))
        tokens = self.drop(entity + relation)
        query_kind = batch.relation % self.own_relations
        is_tail_query = batch.relation < self.own_relations
        query_kind = torch.where(is_tail_query, query_kind, ~query_kind)
        visible = (neighbour >= 0) & (kind != query_kind.unsqueeze(1))
        visible = nn.functional.pad(visible, (1, 0), value=True).unsqueeze(1)
        itself = torch.eye(visible.shape[-1], dtype=torch.bool, device=visible.device)
        return torch.cat([query, tokens], 1), visible | itself


class NodeTokens(nn.Module):
    """Tokens of nodes: Drop(W x + b). Source: CAT, Appendix (Cora).

    The nodes form one sequence (`together`), or each node is a sequence of its own. `masked` nodes
    attend only to their neighbours and themselves. In the paper all nodes attend to all nodes, so
    that edges are not used.
    """

    def __init__(
        self, in_channels: int, dim: int, dropout: float, together: bool, masked: bool
    ) -> None:
        super().__init__()
        self.map = FeatureLinear(in_channels, dim)
        self.drop = Dropout(dropout)
        self.together = together
        self.masked = masked

    def forward(self, batch: Data) -> tuple[Tensor, Tensor | None]:
        """Tokens `[sequences, tokens, dim]`, and a mask `[nodes, nodes]`: which row sees which."""
        tokens = self.drop(self.map(SparseGraph.from_data(batch).features))
        if not self.masked:
            axis = 0 if self.together else 1
            return tokens.unsqueeze(axis), None
        mask = torch.eye(len(tokens), dtype=torch.bool, device=tokens.device)
        source, target = batch.edge_index
        mask[target, source] = True
        return tokens.unsqueeze(0), mask
