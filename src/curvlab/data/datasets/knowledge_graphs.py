"""Knowledge graphs: directed triples (head, relation, tail) in three parts, from raw files.

A knowledge graph is a `Data` with `edge_index [2, triples]` (heads, tails), `edge_type [triples]`
(relations), `num_nodes` (entities), `relation_names` and the masks of the three parts
`train_mask`, `val_mask`, `test_mask` `[triples]`. Triples are never made symmetric nor coalesced:
several relations may join the same pair.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from torch_geometric.data import Data, InMemoryDataset

from curvlab.data.datasets.triple_folder import graph_of
from curvlab.data.datasets.triples import MASKS, check_triples, join_parts
from curvlab.data.files.checks import check_statistics
from curvlab.data.files.sources import Downloaded, pyg_root
from curvlab.data.files.triple_files import read_triples
from curvlab.data.vocabulary import Vocabulary


class KnowledgeGraph(Downloaded):
    """A knowledge graph that is downloaded, read by a subclass, cached and checked.

    Its files are those of training, validation and test triples, its statistics the numbers of
    `entities`, `relations`, and triples of `train`, `val` and `test`.
    """

    @abstractmethod
    def read(self, paths: list[Path]) -> Data:
        """Read the raw files of the three parts."""

    def load(self) -> Data:
        """Return the graph.

        Raises:
            UsageError: A file cannot be had, is corrupt or malformed, or the graph does not have
                the stated statistics.
        """
        data = self.processed(self.read)
        check_triples(data)
        found = {
            "entities": data.num_nodes,
            "relations": len(data.relation_names),
            **{name: int(data[mask].sum()) for name, mask in MASKS.items()},
        }
        check_statistics(self.name, found, self.statistics)
        return data


class TripleFiles(KnowledgeGraph):
    """Three files of triples, numbered by first appearance (UMLS, Kinships, Nations)."""

    def read(self, paths: list[Path]) -> Data:
        """Read the files in the order train, validation, test."""
        parts = zip(MASKS, paths, strict=True)
        triples = pd.concat([read_triples(path).assign(part=part) for part, path in parts])
        entities = pd.Index(pd.unique(triples[["head", "tail"]].to_numpy(object).ravel()))
        return graph_of(triples, entities, list(triples.relation.unique()))


class PyGKnowledgeGraph(KnowledgeGraph):
    """A dataset class of PyTorch Geometric, given its raw files in a folder that is thrown away.

    Args:
        dataset: makes the dataset from its `root`, the first part of `folder`.
        **options: of `Downloaded`.

    Attributes:
        variant: separates entries of the cache from those without names.
        in_order: puts names of relations, given by first appearance, in the order of their numbers.
    """

    variant = "-names"
    in_order: Callable[[Iterable[str]], list[str]]

    def __init__(self, dataset: Callable[..., InMemoryDataset], **options: Any) -> None:
        super().__init__(**options)
        self.dataset = dataset

    def read(self, paths: list[Path]) -> Data:
        """Let the class process its raw files."""
        # This also says what is wrong with a file, where the class would not.
        parts = [read_triples(path) for path in paths]
        names = dict.fromkeys(relation for part in parts for relation in part.relation)
        with pyg_root({f"{self.folder}/{path.name}": path for path in paths}) as root:
            data = self.numbered(root / Path(self.folder).parts[0])
        data.relation_names = self.in_order(names)
        entities, relations = pd.unique(self.ends(parts)), data.relation_names
        data.vocabulary = Vocabulary(entities=tuple(entities), relations=tuple(relations))
        return data

    @abstractmethod
    def ends(self, parts: Sequence[pd.DataFrame]) -> np.ndarray:
        """Names of heads and tails in the order in which the class numbers them."""

    @abstractmethod
    def numbered(self, root: Path) -> Data:
        """The triples as the class numbers them, with masks of the parts."""


class SplitObjects(PyGKnowledgeGraph):
    """A class with an object for each part, numbering by first appearance (FB15k-237)."""

    in_order = list

    def ends(self, parts: Sequence[pd.DataFrame]) -> np.ndarray:
        """Head and tail of each triple."""
        return pd.concat(parts)[["head", "tail"]].to_numpy(object).ravel()

    def numbered(self, root: Path) -> Data:
        """Put the parts together."""
        parts = [self.dataset(root=str(root), split=name)[0] for name in MASKS]
        data = join_parts(parts)
        data.num_nodes = parts[0].num_nodes
        return data


class SplitMasks(PyGKnowledgeGraph):
    """A class with one object and masks, whose relations are numbered alphabetically (WN18RR)."""

    in_order = staticmethod(sorted)

    def ends(self, parts: Sequence[pd.DataFrame]) -> np.ndarray:
        """The heads of each part, and then its tails."""
        return np.concatenate([part[["head", "tail"]].to_numpy(object).T.ravel() for part in parts])

    def numbered(self, root: Path) -> Data:
        """Take the object as it is: its triples are sorted, the masks with them."""
        return self.dataset(root=str(root))[0]
