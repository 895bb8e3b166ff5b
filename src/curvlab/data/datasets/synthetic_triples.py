"""A generated knowledge graph that needs no file: groups, a tree and rings of entities."""

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

    Entities come in groups. Within a group all are siblings, and on a ring the next one and the
    one after it; entity i of a group has as counterpart entity i of the group's twin. Groups are
    the nodes of a binary tree: an entity's parent is the first entity of the group above, its
    ancestors those of all groups above. So each test triple follows from others that stay in the
    training part with probability 0.8, and the head decides the tail: ranking tails by how often a
    relation has them does not find it.

    Args:
        groups: number of groups, even, since each has a twin.
        size: entities of a group.
        seed: of the division into 80 % training, 10 % validation and 10 % test triples, not of the
            run.

    Raises:
        UsageError: There is a group without a twin.
    """

    def __init__(
        self, groups: Annotated[int, Ge(4)] = 40, size: Annotated[int, Ge(4)] = 5, seed: Seed = 0
    ) -> None:
        if groups % 2:
            raise UsageError(f"groups={groups} must be even: each has a twin.")
        self.groups = groups
        self.size = size
        self.seed = seed

    def load(self) -> Data:
        """Return the graph."""
        head, relation, tail = self._triples()
        generator = torch.Generator().manual_seed(self.seed)
        place = torch.randperm(len(head), generator=generator)
        bounds = torch.tensor(PARTS).cumsum(0)[:-1] * len(head)
        part_of = torch.bucketize(place.to(bounds.dtype), bounds, right=True)
        data = Data(
            edge_index=torch.stack([head, tail]),
            edge_type=relation,
            num_nodes=self.groups * self.size,
            relation_names=list(RELATIONS),
            **{mask: part_of == i for i, mask in enumerate(MASKS.values())},
        )
        check_triples(data)
        return data

    def _triples(self) -> tuple[Tensor, Tensor, Tensor]:
        """Heads, relations and tails `[triples]`."""
        entity = torch.arange(self.groups * self.size)
        group, place = entity // self.size, entity % self.size
        other = torch.arange(1, self.size)
        heads = [entity.repeat_interleave(self.size - 1), entity]
        ring = (place.unsqueeze(1) + other) % self.size
        tails = [(group.unsqueeze(1) * self.size + ring).flatten()]
        tails.append((group ^ 1) * self.size + place)
        kinds = [0, 1]
        above, level = group, 0
        while bool((above > 0).any()):
            lower = above > 0
            above = torch.where(lower, (above - 1) // 2, 0)
            for kind in (2, 3) if level == 0 else (3,):
                heads.append(entity[lower])
                tails.append(above[lower] * self.size)
                kinds.append(kind)
            level += 1
        for kind, step in ((4, 1), (5, 2)):
            heads.append(entity)
            tails.append(group * self.size + (place + step) % self.size)
            kinds.append(kind)
        counts = torch.tensor([len(part) for part in heads])
        return torch.cat(heads), torch.tensor(kinds).repeat_interleave(counts), torch.cat(tails)
