"""Knowledge graphs: directed triples (head, relation, tail) in three parts, from raw files.

A knowledge graph is a `Data` with `edge_index [2, triples]` (heads, tails), `edge_type [triples]`
(relations), `num_nodes` (entities), `relation_names` and the masks of the three parts
`train_mask`, `val_mask`, `test_mask` `[triples]`. Triples are never made symmetric nor coalesced:
several relations may join the same pair.
"""

import hashlib
import io
import shutil
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pooch
import torch
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset

from curvlab.data.cache import cached
from curvlab.data.checks import check_statistics
from curvlab.data.sources import RemoteFile, fetch
from curvlab.data.triples import MASKS, check_triples, read_triples
from curvlab.errors import UsageError

STATISTICS = {
    "entities": "entities",
    "relations": "relations",
    "train": "training triples",
    "val": "validation triples",
    "test": "test triples",
}
"""Keys of `statistics`, and what messages call them."""


class KnowledgeGraph:
    """A knowledge graph that is downloaded, read by a subclass, cached and checked.

    Args:
        name: What messages call it.
        folder: Place of the raw files inside `data_dir`, and inside the mirror.
        url: Where they are downloaded from.
        files: `path` after the address and `sha256` of training, validation and test triples.
        statistics: `entities`, `relations`, `train`, `val` and `test`, numbers that are asserted.
        data_dir: Folder of raw and processed files.
        mirror: Folder with the same layout, used instead of the network.
    """

    def __init__(
        self,
        name: str,
        folder: str,
        url: str,
        files: Sequence[Mapping[str, str]],
        statistics: Mapping[str, int],
        data_dir: str | Path,
        mirror: str | Path | None = None,
    ) -> None:
        self.name = name
        self.folder = folder
        self.files = [
            RemoteFile(f"{folder}/{file['path']}", f"{url}/{file['path']}", file["sha256"])
            for file in files
        ]
        self.statistics = statistics
        self.data_dir = Path(data_dir)
        self.mirror = mirror

    def download(self) -> list[Path]:
        """Fetch the raw files and return where they are."""
        return [fetch(file, self.data_dir, self.mirror) for file in self.files]

    @abstractmethod
    def read(self, paths: list[Path]) -> Data:
        """Read the raw files of the three parts."""

    def load(self) -> Data:
        """Return the graph.

        Raises:
            UsageError: A file cannot be had, is corrupt or malformed, or the graph does not have
                the stated statistics.
        """
        paths = self.download()
        sums = "".join(pooch.file_hash(str(path), alg="sha256") for path in paths)
        key = f"{self.name}-{hashlib.sha256(sums.encode()).hexdigest()[:16]}"
        processed = paths[0].parent.parent / "processed"
        data = _unpacked(cached(processed, key, lambda: _packed(self.read(paths))))
        check_triples(data)
        found = {
            "entities": data.num_nodes,
            "relations": len(data.relation_names),
            **{name: int(data[mask].sum()) for name, mask in MASKS.items()},
        }
        check_statistics(
            self.name,
            {word: found[key] for key, word in STATISTICS.items()},
            {STATISTICS[key]: value for key, value in self.statistics.items()},
        )
        return data


class PyGKnowledgeGraph(KnowledgeGraph):
    """A dataset class of PyTorch Geometric, given its raw files in a folder that is thrown away.

    Args:
        dataset: Makes the dataset from its `root`, the first part of `folder`.
        **options: Of `KnowledgeGraph`.
    """

    def __init__(self, dataset: Callable[..., InMemoryDataset], **options: Any) -> None:
        super().__init__(**options)
        self.dataset = dataset

    def read(self, paths: list[Path]) -> Data:
        """Let the class process copies of the raw files."""
        for path in paths:
            read_triples(path)  # says what is wrong with a file, where the class would not
        with TemporaryDirectory() as place, redirect_stderr(io.StringIO()):  # "Processing..."
            raw = Path(place) / self.folder
            raw.mkdir(parents=True)
            for path in paths:
                shutil.copyfile(path, raw / path.name)
            data = self.processed(Path(place) / Path(self.folder).parts[0])
        data.relation_names = self.relation_names(paths)
        return data

    @abstractmethod
    def processed(self, root: Path) -> Data:
        """The triples as the class numbers them, with masks of the parts."""

    @abstractmethod
    def relation_names(self, paths: list[Path]) -> list[str]:
        """Names of the relations in the order of their numbers, which the class does not keep."""


class SplitObjects(PyGKnowledgeGraph):
    """A class with an object for each part, numbering by first appearance (FB15k-237)."""

    def processed(self, root: Path) -> Data:
        """Put the parts together."""
        parts = [self.dataset(root=str(root), split=name)[0] for name in MASKS]
        sizes = [part.num_edges for part in parts]
        part_of = torch.arange(len(parts)).repeat_interleave(torch.tensor(sizes))
        return Data(
            edge_index=torch.cat([part.edge_index for part in parts], dim=1),
            edge_type=torch.cat([part.edge_type for part in parts]),
            num_nodes=parts[0].num_nodes,
            **{mask: part_of == i for i, mask in enumerate(MASKS.values())},
        )

    def relation_names(self, paths: list[Path]) -> list[str]:
        """By first appearance."""
        return list(dict.fromkeys(r for path in paths for _, r, _ in read_triples(path)))


class SplitMasks(PyGKnowledgeGraph):
    """A class with one object and masks, whose relations are numbered alphabetically (WN18RR)."""

    def processed(self, root: Path) -> Data:
        """Take the object as it is: its triples are sorted, the masks with them."""
        (data,) = self.dataset(root=str(root))
        return data

    def relation_names(self, paths: list[Path]) -> list[str]:
        """In alphabetical order."""
        return sorted({r for path in paths for _, r, _ in read_triples(path)})


def _packed(data: Data) -> dict[str, Tensor]:
    """The graph as tensors, names as the bytes of their lines."""
    names = torch.tensor(list("\n".join(data.relation_names).encode()), dtype=torch.uint8)
    kept = ("edge_index", "edge_type", *MASKS.values())
    return {
        "relation_names": names,
        "num_nodes": torch.tensor(data.num_nodes),
        **{name: data[name] for name in kept},
    }


def _unpacked(tensors: dict[str, Tensor]) -> Data:
    names = bytes(tensors["relation_names"].tolist()).decode().split("\n")
    rest = {k: v for k, v in tensors.items() if k not in ("relation_names", "num_nodes")}
    return Data(num_nodes=int(tensors["num_nodes"]), relation_names=names, **rest)


class TripleFolder:
    """A knowledge graph of one's own: a folder with `train.txt`, `valid.txt` and `test.txt`.

    A line is head, relation and tail, separated by tabs. Entities and relations are numbered by
    first appearance over the three files.

    Args:
        path: The folder.
        unseen: What becomes of validation and test triples with an entity that no training triple
            has, whose embedding nothing trains: `refuse` them, or `keep` them.

    Raises:
        UsageError: `unseen` is something else.
    """

    FILES = ("train.txt", "valid.txt", "test.txt")

    def __init__(self, path: str | Path, unseen: str) -> None:
        if unseen not in ("refuse", "keep"):
            raise UsageError(f"dataset.source.unseen={unseen} must be refuse or keep")
        self.path = Path(path)
        self.unseen = unseen

    def download(self) -> list[Path]:
        """Return where the files are.

        Raises:
            UsageError: One is not there.
        """
        paths = [self.path / name for name in self.FILES]
        for path in paths:
            if not path.is_file():
                raise UsageError(
                    f"{path} is missing: dataset.source.path names a folder with "
                    f"{', '.join(self.FILES)}, lines of head, relation and tail between tabs."
                )
        return paths

    def load(self) -> Data:
        """Return the graph.

        Raises:
            UsageError: A file is missing or malformed, a relation is in no training triple, or an
                entity is not and `unseen` is `refuse`.
        """
        parts = [read_triples(path) for path in self.download()]
        triples = [triple for part in parts for triple in part]
        entities = dict.fromkeys(name for head, _, tail in triples for name in (head, tail))
        relations = dict.fromkeys(relation for _, relation, _ in triples)
        entity = {name: number for number, name in enumerate(entities)}
        relation = {name: number for number, name in enumerate(relations)}
        part_of = torch.arange(3).repeat_interleave(torch.tensor([len(part) for part in parts]))
        data = Data(
            edge_index=torch.tensor([[entity[h], entity[t]] for h, _, t in triples]).T.contiguous(),
            edge_type=torch.tensor([relation[r] for _, r, _ in triples]),
            num_nodes=len(entity),
            relation_names=list(relation),
            **{mask: part_of == i for i, mask in enumerate(MASKS.values())},
        )
        check_triples(data)
        if self.unseen == "refuse":
            self._check_entities(data, list(entity))
        return data

    def _check_entities(self, data: Data, names: list[str]) -> None:
        known = torch.zeros(len(names), dtype=torch.bool)
        known[data.edge_index[:, data.train_mask]] = True
        unseen = (~known[data.edge_index]).any(dim=0)
        if unseen.any():
            first = names[int((~known).nonzero()[0])]
            raise UsageError(
                f"{int(unseen.sum())} validation and test triples have one of "
                f"{int((~known).sum())} entities that no training triple has, for instance "
                f"{first!r}: take them out of the files, or keep them with "
                "dataset.source.unseen=keep (they can only be guessed)."
            )
