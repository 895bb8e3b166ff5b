"""Knowledge graphs: directed triples (head, relation, tail) in three parts, from raw files.

A knowledge graph is a `Data` with `edge_index [2, triples]` (heads, tails), `edge_type [triples]`
(relations), `num_nodes` (entities), `relation_names` and the masks `train_mask`, `val_mask` and
`test_mask` `[triples]`. Triples are never made symmetric nor coalesced.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from torch_geometric.data import Data, InMemoryDataset

from curvlab.data.datasets.triple_folder import numbered_graph
from curvlab.data.datasets.triples import MASKS, check_triples, join_parts, read_triples
from curvlab.data.files.sources import Downloaded, pyg_root
from curvlab.data.vocabulary import Vocabulary


class KnowledgeGraph(Downloaded):
    """A downloaded knowledge graph.

    Its statistics are numbers of `entities`, `relations`, and triples of `train`, `val` and `test`.
    """

    def load(self) -> Data:
        data = super().load()
        check_triples(data)
        return data

    def facts(self, data: Data) -> Mapping[str, Any]:
        return {
            "entities": data.num_nodes,
            "relations": len(data.relation_names),
            **{name: int(data[mask].sum()) for name, mask in MASKS.items()},
        }


class TripleFiles(KnowledgeGraph):
    """Three files of triples, numbered by first appearance (UMLS, Kinships, Nations)."""

    def read(self, paths: list[Path]) -> Data:
        parts = zip(MASKS, paths, strict=True)
        return numbered_graph(
            pd.concat([read_triples(path).assign(part=part) for part, path in parts])
        )


class PyGKnowledgeGraph(KnowledgeGraph, kw_only=True):
    """A dataset class of PyTorch Geometric, given its raw files in a temporary folder.

    Args:
        dataset: class of the data set, called with its `root`, the first part of `folder`.
    """

    variant = "-names"  # separates entries of the cache from those without names
    alphabetical = False  # the numbers of relations, else by first appearance

    dataset: Callable[..., InMemoryDataset]

    def read(self, paths: list[Path]) -> Data:
        # read_triples names the fault of a damaged file, which the class does not.
        parts = [read_triples(path) for path in paths]
        with pyg_root({f"{self.folder}/{path.name}": path for path in paths}) as root:
            data, entities = self.number_triples(str(root / Path(self.folder).parts[0]), parts)
        relations = [*pd.concat(parts).relation.unique()]
        data.relation_names = sorted(relations) if self.alphabetical else relations
        data.vocabulary = Vocabulary(
            entities=tuple(pd.unique(entities)), relations=tuple(data.relation_names)
        )
        return data

    @abstractmethod
    def number_triples(self, root: str, parts: Sequence[pd.DataFrame]) -> tuple[Data, np.ndarray]:
        """Return the triples as the class numbers them, with masks, and entities in its order."""


class SplitObjects(PyGKnowledgeGraph):
    """A class with an object for each part, numbering by first appearance (FB15k-237)."""

    def number_triples(self, root: str, parts: Sequence[pd.DataFrame]) -> tuple[Data, np.ndarray]:
        splits = [self.dataset(root=root, split=name)[0] for name in MASKS]
        data = join_parts(splits)
        data.num_nodes = splits[0].num_nodes
        return data, pd.concat(parts)[["head", "tail"]].to_numpy(object).ravel()


class SplitMasks(PyGKnowledgeGraph):
    """A class with one object and masks, whose relations are numbered alphabetically (WN18RR)."""

    alphabetical = True

    def number_triples(self, root: str, parts: Sequence[pd.DataFrame]) -> tuple[Data, np.ndarray]:
        """Take the object as it is: its triples are sorted; the heads of each part come first."""
        ends = [part[["head", "tail"]].to_numpy(object).T.ravel() for part in parts]
        return self.dataset(root=root)[0], np.concatenate(ends)
