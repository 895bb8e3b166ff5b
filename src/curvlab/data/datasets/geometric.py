r"""Generated graphs whose geometry is known: points of a space that are joined if they are near.

Node i has a point of a space of dimension D and a hidden degree kappa_i, and

    p_ij = 1 / (1 + chi_ij^beta),   chi_ij = d_ij / (mu kappa_i kappa_j)^(1/D),

On a circle with power-law hidden degrees this is the S1 model, whose points are those of the
hyperbolic plane. On a sphere or a square with equal hidden degrees nothing but the space is left.
"""

from abc import abstractmethod
from typing import Annotated, ClassVar

import numpy as np
import torch
from annotated_types import Gt, Interval
from scipy.optimize import brentq
from scipy.spatial.distance import cdist
from scipy.special import expit
from torch_geometric.data import Data
from torch_geometric.transforms import LargestConnectedComponents

from curvlab.data.files.cleaning import simple_edges
from curvlab.data.files.sources import Generated
from curvlab.errors import UsageError
from curvlab.options import NonNegativeFloat, PositiveFloat, Seed, Share

NODES = Annotated[int, Interval(ge=10, le=20000)]
"""Points of a graph: all pairs are drawn."""

CLASSES = 4
FEATURES = 64
FEATURE_DEGREE = 8.0  # mean number of features of a node
FEATURE_BETA = 3.0  # inverse temperature of the features


class GeometricGraph(Generated):
    """Graph, features and classes from points of one space, after HypBench.

    Edges are drawn with the probability above, with the `mu` that makes `mean_degree` the mean of
    the expected degrees; the largest component is kept. Features `x`, 0 or 1, are a graph between
    nodes and features in the same space (the bipartite S1 model); a share `correlation` of the
    nodes is at the same point there, and the rest at new points. Classes have centres at random
    points: a node is of class c with probability proportional to `d_ic^-homophily`. Source:
    Aliakbarisani et al. 2024, arXiv:2406.02772, which correlates features with edges by hidden
    degrees and angles instead.

    Args:
        mean_degree: mean of the expected degrees.
        beta: inverse temperature, above the space's dimension; the larger, the more triangles.
        correlation: share of the nodes whose features come from their own points.
        homophily: exponent with which a class's probability falls with distance; 0: no relation.
    """

    num_nodes: NODES = 500
    mean_degree: PositiveFloat = 8.0
    beta: PositiveFloat = 3.0
    correlation: Share = 1.0
    homophily: NonNegativeFloat = 3.0
    seed: Seed = 0

    dimension: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beta <= self.dimension:
            raise UsageError(
                f"beta={self.beta:g} must be above {self.dimension}, the dimension of the space: "
                "below it, every node is joined to far ones."
            )

    def load(self) -> Data:
        nodes = self.num_nodes
        generator = np.random.default_rng(self.seed)
        points = self.points(nodes, generator)
        hidden = self.hidden_degrees(nodes, generator)
        pairs = np.stack(np.triu_indices(nodes, k=1))
        i, j = pairs
        distance = self.distances(points, points)[i, j]
        mean = self.mean_degree / (nodes - 1)
        p = self.probabilities(distance, hidden[i] * hidden[j], self.beta, mean)
        linked = torch.from_numpy(pairs[:, generator.random(len(p)) < p])
        data = Data(edge_index=simple_edges(linked, nodes), num_nodes=nodes)
        data.x = torch.from_numpy(self._features(points, generator))
        distance = self.distances(points, self.points(CLASSES, generator))
        log_weight = -self.homophily * np.log(np.maximum(distance, 1e-12))
        gumbel = generator.gumbel(size=log_weight.shape)
        data.y = torch.from_numpy((log_weight + gumbel).argmax(axis=1))
        data = LargestConnectedComponents()(data)
        data.y = data.y.unique(return_inverse=True)[1]  # a class without a node is none
        return data

    @abstractmethod
    def points(self, count: int, generator: np.random.Generator) -> np.ndarray:
        """Uniform points `[count, coordinates]`."""

    @abstractmethod
    def distances(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Distances `[len(a), len(b)]`, the space having the volume 1."""

    def hidden_degrees(self, count: int, generator: np.random.Generator) -> np.ndarray:  # noqa: ARG002
        """Hidden degrees `[count]` of mean about 1: here all are equal."""
        return np.ones(count)

    def probabilities(
        self, distance: np.ndarray, products: np.ndarray, beta: float, mean: float
    ) -> np.ndarray:
        """`1 / (1 + (d / (mu kk')^(1/D))^beta)` of pairs, with the `mu` that gives them this mean.

        `products` are the pairs' `kk'`, of the shape of `distance`.
        """
        with np.errstate(divide="ignore"):  # a pair at one point is joined
            log_chi = beta * (np.log(distance) - np.log(products) / self.dimension)
        shift = brentq(lambda s: expit(s - log_chi).mean() - mean, -500.0, 500.0, xtol=1e-10)
        return expit(shift - log_chi)

    def _features(self, points: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """The features of the nodes, `[nodes, features]` of 0 and 1."""
        count = len(points)
        elsewhere = generator.random(count) >= self.correlation
        places = np.where(elsewhere[:, None], self.points(count, generator), points)
        hidden = self.hidden_degrees(count, generator)
        distance = self.distances(places, self.points(FEATURES, generator))
        products = np.outer(hidden, self.hidden_degrees(FEATURES, generator))
        p = self.probabilities(distance, products, FEATURE_BETA, FEATURE_DEGREE / FEATURES)
        return (generator.random(p.shape) < p).astype(np.float32)


class HyperbolicGraph(GeometricGraph):
    r"""The S1/H2 model: popularity and similarity, that is random points of the hyperbolic plane.

    Points are on a circle; hidden degrees, `p(kappa) ~ kappa^-exponent`, are the radii of the
    hyperbolic plane, `r = R - 2 ln(kappa / kappa_min)`, where the probability of an edge is a Fermi
    function of the distance with temperature `1 / beta`. Source: Serrano, Krioukov and Boguna 2008
    (S1); Krioukov et al. 2010, arXiv:1006.5169 (H2).

    Args:
        exponent: exponent of the density of degrees; the larger, the less degrees differ.
    """

    exponent: Annotated[float, Gt(2)] = 2.7

    def points(self, count: int, generator: np.random.Generator) -> np.ndarray:
        """Angles `[count, 1]` in turns."""
        return generator.random((count, 1))

    def distances(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Arcs in turns."""
        difference = np.abs(a - b.T)
        return np.minimum(difference, 1 - difference)

    def hidden_degrees(self, count: int, generator: np.random.Generator) -> np.ndarray:
        """Hidden degrees of a Pareto distribution with mean 1."""
        minimum = (self.exponent - 2) / (self.exponent - 1)
        return minimum * (1 - generator.random(count)) ** (-1 / (self.exponent - 1))


class SphericalGraph(GeometricGraph):
    """Points of a sphere, all of one hidden degree: the S2 model without popularity.

    Source: Jankowski et al. 2023, "The D-Mercator method", for S^D.
    """

    dimension = 2

    def points(self, count: int, generator: np.random.Generator) -> np.ndarray:
        """Unit vectors `[count, 3]`."""
        return sphere_points(count, generator)

    def distances(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Arcs of the sphere whose surface is 1."""
        chord = cdist(a, b) / 2
        return 2 * np.arcsin(np.minimum(chord, 1)) / np.sqrt(4 * np.pi)


class FlatGraph(GeometricGraph):
    """Points of a square, with its boundary, all of one hidden degree: a soft geometric graph.

    Source: Penrose 2016, "Connectivity of soft random geometric graphs".
    """

    dimension = 2

    def points(self, count: int, generator: np.random.Generator) -> np.ndarray:
        """Points `[count, 2]` of the unit square."""
        return generator.random((count, 2))

    def distances(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Euclidean distances; the square has the area 1."""
        return cdist(a, b)


def sphere_points(count: int, generator: np.random.Generator) -> np.ndarray:
    """Uniform points of the unit sphere, `[count, 3]`."""
    v = generator.standard_normal((count, 3))
    return v / np.linalg.norm(v, axis=1, keepdims=True)
