"""Triples of a knowledge graph: files, checks, and look-up of known tails."""

import copy
import logging
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.readers.tables import Table
from curvlab.data.readers.triple_lists import triple_table
from curvlab.errors import UsageError

log = logging.getLogger(__name__)

COLUMNS = ("head", "relation", "tail")

MASKS = {"train": "train_mask", "val": "val_mask", "test": "test_mask"}
"""Parts of the triples, and the names of their masks `[triples]`."""


def read_triples(
    path: Path,
    columns: Sequence[str] = COLUMNS,
    separator: str = "tab",
    header: bool = False,
) -> pd.DataFrame:
    """Read triples of names from a text file in UTF-8 (or `.gz`): columns head, relation and tail.

    Spaces around names do not count; quotes are part of a name. `header` says whether the first
    line names the columns.
    """
    file = triple_table(path, columns, separator, header)
    return check_names(file.table, strip=" ")


def check_names(table: Table, strip: str | None = None) -> pd.DataFrame:
    """The triples of a table, without blanks around names; a missing name is refused."""
    frame = table.frame.fillna("").apply(lambda names: names.str.strip(strip))
    for column in frame:
        table.refuse(frame[column].eq(""), column, "is not a name: write one")
    table.check()
    return frame


def check_triples(data: Data) -> None:
    """Refuse a knowledge graph that cannot be trained on; warn of triples in two parts."""
    if data.num_nodes == 1:
        raise UsageError("the knowledge graph has one entity, among which nothing can be ranked")
    trained = torch.isin(data.edge_type, data.edge_type[data.train_mask])
    untrained = data.edge_type[~trained].unique().tolist()
    if untrained:
        raise UsageError(
            f"no training triple has relation {data.relation_names[untrained[0]]!r}, but a "
            f"validation or test triple has it (such relations: {len(untrained)}): remove their "
            "triples"
        )
    head, tail = data.edge_index
    numbers = triple_numbers(head, data.edge_type, tail, int(data.num_nodes or 0))
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
    """The triples of training, validation and test, with masks."""
    sizes = torch.tensor([part.num_edges for part in parts])
    part_of = torch.arange(len(parts)).repeat_interleave(sizes)
    return Data(
        edge_index=torch.cat([part.edge_index for part in parts], dim=1),
        edge_type=torch.cat([part.edge_type for part in parts]),
        **{mask: part_of == i for i, mask in enumerate(MASKS.values())},
    )


class KnownTails:
    """Known tails of each head and relation, as one sorted array with offsets."""

    def __init__(self, head: Tensor, relation: Tensor, tail: Tensor, num_relations: int) -> None:
        self.num_relations = num_relations
        entities = int(max(head.max(), tail.max())) + 1
        triples = ((head * num_relations + relation) * entities + tail).unique()
        self.tails = triples % entities
        self.pairs, self.counts = (triples // entities).unique_consecutive(return_counts=True)
        self.starts = self.counts.cumsum(0) - self.counts

    def lookup(self, head: Tensor, relation: Tensor) -> tuple[Tensor, Tensor]:
        """Positions of the queries `[known]`, ascending, and the tails known of each."""
        pair = head * self.num_relations + relation
        place = torch.searchsorted(self.pairs, pair).clamp(max=len(self.pairs) - 1)
        counts = torch.where(self.pairs[place] == pair, self.counts[place], 0)
        query = torch.arange(len(pair), device=pair.device).repeat_interleave(counts)
        first = (counts.cumsum(0) - counts).repeat_interleave(counts)
        offset = torch.arange(len(query), device=pair.device) - first
        return query, self.tails[self.starts[place].repeat_interleave(counts) + offset]

    def to(self, device: torch.device | str) -> "KnownTails":
        moved = copy.copy(self)
        for name in ("tails", "pairs", "counts", "starts"):
            setattr(moved, name, getattr(self, name).to(device))
        return moved
