"""A generated knowledge graph: groups, a tree and rings of entities."""

from typing import Annotated

import torch
from annotated_types import Ge
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.datasets.triples import MASKS, check_triples
from curvlab.data.files.sources import Generated
from curvlab.errors import UsageError
from curvlab.options import Seed

RELATIONS = ("sibling", "counterpart", "parent", "ancestor", "next", "after_next")
PARTS = (0.8, 0.1, 0.1)


class SyntheticKnowledgeGraph(Generated):
    """Two symmetric, two hierarchical and two cyclic relations that follow from one another.

    Entities of a group are siblings, and a ring; entity i of a group has as counterpart that of the
    group's twin. Groups are the nodes of a binary tree: an entity's parent is the first entity of
    the group above, its ancestors those of all groups above. 80 % of the triples are trained on.

    Args:
        groups: number of groups, even, since each has a twin.
        size: entities of a group.
        seed: seed of the division into 80 % training, 10 % validation and 10 % test triples.
    """

    groups: Annotated[int, Ge(4)] = 40
    size: Annotated[int, Ge(4)] = 5
    seed: Seed = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.groups % 2:
            raise UsageError(f"groups={self.groups} must be even: each has a twin.")

    def load(self) -> Data:
        size = self.size
        entity = torch.arange(self.groups * self.size)
        group = entity // size
        place = entity % size
        ring = (place.unsqueeze(1) + torch.arange(1, size)) % size
        siblings = (group.unsqueeze(1) * size + ring).flatten()
        parts: list[tuple[Tensor, int, Tensor]] = [
            (entity.repeat_interleave(size - 1), 0, siblings),
            (entity, 1, (group ^ 1) * size + place),
        ]
        above = group
        kinds = [2, 3]
        lower = above > 0
        while bool(lower.any()):
            above = torch.where(lower, (above - 1) // 2, 0)
            parts += [(entity[lower], kind, above[lower] * size) for kind in kinds]
            kinds = [3]
            lower = above > 0
        parts += [(entity, 3 + n, group * size + (place + n) % size) for n in (1, 2)]
        # The number of the relation of each triple, and of its part.
        heads, _, tails = zip(*parts, strict=True)
        relation = torch.cat([torch.full_like(head, kind) for head, kind, _ in parts])
        order = torch.randperm(len(relation), generator=torch.Generator().manual_seed(self.seed))
        bounds = torch.tensor(PARTS).cumsum(0)[:-1] * len(relation)
        part_of = torch.bucketize(order.to(bounds.dtype), bounds, right=True)
        data = Data(
            edge_index=torch.stack([torch.cat(heads), torch.cat(tails)]),
            edge_type=relation,
            num_nodes=len(entity),
            relation_names=list(RELATIONS),
            **{mask: part_of == i for i, mask in enumerate(MASKS.values())},
        )
        check_triples(data)
        return data
