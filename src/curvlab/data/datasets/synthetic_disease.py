"""A generated graph: a tree along which a disease has spread."""

import numpy as np
import torch
from torch_geometric.data import Data

from curvlab.data.files.cleaning import clean
from curvlab.data.files.sources import Generated
from curvlab.options import PositiveInt, Seed

CHILDREN = (2, 6)  # fewest and most, of a node above the last level
INFECTION = 0.618  # probability that an exposed node is infected
SUSCEPTIBLE = (0.244, 0.84)  # mean and deviation of the features of susceptible nodes
RESISTANT = (0.62, 0.75)  # and of the others


class SyntheticDisease(Generated):
    """Disease after an SIR process on a random tree, with HGCN's counts and moments, not its data.

    The root is infected, and so is each susceptible child of an infected parent: the label.
    Features are Gaussian with the moments of susceptible or of resistant nodes, so that they alone
    do not separate the classes.

    Args:
        depth: levels below the root.
        features: number of features.
    """

    depth: PositiveInt = 5
    features: PositiveInt = 1000
    seed: Seed = 0

    def load(self) -> Data:
        generator = np.random.default_rng(self.seed)
        levels = [np.zeros(1, dtype=np.int64)]
        first = 0  # parents, level by level
        for _ in range(self.depth):
            size = len(levels[-1])
            counts = generator.integers(*CHILDREN, size, endpoint=True)
            levels.append(np.repeat(np.arange(first, first + size), counts))
            first += size
        parent = np.concatenate(levels)
        nodes = len(parent)
        susceptible = generator.random(nodes) < INFECTION
        susceptible[0] = True
        infected = susceptible.copy()
        for node in range(1, nodes):  # parents come first
            infected[node] &= infected[parent[node]]
        moments = np.array([RESISTANT, SUSCEPTIBLE])
        mean, deviation = moments[susceptible.astype(int)].T
        x = generator.normal(mean[:, None], deviation[:, None], (nodes, self.features))
        raw = Data(
            x=torch.from_numpy(x),
            y=torch.from_numpy(infected.astype(np.int64)),
            edge_index=torch.from_numpy(np.stack([parent[1:], np.arange(1, nodes)])),
        )
        return clean(raw, num_classes=2)
