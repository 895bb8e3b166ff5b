"""Names stay with the graph, whatever is made of it."""

import torch
from torch_geometric.data import Data

from curvlab.data.datasets.synthetic import SyntheticWeb
from curvlab.data.datasets.synthetic_triples import RELATIONS, SyntheticKnowledgeGraph
from curvlab.data.datasets.triple_folder import TripleFolder
from curvlab.data.loaders.datamodule import GraphDataModule
from curvlab.data.loaders.triple_batches import TripleDataModule
from curvlab.data.splits.links import LinkSplit
from curvlab.data.transforms.graph import IdentityFeatures
from curvlab.data.vocabulary import Vocabulary, vocabulary_of

NAMES = Vocabulary(nodes=tuple(f"page {i}" for i in range(60)), classes=("a", "b"))


class Named(SyntheticWeb):
    def load(self):
        data = super().load()
        data.vocabulary = NAMES
        return data


def test_names_go_through_splits_transforms_and_devices():
    data = GraphDataModule(Named(60), [IdentityFeatures()], split=LinkSplit())
    assert data.vocabulary == NAMES
    assert vocabulary_of(data.graph.clone().to("cpu")) is NAMES


def test_a_graph_without_names_has_none():
    assert GraphDataModule(SyntheticWeb(60), [IdentityFeatures()]).vocabulary == Vocabulary()
    assert vocabulary_of(Data(edge_index=torch.zeros(2, 0))) == Vocabulary()


def test_a_folder_of_triples_keeps_its_entities_and_relations(tmp_path):
    for name in ("train", "valid", "test"):
        (tmp_path / f"{name}.txt").write_text("Rome\tin\tItaly\n")
    both = TripleDataModule(source=TripleFolder(tmp_path), inverse_relations=True)
    assert both.vocabulary == Vocabulary(
        entities=("Rome", "Italy"), relations=("in", "in (inverse)")
    )
    without = TripleDataModule(source=SyntheticKnowledgeGraph()).vocabulary
    assert (without.entities, without.relations) == (None, RELATIONS)
