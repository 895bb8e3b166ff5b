"""Triples of a knowledge graph: checks, and look-up of known tails."""

import logging
from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.errors import UsageError

log = logging.getLogger(__name__)

MASKS = {"train": "train_mask", "val": "val_mask", "test": "test_mask"}
"""Parts of the triples, and the names of their masks `[triples]`."""


def check_triples(data: Data) -> None:
    """Refuse a knowledge graph that cannot be trained on; warn of triples in two parts.

    Raises:
        UsageError: There is one entity only, or a relation of the validation or test triples is in
            no training triple.
    """
    if data.num_nodes == 1:
        raise UsageError("the knowledge graph has one entity, among which nothing can be ranked")
    trained = torch.isin(data.edge_type, data.edge_type[data.train_mask])
    untrained = data.edge_type[~trained].unique().tolist()
    if untrained:
        raise UsageError(
            f"relations of validation or test triples that no training triple has: "
            f"{len(untrained)}, for instance {data.relation_names[untrained[0]]!r}; take their "
            "triples out"
        )
    numbers = triple_numbers(
        data.edge_index[0], data.edge_type, data.edge_index[1], int(data.num_nodes or 0)
    )
    parts = [len(numbers[data[mask]].unique()) for mask in MASKS.values()]
    across = sum(parts) - len(numbers.unique())
    if across:
        log.warning(
            "%d triples are in more than one part: some that train the model evaluate it", across
        )


def triple_numbers(head: Tensor, relation: Tensor, tail: Tensor, entities: int) -> Tensor:
    """A number for each triple `[...]`, equal for equal ones."""
    return (relation * entities + head) * entities + tail


def join_parts(parts: Sequence[Data]) -> Data:
    """The triples of training, validation and test with the masks of these parts."""
    part_of = torch.arange(len(parts)).repeat_interleave(torch.tensor([p.num_edges for p in parts]))
    return Data(
        edge_index=torch.cat([part.edge_index for part in parts], dim=1),
        edge_type=torch.cat([part.edge_type for part in parts]),
        **{mask: part_of == i for i, mask in enumerate(MASKS.values())},
    )


class KnownTails:
    """Which tails are known for a head and a relation, as one sorted array with offsets.

    Made once from triples; nothing of it is as large as queries times entities.

    Args:
        head: Heads of the triples `[triples]`.
        relation: Their relations.
        tail: Their tails; repeated triples count once.
        num_relations: Number of relations that there are.
    """

    def __init__(self, head: Tensor, relation: Tensor, tail: Tensor, num_relations: int) -> None:
        self.num_relations = num_relations
        entities = int(max(head.max(), tail.max())) + 1
        triples = ((head * num_relations + relation) * entities + tail).unique()
        self.tails = triples % entities
        self.pairs, counts = (triples // entities).unique_consecutive(return_counts=True)
        self.counts = counts
        self.starts = counts.cumsum(0) - counts

    def lookup(self, head: Tensor, relation: Tensor) -> tuple[Tensor, Tensor]:
        """The known tails of queries.

        Args:
            head: Heads of the queries `[queries]`.
            relation: Their relations.

        Returns:
            Positions of the queries `[known]`, in ascending order, and the tails known of each.
        """
        pair = head * self.num_relations + relation
        place = torch.searchsorted(self.pairs, pair).clamp(max=len(self.pairs) - 1)
        counts = torch.where(self.pairs[place] == pair, self.counts[place], 0)
        query = torch.arange(len(pair), device=pair.device).repeat_interleave(counts)
        first = (counts.cumsum(0) - counts).repeat_interleave(counts)
        within = torch.arange(len(query), device=pair.device) - first
        return query, self.tails[self.starts[place].repeat_interleave(counts) + within]

    def to(self, device: torch.device | str) -> "KnownTails":
        """The same on a device."""
        moved = object.__new__(KnownTails)
        vars(moved).update(
            {k: v.to(device) if isinstance(v, Tensor) else v for k, v in vars(self).items()}
        )
        return moved
