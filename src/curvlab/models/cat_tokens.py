"""Tokens of CAT: queries of a knowledge graph, nodes of a graph."""

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.errors import UsageError
from curvlab.layers.dropout import Dropout
from curvlab.layers.features import FeatureLinear
from curvlab.layers.sparse_graph import SparseGraph
from curvlab.models.triple_scorer import table


def _require_layout(layout: str, *choices: str) -> None:
    if layout not in choices:
        raise UsageError(f"token_layout={layout!r} must be one of {', '.join(choices)}")


class TripleTokens(nn.Module):
    """Tokens of queries (h, r): x = Drop(Drop(e_h) + Drop(e_r)). Source: CAT, Section 4.5.

    Layouts: `single`, a query is a sequence of one token (the paper's); `batch`, the batch is one
    sequence, so that a score depends on the queries beside it; `cls_h_r`, a query is the three
    tokens CLS, e_h + type, e_r + type, read at CLS, so that attention has something to attend to.

    Args:
        num_entities: number of entities.
        num_relations: number of relations.
        dim: width of the tokens.
        dropout: of head, relation and token.
        layout: see above.

    Raises:
        UsageError: there is no such layout.
    """

    def __init__(
        self, num_entities: int, num_relations: int, dim: int, dropout: float, layout: str
    ) -> None:
        super().__init__()
        _require_layout(layout, "single", "batch", "cls_h_r")
        self.entities = table(num_entities, dim)
        self.relations = table(num_relations, dim)
        self.drop = Dropout(dropout)
        self.layout = layout
        if layout == "cls_h_r":
            self.types = table(3, dim)

    def forward(self, batch: Data) -> Tensor:
        """Tokens `[sequences, tokens, dim]`."""
        head = self.drop(self.entities(batch.head))
        relation = self.drop(self.relations(batch.relation))
        if self.layout == "cls_h_r":
            three = torch.stack([torch.zeros_like(head), head, relation], 1)
            return self.drop(three + self.types.weight)
        return self.drop(head + relation).unsqueeze(0 if self.layout == "batch" else 1)

    def mask(self, batch: Data) -> None:
        """None: all tokens of a sequence attend to all."""

    def readout(self, tokens: Tensor) -> Tensor:
        """One vector a query `[queries, dim]`."""
        return tokens[:, 0] if self.layout == "cls_h_r" else tokens.flatten(0, 1)


class NodeTokens(nn.Module):
    """Tokens of nodes: Drop(W x + b). Source: CAT, Appendix (Cora).

    Layouts: `graph`, all nodes are one sequence; `single`, each node is one of its own. The paper's
    attention is of all nodes to all, so that edges are not used.

    Args:
        in_channels: number of features.
        dim: width of the tokens.
        dropout: of the tokens.
        layout: see above.
        attention_mask: `adjacency` for attention to neighbours and oneself alone, in the layout
            `graph`; None for all.

    Raises:
        UsageError: there is no such layout, or the mask does not go with it.
    """

    def __init__(
        self, in_channels: int, dim: int, dropout: float, layout: str, attention_mask: str | None
    ) -> None:
        super().__init__()
        _require_layout(layout, "graph", "single")
        if attention_mask is not None and layout != "graph":
            raise UsageError(
                f"attention_mask={attention_mask!r} is of nodes in one sequence: use it with "
                "token_layout='graph'"
            )
        self.map = FeatureLinear(in_channels, dim)
        self.drop = Dropout(dropout)
        self.layout, self.attention_mask = layout, attention_mask

    def forward(self, batch: Data) -> Tensor:
        """Tokens `[sequences, tokens, dim]`."""
        tokens = self.drop(self.map(SparseGraph.of(batch).features))
        return tokens.unsqueeze(0 if self.layout == "graph" else 1)

    def mask(self, batch: Data) -> Tensor | None:
        """Which node (row) may attend to which, `[nodes, nodes]`; None for all."""
        if self.attention_mask is None:
            return None
        allowed = torch.eye(len(batch.x), dtype=torch.bool, device=batch.x.device)
        source, target = batch.edge_index
        allowed[target, source] = True
        return allowed

    def readout(self, tokens: Tensor) -> Tensor:
        """One vector a node `[nodes, dim]`."""
        return tokens.flatten(0, 1)
