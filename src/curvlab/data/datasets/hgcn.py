"""Airport and Disease as HGCN (Chami et al., 2019) published them."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import load_npz
from torch_geometric.data import Data

from curvlab.data.datasets.labelled import LabelledGraph
from curvlab.data.datasets.networks import number_nodes, read_edge_list
from curvlab.data.files.pickles import read_pickle

POPULATION_EDGES = (1, 8 / 7, 9 / 7)  # between the four classes of airports
NUM_FEATURES = 4  # before the population


class _Node:
    """Stand-in for a pickled networkx object: its attributes."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


class AirportGraph(LabelledGraph, kw_only=True):
    """Airports and the routes between them, classified by the population of their country.

    Args:
        population: keep the quantity whose bins are the classes as a fifth feature.
    """

    population: bool = False

    @property
    def variant(self) -> str:
        return "-with-population"

    def load(self) -> Data:
        data = super().load()
        if not self.population:
            data.x = data.x[:, :NUM_FEATURES].contiguous()
        return data

    def read(self, paths: list[Path]) -> Data:
        stand_ins = {
            "networkx.classes.graph.Graph": _Node,
            "networkx.classes.reportviews.NodeView": _Node,
            "builtins.dict": dict,
        }
        graph = read_pickle(paths[0], stand_ins)
        number = {node: position for position, node in enumerate(graph._node)}
        values = np.array([attributes["feat"] for attributes in graph._node.values()])
        edges = []
        for node, neighbours in graph._adj.items():
            pairs = [(number[node], number[neighbour]) for neighbour in neighbours]
            edges += [pair for pair in pairs if pair[0] <= pair[1]]
        classes = np.digitize(values[:, NUM_FEATURES], POPULATION_EDGES)
        return Data(
            x=torch.from_numpy(values[:, : NUM_FEATURES + 1]),
            y=torch.from_numpy(classes),
            edge_index=torch.tensor(edges).T,
        )


class DiseaseGraph(LabelledGraph):
    """A tree along which a disease has spread; the label says who was infected."""

    def read(self, paths: list[Path]) -> Data:
        edges, labels, features = paths
        edge_index, num_nodes = number_nodes(read_edge_list(edges))
        return Data(
            x=torch.from_numpy(load_npz(features).toarray()),
            y=torch.from_numpy(np.load(labels, allow_pickle=False)),
            edge_index=edge_index,
            num_nodes=num_nodes,
        )
