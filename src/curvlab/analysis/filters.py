"""Learned filters of nodes: storage of coefficients, clusters, responses."""

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from curvlab.analysis.arrays import load_arrays
from curvlab.errors import UsageError
from curvlab.layers.spectral_filters import response

FILE = "filters.npz"

EIGENVALUES = np.linspace(0, 2, 201)
"""Eigenvalues of the normalised Laplacian at which responses are drawn."""

SAME = 1e-4
"""Filters are one if their responses differ by no more than this part of the largest: rounding."""


@dataclass(frozen=True)
class NodeFilters:
    """A polynomial filter of each node: `coefficients [nodes, orders + 1]` of a `basis`."""

    coefficients: Tensor
    basis: str
    nodes: Tensor | None = None  # their numbers in the dataset, if they may be a part of it


@dataclass(frozen=True)
class FilterCluster:
    """The `share` of nodes with similar filters; mean, 10th and 90th percentile of responses."""

    share: float
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def load_filters(path: Path) -> NodeFilters:
    """Read a run's filters, or refuse a file of another kind."""
    models = "runs of polyattn_mono, polyattn_cheb, unifilter_mono and unifilter_cheb write it"
    origin = f"{models}; the models with more layers make no filter."
    arrays = load_arrays(path, "filters", origin, {"coefficients", "basis"})
    nodes = torch.from_numpy(arrays["nodes"]) if "nodes" in arrays else None
    return NodeFilters(torch.from_numpy(arrays["coefficients"]), str(arrays["basis"]), nodes)


def filter_clusters(filters: NodeFilters, count: int) -> list[FilterCluster]:
    """k-means of the responses, the largest cluster first; fewer where fewer filters differ."""
    from sklearn.cluster import KMeans

    coefficients = filters.coefficients.double()
    if not 1 <= count <= len(coefficients):
        raise UsageError(f"--clusters {count} must lie between 1 and {len(coefficients)} nodes")
    responses = response(filters.basis, coefficients, torch.from_numpy(EIGENVALUES)).numpy()
    if np.ptp(responses, axis=0).max() <= SAME * np.abs(responses).max():
        count = 1
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Number of distinct clusters")  # a few filters for all
        members = KMeans(count, n_init=4, random_state=0).fit_predict(responses)
    clusters = []
    for label in np.unique(members):
        own = responses[members == label]
        low, high = np.percentile(own, [10, 90], axis=0)
        clusters.append(FilterCluster(len(own) / len(responses), own.mean(0), low, high))
    return sorted(clusters, key=lambda cluster: -cluster.share)
