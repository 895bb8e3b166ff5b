"""A generated graph of any size that needs no file: power-law degrees, classes, features."""

from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from curvlab.data.cleaning import simple_edges
from curvlab.errors import UsageError


class SyntheticLarge:
    """A degree-corrected stochastic block model with Gaussian features.

    Node v has a class y_v, each with equal probability, and a propensity w_v from a Pareto law,
    `P(w > t) = t^(1 - exponent)` for t > 1. Each of `num_nodes * mean_degree / 2` edges starts at
    a node drawn in proportion to w and ends at one that is drawn so within a class: with
    probability `homophily` the same class, else one of the others. A node's expected degree is
    then proportional to w, and degrees have a tail with the exponent of w. Edges that were drawn
    twice count once, and loops not at all, so that the graph has slightly fewer. Features are
    `x_v = signal m_(y_v) + e_v` with a random unit vector m for each class and standard Gaussian
    noise e: at a small signal, neighbours know more of a node's class than it does itself.

    Source: Karrer and Newman 2011, "Stochastic blockmodels and community structure in networks".

    Args:
        num_nodes: Number of nodes, at least 2.
        mean_degree: Mean number of neighbours, before duplicates and loops are left out.
        exponent: Of the density of degrees, `p(d) ~ d^-exponent`, above 2.
        classes: Number of classes, at least 2 and at most `num_nodes`.
        homophily: Probability that an edge joins two nodes of a class, 0 to 1.
        features: Number of features, at least 1.
        signal: Length of the mean of the features of a class, at least 0.
        seed: Seed of the graph, not of the run: every run trains on the same graph.
    """

    def __init__(
        self,
        num_nodes: int,
        mean_degree: float,
        exponent: float,
        classes: int,
        homophily: float,
        features: int,
        signal: float,
        seed: int,
    ) -> None:
        if not 2 <= classes <= num_nodes or features < 1 or seed < 0:
            raise UsageError(
                f"classes={classes} must be from 2 to num_nodes={num_nodes}, features={features} "
                f"at least 1 and seed={seed} at least 0."
            )
        if not 0 < mean_degree < num_nodes or not exponent > 2 or not 0 <= signal < float("inf"):
            raise UsageError(
                f"mean_degree={mean_degree} must lie between 0 and num_nodes={num_nodes}, "
                f"exponent={exponent} above 2 (else degrees have no mean) and signal={signal} not "
                "below 0."
            )
        if not 0 <= homophily <= 1:
            raise UsageError(f"homophily={homophily} must lie between 0 and 1.")
        self.num_nodes = num_nodes
        self.mean_degree = mean_degree
        self.exponent = exponent
        self.classes = classes
        self.homophily = homophily
        self.features = features
        self.signal = signal
        self.seed = seed

    def download(self) -> list[Path]:
        """Return no files: the graph is generated."""
        return []

    def load(self) -> Data:
        """Return the graph: `x [nodes, features]`, `y [nodes]`, `edge_index [2, 2M]`."""
        generator = np.random.default_rng(self.seed)
        # Every class has a node, so that an edge that asks for one finds it.
        y = generator.integers(0, self.classes, self.num_nodes)
        y[: self.classes] = np.arange(self.classes)
        edges = self._edges(y, generator)
        means = generator.standard_normal((self.classes, self.features), dtype=np.float32)
        means *= self.signal / np.linalg.norm(means, axis=1, keepdims=True)
        x = generator.standard_normal((self.num_nodes, self.features), dtype=np.float32)
        x += means[y]
        return Data(
            x=torch.from_numpy(x),
            y=torch.from_numpy(y),
            edge_index=simple_edges(torch.from_numpy(edges), self.num_nodes),
            num_nodes=self.num_nodes,
        )

    def _edges(self, y: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Ends of the edges as drawn, `[2, num_nodes * mean_degree / 2]`."""
        count = round(self.num_nodes * self.mean_degree / 2)
        propensity = (1 - generator.random(self.num_nodes)) ** (-1 / (self.exponent - 1))
        # In the order of classes, every class is an interval of the running total.
        order = np.argsort(y, kind="stable")
        total = np.cumsum(propensity[order])
        ends = np.cumsum(np.bincount(y, minlength=self.classes))
        upper = total[ends - 1]
        lower = np.concatenate([[0.0], upper[:-1]])

        def drawn(low: np.ndarray | float, high: np.ndarray | float) -> np.ndarray:
            position = low + (high - low) * generator.random(count)
            return order[np.searchsorted(total[:-1], position, side="right")]

        source = drawn(0.0, total[-1])
        elsewhere = generator.random(count) >= self.homophily
        shift = generator.integers(1, self.classes, count)
        target_class = (y[source] + elsewhere * shift) % self.classes
        target = drawn(lower[target_class], upper[target_class])
        return np.stack([source, target])
