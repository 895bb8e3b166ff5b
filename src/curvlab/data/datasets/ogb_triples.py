"""Knowledge graphs of the Open Graph Benchmark (Hu et al., 2020), with its negatives."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import torch
from torch_geometric.data import Data

from curvlab.data.datasets.knowledge_graphs import KnowledgeGraph
from curvlab.data.datasets.ogb import unpack_archive
from curvlab.data.datasets.triples import join_parts
from curvlab.data.files.pickles import RestrictedUnpickler
from curvlab.data.vocabulary import Vocabulary

READER = SimpleNamespace(
    __name__="arrays",
    Unpickler=RestrictedUnpickler,
    load=lambda file, **options: RestrictedUnpickler(file, **options).load(),
)
"""In place of the module `pickle`, for `torch.load`: reads arrays, lists and texts."""


class OGBTriples(KnowledgeGraph):
    """`ogbl-wikikg2` or `ogbl-biokg`, with its split.

    `val_negatives` and `test_negatives` `[2, triples, samples]` (int32) are the entities that each
    triple's tail, and its head, is ranked among. Entities of several types are named `TYPE:NAME`.
    """

    def read(self, paths: list[Path]) -> Data:
        with unpack_archive(paths[0], (".csv.gz", ".pt")) as folder:
            names = {}
            for path in folder.glob("mapping/*2*.csv.gz"):
                names[path.name.split(".")[0]] = _names(path)
            (file_of_relations,) = (name for name in names if name.startswith("rel"))
            relations = names.pop(file_of_relations)
            starts = {"": 0}  # without types
            entities: list[str] = []
            for file, names_of_type in sorted(names.items()):
                kind = file.removesuffix("_entidx2name")
                starts[kind] = len(entities)
                if len(names) > 1:
                    names_of_type = [f"{kind}:{name}" for name in names_of_type]
                entities += names_of_type
            parts = []
            for name in ("train", "valid", "test"):
                (path,) = folder.glob(f"split/*/{name}.pt")
                triples = torch.load(path, weights_only=False, pickle_module=READER)
                parts.append(_number(triples, starts))
        data = join_parts(parts)
        data.num_nodes = len(entities)
        data.relation_names = relations
        data.vocabulary = Vocabulary(entities=tuple(entities), relations=tuple(relations))
        data.val_negatives, data.test_negatives = (part.negatives for part in parts[1:])
        return data


def _names(path: Path) -> list[str]:
    """The names in a mapping, its second column, by their numbers, its first."""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    return frame.iloc[frame.iloc[:, 0].astype(int).argsort(), 1].tolist()


def _number(triples: dict[str, Any], starts: dict[str, int]) -> Data:
    """A part's triples and negatives; entities are numbered from the start of their type."""
    ends = []
    negatives = []
    for end in ("head", "tail"):
        start = torch.tensor([starts[kind] for kind in triples.get(f"{end}_type", [""])])
        ends.append(torch.as_tensor(triples[end]) + start)
        if f"{end}_neg" in triples:
            entities = torch.as_tensor(triples[f"{end}_neg"]).int()
            negatives.append(entities + start.int().unsqueeze(1))
    data = Data(edge_index=torch.stack(ends), edge_type=torch.as_tensor(triples["relation"]))
    data.negatives = torch.stack(negatives[::-1]) if negatives else None
    return data
