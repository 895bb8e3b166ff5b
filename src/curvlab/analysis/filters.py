"""Learned filters of nodes: storage of coefficients, clusters, responses."""

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from curvlab.analysis.arrays import load_arrays
from curvlab.errors import UsageError
from curvlab.layers.spectral_filters import response

FILE = "filters.npz"

EIGENVALUES = np.linspace(0, 2, 201)
"""Eigenvalues of the normalised Laplacian at which responses are drawn."""

TOLERANCE = 1e-4
"""Largest difference of equal filters' responses, as a share of the largest response."""


@dataclass(frozen=True)
class FilterCluster:
    """Nodes with similar filters."""

    share: float  # of all nodes
    mean: np.ndarray  # of the responses
    low: np.ndarray  # 10th percentile of the responses
    high: np.ndarray  # 90th percentile


def load_filters(path: Path) -> dict[str, np.ndarray]:
    """Read a run's filters, or refuse a file of another kind.

    The arrays are the `coefficients [nodes, orders + 1]`, the name of the polynomial `basis` and,
    if the run may have used a part of the data set, the numbers of its `nodes`.
    """
    models = "runs of polyattn_mono, polyattn_cheb, unifilter_mono and unifilter_cheb write it"
    origin = f"{models}; models with more layers have no filter."
    return load_arrays(path, "filters", origin, {"coefficients", "basis"})


def filter_clusters(coefficients: np.ndarray, basis: str, count: int) -> list[FilterCluster]:
    """Cluster the responses by k-means, the largest cluster first.

    There are fewer than `count` clusters if there are fewer different filters.
    """
    from sklearn.cluster import KMeans

    if not 1 <= count <= len(coefficients):
        raise UsageError(f"--clusters {count} must lie between 1 and {len(coefficients)} nodes")
    polynomials = torch.from_numpy(coefficients).double()
    responses = response(basis, polynomials, torch.from_numpy(EIGENVALUES)).numpy()
    if np.ptp(responses, axis=0).max() <= TOLERANCE * np.abs(responses).max():
        count = 1
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Number of distinct clusters")  # nodes share filters
        labels = KMeans(count, n_init=4, random_state=0).fit_predict(responses)
    clusters = []
    for label in np.unique(labels):
        members = responses[labels == label]
        share = len(members) / len(responses)
        low, high = np.percentile(members, [10, 90], axis=0)
        clusters.append(FilterCluster(share, members.mean(0), low, high))
    return sorted(clusters, key=lambda cluster: -cluster.share)
