"""A generated graph that needs no file: a tree along which a disease has spread."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch_geometric.data import Data

from curvlab.data.files.cleaning import cleaned
from curvlab.data.files.sources import Generated
from curvlab.errors import UsageError
from curvlab.options import Fraction, PositiveInt, Seed


@dataclass(eq=False)
class SyntheticDisease(Generated):
    """Disease after an SIR process on a random tree, with HGCN's counts and moments, not its data.

    Every node down to the last level but one has a number of children drawn evenly from a range.
    The root is infected; a child of an infected parent is infected if it is susceptible, which it
    is with the given probability; a child of a healthy one never is. The label says who is
    infected. Features are Gaussian, their mean and deviation those of susceptible or of resistant
    nodes; a node that was never exposed is susceptible with the same probability, so that features
    alone do not separate the classes.

    Args:
        depth: levels below the root.
        min_children: fewest children of a node that is not on the last level.
        max_children: most children of such a node.
        infection: probability that an exposed node is infected.
        susceptible: mean and standard deviation of the features of susceptible nodes.
        resistant: mean and standard deviation of the features of resistant nodes.
        features: number of features.
        seed: of the graph, not of the run: every run trains on the same graph.

    Raises:
        UsageError: The most children are fewer than the fewest.
    """

    depth: PositiveInt = 5
    min_children: PositiveInt = 2
    max_children: PositiveInt = 6
    infection: Fraction = 0.618
    susceptible: Sequence[float] = (0.244, 0.84)
    resistant: Sequence[float] = (0.62, 0.75)
    features: PositiveInt = 1000
    seed: Seed = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_children < self.min_children:
            raise UsageError(
                f"max_children={self.max_children} must be at least "
                f"min_children={self.min_children}."
            )

    def load(self) -> Data:
        """Return the graph: `x [nodes, features]`, `y [nodes]` 0 or 1, `edge_index [2, 2M]`.

        Raises:
            UsageError: The disease infected nobody or everybody.
        """
        generator = np.random.default_rng(self.seed)
        parent = self._tree(generator)
        nodes = len(parent)
        susceptible = generator.random(nodes) < self.infection
        susceptible[0] = True
        infected = susceptible.copy()
        for node in range(1, nodes):  # parents come first
            infected[node] &= infected[parent[node]]
        moments = np.array([self.resistant, self.susceptible])
        mean, deviation = moments[susceptible.astype(int)].T
        x = generator.normal(mean[:, None], deviation[:, None], (nodes, self.features))
        raw = Data(
            x=torch.from_numpy(x),
            y=torch.from_numpy(infected.astype(np.int64)),
            edge_index=torch.from_numpy(np.stack([parent[1:], np.arange(1, nodes)])),
        )
        return cleaned(raw, num_classes=2)

    def _tree(self, generator: np.random.Generator) -> np.ndarray:
        """The parent of each node `[nodes]`, level by level; the root's is itself."""
        levels = [np.zeros(1, dtype=np.int64)]
        first = 0
        for _ in range(self.depth):
            size = len(levels[-1])
            counts = generator.integers(self.min_children, self.max_children, size, endpoint=True)
            levels.append(np.repeat(np.arange(first, first + size), counts))
            first += size
        return np.concatenate(levels)
