"""Knowledge graphs of the Open Graph Benchmark (Hu et al., 2020), with its negatives."""

import codecs
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.datasets.knowledge_graphs import KnowledgeGraph
from curvlab.data.datasets.ogb import unpacked
from curvlab.data.datasets.triples import MASKS
from curvlab.data.files.triple_files import COLUMNS
from curvlab.data.vocabulary import Vocabulary
from curvlab.errors import UsageError

ARRAYS = {
    "_reconstruct": np.empty(0).__reduce__()[0],
    "ndarray": np.ndarray,
    "dtype": np.dtype,
    "encode": codecs.encode,
}
"""The parts of a pickled array."""


class ArrayUnpickler(pickle.Unpickler):
    """Reads arrays, lists and texts, and nothing that could run code."""

    def find_class(self, module: str, name: str) -> Any:
        """Refuse all names but those of arrays."""
        if module.split(".")[0] in ("numpy", "_codecs") and name in ARRAYS:
            return ARRAYS[name]
        raise pickle.UnpicklingError(f"{module}.{name} is not part of an array")


READER = SimpleNamespace(
    __name__="arrays",
    Unpickler=ArrayUnpickler,
    load=lambda file, **options: ArrayUnpickler(file, **options).load(),
)
"""In place of the module `pickle`, for `torch.load`."""


class OGBTriples(KnowledgeGraph):
    """`ogbl-wikikg2` or `ogbl-biokg`, from the archive that OGB publishes, with its split.

    `val_negatives` and `test_negatives` `[2, triples, samples]` (int32) are the entities that each
    triple's tail, and its head, is ranked among. Entities of several types are numbered one type
    after another and named `TYPE:NAME`.
    """

    def read(self, paths: list[Path]) -> Data:
        """Read the raw files.

        Raises:
            UsageError: The archive lacks a file, or has one of another format.
        """
        (archive,) = paths
        try:
            with unpacked(archive, (".csv.gz", ".pt")) as folder:
                return _read(folder)
        except Exception as error:  # what a file of another kind can raise
            raise UsageError(
                f"{archive} cannot be read as triples of OGB ({type(error).__name__}: {error}): "
                "delete it and run again to fetch a fresh copy."
            ) from error


def _read(folder: Path) -> Data:
    """The graph in a folder of OGB's."""
    names = {path.name.split(".")[0]: _names(path) for path in folder.glob("mapping/*2*.csv.gz")}
    (relations,) = (names.pop(name) for name in [*names] if name.startswith("rel"))
    starts: dict[str, int] = {}
    entities: list[str] = []
    for file, known in sorted(names.items()):
        kind = file.removesuffix("_entidx2name")
        starts[kind] = len(entities)
        entities += known if len(names) == 1 else [f"{kind}:{name}" for name in known]
    parts = {}
    for part, name in zip(MASKS, ("train", "valid", "test"), strict=True):
        (path,) = folder.glob(f"split/*/{name}.pt")
        parts[part] = _numbered(torch.load(path, weights_only=False, pickle_module=READER), starts)
    columns = [torch.cat([part[key] for part in parts.values()]) for key in COLUMNS]
    sizes = torch.tensor([len(part["head"]) for part in parts.values()])
    part_of = torch.arange(len(parts)).repeat_interleave(sizes)
    return Data(
        edge_index=torch.stack([columns[0], columns[2]]),
        edge_type=columns[1],
        num_nodes=len(entities),
        relation_names=relations,
        vocabulary=Vocabulary(entities=tuple(entities), relations=tuple(relations)),
        **{mask: part_of == i for i, mask in enumerate(MASKS.values())},
        **{
            f"{name}_negatives": torch.stack([part["tail_neg"], part["head_neg"]]).int()
            for name, part in parts.items()
            if name != "train"
        },
    )


def _names(path: Path) -> list[str]:
    """The names in a mapping, its second column, by their numbers, its first."""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    return frame.iloc[frame.iloc[:, 0].astype(int).argsort(), 1].tolist()


def _numbered(triples: dict[str, Any], starts: dict[str, int]) -> dict[str, Tensor]:
    """Columns of triples; each end, and its negatives, is numbered from the start of its type."""
    keys = (*COLUMNS, "head_neg", "tail_neg")
    found = {key: torch.as_tensor(triples[key]) for key in keys if key in triples}
    for end in ("head", "tail"):
        if f"{end}_type" in triples:
            start = torch.tensor([starts[kind] for kind in triples[f"{end}_type"]])
            found[end] = found[end] + start
            if f"{end}_neg" in found:
                found[f"{end}_neg"] = found[f"{end}_neg"] + start.unsqueeze(1)
    return found
